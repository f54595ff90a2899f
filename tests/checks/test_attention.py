"""Risks and gradients: hand-computed values, saturation, and a high-precision second opinion."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import CORRELATION, EXPONENTIAL, LOGISTIC, SelectionProblem
from checks import strategies as attst
from checks.attention import log_softmax
from checks.losses import LOSSES

MP_LOSSES = {
    "logistic": lambda m: mpmath.log1p(mpmath.exp(-m)),
    "exponential": lambda m: mpmath.exp(-m),
    "correlation": lambda m: -m,
}


def mp_risk(problem, p):
    """The risk from its definition, in mpmath arithmetic."""
    loss = MP_LOSSES[problem.loss.name]
    total = mpmath.mpf(0)
    for keys, scores in zip(problem.keys.tolist(), problem.scores.tolist(), strict=True):
        weights = [mpmath.exp(mpmath.fdot(key, p)) for key in keys]
        total += loss(mpmath.fdot(scores, weights) / mpmath.fsum(weights))
    return total / len(problem.keys)


def mp_descent(problem, p):
    """`−∇L` in mpmath arithmetic, keys and scores relative to the best-attended token."""
    slopes = {
        "logistic": lambda m: 1 / (1 + mpmath.exp(m)),
        "exponential": lambda m: mpmath.exp(-m),
        "correlation": lambda m: mpmath.mpf(1),
    }
    total = mpmath.zeros(len(p), 1)
    for keys, scores in zip(problem.keys.tolist(), problem.scores.tolist(), strict=True):
        logits = [mpmath.fdot(key, p) for key in keys]
        top = max(range(len(keys)), key=lambda t: logits[t])
        weights = [mpmath.exp(logit - logits[top]) for logit in logits]
        share = [w / mpmath.fsum(weights) for w in weights]
        mean = mpmath.fdot(share, [score - scores[top] for score in scores])
        slope = slopes[problem.loss.name](scores[top] + mean)
        for t, key in enumerate(keys):
            factor = slope * share[t] * (scores[t] - scores[top] - mean)
            total += factor * mpmath.matrix([a - b for a, b in zip(key, keys[top], strict=True)])
    return total / len(problem.keys)


def test_hand_computed_weights_value_and_gradient():
    problem = SelectionProblem([[[1, 0], [0, 1], [-1, -1]]], [[1, 0.5, 0]], CORRELATION)
    p = [math.log(2), math.log(3)]
    np.testing.assert_allclose(problem.attention(p) * 31, [[12, 18, 1]], rtol=1e-14)
    assert problem.risk(p) == pytest.approx(-21 / 31, rel=1e-14)
    np.testing.assert_allclose(-961 * problem.gradient(p), [141, -78], rtol=1e-13)


def test_equal_scores_have_gradient_exactly_zero():
    problem = SelectionProblem([[[1, 0], [0, 1], [-1, -1]]], [[0.5, 0.5, 0.5]])
    assert not problem.gradient([0.3, -0.7]).any()
    assert problem.descent([0.3, -0.7]).log_norm == -math.inf


@pytest.mark.parametrize(
    ("gap", "entry"),
    [(30, 9.3576e-14), (40, 4.2484e-18), (100, 3.7200760e-44), (600, 2.6503966e-261)],
)
def test_gradient_does_not_saturate(gap, entry):
    problem = SelectionProblem([[[0, 0], [1, 1]]], [[0, 1]], CORRELATION)
    gradient = -problem.gradient([gap / 2, gap / 2])
    np.testing.assert_allclose(gradient, [entry, entry], rtol=2e-5)


def test_direction_is_exact_where_every_other_weight_underflows():
    """At norm 1e6 the weights are of order exp(-1e6); mpmath has the exponent range for them."""
    problem = SelectionProblem(
        [[[1, 0, 0.5], [0, 1, -0.25], [0.5, 0.5, 0]], [[1, 0.25, 0], [-1, 0, 0.5], [0, 0, -1]]],
        [[1, 0.25, -0.5], [0.5, -1, 0]],
    )
    p = 1e6 * np.array([0.96, 0.28, 0.0])
    with mpmath.workdps(50):
        expected = mp_descent(problem, p.tolist())
        norm = mpmath.norm(expected)
        unit = [float(x / norm) for x in expected]
    descent = problem.descent(p)
    np.testing.assert_allclose(descent.direction, unit, atol=1e-9)
    # Logits of size 1e6 are rounded to 1e-10, and so is the logarithm of the norm.
    assert descent.log_norm == pytest.approx(float(mpmath.log(norm)), abs=1e-8)
    assert descent.log_norm < -2e5


@given(
    problem=st.sampled_from(list(LOSSES.values())).flatmap(
        lambda loss: attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3), loss=loss)
    ),
    data=st.data(),
)
def test_gradient_agrees_with_high_precision_differences(problem, data):
    p = data.draw(attst.starts(problem))
    with mpmath.workdps(40):
        step = mpmath.mpf(10) ** -12
        point = [mpmath.mpf(float(x)) for x in p]
        for j in range(len(point)):
            up, down = list(point), list(point)
            up[j] += step
            down[j] -= step
            expected = (mp_risk(problem, up) - mp_risk(problem, down)) / (2 * step)
            # Differences are good to 1e-22; the sum of positive terms of one sign scale to 1e-13
            # of the largest possible gradient.
            scale = float(problem.smoothness) + 1e-3
            assert abs(problem.gradient(p)[j] - float(expected)) <= 1e-13 * scale


@given(problem=attst.selection_problems(), data=st.data())
def test_smoothness_bounds_gradient_differences(problem, data):
    first, second = data.draw(attst.starts(problem)), data.draw(attst.starts(problem))
    change = np.linalg.norm(problem.gradient(first) - problem.gradient(second))
    assert change <= problem.smoothness * np.linalg.norm(first - second) * (1 + 1e-12) + 1e-15


def test_smoothness_is_attained_for_two_tokens():
    """Largest slope of s(1 - s) is 1/(6√3), at s = (3 ± √3)/6."""
    problem = SelectionProblem([[[0.0], [2.0]]], [[0, 3]], CORRELATION)
    s = (3 - math.sqrt(3)) / 6
    p = math.log(s / (1 - s)) / 2
    slope = (problem.gradient([p + 1e-5])[0] - problem.gradient([p - 1e-5])[0]) / 2e-5
    assert abs(slope) == pytest.approx(problem.smoothness, rel=1e-8)


@given(problem=attst.selection_problems(n=(1, 3), dim=(1, 3)), data=st.data())
def test_jacobian_is_the_derivative_of_the_descent(problem, data):
    p = data.draw(attst.starts(problem))
    descent, jacobian = problem.pairs.descent_jacobian(p)
    scale = math.exp(descent.log_norm) if descent.log_norm > -math.inf else 1.0
    h = 1e-5
    for j, e in enumerate(np.eye(p.size)):
        difference = (problem.gradient(p - h * e) - problem.gradient(p + h * e)) / (2 * h)
        # Central differences: h² times third derivatives (keys up to 3 per axis) plus rounding / h.
        np.testing.assert_allclose(scale * jacobian[:, j], difference, atol=1e-7)


def test_log_softmax_of_extremes():
    np.testing.assert_array_equal(np.exp(log_softmax(np.array([1.0, 1.0, 1e100]))), [0.0, 0.0, 1.0])
    # −log(1 + e^-40): the log-sum-exp of (0, −40).
    assert -log_softmax(np.array([0.0, -40.0]))[0] == pytest.approx(4.248354255e-18, rel=1e-9)


@pytest.mark.parametrize("loss", [LOGISTIC, EXPONENTIAL, CORRELATION])
def test_shifting_the_keys_of_an_input_changes_nothing(loss):
    keys = np.array([[[1, 0], [0, 1], [-1, -1]], [[2, 1], [0, 0], [1, -1]]], dtype=float)
    scores = [[1, 0.5, 0], [0, 1, 0.25]]
    p = [0.5, -0.25]
    shifted = keys + np.array([[[4.0, -2.0]], [[1.0, 8.0]]])
    problem, moved = SelectionProblem(keys, scores, loss), SelectionProblem(shifted, scores, loss)
    np.testing.assert_array_equal(problem.gradient(p), moved.gradient(p))
