"""Closed forms of the loss comparison: the published thresholds, and the gradients themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import CORRELATION, EXPONENTIAL, LOGISTIC, normalized_gd
from checks.datasets import two_gains
from checks.gains import log_gradient_ratio, logistic_threshold, predicted_log_ratio, predicted_offset


@pytest.mark.parametrize(("attention", "threshold"), [(0.5, 5.018), (1.0, 1.597)])
def test_published_thresholds(attention, threshold):
    found = logistic_threshold(attention)
    assert found == pytest.approx(threshold, abs=5e-4)
    assert found * (1 + math.exp(attention)) == pytest.approx(1 + math.exp(found * attention), rel=1e-12)


@pytest.mark.parametrize(("gain", "first"), [(5.01, True), (5.03, False), (100, False), (1.5, True)])
def test_the_larger_gain_loses_the_larger_gradient_beyond_the_threshold(gain, first):
    assert (log_gradient_ratio(gain, LOGISTIC, [0, 0]) > 0) == first
    assert log_gradient_ratio(gain, CORRELATION, [0, 0]) == pytest.approx(math.log(gain))


@given(
    gain=st.floats(1.001, 1_000),
    advance=st.floats(0, 50),
    loss=st.sampled_from([CORRELATION, LOGISTIC]),
)
def test_ratio_of_the_gradients_has_its_closed_form(gain, advance, loss):
    attention = 1 / (1 + math.exp(-advance))
    measured = log_gradient_ratio(gain, loss, [advance, 0])
    assert measured == pytest.approx(
        predicted_log_ratio(gain, loss, attention), abs=1e-14 * (10 + gain + advance)
    )


@pytest.mark.parametrize("loss", [CORRELATION, LOGISTIC])
@pytest.mark.parametrize("gain", [2.0, 10.0])
def test_offset_balances_the_inputs(gain, loss):
    end = normalized_gd(two_gains(gain, loss), [0, 0], 0.1, 1_000).points[-1]
    assert end[1] == pytest.approx(predicted_offset(gain, loss), abs=1e-12)
    # There the two gradients have the same size: their sum points along (1, 0).
    np.testing.assert_allclose(two_gains(gain, loss).descent(end).direction, [1, 0], atol=1e-12)


def test_other_losses_are_refused():
    with pytest.raises(ValueError, match="loss: got EXPONENTIAL, expected CORRELATION or LOGISTIC"):
        predicted_log_ratio(2.0, EXPONENTIAL, 0.5)
