"""Certificates must be true: each is held against the field, the flow or a second method, and against
variants that are false and must be refused.
"""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import event, given, settings
from hypothesis import strategies as st

from checks import (
    CORRELATION,
    EXPONENTIAL,
    LOGISTIC,
    Infeasible,
    LocalCone,
    SelectionProblem,
    att_svm,
    diverges,
    gradient_descent,
    gradient_flow,
    lmm_directions,
    normalized_gd,
    stationary,
)
from checks import strategies as attst
from checks.certificates import (
    ball_certificate,
    certified_cone,
    cone_containing,
    contraction_ball,
    verified_cone,
)
from checks.certificates.enclosures import curvature, descent_slope, gradient_and_hessian, vector
from checks.certificates.stationary import _existence
from checks.datasets import (
    NARROW,
    SINGLE_GLOBAL,
    SINGLE_LOCAL,
    SINGLE_STARTS,
    STATIONARY_ONE_INPUT,
    STATIONARY_TWO_INPUTS,
    TWO_LIMITS,
)
from checks.limits import limit_of, planar_certificate, point_certificate

losses = st.sampled_from([LOGISTIC, EXPONENTIAL, CORRELATION])
planar = attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=2, separable=True)
half_angles = st.sampled_from([0.01, 0.03, 0.1, 0.3, 0.8, 1.4])

LOCAL_MINIMUM = SelectionProblem(
    [[[-0.2, -1], [0, -0.4], [1.5, -2.2]], [[-0.6, -0.4], [-0.6, -0.1], [0.3, 1.8]]],
    [[0, -1.9, -0.1], [-0.4, 0.9, -0.2]],
)
POINTS = [
    (STATIONARY_ONE_INPUT, [-0.26264231]),
    (STATIONARY_TWO_INPUTS, [-2.25957901, -0.55702007]),
    (LOCAL_MINIMUM, [1.4333127, -1.399086]),
]


def field(problem, axis, angle, norm, apex=0.0):
    """Direction of descent at polar coordinates around `axis`, split along and across, and its log norm."""
    across = np.array([-axis[1], axis[0]])
    along = math.cos(angle) * axis + math.sin(angle) * across
    turned = -math.sin(angle) * axis + math.cos(angle) * across
    descent = problem.descent(apex + norm * along)
    return float(descent.direction @ along), float(descent.direction @ turned), descent.log_norm


# --- Ball arithmetic ---------------------------------------------------------------------------------


@given(problem=attst.selection_problems(n=(1, 2), tokens=(2, 4), dim=(1, 3)), loss=losses, data=st.data())
def test_enclosures_contain_what_floats_compute(problem, loss, data):
    problem = SelectionProblem(problem.keys, problem.scores, loss)
    centre = data.draw(attst.starts(problem))
    p = centre + data.draw(attst.vectors(len(centre), radius=1)) / 64
    with ctx.workprec(80):
        box = [x + arb(0, 1 / 64) for x in vector(centre)]
        gradient, hessian = gradient_and_hessian(problem, box)
        descent, jacobian = problem.pairs.descent_jacobian(p)
        scale = math.exp(descent.log_norm) if descent.log_norm > -math.inf else 1.0
        slack = arb(0, 1e-12)
        for ball, value in zip(gradient, problem.gradient(p), strict=True):
            assert (ball + slack).contains(arb(float(value)))
        for row, values in zip(hessian, -scale * (jacobian + jacobian.T) / 2, strict=True):
            for ball, value in zip(row, values, strict=True):
                assert (ball + slack).contains(arb(float(value)))


@given(loss=losses, low=st.floats(-5, 5), width=st.floats(0, 3), share=st.floats(0, 1))
def test_losses_in_balls_contain_those_in_floats(loss, low, width, share):
    m = low + share * width
    ball = arb(low).union(arb(low + width))
    slack = arb(0, 1e-13 * (1 + math.exp(-low)))
    assert (descent_slope(loss, ball) + slack).contains(arb(float(-loss.slope(m))))
    assert (curvature(loss, ball) + slack).contains(arb(float(loss.curvature(m))))


def test_losses_are_told_apart_by_value_and_unknown_ones_refused():
    copied = pickle.loads(pickle.dumps(SINGLE_LOCAL))
    assert copied.loss is not LOGISTIC
    assert certified_cone(copied, (1,), 0.05).radius == certified_cone(SINGLE_LOCAL, (1,), 0.05).radius
    other = replace(LOGISTIC, name="other")
    for function in (descent_slope, curvature):
        with pytest.raises(ValueError, match="loss: got OTHER, expected one of"):
            function(other, arb(0))
    unknown = SelectionProblem(SINGLE_LOCAL.keys, SINGLE_LOCAL.scores, other)
    with pytest.raises(ValueError, match="problem: got the loss OTHER"):
        certified_cone(unknown, (1,), 0.05)
    assert contraction_ball(unknown, [0, 0]) is None
    assert ball_certificate(unknown, 100) is None


# --- Cones of the plane ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "alpha", "half_angle", "radius"),
    [
        (SINGLE_GLOBAL, (0,), 0.1, 11.0),
        (SINGLE_GLOBAL, (0,), 0.02, 32.7),
        (SINGLE_LOCAL, (0,), 0.02, 13.3),
        (SINGLE_LOCAL, (1,), 0.05, 17.2),
        (SINGLE_LOCAL, (1,), 0.02, 21.9),
        (TWO_LIMITS, (0, 1), 0.3, 3.6),
        (TWO_LIMITS, (0, 1), 0.02, 4.75),
    ],
)
def test_smallest_radius_is_that_of_the_field(problem, alpha, half_angle, radius):
    """Where the angle is narrow, a few percent below the certified radius the field points outwards."""
    cone = certified_cone(problem, alpha, half_angle)
    assert cone.radius == pytest.approx(radius, rel=0.02)
    axis = att_svm(problem, alpha).direction
    sides = [field(problem, axis, side * half_angle, 0.95 * cone.radius)[1] * side for side in (1, -1)]
    assert max(sides) > 0


@pytest.mark.parametrize("problem", [SINGLE_GLOBAL, SINGLE_LOCAL, TWO_LIMITS])
def test_balls_certify_far_nearer_than_the_worst_case_analysis(problem):
    for selection in lmm_directions(problem):
        local = LocalCone(problem, selection.alpha)
        cone = certified_cone(problem, selection.alpha, math.acos(1 - local.mu0))
        assert cone.radius < local.radius() / 3


@settings(max_examples=100)
@given(problem=planar, half_angle=half_angles, logits=st.sampled_from([1, 3, 10, 30, 100]), data=st.data())
def test_the_field_agrees_with_every_certified_cone(problem, half_angle, logits, data):
    """Inwards on both sides, outwards everywhere, and one step of descent stays, at all radii drawn."""
    alpha = data.draw(st.sampled_from([s.alpha for s in lmm_directions(problem)]))
    radius = logits / problem.pairs.logit_scale
    cone = verified_cone(problem, alpha, half_angle, radius)
    event("certified" if cone else "no cone")
    if cone is None:
        return
    assert verified_cone(problem, alpha, half_angle, 3 * radius) is not None
    axis = att_svm(problem, alpha).direction
    for norm in radius * np.array([1, 1.1, 1.7, 5, 40]):
        for side in (1, -1):
            _, across, _ = field(problem, axis, side * half_angle, norm)
            assert side * across < 0
        for angle in half_angle * np.linspace(-1, 1, 9):
            along, across, log_norm = field(problem, axis, angle, norm)
            assert along > 0
            step = math.exp(math.log(cone.step) + log_norm)
            after = angle + math.atan2(step * across, norm + step * along)
            assert abs(after) <= half_angle * (1 + 1e-12)


@settings(max_examples=60)
@given(
    problem=attst.selection_problems(n=(1, 2), tokens=(2, 4), dim=2, separable=True),
    half_angle=half_angles,
    data=st.data(),
)
def test_selections_that_are_not_locally_optimal_are_never_certified(problem, half_angle, data):
    alpha = data.draw(attst.nonoptimal_selections(problem))
    assert certified_cone(problem, alpha, half_angle) is None
    assert verified_cone(problem, alpha, half_angle, 1e6, step=0) is None


@settings(max_examples=100)
@given(problem=planar)
def test_cones_that_hold_another_limit_are_never_certified(problem):
    selections = lmm_directions(problem)
    for first, second in itertools.permutations(selections, 2):
        angle = math.acos(np.clip(first.solution.direction @ second.solution.direction, -1, 1))
        if 1e-3 < angle < 1.5:
            assert certified_cone(problem, first.alpha, angle * (1 + 1e-6)) is None


def test_steps_that_jump_are_refused():
    assert verified_cone(NARROW, (0,), 0.3, 4) is not None
    assert verified_cone(NARROW, (0,), 0.3, 4, step=64 / NARROW.smoothness) is None
    assert verified_cone(NARROW, (0,), 0.3, 4, step=0).band < 1e-6


def test_what_was_verified_is_said():
    cone = verified_cone(TWO_LIMITS, (0, 0), 0.1, 20)
    assert (cone.alpha, cone.half_angle, cone.radius) == ((0, 0), 0.1, 20)
    assert cone.step == 1 / TWO_LIMITS.smoothness
    assert 0 < cone.band < 0.1
    assert cone.pieces >= 36
    # The cone handed out is a hair smaller than the one verified.
    assert math.acos(1 - cone.cone.mu) == pytest.approx(0.1, rel=1e-5)
    assert math.acos(1 - cone.cone.mu) < 0.1
    assert cone.cone.radius > 20
    np.testing.assert_allclose(cone.cone.axis, np.array([1, 3]) / math.sqrt(10))


@settings(max_examples=100)
@given(problem=planar, logits=st.sampled_from([4, 12, 40]), sideways=st.integers(-8, 8), data=st.data())
def test_points_in_certified_cones_flow_where_it_says(problem, logits, sideways, data):
    alpha = data.draw(st.sampled_from([s.alpha for s in lmm_directions(problem)]))
    axis = att_svm(problem, alpha).direction
    start = (logits * axis + sideways * np.array([-axis[1], axis[0]])) / problem.pairs.logit_scale
    cone = cone_containing(problem, alpha, start)
    if cone is None:
        event("no cone")
        return
    event("a cone from the origin" if not cone.apex.any() else "a shifted cone")
    assert cone.holds(start)
    assert not cone.holds(start - 0.01 * np.linalg.norm(start) * axis)
    for norm in cone.radius * np.array([1, 1.3, 3, 20]):
        for side in (1, -1):
            along, across, _ = field(problem, axis, side * cone.half_angle, norm, cone.apex)
            assert along > 0
            assert side * across < 0
    flow = gradient_flow(problem, start, to_norm=1e4 + 10 * float(np.linalg.norm(start)))
    assert (cone.cone.excess(flow.points - cone.apex) <= 1e-6).all()
    limit = limit_of(flow)
    assert limit.kind == "direction"
    error = float(np.linalg.norm(limit.vector - axis))
    assert error <= 1e-6 + 3 * limit.drift + limit.resolution


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (SelectionProblem([[[0, 0, 0], [1, 0, 0]]], [[0, 1]]), (1,), 0.1, 1),
            "problem: got keys of dimension 3",
        ),
        ((SINGLE_LOCAL, (0,), 1.6, 1), "half_angle: got 1.6, expected from 0.001 to below π/2"),
        ((SINGLE_LOCAL, (0,), 1e-4, 1), "half_angle: got 0.0001"),
        ((SINGLE_LOCAL, (0,), 0.1, 0), "radius: got 0, expected a positive"),
        ((SINGLE_LOCAL, (0,), 0.1, 1, -1), "step: got -1, expected a positive"),
        ((SINGLE_LOCAL, (3,), 0.1, 1), r"alpha\[0\]: got 3"),
    ],
)
def test_bad_arguments_of_cones_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        verified_cone(*arguments)


def test_inseparable_selections_and_the_origin_are_named():
    with pytest.raises(Infeasible):
        certified_cone(SelectionProblem([[[0, 0], [1, 0], [-1, 0]]], [[1, 0, 0]]), (0,), 0.1)
    with pytest.raises(ValueError, match="p: got the zero vector"):
        cone_containing(SINGLE_GLOBAL, (0,), np.zeros(2))
    # Nothing to learn, hence nothing to certify.
    assert certified_cone(SelectionProblem([[[0, 0], [1, 0]]], [[1, 1]]), (0,), 0.1) is None


# --- Finite stationary points ------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "point"), POINTS)
def test_attracting_points_are_proved_with_a_ball(problem, point):
    ball = contraction_ball(problem, point, 0.05)
    assert ball.error < 1e-6
    assert ball.radius == pytest.approx(0.05, rel=1e-3)
    rng = np.random.default_rng(1)
    for u in rng.standard_normal((5, len(point))):
        start = ball.centre + 0.9 * ball.radius * u / np.linalg.norm(u)
        assert ball.holds(start)
        distances = np.linalg.norm(gradient_descent(problem, start, steps=500).points - ball.centre, axis=1)
        # Every step comes closer to the stationary point, which is within `error` of the centre.
        assert (np.diff(distances) <= 2 * ball.error).all()
        end = gradient_flow(problem, start).stationary_point
        assert np.linalg.norm(end.point - ball.centre) <= ball.error + 1e-12
    assert not ball.holds(ball.centre + 2 * ball.radius)


def test_the_point_lies_where_the_slope_changes_sign():
    ball = contraction_ball(STATIONARY_ONE_INPUT, [-0.26264231])
    centre, error = float(ball.centre[0]), ball.error
    assert STATIONARY_ONE_INPUT.gradient([centre - error])[0] < 0
    assert STATIONARY_ONE_INPUT.gradient([centre + error])[0] > 0


@pytest.mark.parametrize(("problem", "point"), POINTS)
def test_wrong_centres_and_wide_balls_are_refused(problem, point):
    assert contraction_ball(problem, np.array(point) + 0.1) is None
    assert contraction_ball(problem, np.array(point) - 0.5, 0.1) is None
    assert contraction_ball(problem, point, 3.0) is None


@given(problem=attst.selection_problems(equal_nonoptimal=True, separable=True, dim=(1, 3)), data=st.data())
def test_no_stationary_point_is_proved_where_there_is_none(problem, data):
    """Under Assumption B descent along the max-margin direction is positive everywhere."""
    assert _existence(problem, data.draw(attst.starts(problem))) is None


def test_saddles_and_flat_directions_are_refused():
    # Two far apart minima of one dimension have a maximum between them, where the slope is zero, too.
    low, high = 0.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if STATIONARY_ONE_INPUT.gradient([middle])[0] > 0 else (low, middle)
    assert abs(STATIONARY_ONE_INPUT.gradient([low])[0]) < 1e-12
    assert contraction_ball(STATIONARY_ONE_INPUT, [low]) is None
    # The same attracting point with a dimension in which nothing happens.
    keys = np.concatenate([STATIONARY_ONE_INPUT.keys, np.zeros((1, 4, 1))], axis=2)
    assert contraction_ball(SelectionProblem(keys, STATIONARY_ONE_INPUT.scores), [-0.26264231, 0]) is None


@settings(max_examples=60)
@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3)), data=st.data())
def test_points_are_proved_only_where_the_hessian_is_definite(problem, data):
    """Anywhere: a certificate at a drawn point means a minimum next to it."""
    guess = data.draw(attst.starts(problem))
    end = gradient_flow(problem, guess, to_norm=50).points[-1]
    for centre in (guess, end):
        ball = contraction_ball(problem, centre)
        if ball is not None:
            eigenvalues = np.linalg.eigvalsh(_hessian(problem, ball.centre))
            assert eigenvalues[0] > 0
            # First order: the zero is about this far away.
            correction = np.linalg.solve(_hessian(problem, ball.centre), problem.gradient(ball.centre))
            assert np.linalg.norm(correction) <= ball.error


def _hessian(problem, p):
    h = 1e-5
    columns = [(problem.gradient(p + h * e) - problem.gradient(p - h * e)) / (2 * h) for e in np.eye(len(p))]
    return (np.array(columns) + np.array(columns).T) / 2


def test_bad_arguments_of_balls_are_named():
    with pytest.raises(ValueError, match=r"centre: got shape \(2,\)"):
        contraction_ball(STATIONARY_ONE_INPUT, [0, 0])
    for radius in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="radius: got"):
            contraction_ball(STATIONARY_ONE_INPUT, [0], radius)


# --- What paths make of them -------------------------------------------------------------------------


def test_descent_to_a_local_direction_is_certified_early():
    path = gradient_descent(SINGLE_LOCAL, [0, -1.5], steps=200)
    assert diverges(path).basis == "certificate: planar cone"
    assert limit_of(path).certificate.alpha == (1,)
    assert planar_certificate(SINGLE_LOCAL, path.points[0], path.step) is None


@pytest.mark.parametrize("start", SINGLE_STARTS)
def test_the_published_starts_are_certified_within_ten_steps(start):
    """The set with one limit: the proof covers these very runs."""
    path = gradient_descent(SINGLE_GLOBAL, start, steps=10)
    assert planar_certificate(SINGLE_GLOBAL, path.points[-1], path.step).alpha == (0,)


def test_finite_limits_are_certified_for_descent_and_flow_but_not_for_normalised_steps():
    start = [0.0]
    for trainer in (gradient_descent, gradient_flow):
        decision = stationary(trainer(STATIONARY_ONE_INPUT, start))
        assert (decision.outcome, decision.basis) == ("yes", "certificate: contraction ball")
    assert stationary(normalized_gd(STATIONARY_ONE_INPUT, start)).basis == "Newton"


def test_a_path_that_is_still_far_from_its_limit_is_not_certified():
    path = gradient_descent(STATIONARY_TWO_INPUTS, [0, 0], steps=50)
    limit = limit_of(path)
    assert limit.kind == "point"
    assert limit.certificate is None
    near = gradient_descent(STATIONARY_TWO_INPUTS, [-2.26, -0.55], steps=50)
    assert point_certificate(near, limit.tail.stationary_point).name == "contraction ball"
    wild = gradient_descent(STATIONARY_TWO_INPUTS, [-2.26, -0.55], step=3 / near.problem.smoothness, steps=5)
    assert point_certificate(wild, limit.tail.stationary_point) is None
