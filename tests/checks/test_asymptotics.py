"""Decisions about how paths approach their limits: each outcome, each tolerance, each way to misuse them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq

from checks import (
    SelectionProblem,
    att_svm,
    converges_in_direction,
    diverges,
    gradient_descent,
    gradient_flow,
    lmm_directions,
    normalized_gd,
)
from checks import strategies as attst
from checks.asymptotics import (
    approach,
    avoids_direction,
    equals,
    error_falls_like,
    increments_converge_faster,
    norm_grows_like,
    offset_tends_to,
    tends_to_local_minimum,
    tends_to_one_of,
)
from checks.claims.ngd_norm_linear import critical_step
from checks.datasets import (
    SINGLE_LOCAL,
    STATIONARY_TWO_INPUTS,
    STIFF,
    TWO_LIMITS,
    VALLEY,
    ZERO_MULTIPLIER,
)

GMM, LMM = np.array([1.0, 3.0]), np.array([1.0, 0.0])
# Each input pulls its way up to its best token, which mirrors the other's; x rests between three tokens.
SADDLE = SelectionProblem(
    [[[0, 0], [1, 0], [-1, 0], [0, 1]], [[0, 0], [1, 0], [-1, 0], [0, -1]]], [[0.5, 0, -0.25, 1]] * 2
)
WILD = gradient_descent(SelectionProblem([[[-1.0], [0], [1]]], [[0, 1, 0]]), [0.5], step=50, steps=7)


def test_one_of_several_directions_is_named():
    path = gradient_flow(TWO_LIMITS, [4, 0])
    decision = tends_to_one_of(path, [GMM, LMM])
    assert decision.outcome == "yes"
    assert decision.why.startswith("target 1 of 2: ")
    assert decision.error <= sum(decision.tolerance.values()) < 1e-5


def test_none_of_the_directions_is_refused_with_the_nearest_distance():
    path = gradient_flow(TWO_LIMITS, [4, 0])
    decision = tends_to_one_of(path, [GMM, [0, -1]])
    assert decision.outcome == "no"
    assert decision.error == pytest.approx(np.linalg.norm(LMM - GMM / math.sqrt(10)), rel=1e-6)
    assert "its limit direction (1, " in decision.why
    empty = tends_to_one_of(path, [])
    assert empty.outcome == "no"
    assert "none of the 0 targets" in empty.why


def test_a_finite_limit_has_no_direction():
    path = gradient_flow(STATIONARY_TWO_INPUTS, [0, 0])
    assert tends_to_one_of(path, [GMM]).outcome == "no"
    assert avoids_direction(path, GMM).outcome == "yes"
    assert tends_to_local_minimum(path).outcome == "yes"


def test_avoiding_is_the_opposite_of_converging():
    path = gradient_flow(TWO_LIMITS, [4, 0])
    assert avoids_direction(path, GMM).outcome == "yes"
    assert avoids_direction(path, LMM).outcome == "no"


def test_what_cannot_be_followed_is_undecided():
    for decision in (
        tends_to_one_of(WILD, [[1]]),
        avoids_direction(WILD, [1]),
        tends_to_local_minimum(WILD),
        error_falls_like(WILD, [1]),
        increments_converge_faster(WILD, [1]),
        offset_tends_to(WILD, [1], [0]),
        norm_grows_like(WILD, 1, "log steps", [1]),
    ):
        assert decision.outcome == "undecided"
        assert "above 1/L" in decision.why


def test_a_saddle_is_no_local_minimum():
    along_the_axis = brentq(lambda x: SADDLE.gradient([x, 0])[0], 0, 1, xtol=1e-15)
    path = gradient_flow(SADDLE, [along_the_axis, 0])
    assert approach(path).kind == "point"
    decision = tends_to_local_minimum(path)
    assert decision.outcome == "no"
    assert decision.error > 0.01
    # From beside the axis the path passes by the saddle, and the way from there on is a valley.
    passing = gradient_flow(SADDLE, [0.5, 1e-6])
    assert tends_to_local_minimum(passing).outcome == "no"
    assert tends_to_one_of(passing, [[0, 1]]).outcome == "yes"


@pytest.mark.parametrize("start", [(0, 0), (1, 2), (-2, -1)])
def test_a_valley_is_a_direction_and_no_point(start):
    path = gradient_flow(VALLEY, start)
    assert diverges(path).outcome == "no"  # what the gradient, cancelled to rounding, looks like
    found = approach(path)
    assert found.kind == "direction"
    np.testing.assert_allclose(found.vector, [0, 1], atol=found.resolution + 3 * found.drift)
    assert tends_to_one_of(path, [[1, 0], [0, 1]]).outcome == "yes"
    assert tends_to_one_of(path, [[1, 0], [1, 10]]).outcome == "no"
    assert tends_to_local_minimum(path).outcome == "no"


def test_a_flat_minimum_is_neither_a_valley_nor_decided():
    # The first input rests at x = 0; nothing there depends on y but its two equal tokens.
    flat = SelectionProblem(
        [[[0.0, 0], [1, 1], [-1, -1]], [[0.0, 0], [1, -1], [-1, 1]]], [[1, 0, 0], [0, 0, 0]]
    )
    path = gradient_flow(flat, [0.3, 0.2])
    assert approach(path).kind == "point"


@pytest.mark.parametrize("start", [(0, 0), (1, -2), (-1, 3)])
def test_error_falls_like_the_norm_and_no_faster(start):
    path = gradient_flow(SINGLE_LOCAL, start)
    [target] = [
        s.solution.vector
        for s in lmm_directions(SINGLE_LOCAL)
        if tends_to_one_of(path, [s.solution.vector]).outcome == "yes"
    ]
    bounded = error_falls_like(path, target)
    assert bounded.outcome == "yes"
    assert bounded.error < 1e-4 < bounded.tolerance["integrator"]
    assert error_falls_like(path, target, power=2).outcome == "no"
    assert error_falls_like(path, target, power=0.5).outcome == "yes"
    assert increments_converge_faster(path, target).outcome == "yes"


def test_a_zero_multiplier_makes_the_product_grow():
    decision = error_falls_like(gradient_flow(ZERO_MULTIPLIER, [0, 0]), [1, 0])
    assert decision.outcome == "no"
    # A decade of the norm costs log 10 in the offset, in logits √2 times as much.
    assert decision.error == pytest.approx(math.sqrt(2) * math.log(10), rel=1e-3)


def test_rates_need_the_right_limit():
    path = gradient_flow(TWO_LIMITS, [4, 0])
    for decide in (error_falls_like, increments_converge_faster):
        assert decide(path, GMM).outcome == "no"
    assert offset_tends_to(path, GMM, [0, 0]).outcome == "no"


def test_a_flow_that_runs_out_of_steps_leaves_rates_undecided(monkeypatch):
    path = gradient_descent(SINGLE_LOCAL, [0, 0.25], steps=20)
    assert converges_in_direction(path, [-0.1, 1]).outcome == "yes"
    monkeypatch.setattr("checks.trainers.flow._MAX_STEPS", 3)
    for decision in (
        error_falls_like(path, [-0.1, 1]),
        increments_converge_faster(path, [-0.1, 1]),
        offset_tends_to(path, [-0.1, 1], [0, 0]),
        norm_grows_like(path, 1, "log steps", [-0.1, 1]),
    ):
        assert decision.outcome == "undecided"
        assert "(budget)" in decision.why


def test_a_path_on_its_ray_has_no_offset_to_fall():
    path = gradient_flow(STIFF, [1, 0])
    decision = increments_converge_faster(path, [1, 0])
    assert decision.outcome == "yes"
    assert "integrator's error" in decision.why


def test_increments_that_are_faster_by_a_logarithm_are_undecided():
    """With a zero multiplier the offset log R gains log 10 per decade: the ratio is 1/log R, not zero."""
    path = gradient_flow(ZERO_MULTIPLIER, [0, 0])
    decision = increments_converge_faster(path, [1, 0])
    assert decision.outcome == "undecided"
    assert decision.error == pytest.approx(math.log(10) / 0.9 / math.log(1e10), rel=0.03)


@pytest.mark.parametrize(("shift", "outcome"), [(0, "yes"), (0.03, "undecided"), (1, "no")])
def test_offset_is_held_against_its_prediction(shift, outcome):
    path = gradient_flow(TWO_LIMITS, [4, 0], 1e3)
    farther = gradient_flow(TWO_LIMITS, path.points[-1], 1e4)
    predicted = farther.points[-1] * [0, 1] + np.array([0, shift])
    assert offset_tends_to(path, LMM, predicted).outcome == outcome


def test_normalised_norm_grows_like_the_step_below_the_threshold_only():
    for share, outcome in ((0.9, "yes"), (1.1, "no")):
        step = share * critical_step(att_svm(STIFF, (0,)))
        run = normalized_gd(STIFF, [1, 0.03], step, 1_000)
        assert norm_grows_like(run, step, "steps", [1, 0]).outcome == outcome
        # On the other clock it runs away from any rate.
        assert norm_grows_like(run, 1e-3, "log steps", [1, 0]).outcome == "no"


@pytest.mark.parametrize(("rate", "outcome"), [(1, "yes"), (1.01, "no"), (1 + 1e-8, "undecided")])
def test_norm_of_descent_grows_like_log_t(rate, outcome):
    run = gradient_descent(SINGLE_LOCAL, [0, -1], steps=50)
    assert norm_grows_like(run, rate, "log steps", [1, 0]).outcome == outcome
    assert norm_grows_like(run, run.step, "steps", [1, 0]).outcome == "no"


def test_norm_of_a_path_that_stays_finite_grows_like_nothing():
    run = gradient_descent(STATIONARY_TWO_INPUTS, [0, 0], steps=50)
    assert norm_grows_like(run, 1, "log steps", [1, 0]).outcome == "no"


def test_too_few_steps_are_undecided():
    decision = norm_grows_like(normalized_gd(STIFF, [1, 0], 0.001, 5), 0.001, "steps", [1, 0])
    assert decision.outcome == "undecided"
    assert "5 steps are too few" in decision.why


def test_slow_turns_are_accounted_for_and_zigzags_are_not():
    """Beside the ray, with steps too small to move on, the norm gains the cosine of an angle."""
    run = normalized_gd(SINGLE_LOCAL, [100, 0.3], 1e-4, 1_000)
    decision = norm_grows_like(run, 1e-4, "steps", [1, 0])
    assert decision.outcome == "yes"
    assert decision.error == pytest.approx(0.003**2 / 2, rel=0.01)
    # Two successive windows alone would have taken that for a rate that is not the step.
    assert decision.error > 10 * decision.tolerance["horizon"]
    zigzag = normalized_gd(STIFF, [50.0, 0.0625], 0.006, 1_000)
    decision = norm_grows_like(zigzag, 0.006, "steps", [1, 0])
    assert decision.outcome == "no"
    assert decision.tolerance["turning"] < 1e-4


@given(
    problem=attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True),
    data=st.data(),
)
def test_the_threshold_is_the_curvature_that_the_flow_sees(problem, data):
    """`h` from the multipliers against the Jacobian of the unit gradient at the far end of a flow."""
    alpha = data.draw(attst.regular_selections(problem))
    solution = att_svm(problem, alpha)
    critical = critical_step(solution)
    assume(critical < np.inf)
    flow = gradient_flow(problem, 8 * solution.vector, 1e6)
    assume(tends_to_one_of(flow, [solution.vector]).outcome == "yes")
    axis = solution.direction
    across = np.array([-axis[1], axis[0]])
    _, jacobian = problem.pairs.descent_jacobian(flow.points[-1])
    # Weights are off by the 1e-3 logits of the integrator and the multipliers' offset of as much.
    assert -2 / float(across @ jacobian @ across) == pytest.approx(critical, rel=2e-2)


@pytest.mark.parametrize(
    ("error", "outcome"), [(0.0, "yes"), (0.3, "yes"), (0.31, "undecided"), (3.1, "no"), (math.inf, "no")]
)
def test_equals_grades_by_the_sum_of_the_parts(error, outcome):
    decision = equals("size", 1 + error, 1, {"step": 0.2, "rounding": 0.1 + 1e-12}, "its size")
    assert decision.outcome == outcome
    assert decision.name == "size"
    assert decision.why.startswith("its size: measured ")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: tends_to_one_of(path, [[0, 0]]), "target: got the zero vector"),
        (lambda path: error_falls_like(path, [1, 0], power=0), "power: got 0, expected a positive"),
        (lambda path: offset_tends_to(path, [1, 0], [0, 0, 1]), r"offset: got shape \(3,\)"),
        (
            lambda path: norm_grows_like(path, 1, "steps", [1, 0]),
            "path: got gradient flow, expected a discrete",
        ),
        (lambda path: norm_grows_like(path, 0, "steps", [1, 0]), "rate: got 0, expected a positive"),
        (lambda path: norm_grows_like(path, 1, "steps", [0, 0]), "target: got the zero vector"),
        (lambda path: norm_grows_like(path, 1, "hours", [1, 0]), "clock: got 'hours', expected 'steps' or"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(gradient_flow(TWO_LIMITS, [4, 0]))
