from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import (
    Cone,
    SelectionProblem,
    att_svm,
    converges_in_direction,
    diverges,
    gradient_descent,
    gradient_flow,
    lmm_directions,
    normalized_gd,
    optimal_tokens,
    stationary,
    stays_in_cone,
)
from checks import strategies as attst
from checks.datasets import NARROW, SINGLE_GLOBAL, SINGLE_LOCAL, STATIONARY_ONE_INPUT, STATIONARY_TWO_INPUTS
from checks.limits import cone_certificate, limit_of, sublevel_certificate

GMM = att_svm(SINGLE_LOCAL, (0,)).vector
LMM = att_svm(SINGLE_LOCAL, (1,)).vector


@pytest.mark.parametrize("trainer", [gradient_descent, normalized_gd, gradient_flow])
@pytest.mark.parametrize(("start", "target", "other"), [((0, 0), GMM, LMM), ((0, -1), LMM, GMM)])
def test_direction_of_every_trainer_is_decided(trainer, start, target, other):
    path = trainer(SINGLE_LOCAL, start)
    assert converges_in_direction(path, target).outcome == "yes"
    assert converges_in_direction(path, other).outcome == "no"
    assert diverges(path).outcome == "yes"
    assert stationary(path).outcome == "no"


def test_error_and_tolerance_are_small_and_itemised():
    decision = converges_in_direction(gradient_descent(SINGLE_GLOBAL, [0, 0]), [-0.1, 1])
    assert decision.error < 1e-12
    assert set(decision.tolerance) == {"target", "integrator", "horizon"}
    assert sum(decision.tolerance.values()) < 1e-6
    assert decision.severity < 1


def test_a_direction_off_by_1e_5_is_told_apart():
    turned = GMM + 1e-5 * np.linalg.norm(GMM) * np.array([1, 0.1])
    assert converges_in_direction(gradient_flow(SINGLE_LOCAL, [0, 0]), turned).outcome == "no"


@pytest.mark.parametrize(("problem", "start"), [(STATIONARY_ONE_INPUT, [0]), (STATIONARY_TWO_INPUTS, [0, 0])])
def test_finite_limits_are_no_divergence(problem, start):
    path = gradient_descent(problem, start, steps=1_000)
    assert diverges(path).outcome == "no"
    point = stationary(path)
    assert point.outcome == "yes"
    assert point.error <= point.tolerance["rounding"]


def test_a_wild_step_is_undecided_with_the_reason():
    problem = SelectionProblem([[[-1.0], [0], [1]]], [[0, 1, 0]])
    path = gradient_descent(problem, [0.5], step=50, steps=7)
    for decision in (diverges(path), stationary(path), converges_in_direction(path, [1])):
        assert decision.outcome == "undecided"
        assert "above 1/L" in decision.why


def test_a_degenerate_support_vector_converges_slowly_and_is_still_decided():
    """Keys with a zero multiplier: the direction is off by log R / R."""
    problem = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0, 0]])
    decision = converges_in_direction(gradient_descent(problem, [0, 0], steps=500), [1, 0])
    assert decision.outcome == "yes"
    assert converges_in_direction(gradient_flow(problem, [0, 0]), [1, 1e-3]).outcome == "no"


def test_sublevel_certificate_needs_a_low_risk_and_names_gmm():
    path = gradient_descent(SINGLE_LOCAL, [0, 0], steps=200)
    assert sublevel_certificate(SINGLE_LOCAL, path.points[0]) is None
    certificate = sublevel_certificate(SINGLE_LOCAL, 20 * GMM)
    assert certificate.alpha == (0,)
    np.testing.assert_allclose(certificate.direction, GMM / np.linalg.norm(GMM))
    assert sublevel_certificate(SINGLE_LOCAL, 20 * LMM) is None


def test_cone_certificate_holds_far_out_and_names_the_local_direction():
    assert cone_certificate(SINGLE_LOCAL, 1e4 * LMM, None).alpha == (1,)
    assert cone_certificate(SINGLE_LOCAL, 2 * LMM, None) is None
    assert "certificate" in diverges(gradient_descent(SINGLE_LOCAL, 1e4 * LMM, steps=10)).basis


@given(problem=attst.selection_problems(n=(1, 3), dim=(2, 4), separable=True), data=st.data())
def test_sublevel_certificates_are_never_wrong(problem, data):
    """The flow must agree wherever the certificate fires; draw starts where it often does."""
    target = att_svm(problem, optimal_tokens(problem)).vector
    start = data.draw(attst.starts(problem)) / 4 + 3 * target
    certificate = sublevel_certificate(problem, start)
    if certificate is not None:
        limit = limit_of(gradient_flow(problem, start, to_norm=1e4 + 10 * float(np.linalg.norm(start))))
        assert limit.kind == "direction"
        error = np.linalg.norm(limit.vector - certificate.direction)
        assert error <= 1e-6 + 3 * limit.drift + limit.resolution


@given(
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), general_position=True),
    data=st.data(),
)
def test_every_path_diverges_along_an_lmm_direction_or_ends_in_a_stationary_point(problem, data):
    path = gradient_flow(problem, data.draw(attst.starts(problem)), to_norm=1e3)
    if diverges(path).outcome == "yes":
        directions = [s.solution.vector for s in lmm_directions(problem)]
        assert "yes" in {converges_in_direction(path, d).outcome for d in directions} or any(
            converges_in_direction(path, d).outcome == "undecided" for d in directions
        )
    else:
        assert stationary(path).outcome == "yes"


def test_leaving_a_cone_is_seen_at_its_iterate():
    cone = Cone([1, 0], 1 / 8, 2)
    start = [2.875, 0.625]
    far = gradient_descent(NARROW, start, step=64 / NARROW.smoothness, steps=20)
    decision = stays_in_cone(far, cone)
    assert decision.outcome == "no"
    assert decision.why.startswith("iterate ")
    assert stays_in_cone(gradient_descent(NARROW, start, steps=200), cone).outcome == "yes"


def test_a_start_outside_the_cone_is_refused():
    path = gradient_flow(SINGLE_LOCAL, [0, -1])
    with pytest.raises(ValueError, match="path: starts outside the cone"):
        stays_in_cone(path, Cone([0, 1], 0.1, 0))


def test_a_zero_target_is_refused():
    with pytest.raises(ValueError, match="target: got the zero vector"):
        converges_in_direction(gradient_flow(SINGLE_LOCAL, [0, -1]), [0, 0])
    with pytest.raises(ValueError, match=r"target: got shape \(3,\)"):
        converges_in_direction(gradient_flow(SINGLE_LOCAL, [0, -1]), [0, 0, 1])


def test_severity_without_tolerance_is_infinite():
    assert math.isinf(diverges(gradient_descent(STATIONARY_ONE_INPUT, [0], steps=100)).severity)


def test_a_flow_that_stopped_short_is_followed_as_far_as_any_other_path():
    # The first is still on its way past other tokens to a finite stationary point.
    keys = [
        [[0], [-1], [-0.75], [-1.875]],
        [[-1.75], [-2], [-1.375], [1.25]],
        [[0.625], [1.75], [0], [0.5]],
    ]
    scores = [[2, 1, 0.5, 0.125], [0.25, 1.75, -0.875, 1.25], [0.75, -2, -0.375, 1.5]]
    assert diverges(gradient_flow(SelectionProblem(keys, scores), [0.0], to_norm=0.5)).outcome == "no"
    problem = SelectionProblem([[[0, 0], [-1, 0], [-0.99, -1], [-50, 0]]], [[1, 0, 0, 2]])
    path = gradient_flow(problem, [5, 20], to_norm=200)
    assert converges_in_direction(path, [0.99995, 0.0099995]).outcome == "yes"
    assert converges_in_direction(path, [1, 0]).outcome == "no"


def test_a_direction_that_has_not_settled_is_undecided():
    problem = SelectionProblem([[[0, 0], [1, 0], [0, 1]]], [[0, 1, 0.5]])
    path = gradient_flow(problem, [0, 1e8], to_norm=1.5e8)
    for target in ([1, -0.5], [1, 0], [0, 1]):
        assert converges_in_direction(path, target).outcome != "yes" or target == [1, -0.5]


def test_keys_that_nearly_tie_are_told_apart_before_a_direction_is_refused():
    problem = SelectionProblem([[[0, 0], [-1, 0], [-(1 - 2e-4), -1]]], [[1, 0, 0]])
    target = att_svm(problem, (0,)).vector
    assert converges_in_direction(normalized_gd(problem, [0, 50]), target).outcome == "yes"


def test_flow_does_not_jump_over_an_attractor_among_large_scores():
    keys = [
        [[-0.75], [0], [0], [0], [-1]],
        [[0.875], [-0.5], [0.375], [0.125], [1.25]],
    ]
    problem = SelectionProblem(keys, [[-5.5, -5.5, -3.5, 8, -1.5], [-8, -0.5, -3.5, 5, -8]])
    assert diverges(gradient_flow(problem, [0.375])).outcome == "no"


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_length_of_a_target_does_not_matter(scale):
    path = gradient_flow(SINGLE_GLOBAL, [0, 1])
    target = att_svm(SINGLE_GLOBAL, (0,)).vector
    assert converges_in_direction(path, scale * target).outcome == "yes"
