"""General position of keys, and strategies for statements about almost every start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from checks import Cone, Infeasible, SelectionProblem, att_svm, is_locally_optimal, lmm_directions
from checks import strategies as attst
from checks.datasets import (
    SEPARATRIX,
    SINGLE_LOCAL,
    STATIONARY_ONE_INPUT,
    TIED_MARGINS,
    TWO_LIMITS,
    VALLEY,
)
from checks.generic import keys_in_general_position

SMALL = attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3), general_position=True)


def drawn(strategy, count=100):
    values = []

    @seed(0)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value):
        values.append(value)

    collect()
    return values


@pytest.mark.parametrize("problem", [SINGLE_LOCAL, STATIONARY_ONE_INPUT, TWO_LIMITS])
def test_keys_in_general_position(problem):
    assert keys_in_general_position(problem)


@pytest.mark.parametrize("problem", [VALLEY, TIED_MARGINS, SEPARATRIX])
def test_coincidences_are_seen_and_vanish_when_keys_are_moved(problem):
    assert not keys_in_general_position(problem)
    noise = np.random.default_rng(0).uniform(-1e-3, 1e-3, problem.keys.shape)
    assert keys_in_general_position(SelectionProblem(problem.keys + noise, problem.scores))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # Three on a line are a coincidence at the far side of all others, and where a fourth has them next to
        # it on one side; not where others come between.
        ([[[0, 0], [1, 0], [-1, 0], [0, -1]]], False),
        ([[[0, 0], [1, 0], [-1, 0], [0.5, -1], [0.25, 1]]], False),
        ([[[0, 0], [1, 0], [-1, 0], [0.3, 0.5], [-0.2, 1], [-0.4, -0.5], [0.1, -1]]], True),
        # Parallel sides that look the same way, and parallel sides that look opposite ways.
        ([[[0, 0], [1, 0], [0, -1]], [[0, 0], [2.1, 0], [3.3, -1.7]]], False),
        ([[[0, 0], [1, 0], [0, -1]], [[0, 0], [2.1, 0], [3.3, 1.7]]], True),
        # Three keys at the same distance from a fourth, as seen along an axis.
        ([[[0, 0], [-1, 0], [-1, 1], [-1, -2]]], False),
        # A duplicate at a corner, and one with no selection left to separate it.
        ([[[0], [0], [1]]], False),
        ([[[1, 1], [1, 1]]], False),
        # Keys in a plane of space: the dimension of their span counts.
        ([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], True),
    ],
)
def test_general_position_of_small_sets(keys, expected):
    array = np.array(keys, dtype=float)
    scores = np.arange(array[..., 0].size).reshape(array.shape[:2])
    assert keys_in_general_position(SelectionProblem(array, scores)) == expected


@given(problem=SMALL, data=st.data())
def test_general_position_does_not_depend_on_coordinates(problem, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = problem.shape[2]
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    shifts = rng.normal(size=(problem.shape[0], 1, size))
    tokens = rng.permutation(problem.shape[1])
    moved = SelectionProblem((3 * problem.keys @ rotation + shifts)[:, tokens], problem.scores[:, tokens])
    assert keys_in_general_position(moved) == keys_in_general_position(problem)


@given(problem=SMALL)
def test_in_general_position_multipliers_are_unique(problem):
    assume(keys_in_general_position(problem))
    for selection in lmm_directions(problem):
        constraints = selection.solution.constraints
        tight = constraints.rows[np.array(selection.solution.certificate.active)]
        assert np.linalg.matrix_rank(tight) == len(tight)


def test_most_small_problems_are_in_general_position():
    # Measured .87: a filter that keeps most.
    assert np.mean([keys_in_general_position(p) for p in drawn(SMALL)]) > 0.75


def test_generic_starts_keep_near_the_lattice_and_never_on_it():
    starts = drawn(attst.generic_starts(TWO_LIMITS))
    offsets = np.array(starts) - np.round(np.array(starts) * 8) / 8
    assert np.abs(offsets).max() <= 1 / 16
    # A hundred uniform offsets in the plane: the nearest to an axis at about 1/3200, and none on it.
    assert 1e-6 < np.abs(offsets).min() < 5e-3
    assert len({tuple(s) for s in starts}) > 90


@given(data=st.data())
def test_generic_points_in_cones_lie_inside_and_off_the_axis(data):
    size = data.draw(st.integers(1, 4))
    cone = Cone(data.draw(attst.nonzero(attst.vectors(size))), 1 / 8, 2)
    point = data.draw(attst.generic_points_in_cone(cone))
    assert cone.excess(point) <= 8 * np.finfo(float).eps * size
    if size > 1:
        assert point @ cone.axis < np.linalg.norm(point)


@given(data=st.data())
def test_feasible_selections_are_drawn_from_all_that_have_a_solution(data):
    problem = data.draw(SMALL)
    att_svm(problem, data.draw(attst.feasible_selections(problem)))


def test_every_feasible_selection_is_drawn():
    # Of the nine pairs of tokens; the margins say which.
    problem = SEPARATRIX
    feasible = set()
    for alpha in np.ndindex(3, 3):
        try:
            att_svm(problem, alpha)
            feasible.add(alpha)
        except Infeasible:
            continue
    assert set(drawn(attst.feasible_selections(problem))) == feasible
    assert len(feasible) == 5


@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 3), dim=2, separable=True), data=st.data())
def test_regular_selections_have_unique_positive_multipliers(problem, data):
    alpha = data.draw(attst.regular_selections(problem))
    solution = att_svm(problem, alpha)
    assert is_locally_optimal(problem, alpha)
    assert attst.has_regular_multipliers(solution)
    assert not solution.is_degenerate
    assert (solution.duals[solution.active] > 0).all()
