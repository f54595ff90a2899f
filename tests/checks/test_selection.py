"""Optimal tokens, neighbours, local optimality, and the complete list of LMM directions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from checks.margin import Infeasible, att_svm
from checks.problems import SelectionProblem
from checks.selection import (
    EnumerationLimitError,
    feasible_selections,
    general_position_faults,
    in_general_position,
    is_locally_optimal,
    lmm_directions,
    optimal_tokens,
    svm_neighbours,
)

# Two LMM directions although all non-optimal scores are equal.
TWO_LIMITS = SelectionProblem([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]], [[1, 0], [1, 0]])


def lattice_problem(seed, shape, denominator=8):
    rng = np.random.default_rng(seed)
    keys = np.round(rng.standard_normal(shape) * denominator) / denominator
    scores = np.round(rng.standard_normal(shape[:2]) * denominator) / denominator
    return SelectionProblem(keys, scores)


# --- Single selections --------------------------------------------------------------------------


def test_optimal_tokens_of_a_problem_and_of_scores():
    assert optimal_tokens(TWO_LIMITS) == (0, 0)
    assert optimal_tokens([[0, 2, 1], [5, -1, 4]]) == (1, 0)


def test_tied_optimal_tokens_are_named():
    with pytest.raises(ValueError, match=r"scores\[1\]: got the highest score 3 at the tokens \[0, 2\]"):
        optimal_tokens([[1, 0, 0], [3, 1, 3]])


def test_neighbours_of_a_published_set():
    problem = SelectionProblem([[[-0.1, 1], [1, 0], [0, 0]]], [[1, 0.9, 0]])
    # p_mm(0) is tight at the origin alone; p_mm(1) = (1, 0) too.
    assert svm_neighbours(problem, (0,)) == (frozenset({2}),)
    assert svm_neighbours(problem, (1,)) == (frozenset({2}),)
    assert is_locally_optimal(problem, (1,))
    equal = SelectionProblem(problem.keys, [[1, 0.9, 0.9]])
    assert not is_locally_optimal(equal, (1,))


def test_neighbour_with_zero_multiplier_is_a_neighbour():
    problem = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0, 2]])
    assert svm_neighbours(problem, (0,)) == (frozenset({1, 2}),)
    assert not is_locally_optimal(problem, (0,))


def test_margin_above_one_by_rounding_only_is_no_neighbour():
    problem = SelectionProblem([[[0, 0], [-1, 0], [np.nextafter(-1, -2), -1]]], [[1, 0, 2]])
    assert svm_neighbours(problem, (0,)) == (frozenset({1}),)
    assert is_locally_optimal(problem, (0,))


def test_tie_with_a_neighbour_is_not_locally_optimal():
    problem = SelectionProblem([[[1, 0.25], [1, -0.25], [0, 0]]], [[1, 1, 0]])
    np.testing.assert_allclose(att_svm(problem, (0,)).vector, [0.5, 2])
    assert svm_neighbours(problem, (0,)) == (frozenset({1, 2}),)
    assert not is_locally_optimal(problem, (0,))
    assert lmm_directions(problem) == []


def test_infeasible_selection_is_not_locally_optimal():
    problem = SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]])
    assert not is_locally_optimal(problem, (0,))
    with pytest.raises(Infeasible):
        svm_neighbours(problem, (0,))


@pytest.mark.parametrize("alpha", [(0,), (0, 2), (0, 0.5)])
def test_bad_selections_are_named(alpha):
    for function in (svm_neighbours, is_locally_optimal):
        with pytest.raises(ValueError, match="alpha"):
            function(TWO_LIMITS, alpha)


# --- Enumeration --------------------------------------------------------------------------------


def test_two_lmm_directions_under_equal_scores():
    first, second = lmm_directions(TWO_LIMITS)
    assert (first.alpha, first.is_global) == ((0, 0), True)
    np.testing.assert_allclose(first.solution.vector, [1, 3])
    assert (second.alpha, second.is_global) == ((0, 1), False)
    np.testing.assert_allclose(second.solution.vector, [1, 0])
    assert second.neighbours == (frozenset({1}), frozenset())


def test_local_direction_without_a_separable_optimum():
    problem = SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]])
    assert [s.alpha for s in lmm_directions(problem)] == []
    problem = SelectionProblem([[[0], [1], [-1]]], [[0, 1, 0.5]])
    assert [(s.alpha, s.is_global) for s in lmm_directions(problem)] == [((1,), True), ((2,), False)]


@pytest.mark.parametrize("shape", [(1, 4, 2), (2, 3, 1), (3, 3, 2), (4, 3, 3), (3, 4, 3)])
@pytest.mark.parametrize("denominator", [1, 8])
def test_enumeration_finds_what_trying_all_selections_finds(shape, denominator):
    n, tokens, _ = shape
    for seed in range(4):
        problem = lattice_problem(seed, shape, denominator)
        feasible, local = [], []
        for alpha in itertools.product(range(tokens), repeat=n):
            try:
                solution = att_svm(problem, alpha)
            except Infeasible:
                continue
            feasible.append((alpha, solution.exact.vector))
            if is_locally_optimal(problem, alpha):
                local.append(alpha)
        found = list(feasible_selections(problem.keys))
        assert [(alpha, solution.exact.vector) for alpha, solution in found] == feasible
        assert sorted(s.alpha for s in lmm_directions(problem)) == local


def test_selections_are_sorted_and_certified():
    problem = lattice_problem(5, (5, 4, 3))
    selections = lmm_directions(problem)
    assert len(selections) > 2
    assert [s.is_global for s in selections] == sorted((s.is_global for s in selections), reverse=True)
    local = [s.solution.margin for s in selections if not s.is_global]
    assert local == sorted(local, reverse=True)
    for selection in selections:
        assert selection.solution.exact.violations() == ()
        assert selection.neighbours == svm_neighbours(problem, selection.alpha)


def test_no_selection_is_global_when_optimal_scores_tie():
    problem = SelectionProblem([[[1, 0], [0, 1], [-1, -1]]], [[1, 1, 0]])
    selections = lmm_directions(problem)
    assert not any(s.is_global for s in selections)


@pytest.mark.parametrize("seed", range(3))
def test_enumeration_is_equivariant(seed):
    rng = np.random.default_rng(seed)
    problem = lattice_problem(seed, (4, 3, 3))
    base = {s.alpha for s in lmm_directions(problem)}
    inputs, order = rng.permutation(4), rng.permutation(3)
    permuted = SelectionProblem(problem.keys[inputs][:, order], problem.scores[inputs][:, order])
    expected = {tuple(int(np.argsort(order)[alpha[i]]) for i in inputs) for alpha in base}
    assert {s.alpha for s in lmm_directions(permuted)} == expected


def test_enumeration_stops_at_its_limit():
    # In dimension n·T every selection of generic keys is feasible.
    rng = np.random.default_rng(0)
    problem = SelectionProblem(rng.standard_normal((4, 3, 12)), rng.standard_normal((4, 3)))
    assert len(list(feasible_selections(problem.keys))) == 3**4
    with pytest.raises(EnumerationLimitError, match="gave up after 50 solves"):
        lmm_directions(problem, limit=50)


# --- General position ---------------------------------------------------------------------------


def test_general_position_faults_are_named():
    problem = SelectionProblem(
        [[[0, 0], [1, 0], [0.0, -0.0]], [[1, 2], [3, 4], [5, 6]]], [[1, 2, 3], [1, 0.5, 1]]
    )
    assert general_position_faults(problem) == (
        "keys[0]: tokens 0 and 2 have the same key",
        "scores[1]: tokens 0 and 2 tie",
    )
    assert not in_general_position(problem)
    nearly = np.array(problem.keys)
    nearly[0, 2, 1] = 1e-250
    assert in_general_position(SelectionProblem(nearly, [[1, 2, 3], [1, 0.5, np.nextafter(1, 2)]]))


def test_degenerate_selections_are_flagged():
    problem = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0.5, 0]])
    flags = {s.alpha: s.solution.is_degenerate for s in lmm_directions(problem)}
    assert flags[0,]
