"""Softmax attention in the log domain: the only module that exponentiates logits.

Grouping the terms of the gradient ([MM], arXiv 2306.13596, gradient of the risk in `p`) by pairs of
tokens gives, with `c_i = −ℓ'(γ_iᵀs_i)`,

    −∇L(p) = (1/n) Σ_i c_i Σ_{γ_it > γ_iτ} s_it s_iτ (γ_it − γ_iτ) (k_it − k_iτ)

(the covariance identity `softmax-covariance` of `theory`). Every weight in front of a key difference
is positive, and its logarithm is a sum of logarithms, so nothing is lost when all attention weights
but one underflow: dividing by the largest weight gives the direction of the gradient at any norm,
and the logarithm of that weight its size. The textbook form `Kᵀ(diag(s) − ssᵀ)γ` returns exact
zeros from a logit gap of about 37 on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .losses import Loss
from .validation import FloatArray

IntArray = npt.NDArray[np.intp]


def log_softmax(logits: FloatArray) -> FloatArray:
    """`log softmax` along the last axis, exact to rounding for any finite logits."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    # The largest entries contribute exactly 1 each: log1p of the rest keeps log s of a saturated
    # token (−4e-18, say) instead of rounding it to 0.
    largest = shifted == 0
    rest = np.exp(shifted) * ~largest
    excess = rest.sum(axis=-1, keepdims=True) + (largest.sum(axis=-1, keepdims=True) - 1)
    result: FloatArray = shifted - np.log1p(excess)
    return result


@dataclass(frozen=True)
class ScaledVector:
    """A vector `exp(log_norm) · direction`, which need not be representable itself.

    Attributes:
        direction: `(D,)`, of unit Euclidean norm, or zeros when the vector is exactly zero.
        log_norm: natural logarithm of the norm; `-inf` for the zero vector.
        cancellation: `‖Σ w u‖ / Σ w ‖u‖` of the positively weighted sum that made the vector, in
            `[0, 1]`. At rounding level the terms cancel: a finite stationary point.
    """

    direction: FloatArray
    log_norm: float
    cancellation: float

    def dense(self) -> FloatArray:
        """The vector itself, `(D,)`; underflows to zeros when `log_norm` is below about −745."""
        return math.exp(self.log_norm) * self.direction


@dataclass(frozen=True, eq=False)
class PairwiseRisk:
    """The risk of one head as a sum over pairs of tokens with different scores and keys.

    Attributes:
        keys: `(n, T, D)`, relative to the first token of each input (softmax is shift invariant,
            and small logits round less).
        scores: `(n, T)` token scores `γ`.
        loss: the loss `ℓ`.
        owner, better, worse: `(P,)` input and tokens of each pair; `better` has the larger score.
            Tokens are numbered through all inputs: token `t` of input `i` is `i·T + t`.
        log_gap: `(P,)` `log((γ_better − γ_worse)/n)`.
        key_gap: `(P, D)` `k_better − k_worse`.
    """

    keys: FloatArray
    scores: FloatArray
    loss: Loss
    owner: IntArray
    better: IntArray
    worse: IntArray
    log_gap: FloatArray
    key_gap: FloatArray

    @cached_property
    def key_gap_norms(self) -> FloatArray:
        """Euclidean lengths of the key differences, `(P,)`."""
        result: FloatArray = np.hypot.reduce(self.key_gap, axis=1)
        return result

    @property
    def logit_scale(self) -> float:
        """Logits per unit length of `p`: the longest key difference, 1 if no pair moves."""
        return float(self.key_gap_norms.max()) if self.key_gap_norms.size else 1.0

    @classmethod
    def of(cls, keys: FloatArray, scores: FloatArray, loss: Loss) -> PairwiseRisk:
        """Collect the pairs of `keys` `(n, T, D)` and `scores` `(n, T)`."""
        n, tokens, _ = keys.shape
        first, second = np.triu_indices(tokens, k=1)
        owner = np.repeat(np.arange(n), first.size)
        first, second = np.tile(first, n), np.tile(second, n)
        swap = scores[owner, first] < scores[owner, second]
        better, worse = np.where(swap, second, first), np.where(swap, first, second)
        gap = scores[owner, better] - scores[owner, worse]
        key_gap = keys[owner, better] - keys[owner, worse]
        moves = (gap > 0) & key_gap.any(axis=1)
        return cls(
            keys=keys - keys[:, :1],
            scores=scores,
            loss=loss,
            owner=owner[moves],
            better=(owner * tokens + better)[moves],
            worse=(owner * tokens + worse)[moves],
            log_gap=np.log(gap[moves]) - np.log(n),
            key_gap=key_gap[moves],
        )

    def restricted(self, basis: FloatArray) -> PairwiseRisk:
        """The same risk as a function of `z`, `p = basis @ z`, for a `(D, r)` basis."""
        return PairwiseRisk(
            keys=self.keys @ basis,
            scores=self.scores,
            loss=self.loss,
            owner=self.owner,
            better=self.better,
            worse=self.worse,
            log_gap=self.log_gap,
            key_gap=self.key_gap @ basis,
        )

    @cached_property
    def _flat_keys(self) -> FloatArray:
        result: FloatArray = self.keys.reshape(self.scores.size, -1)
        return result

    @cached_property
    def _gaps_and_norms(self) -> FloatArray:
        result: FloatArray = np.column_stack([self.key_gap, self.key_gap_norms])
        return result

    def log_attention(self, p: FloatArray) -> FloatArray:
        """`log s_it`, `(n, T)`."""
        return log_softmax(self.keys @ p)

    def margins(self, log_attention: FloatArray) -> FloatArray:
        """`γ_iᵀ s_i`, `(n,)`, between the smallest and the largest score of each input."""
        result: FloatArray = (np.exp(log_attention) * self.scores).sum(axis=1)
        return result

    def log_pair_weights(self, p: FloatArray) -> FloatArray:
        """`(P,)` logarithm of the positive weight of each key difference in `−∇L`."""
        # Trainers spend their time in the next ten lines: reductions are called as ufuncs, and the
        # logarithm of the softmax denominator is taken once for both factors of each pair.
        logits = (self._flat_keys @ p).reshape(self.scores.shape)
        shifted = logits - np.maximum.reduce(logits, axis=1, keepdims=True)
        unnormalised = np.exp(shifted)
        total = np.add.reduce(unnormalised, axis=1)
        margins = np.add.reduce(unnormalised * self.scores, axis=1) / total
        of_input = self.loss.log_abs_slope(margins) - 2 * np.log(total)
        flat = shifted.ravel()
        result: FloatArray = of_input[self.owner] + flat[self.better] + flat[self.worse] + self.log_gap
        return result

    def descent(self, p: FloatArray) -> ScaledVector:
        """`−∇L(p)` with its scale kept apart, exact in direction at any norm of `p`."""
        return self._sum(self.log_pair_weights(p))

    def _sum(self, log_weights: FloatArray) -> ScaledVector:
        if log_weights.size == 0:
            return ScaledVector(np.zeros(self.keys.shape[2]), -np.inf, 0.0)
        shift = float(np.maximum.reduce(log_weights))
        sums = np.exp(log_weights - shift) @ self._gaps_and_norms
        total = sums[:-1]
        norm = math.hypot(*total.tolist())  # Squares of entries may underflow.
        if norm == 0.0:
            return ScaledVector(np.zeros_like(total), -np.inf, 0.0)
        return ScaledVector(total / norm, shift + math.log(norm), norm / float(sums[-1]))

    def descent_jacobian(self, p: FloatArray) -> tuple[ScaledVector, FloatArray]:
        """`−∇L(p)` and its Jacobian `(D, D)` divided by `‖∇L(p)‖`.

        Differentiates the logarithm of each pair weight:
        `∇ log w = (ℓ''/ℓ')(m_i) ∇m_i + (k_better − k̄_i) + (k_worse − k̄_i)`.
        Where the gradient vanishes exactly, the Jacobian is returned unscaled.
        """
        log_attention = self.log_attention(p)
        log_weights = self.log_pair_weights(p)
        descent = self._sum(log_weights)
        attention = np.exp(log_attention)
        margins = self.margins(log_attention)
        centred = self.keys - np.einsum("it,itd->id", attention, self.keys)[:, None]
        margin_gradient = np.einsum("it,it,itd->id", attention, self.scores - margins[:, None], centred)
        rate = self.loss.log_slope_rate(margins)[:, None] * margin_gradient
        flat = centred.reshape(self.scores.size, centred.shape[2])
        log_weight_gradient = rate[self.owner] + flat[self.better] + flat[self.worse]
        scale = descent.log_norm if descent.log_norm > -np.inf else 0.0
        weights = np.exp(log_weights - scale)
        jacobian: FloatArray = (self.key_gap * weights[:, None]).T @ log_weight_gradient
        return descent, jacobian
