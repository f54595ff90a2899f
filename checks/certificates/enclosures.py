"""Ball arithmetic for selection problems: every number here encloses the true one.

Keys and scores are floats, hence exact; whatever is computed from them with `flint.arb` (F. Johansson,
Arb, IEEE Trans. Computers 66, 2017) is a ball that certainly contains the real value. A comparison of
balls is true only if it holds for all of their points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from flint import arb, ctx, fmpq

from ..losses import CORRELATION, EXPONENTIAL, LOGISTIC, Loss
from ..problems import SelectionProblem
from ..validation import FloatArray

Vector: TypeAlias = list[arb]

# Bits. Inputs have 53, and what decides is the width of the regions examined, never rounding.
PRECISION = 96

ENCLOSED_LOSSES: tuple[Loss, ...] = (LOGISTIC, EXPONENTIAL, CORRELATION)
"""Losses whose derivatives are known as balls; problems with another one get no interval certificate."""

working_precision = ctx.workprec


def between(low: arb, high: arb) -> arb:
    """A ball that contains both arguments and everything between."""
    return low.union(high)


def up_to(bound: arb) -> arb:
    """A ball that contains `[0, bound]`."""
    return arb(0).union(bound)


def rational(value: object) -> arb:
    """A `fractions.Fraction` as a ball."""
    numerator, denominator = value.numerator, value.denominator  # type: ignore[attr-defined]
    return arb(fmpq(numerator, denominator))


def dot(left: Sequence[arb], right: Sequence[arb]) -> arb:
    """`Σ left·right`."""
    total = arb(0)
    for x, y in zip(left, right, strict=True):
        total += x * y
    return total


def vector(values: FloatArray) -> Vector:
    """Floats as exact balls."""
    return [arb(x) for x in values.tolist()]


def descent_slope(loss: Loss, margin: arb) -> arb:
    """`−ℓ'(m)` for every `m` in the ball; positive.

    Raises:
        ValueError: the loss is not one of `ENCLOSED_LOSSES`.
    """
    # Compared by value: a loss that came out of a pickle is another object.
    if loss == LOGISTIC:
        return 1 / (1 + margin.exp())
    if loss == EXPONENTIAL:
        return (-margin).exp()
    if loss == CORRELATION:
        return arb(1)
    raise ValueError(f"loss: got {loss!r}, expected one of {ENCLOSED_LOSSES}")


def curvature(loss: Loss, margin: arb) -> arb:
    """`ℓ''(m)` for every `m` in the ball.

    Raises:
        ValueError: the loss is not one of `ENCLOSED_LOSSES`.
    """
    if loss == LOGISTIC:
        # σ(m)σ(−m) as a function of one occurrence of the ball.
        deviation = 1 / (1 + margin.exp()) - arb(0.5)
        return arb(0.25) - deviation * deviation
    if loss == EXPONENTIAL:
        return (-margin).exp()
    if loss == CORRELATION:
        return arb(0)
    raise ValueError(f"loss: got {loss!r}, expected one of {ENCLOSED_LOSSES}")


def gradient_and_hessian(problem: SelectionProblem, p: Vector) -> tuple[Vector, list[Vector]]:
    """Enclosures of `∇L`, `(D,)`, and `∇²L`, `(D, D)`, over a box of `p` (statement `hessian-p`).

    ∇²L = (1/n) Σ [ℓ''(m_i) w_i w_iᵀ + ℓ'(m_i) Σ_t s_it(γ_it − γ̄_i)(k_it − k̄_i)(k_it − k̄_i)ᵀ],
    w_i = Σ_t s_it(γ_it − γ̄_i) k_it
    """
    n, _, dim = problem.shape
    gradient = [arb(0)] * dim
    hessian = [[arb(0)] * dim for _ in range(dim)]
    for keys, scores in zip(problem.keys, problem.scores, strict=True):
        attention = _softmax([vector(k) for k in keys], p)
        gamma = vector(scores)
        # Relative to the first token, so that widths multiply differences and not values.
        relative_scores = [g - gamma[0] for g in gamma]
        origin = vector(keys[0])
        relative_keys = [[x - o for x, o in zip(vector(k), origin, strict=True)] for k in keys]
        mean_score = dot(attention, relative_scores)
        mean_key = [dot(attention, column) for column in zip(*relative_keys, strict=True)]
        moved = [s * (g - mean_score) for s, g in zip(attention, relative_scores, strict=True)]
        centred = [[x - m for x, m in zip(k, mean_key, strict=True)] for k in relative_keys]
        margin_gradient = [dot(moved, column) for column in zip(*centred, strict=True)]
        margin = gamma[0] + mean_score
        slope, bend = descent_slope(problem.loss, margin), curvature(problem.loss, margin)
        for a in range(dim):
            gradient[a] -= slope * margin_gradient[a]
            for b in range(a + 1):
                spread = dot(moved, [k[a] * k[b] for k in centred])
                hessian[a][b] += bend * margin_gradient[a] * margin_gradient[b] - slope * spread
    for a in range(dim):
        gradient[a] /= n
        for b in range(a + 1):
            hessian[a][b] /= n
            hessian[b][a] = hessian[a][b]
    return gradient, hessian


def _softmax(keys: list[Vector], p: Vector) -> Vector:
    """Enclosures of the attention weights as `1/Σ exp((k_τ − k_t)·p)`: no ball is divided by itself."""
    weights = []
    for t, key in enumerate(keys):
        total = arb(1)
        for tau, other in enumerate(keys):
            if tau != t:
                total += dot([y - x for x, y in zip(key, other, strict=True)], p).exp()
        weights.append(1 / total)
    return weights
