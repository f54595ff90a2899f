"""Under equal non-optimal scores the risk decreases along the max-margin direction, at every point.

For one input, number the tokens so that the optimal one is the first. Assumption B is ``γ_t = ρ`` for
``t ≠ 1`` and ``γ_1 = ρ + g`` with ``g > 0``; feasibility of the margin problem is ``a_1 − a_t ≥ 1``, written
``a_t = a_1 − (1 + h_t²)`` for ``t ≠ 1``.
"""

from __future__ import annotations

from sympy import Expr

from .attention import K, a, e, i, key_logits, loss, margin, p, pulled_back, risk
from .derivation import Derivation
from .notation import Index, T, array, d, delta, mean, named, partial, scalar, total
from .softmax import kappa, t, tau, weights
from .statement import MM, Statement, Variant

q, h, k = array("q", d), array("h", T), array("k", T)
rho, top = scalar("rho"), scalar("a")
g = scalar("g", positive=True)
first = delta(t, 1)


def along(i: Index, t: Index | int) -> Expr:
    """``a_it = (K_i q)_t``, the logit of a token in direction ``q``."""
    return named("a", total(K[i, t, e] * q[e], e), i, t)


def _decrease() -> Expr:
    """``−⟨∇_p L, q⟩``."""
    return -total(q[a] * partial(risk(key_logits), p[a]), a)


def contraction() -> Derivation:
    """``−⟨∇_p L, q⟩ = (1/n) Σ_i (−ℓ'_i) (K_i q)ᵀ J_i γ_i``."""
    slope = loss(margin(key_logits, i), 1)
    keys = pulled_back(key_logits, i, lambda t: K[i, t, a])
    return (
        Derivation("descent-contraction", start=_decrease(), title="Decrease of the risk along q")
        .step(-total(q[a] * mean(slope * keys, i), a), because="gradient-p")
        .step(
            mean(-slope * pulled_back(key_logits, i, lambda t: along(i, t)), i),
            because="q does not depend on input and token",
        )
    )


def _score(token: Index, spread: Expr | int = 0) -> Expr:
    """``ρ + g δ_t1``, less `spread` for ``t ≠ 1``."""
    return rho + g * delta(token, 1) - (1 - delta(token, 1)) * spread


def _logit(token: Index) -> Expr:
    """``a_1`` for the first token, ``a_1 − 1 − h_t²`` for the others."""
    return top - (1 - delta(token, 1)) * (1 + h[token] ** 2)


def _covariance(logit: Expr, score: Expr) -> Expr:
    """``Σ_tτ a_t (diag(s) − s sᵀ)_tτ γ_τ`` for an expression in ``t`` and one in ``τ``."""
    return total(logit * weights(t) * (delta(t, tau) - weights(tau)) * score, t, tau)


def _bound() -> Expr:
    """``g s_1 (1 − s_1)``."""
    return g * weights(1) * (1 - weights(1))


def one_input() -> Derivation:
    """``aᵀ(diag(s) − s sᵀ)γ − g s_1(1 − s_1) = g s_1 Σ_{t≠1} s_t h_t² ≥ 0``."""
    rest = total((1 - first) * weights(t) * (1 + h[t] ** 2), t)
    return (
        Derivation(
            "descent-one-input",
            start=_covariance(_logit(t), _score(tau)) - _bound(),
            title="One input: covariance of logits and scores",
        )
        .step(
            g * weights(1) * (top - total(weights(kappa) * _logit(kappa), kappa)) - _bound(),
            because="softmax-covariance; only the score of the first token differs from ρ",
        )
        .step(g * weights(1) * rest - _bound(), because="a_1 − ā = Σ_{t≠1} s_t (a_1 − a_t)")
        .step(
            g * weights(1) * total((1 - first) * weights(t) * h[t] ** 2, t),
            because="Σ_{t≠1} s_t = 1 − s_1",
        )
        .nonnegative(because="g > 0, weights are positive, the rest are squares")
    )


DESCENT_DIRECTION = Statement(
    id="descent-direction",
    title="The risk decreases along the max-margin direction",
    source=f"{MM}, proof of Theorem 2",
    hypotheses=(
        "the loss is strictly decreasing",
        "Assumption B: all tokens but the optimal one have the same score, which is lower",
        "q = p_mm* satisfies (k_{i,opt} − k_it)ᵀq ≥ 1 for all other tokens",
        "T ≥ 2",
    ),
    conclusion="−⟨∇_p L(p), q⟩ ≥ (1/n) Σ_i |ℓ'_i| (γ_{i,opt} − γ_{i,rest}) s_{i,opt} (1 − s_{i,opt}) > 0 "
    "for every p, so there is no finite stationary point",
    latex=r"-\langle \nabla_p L(p), p_{\mathrm{mm}}^\star \rangle \ge \frac1n \sum_i \lvert \ell_i' \rvert\, "
    r"(\gamma_{i,\mathrm{opt}} - \gamma_{i,\mathrm{rest}})\, s_{i,\mathrm{opt}} (1 - s_{i,\mathrm{opt}}) > 0",
    build=lambda: (contraction(), one_input()),
    argument="The second derivation, for each input with its optimal token numbered 1, bounds each term of "
    "the first, whose factor −ℓ'_i is positive. The bound is positive because 0 < s_1 < 1 when T ≥ 2.",
    variants=(
        Variant(
            "constant",
            "twice the bound",
            lambda: _covariance(_logit(t), _score(tau)) - 2 * _bound(),
            None,
        ),
        Variant(
            "assumption-B",
            "other tokens may have any lower score",
            lambda: _covariance(_logit(t), _score(tau, k[tau] ** 2)),
            None,
        ),
        Variant(
            "feasibility",
            "a margin of 0 in place of 1",
            lambda: _covariance(top - (1 - first) * h[t] ** 2, _score(tau)) - _bound(),
            None,
        ),
    ),
)
