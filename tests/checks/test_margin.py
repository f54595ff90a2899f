"""Hard-margin oracles: known answers, certificates, refusals, and symmetries of the problem."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from checks.margin import Infeasible, att_svm, hard_margin, label_svm
from checks.problems import JointProblem, SelectionProblem

# Floating-point solutions are accepted only with an estimated relative error below this.
ACCURACY = 1e-11


def random_problem(seed, shape, lattice=None, separable=True):
    """Gaussian keys, and a selection that is separable by construction unless asked otherwise."""
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal(shape)
    if lattice is not None:
        keys = np.round(keys * lattice) / lattice
    query = rng.standard_normal(shape[2])
    alpha = (keys @ query).argmax(axis=1) if separable else rng.integers(0, shape[1], shape[0])
    return SelectionProblem(keys, rng.standard_normal(shape[:2])), tuple(alpha.tolist())


def rows_of(problem, alpha):
    keys = problem.keys
    return np.array(
        [keys[i, a] - keys[i, t] for i, a in enumerate(alpha) for t in range(keys.shape[1]) if t != a]
    )


def assert_certified(solution):
    assert solution.exact.violations() == ()
    assert solution.error <= ACCURACY
    # Each is a sum of at most a few hundred rounded terms of the size it is divided by.
    assert max(solution.residuals.primal, solution.residuals.stationarity) <= 1e-13
    assert solution.residuals.complementarity <= 1e-12
    assert 0 <= solution.gap <= 1e-9


# --- Cases with right answers -------------------------------------------------------------------


@pytest.mark.parametrize("exponent", range(-6, 7))
def test_scale_of_the_data_does_not_matter(exponent):
    a = 10.0**exponent
    points = np.array([[a, 0], [-a, 0], [0, a]])
    solution = hard_margin(points * np.array([1, -1, 1])[:, None])
    np.testing.assert_allclose(solution.vector, [1 / a, 1 / a], rtol=1e-15)
    joint = JointProblem(np.stack([points, np.zeros((3, 2))], axis=1), [1, -1, 1])
    np.testing.assert_allclose(label_svm(joint, (0, 0, 0)).vector, [1 / a, 1 / a], rtol=1e-15)


def test_rows_of_very_different_scales():
    # min ‖w‖ subject to 1e-150 w1 >= 1 and 1e150 w2 >= 1.
    solution = hard_margin([[1e-150, 0], [0, 1e150]])
    np.testing.assert_allclose(solution.vector, [1e150, 1e-150], rtol=1e-15)
    # Squares of the vector would underflow.
    tiny = hard_margin([[1e155, 0], [0, 2e155]])
    assert tiny.margin == pytest.approx(1e155 * math.sqrt(0.8), rel=1e-15)
    np.testing.assert_allclose(tiny.direction, np.array([2, 1]) / math.sqrt(5), rtol=1e-15)


def test_opposite_rows_are_infeasible():
    with pytest.raises(Infeasible, match=r"because rows\[0\] \+ rows\[1\] is zero") as caught:
        hard_margin([[1.0], [-1.0]])
    assert caught.value.certificate == (1, 1)
    assert caught.value.proof.violations() == ()


def test_duplicate_of_the_selected_key_is_infeasible():
    problem = SelectionProblem([[[1, 2], [0, 3], [1, 2]]], [[2, 1, 0]])
    with pytest.raises(Infeasible, match=r"selection \(0,\).* because \(k\[0,0\] - k\[0,2\]\) is") as caught:
        att_svm(problem, (0,))
    assert caught.value.certificate == (0, 1)


def test_long_proofs_are_counted_not_printed():
    rng = np.random.default_rng(0)
    with pytest.raises(Infeasible, match=r"positive coefficients of \d+ constraint rows is zero"):
        hard_margin(rng.standard_normal((40, 3)))


@pytest.mark.parametrize(
    ("third", "relaxed", "expected"),
    [
        ((0.5, 1), (), (4 / 3, 1 / 3)),
        ((0.5, 1.5), (), (1.25, 0.25)),
        ((0.5, 1.5), (2,), (1, 0)),
    ],
)
def test_published_joint_sets(third, relaxed, expected):
    tokens = [[[1, 1], [0, 0]], [[1, -1], [0, 0]], [third, [0, 0]]]
    joint = JointProblem(tokens, [1, -1, 1])
    solution = att_svm(SelectionProblem(tokens, [[1, 0]] * 3), (0, 0, 0), relaxed=relaxed)
    np.testing.assert_allclose(solution.vector, expected, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(label_svm(joint, (0, 0, 0)).vector, [0, 1], atol=1e-15)


def test_multipliers_of_the_published_tight_set():
    tokens = [[[1, 1], [0, 0]], [[1, -1], [0, 0]], [[0.5, 1], [0, 0]]]
    solution = att_svm(SelectionProblem(tokens, [[1, 0]] * 3), (0, 0, 0))
    expected = [[0, 0], [0, 7 / 9], [0, 10 / 9]]
    np.testing.assert_allclose(solution.duals, expected, rtol=1e-14, atol=1e-15)
    assert solution.exact.duals == (0, Fraction(7, 9), Fraction(10, 9))
    assert solution.exact.norm_squared == Fraction(17, 9)
    assert solution.active.tolist() == [[False, False], [False, True], [False, True]]
    assert label_svm(JointProblem(tokens, [1, -1, 1]), (0, 0, 0)).duals.shape == (3,)


def test_published_single_input_set():
    problem = SelectionProblem([[[-0.1, 1], [1, 0], [0, 0]]], [[1, 0.9, 0.9]])
    solution = att_svm(problem, (0,))
    np.testing.assert_allclose(solution.direction, np.array([-0.1, 1]) / math.sqrt(1.01), rtol=1e-15)
    assert 0.5 / solution.margin**2 == pytest.approx(0.4950495049504950, rel=1e-15)


def test_infeasible_under_equal_scores():
    problem = SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]])
    with pytest.raises(Infeasible):
        att_svm(problem, (0,))


# --- Degenerate sets ----------------------------------------------------------------------------


def test_support_vector_with_zero_multiplier_is_flagged():
    problem = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0, 0]])
    solution = att_svm(problem, (0,))
    np.testing.assert_array_equal(solution.vector, [1, 0])
    assert solution.active.tolist() == [[False, True, True]]
    assert solution.zero_multipliers.tolist() == [[False, False, True]]
    assert solution.is_degenerate


def test_nearly_tight_row_counts_as_zero_multiplier():
    # The third key is off the margin by less than any computation at finite norm resolves.
    problem = SelectionProblem([[[0, 0], [-1, 0], [-1 - 1e-15, -1]]], [[1, 0, 0]])
    solution = att_svm(problem, (0,))
    assert solution.exact.active == (True, False)
    assert solution.zero_multipliers.tolist() == [[False, False, True]]


def test_repeated_rows_share_a_multiplier_and_are_not_degenerate():
    # The dual solution is not unique: some other one is positive on both rows.
    solution = hard_margin([[1, 0], [1, 0]])
    np.testing.assert_array_equal(solution.vector, [1, 0])
    assert solution.active.all()
    assert not solution.is_degenerate


def test_dependent_support_vectors():
    # Three tight rows in a plane of multipliers; only the outer pair can be needed.
    solution = hard_margin([[1, 1], [1, -1], [1, 0]])
    np.testing.assert_allclose(solution.vector, [1, 0], atol=1e-15)
    assert solution.active.all()
    assert not solution.is_degenerate


@pytest.mark.parametrize("seed", range(20))
def test_degenerate_lattice_sets_are_certified(seed):
    # Entries in {-1, 0, 1}: repeated, opposite and dependent rows, ties and zero rows throughout.
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, (8, 3)).astype(float)
    rows *= np.where(rows @ [1, 0.6, 0.3] < 0, -1, 1)[:, None]
    rows = rows[rows.any(axis=1)]
    assert_certified(hard_margin(rows))
    with pytest.raises(Infeasible) as caught:
        hard_margin(np.vstack([rows, -rows[:1]]))
    assert caught.value.proof.violations() == ()


def test_margin_below_rounding_is_decided_exactly():
    # The sine of the angle between the rows is 1e-20: in floating point they are opposite.
    rows = np.array([[1.0, 1e-20], [-1.0, 0.0]])
    solution = hard_margin(rows)
    np.testing.assert_allclose(solution.vector, [-1, 2e20], rtol=1e-15)
    with pytest.raises(Infeasible):
        hard_margin(np.vstack([rows, [[0, -1]]]))


def test_key_differences_are_taken_exactly():
    # 1 - 1e-17 rounds to 1: the float rows are opposite, the exact ones are not.
    problem = SelectionProblem([[[1e-17, 1e-17], [1, 0]], [[1, 0], [0, 0]]], [[1, 0], [1, 0]])
    solution = att_svm(problem, (0, 0))
    x, y = solution.exact.vector
    assert x == 1
    assert Fraction(1e-17) * y == 2 - Fraction(1e-17)


# --- Relaxed and unequal margins ----------------------------------------------------------------


def test_relaxed_inputs_need_margin_zero_only():
    problem = SelectionProblem([[[1, 0], [0, 0]], [[-1, 1], [0, 0]]], [[1, 0], [1, 0]])
    np.testing.assert_allclose(att_svm(problem, (0, 0)).vector, [1, 2])
    relaxed = att_svm(problem, (0, 0), relaxed=(1,))
    np.testing.assert_allclose(relaxed.vector, [1, 1])
    assert_certified(relaxed)


def test_margins_scale_the_solution():
    rows = [[2.0, 1.0], [1.0, -1.0], [0.0, 1.0]]
    margins = np.array([1.0, 2.0, 0.5])
    base = hard_margin(rows, margins)
    np.testing.assert_allclose(hard_margin(rows, 3 * margins).vector, 3 * base.vector)
    assert_certified(base)


# --- Against another solver ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 7, 2), (4, 4, 5), (6, 8, 10)])
@pytest.mark.parametrize("lattice", [None, 8])
def test_agrees_with_a_conic_solver(shape, lattice):
    for seed in range(5):
        problem, alpha = random_problem(seed, shape, lattice)
        solution = att_svm(problem, alpha)
        assert_certified(solution)
        w = cp.Variable(shape[2])
        cp.Problem(cp.Minimize(cp.sum_squares(w)), [rows_of(problem, alpha) @ w >= 1]).solve(
            solver=cp.CLARABEL
        )
        # The conic solver stops at a relative gap of 1e-8, which leaves its root in the vector.
        np.testing.assert_allclose(w.value, solution.vector, atol=1e-4 / solution.margin)
        assert np.linalg.norm(w.value) >= (1 - 1e-6) / solution.margin


def test_infeasible_selections_are_found_out():
    verdicts = []
    for seed in range(60):
        problem, alpha = random_problem(seed, (3, 4, 2), separable=False)
        w, t = cp.Variable(2), cp.Variable()
        bounds = [rows_of(problem, alpha) @ w >= t, cp.norm_inf(w) <= 1]
        largest = cp.Problem(cp.Maximize(t), bounds).solve(solver=cp.CLARABEL)
        # Accurate to 1e-8 by its own account; no margin of these sets is that small.
        verdicts.append(largest > 1e-7)
        if verdicts[-1]:
            assert_certified(att_svm(problem, alpha))
        else:
            with pytest.raises(Infeasible) as caught:
                att_svm(problem, alpha)
            assert caught.value.proof.violations() == ()
    assert 5 <= sum(verdicts) <= 55


# --- Symmetries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_symmetries(seed):
    rng = np.random.default_rng(100 + seed)
    problem, alpha = random_problem(seed, (3, 5, 4))
    n, tokens, dim = problem.shape
    base = att_svm(problem, alpha)

    def solve(keys, selection=alpha):
        return att_svm(SelectionProblem(keys, problem.scores), selection)

    order = rng.permutation(tokens)
    permuted = solve(problem.keys[:, order], [int(np.flatnonzero(order == a)[0]) for a in alpha])
    np.testing.assert_allclose(permuted.vector, base.vector, rtol=ACCURACY)
    np.testing.assert_allclose(permuted.duals, base.duals[:, order], atol=ACCURACY)

    inputs = rng.permutation(n)
    permuted = solve(problem.keys[inputs], np.array(alpha)[inputs])
    np.testing.assert_allclose(permuted.vector, base.vector, rtol=ACCURACY)

    rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    rotated = solve(problem.keys @ rotation.T)
    np.testing.assert_allclose(rotated.vector, rotation @ base.vector, atol=ACCURACY)

    scaled = solve(8 * problem.keys)
    np.testing.assert_array_equal(scaled.vector, base.vector / 8)

    shift = np.zeros_like(problem.keys)
    shift[1] = rng.standard_normal(dim)
    np.testing.assert_allclose(solve(problem.keys + shift).vector, base.vector, rtol=1e-10)


def test_a_constraint_met_with_room_changes_nothing():
    problem, alpha = random_problem(3, (3, 5, 4))
    rows = rows_of(problem, alpha)
    base = hard_margin(rows)
    extra = hard_margin(np.vstack([rows, 3 * base.vector / np.dot(base.vector, base.vector)]))
    np.testing.assert_allclose(extra.vector, base.vector, rtol=ACCURACY)
    assert extra.duals[-1] == 0


# --- Refusals and plumbing ----------------------------------------------------------------------

PROBLEM = SelectionProblem([[[1, 0], [0, 1], [0, 0]]] * 2, [[2, 1, 0]] * 2)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ((0,), r"alpha: got 1 entries, \(0,\), expected 2 token indices from 0 to 2"),
        ((0, 3), r"alpha\[1\]: got 3, expected 2 token indices from 0 to 2"),
        ((-1, 0), r"alpha\[0\]: got -1"),
        ((0.0, 1), r"alpha: got \(0.0, 1\), expected"),
        (0, r"alpha: got 0, expected"),
    ],
)
def test_bad_selections_are_named(alpha, message):
    with pytest.raises(ValueError, match=message):
        att_svm(PROBLEM, alpha)
    with pytest.raises(ValueError, match=message):
        label_svm(JointProblem(PROBLEM.keys, [1, 1]), alpha)


@pytest.mark.parametrize(
    ("relaxed", "message"),
    [((2,), "relaxed: got 2, expected indices of inputs from 0 to 1"), ((0, 1), "got all 2 inputs")],
)
def test_bad_relaxations_are_named(relaxed, message):
    with pytest.raises(ValueError, match=message):
        att_svm(PROBLEM, (0, 0), relaxed=relaxed)


@pytest.mark.parametrize(
    ("rows", "margins", "message"),
    [
        ([[1.0, math.nan]], 1, r"rows\[0, 1\]: got nan"),
        ([[1.0, math.inf]], 1, r"rows\[0, 1\]: got inf"),
        (np.zeros((0, 2)), 1, r"rows: got shape \(0, 2\)"),
        ([1.0, 2.0], 1, r"rows: got shape \(2,\), expected an array of shape \(m, D\)"),
        ([[1.0]], [1, 2], r"margins: got shape \(2,\), expected a number or \(1,\)"),
        ([[1.0]], -1, r"margins: got \[-1.0\], expected no negative entry"),
        ([[1.0]], 0, r"margins: got \[0.0\], expected .* a positive one"),
        ([[1.0]], math.nan, r"margins\[0\]: got nan"),
        ([[1e-300]], 1e300, "leaves the range of double precision"),
        ([[5e-324]], 1, "leaves the range of double precision"),
        ([[1e200]], 1, "leaves the range of double precision"),
    ],
)
def test_bad_rows_are_named(rows, margins, message):
    with pytest.raises(ValueError, match=message):
        hard_margin(rows, margins)


def test_solutions_and_proofs_cross_process_boundaries():
    solution = att_svm(PROBLEM, (0, 0))
    again = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(again.vector, solution.vector)
    assert again.exact == solution.exact
    with pytest.raises(Infeasible) as caught:
        hard_margin([[1.0], [-2.0]])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.certificate == caught.value.certificate == (2, 1)


def test_solutions_are_read_only():
    solution = att_svm(PROBLEM, (0, 0))
    for array in (solution.vector, solution.duals, solution.active, solution.direction):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
