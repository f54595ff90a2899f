from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import Cone, LocalCone, gradient_descent, stays_in_cone
from checks import strategies as attst
from checks.datasets import SINGLE_GLOBAL, SINGLE_LOCAL, TWO_LIMITS


def test_membership_by_hand():
    cone = Cone([2, 0], 1 - math.cos(math.pi / 4), 1)
    np.testing.assert_allclose(cone.axis, [1, 0])
    inside = np.array([[1.5, 0], [2, 1.99], [1, 0]])
    outside = np.array([[0.99, 0], [2, 2.01], [-3, 0], [0, 0]])
    assert (cone.excess(inside) <= 1e-15).all()
    assert (cone.excess(outside) > 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 0], 0.1, 1), "axis: got the zero vector"),
        (([1, 0], 0, 1), "mu: got 0, expected a positive"),
        (([1, 0], 2.5, 1), "mu: got 2.5, expected at most 2"),
        (([1, 0], 0.5, -1), "radius: got -1, expected a finite number of at least 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Cone(*arguments)


def test_json_restores_every_bit():
    cone = Cone([0.3, -1.7, 2.2], 0.125, 7)
    again = Cone.from_dict(cone.to_dict())
    np.testing.assert_array_equal(again.axis, cone.axis)
    assert (again.mu, again.radius) == (cone.mu, cone.radius)
    with pytest.raises(ValueError, match=r"cone.mu: got 'x'"):
        Cone.from_dict({"axis": [1, 0], "mu": "x", "radius": 1})


def test_constants_of_the_published_set_by_hand():
    """Keys (-.1, 1), (1, 0), (0, 0): p_mm = (-.1, 1)/1.01, one neighbour, token 2."""
    local = LocalCone(SINGLE_GLOBAL, (0,))
    margin = math.sqrt(1.01)  # 1/‖p_mm‖
    reach = math.sqrt(1.1**2 + 1)  # the longest difference, to token 1
    slack = (1.1 * 0.1 + 1) / 1.01 - 1  # excess margin of token 1
    assert local.mu0 == pytest.approx((margin * slack / reach) ** 2 / 8)
    np.testing.assert_allclose(local.axis, np.array([-0.1, 1]) / margin)


def test_radius_is_the_smallest_that_meets_the_conditions():
    local = LocalCone(SINGLE_LOCAL, (1,))
    radius, step = local.radius(), 1 / SINGLE_LOCAL.smoothness
    assert local._certified(local.mu0, step, radius)
    assert not local._certified(local.mu0, step, radius * (1 - 1e-6))
    assert local.radius(local.mu0 / 2) > radius


def test_wide_cones_and_nonoptimal_selections_are_refused():
    with pytest.raises(ValueError, match="expected at most mu0"):
        LocalCone(SINGLE_LOCAL, (1,)).radius(0.5)
    with pytest.raises(ValueError, match=r"alpha: got \(1,\), expected a locally optimal"):
        LocalCone(SINGLE_GLOBAL, (1,))


@given(
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    data=st.data(),
)
def test_the_field_points_into_certified_cones_on_their_boundary(problem, data):
    """One exact gradient step from the boundary, at any radius from R(μ) on, stays inside.

    In logarithms, because such a step is far below the rounding of the iterate.
    """
    alpha = data.draw(attst.locally_optimal_selections(problem))
    cone = data.draw(attst.local_cones(problem, alpha))
    p = data.draw(attst.points_in_cone(cone))
    unit = p / np.linalg.norm(p)
    descent = problem.descent(p)
    inward = descent.direction @ cone.axis - (1 - cone.mu) * (descent.direction @ unit)
    log_step = math.log(1 / problem.smoothness) + descent.log_norm
    bend = (1 - cone.mu) * math.exp(log_step) / (2 * np.linalg.norm(p))
    # The direction of the field is right to the rounding of logits, eps times ‖p‖ A.
    rounding = 8 * np.finfo(float).eps * problem.pairs.logit_scale * np.linalg.norm(p)
    assert inward - bend >= -rounding
    assert descent.direction @ unit > -rounding


def test_two_limits_have_disjoint_certified_cones():
    first, second = LocalCone(TWO_LIMITS, (0, 0)).cone(), LocalCone(TWO_LIMITS, (0, 1)).cone()
    angle = math.acos(first.axis @ second.axis)
    assert math.acos(1 - first.mu) + math.acos(1 - second.mu) < angle


def test_descent_inside_a_certified_cone_stays():
    cone = LocalCone(SINGLE_LOCAL, (1,)).cone()
    path = gradient_descent(SINGLE_LOCAL, cone.radius * (1 + 1e-9) * cone.axis, steps=50)
    assert stays_in_cone(path, cone).outcome == "yes"
