from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import CORRELATION, EXPONENTIAL, LOGISTIC
from checks.losses import LOSSES, loss_named

margins = st.floats(-20, 20)


def test_extreme_values_of_the_logistic_loss():
    assert LOGISTIC.value(-1000.0) == 1000.0
    assert LOGISTIC.log_abs_slope(800.0) == -800.0
    assert LOGISTIC.slope(30.0) == pytest.approx(-9.357622968839299e-14, rel=1e-14)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
@given(m=margins)
def test_slope_and_curvature_are_derivatives(loss, m):
    h = 1e-4
    # Bounds the third and fourth derivatives near m.
    scale = 1.01 * float(loss.value(m)) if loss is EXPONENTIAL else 1.0
    slope = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    curvature = (loss.slope(m + h) - loss.slope(m - h)) / (2 * h)
    # Truncation is h²/6 times the scale; rounding of ℓ and of m ± h stays below it for |m| ≤ 20.
    tolerance = scale * h**2
    assert loss.slope(m) == pytest.approx(slope, abs=tolerance)
    assert loss.curvature(m) == pytest.approx(curvature, abs=tolerance)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
@given(ends=st.tuples(margins, margins).map(sorted), share=st.floats(0, 1))
def test_constants_bound_the_derivatives(loss, ends, share):
    low, high = ends
    m0, m1 = loss.constants(low, high)
    m = min(max(low + share * (high - low), low), high)
    assert abs(loss.slope(m)) <= m1 * (1 + 1e-12)
    assert abs(loss.curvature(m)) <= m0 * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=str)
@given(m=st.floats(-30, 40), log_drop=st.floats(-1000, 4))
def test_rise_is_a_logarithm_of_differences(loss, m, log_drop):
    with mpmath.workdps(500):
        drop = mpmath.exp(log_drop)
        exact = {
            LOGISTIC: lambda: mpmath.log1p(mpmath.exp(drop - m)) - mpmath.log1p(mpmath.exp(-m)),
            EXPONENTIAL: lambda: mpmath.exp(drop - m) - mpmath.exp(-m),
            CORRELATION: lambda: drop,
        }[loss]()
        error = abs(float(loss.log_rise(m, log_drop) - mpmath.log(exact)))
    assert error <= 1e-15 * (1 + abs(m) + abs(log_drop) + math.exp(log_drop))


def test_constants_on_the_whole_line():
    assert LOGISTIC.constants(-800, 800) == pytest.approx((0.25, 1.0))
    assert CORRELATION.constants(-800, 800) == (0.0, 1.0)


def test_unknown_name_is_refused():
    with pytest.raises(ValueError, match="loss: got 'hinge', expected one of logistic"):
        loss_named("hinge")


def test_functions_act_entrywise():
    m = np.array([[0.0, 1.0], [2.0, -3.0]])
    for loss in LOSSES.values():
        for function in (loss.value, loss.slope, loss.curvature, loss.log_slope_rate):
            assert function(m).shape == m.shape
