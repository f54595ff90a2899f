"""The softmax-attention model, its risk, and the derivatives of the risk, entry by entry.

The model is ``f(X) = vᵀ Xᵀ softmax(a)`` with logits ``a``: keys times query, ``K p``, or ``X W p``, or
``X W z`` with a query of each input's own. The risk is the mean of ``ℓ(Y_i f(X_i))`` for a loss of which
nothing is assumed but that it is differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr

from .derivation import Derivation
from .notation import Index, T, Unspecified, array, d, delta, mean, n, named, partial, total
from .softmax import softmax
from .statement import MM, Statement, Variant

Token = Index | int


@dataclass(frozen=True)
class Logits:
    """The logits of a model, as a function of the index of the input and the index or number of the token.

    Attributes:
        entry: the function.
        mark: printed above what depends on the logits, where two models stand side by side.
    """

    entry: Callable[[Index, Token], Expr]
    mark: str = ""

    def __call__(self, i: Index, t: Token) -> Expr:
        return self.entry(i, t)

    def named(self, name: str, definition: Expr, *indices: Token) -> Expr:
        return named(f"{name}^{self.mark}" if self.mark else name, definition, *indices)


i, t, tau, kappa = Index("i", n), Index("t", T), Index("tau", T), Index("kappa", T)
a, b, c, e = Index("a", d), Index("b", d), Index("c", d), Index("e", d)
X, K, Y = array("X", n, T, d), array("K", n, T, d), array("Y", n)
W, v, p, z = array("W", d, d), array("v", d), array("p", d), array("z", n, d)
loss = Unspecified("ell")
head = Unspecified("psi", slot=c)


# ---------------------------------------------------------------- formulas


key_logits = Logits(lambda i, t: total(K[i, t, e] * p[e], e))
"""``(K_i p)_t``."""
weight_logits = Logits(lambda i, t: total(X[i, t, c] * W[c, e] * p[e], c, e))
"""``(X_i W p)_t``."""
cross_logits = Logits(lambda i, t: total(X[i, t, c] * W[c, e] * z[i, e], c, e))
"""``(X_i W z_i)_t``."""


def weights(logits: Logits, i: Index, t: Token) -> Expr:
    """``s_it``, the softmax of the logits of input ``i``."""
    return logits.named("s", softmax(lambda token: logits(i, token), t), i, t)


def score(i: Index, t: Index) -> Expr:
    """``γ_it = Y_i (X_i v)_t``."""
    return named("gamma", Y[i] * total(X[i, t, c] * v[c], c), i, t)


def margin(logits: Logits, i: Index) -> Expr:
    """``m_i = Y_i f(X_i) = γ_iᵀ s_i``."""
    return logits.named("m", total(score(i, t) * weights(logits, i, t), t), i)


def risk(logits: Logits) -> Expr:
    """``(1/n) Σ_i ℓ(m_i)``."""
    return mean(loss(margin(logits, i)), i)


def slope(logits: Logits, i: Index) -> Expr:
    """``ℓ'(m_i)``."""
    return loss(margin(logits, i), 1)


def jacobian(logits: Logits, i: Index, t: Index, tau: Index) -> Expr:
    """Entry ``(t, τ)`` of ``J_i = diag(s_i) − s_i s_iᵀ``."""
    entry = weights(logits, i, t) * (delta(t, tau) - weights(logits, i, tau))
    return logits.named("J", entry, i, t, tau)


def pulled_back(logits: Logits, i: Index, rows: Callable[[Index], Expr]) -> Expr:
    """``Σ_tτ rows(t) (J_i)_tτ γ_iτ``: entry ``a`` of ``K_iᵀ J_i γ_i`` if ``rows(t)`` is ``K_ita``."""
    return total(rows(t) * jacobian(logits, i, t, tau) * score(i, tau), t, tau)


def gradient(logits: Logits, a: Index) -> Expr:
    """``g_a = (1/n) Σ_i ℓ'(m_i) (X_iᵀ J_i γ_i)_a``."""
    entry = mean(slope(logits, i) * pulled_back(logits, i, lambda t: X[i, t, a]), i)
    return logits.named("g", entry, a)


def key_gradient(i: Index, a: Index) -> Expr:
    """``w_ia``, entry ``a`` of ``K_iᵀ J_i γ_i``."""
    return named("w", pulled_back(key_logits, i, lambda t: K[i, t, a]), i, a)


def mean_key(i: Index, a: Index) -> Expr:
    """``k̄_ia = Σ_κ s_iκ k_iκa``."""
    return named("kbar", total(weights(key_logits, i, kappa) * K[i, kappa, a], kappa), i, a)


def attended(i: Index, a: Index) -> Expr:
    """``r_ia``, entry ``a`` of ``X_iᵀ s_i``."""
    return named("r", total(X[i, t, a] * weights(key_logits, i, t), t), i, a)


def nonlinear_risk() -> Expr:
    """``(1/n) Σ_i ℓ(Y_i ψ(r_i))``."""
    return mean(loss(Y[i] * head(attended(i, c))), i)


# ---------------------------------------------------------------- in the query and in the head


def gradient_p() -> Derivation:
    """``∇_p L = (1/n) Σ_i ℓ'(m_i) K_iᵀ J_i γ_i``."""
    s, m = weights(key_logits, i, t), slope(key_logits, i)
    return (
        Derivation("gradient-p", start=partial(risk(key_logits), p[a]), title="Gradient in the query")
        .step(
            mean(m * total(score(i, t) * partial(s, p[a]), t), i),
            because="chain rule; scores do not depend on p",
        )
        .step(
            mean(m * total(score(i, t) * s * (K[i, t, a] - mean_key(i, a)), t), i),
            because="∂s_t/∂p = s_t (k_t − Σ_κ s_κ k_κ)",
        )
        .step(
            mean(m * key_gradient(i, a), i),
            because="diag(s) − s sᵀ is symmetric: it may act on the scores instead of the keys",
        )
    )


def gradient_v() -> Derivation:
    """``∇_v L = (1/n) Σ_i ℓ'(m_i) Y_i X_iᵀ s_i``."""
    s, m = weights(key_logits, i, t), slope(key_logits, i)
    return (
        Derivation("gradient-v", start=partial(risk(key_logits), v[a]), title="Gradient in the head")
        .step(
            mean(m * total(partial(score(i, t), v[a]) * s, t), i),
            because="chain rule; the weights do not depend on v",
        )
        .step(mean(m * Y[i] * total(X[i, t, a] * s, t), i), because="a score is linear in v")
    )


def hessian_p() -> Derivation:
    """``∇²L = (1/n) Σ_i [ℓ''(m_i) w_i w_iᵀ + ℓ'(m_i) Σ_t s_t (γ_t − γ̄)(k_t − k̄)(k_t − k̄)ᵀ]``."""
    m, slope_of_slope = slope(key_logits, i), loss(margin(key_logits, i), 2)
    w_a, w_b = key_gradient(i, a), key_gradient(i, b)
    return (
        Derivation("hessian-p", start=partial(risk(key_logits), p[a], p[b]), title="Hessian in the query")
        .step(partial(mean(m * w_a, i), p[b]), because="gradient-p")
        .step(
            mean(slope_of_slope * w_a * w_b + m * partial(w_a, p[b]), i),
            because="product rule; the gradient of the margin is w",
        )
        .step(
            mean(slope_of_slope * w_a * w_b + m * third_cumulant(i, a, b), i),
            because="the derivative of a covariance is the third cumulant",
        )
    )


def third_cumulant(i: Index, a: Index, b: Index) -> Expr:
    """``Σ_t s_t (γ_t − γ̄)(k_t − k̄)_a (k_t − k̄)_b``."""
    spread = (K[i, t, a] - mean_key(i, a)) * (K[i, t, b] - mean_key(i, b))
    return total(weights(key_logits, i, t) * (score(i, t) - margin(key_logits, i)) * spread, t)


def gradient_nonlinear_head() -> Derivation:
    """The gradient in ``p`` of ``(1/n) Σ_i ℓ(Y_i ψ(r_i))``, ``r_i = X_iᵀ softmax(K_i p)``."""
    m = loss(Y[i] * head(attended(i, c)), 1)
    moved = total(head(attended(i, c), b) * partial(attended(i, b), p[a]), b)
    spread = total(K[i, t, a] * jacobian(key_logits, i, t, tau) * X[i, tau, b], t, tau)
    return (
        Derivation(
            "gradient-nonlinear-head",
            start=partial(nonlinear_risk(), p[a]),
            title="Gradient in the query under a nonlinear head",
        )
        .step(mean(m * Y[i] * moved, i), because="chain rule, through the loss and through the head")
        .step(
            mean(m * Y[i] * total(head(attended(i, c), b) * spread, b), i),
            because="softmax-jacobian, which is symmetric",
        )
    )


# ---------------------------------------------------------------- statements


def _d_p() -> Expr:
    return partial(risk(key_logits), p[a])


def _d_v() -> Expr:
    return partial(risk(key_logits), v[a])


def _d_pp() -> Expr:
    return partial(risk(key_logits), p[a], p[b])


def _d_p_nonlinear() -> Expr:
    return partial(nonlinear_risk(), p[a])


def _nonlinear(slope: Expr, spread: Expr) -> Expr:
    """A claimed gradient under a nonlinear head, with ``ψ_b`` times `spread` summed over ``b``."""
    return mean(slope * total(head(attended(i, c), b) * spread, b), i)


def _with_first_weight() -> Expr:
    s, first = weights(key_logits, i, t), weights(key_logits, i, 1)
    return mean(
        slope(key_logits, i) * total(K[i, t, a] * s * (delta(t, tau) - first) * score(i, tau), t, tau), i
    )


GRADIENT_P = Statement(
    id="gradient-p",
    title="Gradient in the query",
    source=MM,
    hypotheses=("the loss is differentiable",),
    conclusion="∇_p L = (1/n) Σ_i ℓ'(γ_iᵀs_i) K_iᵀ (diag(s_i) − s_i s_iᵀ) γ_i",
    latex=r"\nabla_p L = \frac1n \sum_i \ell'(\gamma_i^\top s_i)\, "
    r"K_i^\top (\operatorname{diag}(s_i) - s_i s_i^\top)\, \gamma_i",
    build=lambda: (gradient_p(),),
    variants=(
        Variant("sign", "the gradient with the opposite sign", _d_p, lambda: -gradient_p().result),
        Variant(
            "one-over-n",
            "the sum over the inputs without the factor 1/n",
            _d_p,
            lambda: total(slope(key_logits, i) * key_gradient(i, a), i),
        ),
        Variant(
            "second-term",
            "diag(s) for the Jacobian of the softmax",
            _d_p,
            lambda: mean(
                slope(key_logits, i) * total(K[i, t, a] * weights(key_logits, i, t) * score(i, t), t), i
            ),
        ),
        Variant(
            "loss-derivative",
            "ℓ in place of ℓ'",
            _d_p,
            lambda: mean(loss(margin(key_logits, i)) * key_gradient(i, a), i),
        ),
        Variant(
            "weight-index", "the weight of the first token for that of token τ", _d_p, _with_first_weight
        ),
        Variant(
            "keys",
            "tokens X in place of keys K",
            _d_p,
            lambda: gradient(key_logits, a),
        ),
    ),
)

GRADIENT_V = Statement(
    id="gradient-v",
    title="Gradient in the head",
    source=MM,
    hypotheses=("the loss is differentiable",),
    conclusion="∇_v L = (1/n) Σ_i ℓ'(γ_iᵀs_i) Y_i X_iᵀ s_i",
    latex=r"\nabla_v L = \frac1n \sum_i \ell'(\gamma_i^\top s_i)\, Y_i X_i^\top s_i",
    build=lambda: (gradient_v(),),
    variants=(
        Variant(
            "label",
            "the label left out",
            _d_v,
            lambda: mean(slope(key_logits, i) * total(X[i, t, a] * weights(key_logits, i, t), t), i),
        ),
        Variant(
            "one-over-n",
            "the sum over the inputs without the factor 1/n",
            _d_v,
            lambda: n * gradient_v().result,
        ),
        Variant(
            "weights",
            "the mean over the tokens in place of the attention",
            _d_v,
            lambda: mean(slope(key_logits, i) * Y[i] * mean(X[i, t, a], t), i),
        ),
    ),
)

HESSIAN_P = Statement(
    id="hessian-p",
    title="Hessian in the query",
    source="derived here",
    hypotheses=("the loss is twice differentiable",),
    conclusion="∇²L = (1/n) Σ_i [ℓ''(m_i) w_i w_iᵀ + ℓ'(m_i) Σ_t s_it (γ_it − γ̄_i)(k_it − k̄_i)(k_it − "
    "k̄_i)ᵀ] with w_i = K_iᵀ (diag(s_i) − s_i s_iᵀ) γ_i and means under s_i",
    latex=r"\nabla_p^2 L = \frac1n \sum_i \Bigl[ \ell''(m_i)\, w_i w_i^\top + \ell'(m_i) \sum_t s_{it} "
    r"(\gamma_{it} - \bar\gamma_i)(k_{it} - \bar k_i)(k_{it} - \bar k_i)^\top \Bigr]",
    build=lambda: (hessian_p(),),
    variants=(
        Variant(
            "outer-product",
            "the term in ℓ'' left out",
            _d_pp,
            lambda: mean(slope(key_logits, i) * third_cumulant(i, a, b), i),
        ),
        Variant(
            "centring",
            "scores not centred in the term in ℓ'",
            _d_pp,
            lambda: (
                hessian_p().result
                + mean(
                    slope(key_logits, i)
                    * margin(key_logits, i)
                    * total(
                        weights(key_logits, i, t)
                        * (K[i, t, a] - mean_key(i, a))
                        * (K[i, t, b] - mean_key(i, b)),
                        t,
                    ),
                    i,
                )
            ),
        ),
    ),
)

GRADIENT_NONLINEAR_HEAD = Statement(
    id="gradient-nonlinear-head",
    title="Gradient in the query under a nonlinear head",
    source=f"{MM}, nonlinear head",
    hypotheses=("the loss and the head ψ are differentiable",),
    conclusion="the gradient of (1/n) Σ_i ℓ(Y_i ψ(r_i)) in p, with r_i = X_iᵀ softmax(K_i p), is "
    "(1/n) Σ_i ℓ'(Y_i ψ(r_i)) Y_i K_iᵀ (diag(s_i) − s_i s_iᵀ) X_i ∇ψ(r_i)",
    latex=r"\nabla_p L = \frac1n \sum_i \ell'(Y_i \psi(r_i))\, Y_i K_i^\top "
    r"(\operatorname{diag}(s_i) - s_i s_i^\top)\, X_i \nabla\psi(r_i)",
    build=lambda: (gradient_nonlinear_head(),),
    variants=(
        Variant(
            "label",
            "the label left out of the chain rule",
            _d_p_nonlinear,
            lambda: _nonlinear(
                loss(Y[i] * head(attended(i, c)), 1),
                total(K[i, t, a] * jacobian(key_logits, i, t, tau) * X[i, tau, b], t, tau),
            ),
        ),
        Variant(
            "second-term",
            "diag(s) for the Jacobian of the softmax",
            _d_p_nonlinear,
            lambda: _nonlinear(
                loss(Y[i] * head(attended(i, c)), 1) * Y[i],
                total(K[i, t, a] * weights(key_logits, i, t) * X[i, t, b], t),
            ),
        ),
    ),
)
