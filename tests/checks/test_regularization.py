"""Minimisers over balls: against closed forms, a brute-force grid, first-order conditions and symmetries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import (
    CORRELATION,
    EXPONENTIAL,
    LOGISTIC,
    SelectionProblem,
    att_svm,
    minimisers_tend_to,
    optimal_tokens,
    regularization_path,
)
from checks import strategies as attst
from checks.claim import Refuted
from checks.claims.thm1_global_path import global_path
from checks.datasets import SINGLE_GLOBAL, SINGLE_LOCAL, STATIONARY_ONE_INPUT, TWO_LIMITS
from checks.trainers.regularization import LogGap, ball_minima

RADII = np.array([1e2, 1e3, 1e4])
ZERO_MULTIPLIER = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0, 0]])
TIED = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[0, 0, -1]])
losses = st.sampled_from([LOGISTIC, EXPONENTIAL, CORRELATION])


def offsets(problem, radii):
    """`p̄(R) − R q̂` for the global max-margin direction."""
    radii, minimisers = regularization_path(problem, radii)
    return minimisers - radii[:, None] * att_svm(problem, optimal_tokens(problem)).direction


# --- The minimisers ------------------------------------------------------------------------------


def test_a_zero_multiplier_by_its_equation():
    """Keys with `a = (1, 0), (1, 1)` and equal weights: the offset solves `w(1 + e^w) = √(R² − w²)`."""
    for radius, offset in zip(RADII, offsets(ZERO_MULTIPLIER, RADII), strict=True):
        w = offset[1]
        assert w * (1 + math.exp(w)) == pytest.approx(math.sqrt(radius**2 - w**2), rel=1e-9)


def test_offsets_with_positive_multipliers_stay_bounded():
    """Two support vectors in balance, `c_i e^{−a_i·w} ∝ λ_i`: 0.26794 logits at any large radius."""
    found = np.linalg.norm(offsets(TWO_LIMITS, np.array([1e3, 1e4, 1e5])), axis=1)
    np.testing.assert_allclose(found, 0.26794, atol=1e-4)
    assert (np.linalg.norm(offsets(SINGLE_GLOBAL, [1e3, 1e6]), axis=1) < 1e-8).all()


def test_minima_inside_and_on_the_sphere():
    """One dimension: the local minimum at −0.26 is global until the gain far right is in reach."""
    _, found = regularization_path(STATIONARY_ONE_INPUT, [0.1, 1, 10])
    np.testing.assert_allclose(found[:, 0], [-0.1, -0.26264231, 10], atol=1e-8)


def test_an_inseparable_optimum_keeps_the_minimiser_at_home():
    _, found = regularization_path(SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]]), RADII)
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_a_constant_risk_has_the_origin():
    radii, found = regularization_path(SelectionProblem([[[0, 1], [1, 0]]], [[1, 1]]), [1, 2])
    np.testing.assert_array_equal(radii, [1, 2])
    np.testing.assert_array_equal(found, np.zeros((2, 2)))


def test_tied_optimal_tokens_share_the_attention():
    """The better placed of two tied tokens leads; the other need not be left behind."""
    _, found = regularization_path(TIED, RADII)
    np.testing.assert_allclose(found / RADII[:, None], np.sqrt([[0.5, 0.5]] * 3), atol=1e-8)


def test_radii_come_back_in_their_order():
    radii, found = regularization_path(TWO_LIMITS, [30, 3, 30, 10])
    np.testing.assert_array_equal(radii, [30, 3, 30, 10])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), radii)
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("radii", "p", "message"),
    [
        ([1, 2], 3, "p: got 3, expected 2"),
        ([1, 0], 2, "radii: got 0, expected positive"),
        ([], 2, "radii: got shape"),
        (5.0, 2, "radii: got shape"),
        ([1, math.inf], 2, r"radii\[1\]: got inf"),
    ],
)
def test_bad_arguments_are_named(radii, p, message):
    with pytest.raises(ValueError, match=message):
        regularization_path(TWO_LIMITS, radii, p)


@settings(max_examples=60)
@given(
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 4)),
    loss=losses,
    logits=st.sampled_from([0.5, 5, 50, 5e4]),
)
def test_minimisers_meet_the_first_order_conditions(problem, loss, logits):
    """Inside the gradient vanishes, on the sphere it is parallel to the point and points inwards."""
    problem = SelectionProblem(problem.keys, problem.scores, loss)
    radius = logits / problem.pairs.logit_scale
    (minimum,) = ball_minima(problem, [radius])
    p = minimum.point
    norm = float(np.linalg.norm(p))
    assert norm <= radius * (1 + 1e-12)
    descent = problem.descent(p)
    # The direction of the gradient is right to the rounding of the logits.
    rounding = 1e-11 + 32 * float(np.finfo(float).eps) * logits
    if norm < radius * (1 - 1e-9):
        # A plateau, on which other tokens hold the attention, is flat to rounding.
        flat = descent.log_norm - minimum.log_gap < math.log(1e-12) + math.log(problem.pairs.logit_scale)
        assert descent.cancellation <= rounding or flat
    elif descent.log_norm - minimum.log_gap > -20:
        np.testing.assert_allclose(descent.direction, p / norm, atol=max(1e-7, rounding))


@settings(max_examples=60)
@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=2), logits=st.sampled_from([2, 30]))
def test_no_point_of_a_grid_does_better(problem, logits):
    """By the plain risk, as defined: softmax, mean score, loss."""
    radius = logits / problem.pairs.logit_scale
    angles = np.linspace(0, 2 * math.pi, 361)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    grid = np.concatenate([r * circle for r in radius * np.linspace(0, 1, 41) ** 2])
    exponentials = np.exp(np.einsum("itd,gd->git", problem.keys, grid))
    attention = exponentials / exponentials.sum(axis=2, keepdims=True)
    risks = LOGISTIC.value((attention * problem.scores).sum(axis=2)).mean(axis=1)
    _, (found,) = regularization_path(problem, [radius])
    assert problem.risk(found) <= risks.min() + 1e-9


@settings(max_examples=20)
@given(
    problem=attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True),
    angle=st.integers(1, 7),
    scale=st.sampled_from([0.01, 0.5, 30.0]),
)
def test_minimisers_turn_and_scale_with_the_keys(problem, angle, scale):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    moved = SelectionProblem(scale * problem.keys @ turn.T + 1, problem.scores)
    radii = np.array([20, 2e3]) / att_svm(problem, optimal_tokens(problem)).margin
    _, first = regularization_path(problem, radii)
    _, second = regularization_path(moved, radii / scale)
    # Unless two minima are equally deep: then the same depth is reached.
    gaps = [LogGap(problem).values(points) for points in (first, scale * second @ turn)]
    np.testing.assert_allclose(gaps[0], gaps[1], rtol=1e-9, atol=1e-9)


def test_the_search_reports_what_it_did():
    for minimum in ball_minima(SINGLE_LOCAL, [1.0, 1e3]):
        assert 2 <= minimum.agreeing <= minimum.starts
        assert minimum.residual < 1e-12
        assert minimum.log_gap == pytest.approx(LogGap(SINGLE_LOCAL).value(minimum.point), rel=1e-14)


# --- The log-domain gap ----------------------------------------------------------------------------


@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3)), loss=losses, data=st.data())
def test_gap_is_the_logarithm_of_what_the_risk_is_above_its_infimum(problem, loss, data):
    problem = SelectionProblem(problem.keys, problem.scores, loss)
    p = data.draw(attst.starts(problem))
    excess = problem.risk(p) - float(loss.value(problem.scores.max(axis=1)).mean())
    gap = math.exp(LogGap(problem).value(p)) / problem.shape[0]
    assert gap == pytest.approx(excess, rel=1e-9, abs=1e-13)


@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3)), loss=losses, data=st.data())
def test_derivatives_of_the_gap_are_differences(problem, loss, data):
    gap = LogGap(SelectionProblem(problem.keys, problem.scores, loss))
    p = data.draw(attst.starts(problem))
    gradient, hessian = gap.derivatives(p, gap.value(p))
    h = 1e-4
    shifts = h * np.eye(len(p))
    slopes = [(gap.value(p + e) - gap.value(p - e)) / (2 * h) for e in shifts]
    # Third derivatives are at most of the order of the logit scale cubed.
    tolerance = 10 * h**2 * (1 + gap.logit_scale) ** 3
    np.testing.assert_allclose(gradient, slopes, atol=tolerance)
    around = [
        (gap.derivatives(p + e, gap.value(p + e))[0] - gap.derivatives(p - e, gap.value(p - e))[0]) / (2 * h)
        for e in shifts
    ]
    np.testing.assert_allclose(hessian, around, atol=tolerance * (1 + gap.logit_scale))


def test_gap_does_not_underflow():
    gap = LogGap(SINGLE_GLOBAL)
    target = att_svm(SINGLE_GLOBAL, (0,))
    far = gap.values(np.array([1e6, 1e7])[:, None] * target.direction)
    assert far[1] - far[0] == pytest.approx(-target.margin * 9e6)


# --- The decision ------------------------------------------------------------------------------------


def test_the_global_direction_is_accepted_and_others_are_not():
    radii, found = regularization_path(TWO_LIMITS, RADII)
    right = minimisers_tend_to(TWO_LIMITS, radii, found, [1, 3])
    assert (right.outcome, right.basis) == ("yes", "certificate: ball")
    assert set(right.tolerance) == {"target", "minimiser", "horizon"}
    assert right.error < sum(right.tolerance.values()) < 1e-3
    for wrong in ([1, 0], [1, 3.001], [-1, -3]):
        assert minimisers_tend_to(TWO_LIMITS, radii, found, wrong).outcome == "no"


def test_without_a_certificate_the_secants_decide():
    radii, found = regularization_path(TIED, RADII)
    right = minimisers_tend_to(TIED, radii, found, [1, 1])
    assert (right.outcome, right.basis) == ("yes", "search")
    assert minimisers_tend_to(TIED, radii, found, [1, 1.01]).outcome == "no"


def test_a_zero_multiplier_is_slow_and_still_converges():
    radii, found = regularization_path(ZERO_MULTIPLIER, RADII)
    assert minimisers_tend_to(ZERO_MULTIPLIER, radii, found, [1, 0], slow=True).outcome == "yes"
    offsets = np.linalg.norm(found - radii[:, None] * [1, 0], axis=1)
    assert np.diff(offsets).min() > 1.8  # log 10 in the limit, so O(1/R) does not hold


@pytest.mark.parametrize(
    ("power", "slow", "outcome"),
    [
        (0, False, "yes"),
        (0.3, False, "undecided"),
        (0.6, False, "no"),
        (0, True, "yes"),
        (0.45, True, "undecided"),
        (0.7, True, "no"),
    ],
)
def test_offsets_have_to_grow_as_claimed(power, slow, outcome):
    """Points of norm R in the right direction, but `R^power / 5` off sideways."""
    sideways = 0.2 * RADII**power
    along = np.sqrt(RADII**2 - sideways**2)
    points = np.stack([along - 3 * sideways, 3 * along + sideways], axis=1) / math.sqrt(10)
    decision = minimisers_tend_to(TWO_LIMITS, RADII, points, [1, 3], slow)
    assert decision.outcome == outcome, decision
    assert (outcome == "yes") == ("horizon" in decision.tolerance)


def test_a_search_that_missed_the_minimum_is_undecided():
    decision = minimisers_tend_to(TWO_LIMITS, RADII, RADII[:, None] * [1.0, 0.0], [1, 0])
    assert decision.outcome == "undecided"
    assert "disagree" in decision.why


def test_minimisers_that_stay_are_no_convergence():
    decision = minimisers_tend_to(TIED, RADII, [[1, 1], [2, 2], [2, 2]], [1, 1])
    assert decision.outcome == "no"
    assert "do not move outwards" in decision.why


@pytest.mark.parametrize(
    ("radii", "points", "target", "message"),
    [
        ([1, 2], np.ones((2, 2)), [1, 0], "radii: got .*, expected at least three"),
        ([1, 3, 2], np.ones((3, 2)), [1, 0], "radii: got .*, expected at least three"),
        ([1, 2, 3], np.ones((2, 2)), [1, 0], r"minimisers: got shape \(2, 2\), expected \(3, 2\)"),
        ([1, 2, 3], np.ones((3, 2)), [0, 0], "target: got the zero vector"),
        ([1, 2, 3], np.ones((3, 2)), [1, 0, 0], r"target: got shape \(3,\)"),
    ],
)
def test_bad_arguments_of_the_decision_are_named(radii, points, target, message):
    with pytest.raises(ValueError, match=message):
        minimisers_tend_to(TWO_LIMITS, radii, points, target)


# --- The claim ---------------------------------------------------------------------------------------


def test_the_property_by_hand():
    global_path(SINGLE_LOCAL, (0,), "max-margin")
    global_path(ZERO_MULTIPLIER, (0,), "max-margin")
    with pytest.raises(Refuted, match="from the target"):
        global_path(SINGLE_LOCAL, (1,), "max-margin")
    with pytest.raises(Refuted, match="from the target"):
        global_path(SINGLE_LOCAL, (0,), "mean difference")
    with pytest.raises(Refuted, match="from the target"):
        global_path(TIED, (0,), "max-margin")
