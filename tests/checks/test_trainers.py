"""Gradient descent, normalised gradient descent and gradient flow on cases with known ends."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import (
    EXPONENTIAL,
    LOGISTIC,
    SelectionProblem,
    att_svm,
    gradient_descent,
    gradient_flow,
    lmm_directions,
    normalized_gd,
    optimal_tokens,
)
from checks import strategies as attst
from checks.datasets import SINGLE_GLOBAL, SINGLE_LOCAL, SINGLE_STARTS, STATIONARY_ONE_INPUT, TWO_LIMITS

FIRST = np.array([-0.1, 1]) / math.sqrt(1.01)


@pytest.mark.parametrize("start", SINGLE_STARTS)
def test_flow_reaches_the_global_direction_of_the_published_set(start):
    flow = gradient_flow(SINGLE_GLOBAL, start, to_norm=1e6)
    np.testing.assert_allclose(flow.direction, FIRST, atol=1e-8)


@pytest.mark.parametrize(
    ("start", "end"), list(zip(SINGLE_STARTS, [FIRST] * 4 + [np.array([1, 0])] * 2, strict=True))
)
def test_flow_reaches_the_local_or_global_direction_of_the_published_set(start, end):
    flow = gradient_flow(SINGLE_LOCAL, start, to_norm=1e6)
    np.testing.assert_allclose(flow.direction, end, atol=1e-8)


@pytest.mark.parametrize(("steps", "degrees"), [(1_000, 1.30), (5_000, 0.26), (10_000, 0.13)])
def test_normalised_descent_keeps_improving(steps, degrees):
    run = normalized_gd(SINGLE_GLOBAL, [0, 0], 0.1, steps)
    cosine = run.points[-1] @ FIRST / run.norms[-1]
    assert math.degrees(math.acos(cosine)) == pytest.approx(degrees, abs=0.005)


@pytest.mark.parametrize("start", [-5.0, -1.0, 0.0, 0.5, 1.0])
def test_flow_stops_at_an_attracting_point_and_does_not_jump_over_it(start):
    flow = gradient_flow(STATIONARY_ONE_INPUT, [start], to_norm=1e5)
    assert flow.end == "stationary"
    assert flow.stationary_point.attracting
    # A sign change of the slope brackets the point to 1e-12.
    point = float(flow.points[-1, 0])
    assert STATIONARY_ONE_INPUT.gradient([point - 1e-12])[0] < 0
    assert STATIONARY_ONE_INPUT.gradient([point + 1e-12])[0] > 0


def test_the_same_set_diverges_from_the_other_side():
    assert gradient_flow(STATIONARY_ONE_INPUT, [3.0], to_norm=1e5).end == "horizon"


def test_infeasible_optimum_in_the_hull_ends_at_its_finite_limit():
    problem = SelectionProblem([[[-1.0], [0], [1]]], [[0, 1, 0]])
    flow = gradient_flow(problem, [2.0])
    np.testing.assert_allclose(flow.points[-1], [0], atol=1e-12)
    np.testing.assert_allclose(problem.attention(flow.points[-1]), [[1 / 3] * 3], rtol=1e-12)
    np.testing.assert_allclose(gradient_descent(problem, [2.0]).points[-1], [0], atol=1e-8)


def test_tied_optimal_scores_share_the_attention():
    problem = SelectionProblem([[[1, 0], [0, 1], [0, 0]]], [[1, 1, 0]])
    flow = gradient_flow(problem, [0, 0], to_norm=1e6)
    np.testing.assert_allclose(flow.direction, [math.sqrt(0.5)] * 2, atol=1e-12)
    np.testing.assert_allclose(problem.attention(flow.points[-1]), [[0.5, 0.5, 0]], atol=1e-12)


@pytest.mark.parametrize("gain", [1, 2, 5, 10, 100])
def test_unequal_gains_end_in_the_same_direction_at_the_predicted_offset(gain):
    problem = SelectionProblem([[[0, 0], [1, 1]], [[0, 0], [1, -1]]], [[0, gain], [0, 1]])
    flow = gradient_flow(problem, [0, 0], to_norm=1e6)
    np.testing.assert_allclose(flow.direction, [1, 0], atol=1e-9)
    # Balance of the two weights: C |ℓ'(C)| e^{-(p1+p2)} = |ℓ'(1)| e^{-(p1-p2)}.
    offset = (math.log(gain) + LOGISTIC.log_abs_slope(gain) - LOGISTIC.log_abs_slope(1.0)) / 2
    # The integrator keeps logits to 1e-3 per step and the slow manifold attracts.
    assert flow.points[-1, 1] == pytest.approx(offset, abs=1e-3)


def test_two_limits_from_two_starts():
    np.testing.assert_allclose(gradient_flow(TWO_LIMITS, [2, 0], 1e6).direction, [1, 0], atol=1e-9)
    np.testing.assert_allclose(
        gradient_flow(TWO_LIMITS, [0, 0], 1e6).direction, np.array([1, 3]) / math.sqrt(10), atol=1e-9
    )


def test_flow_keeps_to_the_symmetry_axis_of_a_separatrix():
    """Neither LMM direction is reached from (2, 0): the limit (1, 0) belongs to no local optimum."""
    problem = SelectionProblem([[[1, 0], [0, 0], [0, 1]], [[1, 0], [0, 0], [0, -1]]], [[0.5, -1, 0.625]] * 2)
    flow = gradient_flow(problem, [2, 0], 1e6)
    np.testing.assert_array_equal(flow.direction, [1, 0])
    assert all(abs(s.solution.direction[0]) < 0.99 for s in lmm_directions(problem))


def test_physical_time_of_the_flow_matches_small_steps():
    problem = SelectionProblem([[[0, 0], [-1, 0.5], [0.25, -1]]], [[1, 0, 0.25]], EXPONENTIAL)
    flow = gradient_flow(problem, [0.25, 0], to_norm=3)
    steps = 20_000
    descent = gradient_descent(problem, [0.25, 0], math.exp(flow.log_times[-1]) / steps, steps)
    # Euler's error here is of the order of the step, 1e-3; the flow's is 1e-3 logits per step.
    np.testing.assert_allclose(descent.points[-1], flow.points[-1], atol=5e-3)


def test_norm_of_the_flow_grows_like_log_time_over_the_margin():
    problem = SelectionProblem([[[0, 0], [-1, 0.5], [0.25, -1]]], [[1, 0, 0.25]])
    flow = gradient_flow(problem, [0, 0], to_norm=1e6)
    norm_per_log_time = flow.norms[-1] / flow.log_times[-1]
    solution = att_svm(problem, optimal_tokens(problem))
    assert norm_per_log_time == pytest.approx(1 / solution.margin, rel=1e-4)


def test_zero_gradient_is_stationary_not_nan():
    problem = SelectionProblem([[[1, 0], [0, 1]]], [[1, 1]])
    for path in (gradient_descent(problem, [1, 2]), normalized_gd(problem, [1, 2])):
        assert path.end == "at rest"
        np.testing.assert_array_equal(path.points, [[1, 2]])
    flow = gradient_flow(problem, [1, 2])
    assert flow.end == "stationary"
    np.testing.assert_array_equal(flow.points, [[1, 2]])


def test_tiny_gradient_has_a_direction():
    problem = SelectionProblem([[[1e-200, 1e-200], [0, 0]]], [[1, 0]])
    run = normalized_gd(problem, [0, 0], 1.0, 1)
    np.testing.assert_allclose(run.points[-1], [math.sqrt(0.5)] * 2)


@given(problem=attst.selection_problems(), data=st.data())
def test_risk_never_rises_with_the_default_step(problem, data):
    start = data.draw(attst.starts(problem))
    path = gradient_descent(problem, start, steps=30)
    risks = [problem.risk(p) for p in path.points]
    assert all(b <= a + 1e-15 * max(1, abs(a)) for a, b in itertools.pairwise(risks))


@given(problem=attst.selection_problems(separable=True, n=(1, 3), dim=(2, 4)), data=st.data())
def test_flow_is_equivariant_under_rotation_and_scaling_of_the_keys(problem, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rotation = np.linalg.qr(rng.normal(size=(problem.shape[2],) * 2))[0]
    start = data.draw(attst.starts(problem))
    flow = gradient_flow(problem, start, 1e6)
    turned = gradient_flow(
        SelectionProblem(problem.keys @ rotation * 2, problem.scores), start @ rotation / 2, 1e6
    )
    if flow.end == turned.end == "horizon":
        # Near a separatrix the two can part; elsewhere directions agree to the decision tolerance.
        difference = np.linalg.norm(turned.direction - flow.direction @ rotation)
        assert difference < 1e-5 or _close_to_separatrix(problem, start)


def _close_to_separatrix(problem, start):
    ends = [
        gradient_flow(problem, start + shift, 1e6).direction
        for shift in 1e-2 * np.vstack([np.eye(start.size), -np.eye(start.size)])
    ]
    return any(np.linalg.norm(end - ends[0]) > 1e-3 for end in ends)


@pytest.mark.parametrize(
    ("trainer", "arguments", "message"),
    [
        (gradient_descent, {"start": [1, 2, 3]}, r"start: got shape \(3,\), expected \(2,\)"),
        (gradient_descent, {"start": [0, math.nan]}, r"start\[1\]: got nan"),
        (gradient_descent, {"start": [0, 0], "step": 0}, "step: got 0, expected a positive"),
        (normalized_gd, {"start": [0, 0], "steps": 1.5}, "steps: got 1.5, expected a whole"),
        (gradient_flow, {"start": [3, 4], "to_norm": 5}, "to_norm: got 5, expected more than the norm 5"),
    ],
)
def test_bad_arguments_are_named(trainer, arguments, message):
    with pytest.raises(ValueError, match=message):
        trainer(SINGLE_GLOBAL, **arguments)
