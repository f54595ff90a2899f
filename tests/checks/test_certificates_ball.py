"""Caps that hold every global minimiser: against the search, random points, and a radius by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from checks import CORRELATION, EXPONENTIAL, LOGISTIC, SelectionProblem, att_svm, optimal_tokens
from checks import strategies as attst
from checks.certificates import ball_certificate
from checks.datasets import STATIONARY_ONE_INPUT, TWO_LIMITS
from checks.trainers.regularization import LogGap, ball_minima

losses = st.sampled_from([LOGISTIC, EXPONENTIAL, CORRELATION])


@settings(max_examples=40)
@given(
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 3), separable=True),
    loss=losses,
    logits=st.sampled_from([2, 5, 20, 100]),
)
def test_global_minimisers_lie_in_certified_caps(problem, loss, logits):
    problem = SelectionProblem(problem.keys, problem.scores, loss)
    radius = logits / att_svm(problem, optimal_tokens(problem)).margin
    certificate = ball_certificate(problem, radius)
    event("certified" if certificate else "no cap")
    if certificate is None:
        return
    (minimum,) = ball_minima(problem, [radius])
    assert certificate.holds(minimum.point)
    # Points outside the cap do worse than the axis: none of them is a minimiser.
    gap = LogGap(problem)
    rng = np.random.default_rng(0)
    points = rng.standard_normal((200, problem.shape[2]))
    points *= radius * rng.random((200, 1)) ** 0.2 / np.linalg.norm(points, axis=1, keepdims=True)
    outside = points[points @ certificate.axis < certificate.cosine * radius]
    assert (gap.values(outside) > gap.value(radius * certificate.axis)).all()


@given(problem=attst.selection_problems(n=(1, 4), separable=True))
def test_caps_close_as_the_ball_grows(problem):
    margin = att_svm(problem, optimal_tokens(problem)).margin
    near, far = (ball_certificate(problem, logits / margin) for logits in (1e2, 1e4))
    assert far is not None
    assert 1 - far.cosine <= far.constant / (far.margin * far.radius) + 1e-9
    assert far.cosine > 0.99
    if near is not None:
        assert far.cosine > near.cosine
        # What the nearer one says of all larger radii holds at the farther one.
        assert 1 - far.cosine <= near.constant / (far.margin * far.radius) + 1e-9


def test_the_least_radius_of_a_cap_by_hand():
    """One pair, `a = 1`, `γ = (1, 0)`: `−ℓ'(½) e^{−R} < ℓ(½) − ℓ(1)`."""
    problem = SelectionProblem([[[1], [0]]], [[1, 0]])
    rise = math.log1p(math.exp(-0.5)) - math.log1p(math.exp(-1))
    least = math.log(1 / (1 + math.exp(0.5)) / rise)
    assert ball_certificate(problem, least * (1 - 1e-6)) is None
    assert ball_certificate(problem, least * (1 + 1e-6)) is not None
    certificate = ball_certificate(problem, 3)
    # The gap at q̂R in full, against −ℓ'(1)/2.
    share = 1 / (1 + math.exp(3))
    gap = math.log(math.log1p(math.exp(share - 1)) - math.log1p(math.exp(-1)))
    floor = math.log(1 / (1 + math.e) / 2)
    assert certificate.cosine == pytest.approx((floor - gap) / 3, rel=1e-8)
    assert certificate.constant == pytest.approx(math.log(1 / (1 + math.exp(0.5))) - floor, rel=1e-8)


def test_no_cap_where_there_is_no_such_minimiser():
    inseparable = SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]])
    tied = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[0, 0, -1]])
    assert ball_certificate(inseparable, 1e4) is None
    assert ball_certificate(tied, 1e4) is None
    # At this radius the minimiser is on the other side.
    assert ball_certificate(STATIONARY_ONE_INPUT, 1) is None
    assert ball_certificate(STATIONARY_ONE_INPUT, 100) is not None
    with pytest.raises(ValueError, match="radius: got 0"):
        ball_certificate(TWO_LIMITS, 0)
