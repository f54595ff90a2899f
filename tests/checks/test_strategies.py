"""What the strategies draw: validity by construction, and the shares of the regimes that matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from checks import EXPONENTIAL, Infeasible, att_svm, is_locally_optimal, optimal_tokens
from checks import strategies as attst


def drawn(strategy, count=200):
    """A seeded sample of `strategy`, without shrinking."""
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


def feasible(problem):
    try:
        att_svm(problem, optimal_tokens(problem))
    except Infeasible:
        return False
    return True


@given(problem=attst.selection_problems())
def test_entries_lie_on_the_lattice_within_the_ranges(problem):
    n, tokens, dim = problem.shape
    assert 1 <= n <= 4
    assert 2 <= tokens <= 5
    assert 2 <= dim <= 6
    for array in (problem.keys, problem.scores):
        np.testing.assert_array_equal(array * 8, np.round(array * 8))
    optimal_tokens(problem)  # Raises on a tie.


@pytest.mark.parametrize("lattice", [8, 2, None])
@given(data=st.data())
def test_separable_problems_are_feasible(lattice, data):
    problem = data.draw(attst.selection_problems(separable=True, lattice=lattice))
    assert feasible(problem)


@given(problem=attst.selection_problems(equal_nonoptimal=True, separable=True))
def test_assumption_b(problem):
    for scores in problem.scores:
        assert len(set(scores)) == 2
        assert (scores == scores.max()).sum() == 1


@given(problem=attst.selection_problems(general_position=True))
def test_general_position(problem):
    for keys, scores in zip(problem.keys, problem.scores, strict=True):
        assert len({tuple(key) for key in keys}) == len(keys)
        assert len(set(scores)) == len(scores)


@given(problem=attst.selection_problems(n=2, tokens=3, dim=1, loss=EXPONENTIAL))
def test_fixed_sizes_and_loss(problem):
    assert problem.shape == (2, 3, 1)
    assert problem.loss is EXPONENTIAL


def test_draws_are_varied():
    problems = drawn(attst.selection_problems())
    share = sum(feasible(p) for p in problems) / len(problems)
    tied = sum(any(len(set(row)) < len(row) for row in p.scores) for p in problems) / len(problems)
    # Measured .54 and .25: both regimes stay common.
    assert 0.3 < share < 0.8
    assert 0.1 < tied < 0.6
    assert len({p.shape for p in problems}) > 30
    assert np.std([float(np.abs(p.keys).max()) for p in problems]) > 0.3


def test_local_optima_other_than_the_global_one_are_drawn():
    small = attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True)
    pairs = drawn(small.flatmap(lambda p: attst.locally_optimal_selections(p).map(lambda a: (p, a))))
    assert all(is_locally_optimal(p, a) for p, a in pairs)
    others = sum(a != optimal_tokens(p) for p, a in pairs)
    # Measured .10: most small problems have no other local optimum.
    assert others / len(pairs) > 0.05


@given(data=st.data())
def test_nonoptimal_selections_are_feasible_and_not_locally_optimal(data):
    problem = data.draw(attst.selection_problems(n=(1, 2), tokens=3, dim=2, separable=True))
    alpha = data.draw(attst.nonoptimal_selections(problem))
    assert not is_locally_optimal(problem, alpha)


@given(data=st.data())
def test_points_in_cones_lie_inside(data):
    problem = data.draw(attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=(2, 4), separable=True))
    alpha = data.draw(attst.locally_optimal_selections(problem))
    cone = data.draw(attst.local_cones(problem, alpha))
    point = data.draw(attst.points_in_cone(cone))
    assert cone.excess(point) <= 8 * np.finfo(float).eps * len(point)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n: got 0, expected a whole number of at least 1"),
        ({"tokens": (1, 3)}, r"tokens: got \(1, 3\), expected a whole number of at least 2"),
        ({"dim": (3, 2)}, r"dim: got \(3, 2\)"),
        ({"equal_nonoptimal": True, "general_position": True}, "general_position: got True together"),
    ],
)
def test_bad_ranges_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        drawn(attst.selection_problems(**arguments), 1)
