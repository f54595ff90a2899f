"""Gradients in the key-query matrix ``W`` are of low rank, and what follows for training it.

Lemma 1 of [MM]: training ``W`` for a fixed query ``u`` is training ``p``, because ``∇_W L = g uᵀ``.
"""

from __future__ import annotations

from sympy import Expr, Integer, sqrt

from .attention import (
    Logits,
    W,
    X,
    a,
    b,
    c,
    cross_logits,
    e,
    gradient,
    i,
    p,
    pulled_back,
    risk,
    score,
    slope,
    t,
    weight_logits,
    weights,
    z,
)
from .derivation import Derivation
from .notation import Index, array, at, d, mean, partial, scalar, total
from .statement import MD, MM, Statement, Variant

k, l = Index("k", d), Index("l", d)  # noqa: E741  (row and column of a matrix)
W0, u, q = array("W0", d, d), array("u", d), array("q", d)
eta = scalar("eta", positive=True)


token_logits = Logits(lambda i, t: total(X[i, t, e] * p[e], e), "p")
"""``(X_i p)_t``."""
fixed_query_logits = Logits(lambda i, t: total(X[i, t, c] * W[c, e] * u[e], c, e), "W")
"""``(X_i W u)_t``."""


def squared_norm() -> Expr:
    """``‖u‖²``."""
    return total(u[e] ** 2, e)


def _d_w(logits: Logits) -> Expr:
    return partial(risk(logits), W[a, b])


# ---------------------------------------------------------------- gradients


def gradient_w() -> Derivation:
    """``∇_W L = g pᵀ`` for the logits ``X W p``."""
    return (
        Derivation("gradient-W-rank-one", start=_d_w(weight_logits), title="Gradient in W")
        .step(
            mean(slope(weight_logits, i) * pulled_back(weight_logits, i, lambda t: X[i, t, a] * p[b]), i),
            because="chain rule; the logit of token t changes by x_ta p_b",
        )
        .step(gradient(weight_logits, a) * p[b], because="p does not depend on input and token")
    )


def gradient_p_through_w() -> Derivation:
    """``∇_p L = Wᵀ g`` for the logits ``X W p``."""
    keys = pulled_back(weight_logits, i, lambda t: total(X[i, t, c] * W[c, b], c))
    return (
        Derivation(
            "gradient-p-through-W", start=partial(risk(weight_logits), p[b]), title="Gradient in p, through W"
        )
        .step(mean(slope(weight_logits, i) * keys, i), because="gradient-p with the keys K = X W")
        .step(total(W[a, b] * gradient(weight_logits, a), a), because="W does not depend on input and token")
    )


def gradient_w_cross() -> Derivation:
    """``∇_W L = (1/n) Σ_i ℓ'(m_i) X_iᵀ J_i γ_i z_iᵀ`` for the logits ``X W z``."""
    return (
        Derivation("gradient-W-cross", start=_d_w(cross_logits), title="Gradient in W of cross-attention")
        .step(
            mean(slope(cross_logits, i) * pulled_back(cross_logits, i, lambda t: X[i, t, a] * z[i, b]), i),
            because="chain rule; the logit of token t changes by x_ta z_b",
        )
        .step(_cross_gradient(), because="z_i does not depend on the token")
    )


def _cross_gradient() -> Expr:
    return mean(
        slope(cross_logits, i) * pulled_back(cross_logits, i, lambda t: X[i, t, a]) * z[i, b],
        i,
    )


def balancedness() -> Derivation:
    """``d/dt (WᵀW − p pᵀ) = 0`` along ``dW/dt = −∇_W L``, ``dp/dt = −∇_p L``."""
    g = gradient(weight_logits, a)
    pull = [total(W[a, index] * g, a) for index in (k, l)]
    return (
        Derivation("balancedness", start=_imbalance_rate(), title="Balancedness of gradient flow")
        .step(
            pull[0] * p[l] + pull[1] * p[k] - total((W[a, k] * p[l] + W[a, l] * p[k]) * g, a),
            because="∇_W L = g pᵀ and ∇_p L = Wᵀ g (gradient-W-rank-one)",
        )
        .step(0, because="both terms are p_l (Wᵀ g)_k + p_k (Wᵀ g)_l")
    )


def _imbalance_rate(flow_of_w: int = -1) -> Expr:
    """Entry ``(k, l)`` of the rate of change of ``WᵀW − p pᵀ``; ``dW/dt`` is `flow_of_w` times ``∇_W L``."""
    loss = risk(weight_logits)
    by_w = total(W[a, k] * partial(loss, W[a, l]) + W[a, l] * partial(loss, W[a, k]), a)
    return flow_of_w * by_w + p[k] * partial(loss, p[l]) + p[l] * partial(loss, p[k])


def _imbalance_rate_of_rows() -> Expr:
    """Entry ``(k, l)`` of the time derivative of ``W Wᵀ − p pᵀ`` along the flow."""
    loss = risk(weight_logits)
    by_w = total(W[k, a] * partial(loss, W[l, a]) + W[l, a] * partial(loss, W[k, a]), a)
    return p[k] * partial(loss, p[l]) + p[l] * partial(loss, p[k]) - by_w


# ---------------------------------------------------------------- Lemma 1


def _lifted(step: Expr) -> Expr:
    """Entry ``(a, b)`` of ``W − step ∇_W L`` at ``W = p uᵀ/‖u‖²``."""
    moved = W[a, b] - step * _d_w(fixed_query_logits)
    return at(moved, W[k, l], p[k] * u[l] / squared_norm())


def _lift(vector_entry: Expr) -> Expr:
    return vector_entry * u[b] / squared_norm()


def lemma1_base() -> Derivation:
    """``W(0) = p(0) uᵀ/‖u‖²`` gives both models the same query: ``W(0) u = p(0)``."""
    return Derivation(
        "lemma1-base",
        start=at(total(W[a, l] * u[l], l), W[k, l], p[k] * u[l] / squared_norm()),
        title="Lemma 1, base of the induction",
    ).step(p[a], because="uᵀu/‖u‖² = 1")


def lemma1_step() -> Derivation:
    """If ``W(t) = p(t) uᵀ/‖u‖²`` then ``W(t+1) = p(t+1) uᵀ/‖u‖²``, with steps ``η/‖u‖²`` and ``η``."""
    ratio = eta / squared_norm()
    by_rule = W[a, b] - ratio * gradient(fixed_query_logits, a) * u[b]
    return (
        Derivation("lemma1-step", start=_lifted(ratio), title="Lemma 1, step of the induction")
        .step(
            at(by_rule, W[k, l], p[k] * u[l] / squared_norm()),
            because="∇_W L = g uᵀ (gradient-W-rank-one with the fixed query u)",
        )
        .step(_lift(p[a] - eta * gradient(token_logits, a)), because="W u = p at W = p uᵀ/‖u‖²")
        .step(_lift(p[a] - eta * partial(risk(token_logits), p[a])), because="∇_p L = g (gradient-p, K = X)")
    )


def lemma1_rank() -> Derivation:
    """From any ``W(0)``: if ``W(t) − W(0) = q uᵀ``, then ``W(t+1) − W(0)`` is a vector times ``uᵀ`` too."""
    here = W0[k, l] + q[k] * u[l]
    moved = W[a, b] - eta * _d_w(fixed_query_logits)
    return Derivation(
        "lemma1-rank", start=at(moved, W[k, l], here) - W0[a, b], title="Lemma 1, rank of the change of W"
    ).step(
        (q[a] - eta * at(gradient(fixed_query_logits, a), W[k, l], here)) * u[b],
        because="∇_W L = g uᵀ",
    )


# ---------------------------------------------------------------- statements

GRADIENT_W_RANK_ONE = Statement(
    id="gradient-W-rank-one",
    title="The gradient in W is of rank one",
    source=f"{MM}, Lemma 1",
    hypotheses=("the loss is differentiable", "logits X_i W p"),
    conclusion="∇_W L = g pᵀ with g = (1/n) Σ_i ℓ'(m_i) X_iᵀ (diag(s_i) − s_i s_iᵀ) γ_i, so its rank is "
    "at most 1, and ∇_p L = Wᵀ g",
    latex=r"\nabla_W L = g\,p^\top,\quad g = \frac1n \sum_i \ell'(m_i)\, "
    r"X_i^\top (\operatorname{diag}(s_i) - s_i s_i^\top)\, \gamma_i,\quad \nabla_p L = W^\top g",
    build=lambda: (gradient_w(), gradient_p_through_w()),
    variants=(
        Variant(
            "order-of-factors",
            "the transpose p gᵀ",
            lambda: _d_w(weight_logits),
            lambda: p[a] * gradient(weight_logits, b),
        ),
        Variant(
            "second-term",
            "diag(s) for the Jacobian of the softmax",
            lambda: _d_w(weight_logits),
            lambda: (
                p[b]
                * mean(
                    slope(weight_logits, i)
                    * total(X[i, t, a] * weights(weight_logits, i, t) * score(i, t), t),
                    i,
                )
            ),
        ),
        Variant(
            "transpose",
            "∇_p L = W g in place of Wᵀ g",
            lambda: partial(risk(weight_logits), p[b]),
            lambda: total(W[b, a] * gradient(weight_logits, a), a),
        ),
    ),
)

LEMMA1 = Statement(
    id="lemma1-equivalence",
    title="Training W for a fixed query is training p",
    source=f"{MM}, Lemma 1",
    hypotheses=(
        "u ≠ 0",
        "W(0) = p(0) uᵀ/‖u‖²",
        "gradient descent on p for logits X_i p with step η, on W for logits X_i W u with step η/‖u‖²",
    ),
    conclusion="W(t) = p(t) uᵀ/‖u‖² for every t; and from any W(0), W(t) − W(0) has rank at most 1",
    latex=r"W(t) = \frac{p(t)\,u^\top}{\lVert u\rVert^2} \quad\text{for all } t",
    build=lambda: (lemma1_base(), lemma1_step(), lemma1_rank()),
    argument="Induction on t: the base holds by the choice of W(0), the step for any p(t) and any η. "
    "The last derivation is the step of an induction on W(t) − W(0) = q(t) uᵀ, with q(0) = 0.",
    variants=(
        Variant(
            "step-size-ratio",
            "the same step η for both",
            lambda: _lifted(eta),
            lambda: lemma1_step().result,
        ),
        Variant(
            "normalisation",
            "the step η/‖u‖² on W, but p(t+1) uᵀ without the factor 1/‖u‖²",
            lambda: _lifted(eta / squared_norm()),
            lambda: lemma1_step().result * squared_norm(),
        ),
        Variant(
            "square",
            "W(0) = p(0) uᵀ/‖u‖ gives the same query",
            lambda: at(total(W[a, l] * u[l], l), W[k, l], p[k] * u[l] / sqrt(squared_norm())),
            lambda: p[a],
        ),
    ),
)

BALANCEDNESS = Statement(
    id="balancedness",
    title="Balancedness of gradient flow on (W, p)",
    source="derived here",
    hypotheses=("gradient flow on W and p together", "logits X_i W p"),
    conclusion="WᵀW − p pᵀ does not change along the flow",
    latex=r"\frac{\mathrm d}{\mathrm dt}\bigl(W^\top W - p\,p^\top\bigr) = 0",
    build=lambda: (balancedness(),),
    variants=(
        Variant(
            "direction",
            "W ascends while p descends",
            lambda: _imbalance_rate(1),
            lambda: Integer(0),
        ),
        Variant(
            "transpose",
            "W Wᵀ in place of Wᵀ W",
            _imbalance_rate_of_rows,
            lambda: Integer(0),
        ),
    ),
)

GRADIENT_W_CROSS = Statement(
    id="gradient-W-cross",
    title="The gradient in W of cross-attention",
    source=MD,
    hypotheses=("the loss is differentiable", "logits X_i W z_i"),
    conclusion="∇_W L = (1/n) Σ_i ℓ'(m_i) X_iᵀ (diag(s_i) − s_i s_iᵀ) γ_i z_iᵀ, so its rank is "
    "at most min(n, d)",
    latex=r"\nabla_W L = \frac1n \sum_i \ell'(m_i)\, "
    r"X_i^\top (\operatorname{diag}(s_i) - s_i s_i^\top)\, \gamma_i\, z_i^\top",
    build=lambda: (gradient_w_cross(),),
    argument="A sum of n matrices of the form (vector)(vector)ᵀ of size d × d.",
    variants=(
        Variant(
            "order-of-factors",
            "the transpose",
            lambda: _d_w(cross_logits),
            lambda: mean(
                slope(cross_logits, i) * pulled_back(cross_logits, i, lambda t: X[i, t, b]) * z[i, a], i
            ),
        ),
        Variant(
            "own-queries",
            "rank one: the mean of the gradients times the mean of the queries",
            lambda: _d_w(cross_logits),
            lambda: gradient(cross_logits, a) * mean(z[i, b], i),
        ),
    ),
)
