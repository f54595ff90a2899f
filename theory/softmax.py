"""Softmax: its Jacobian, and the covariance form of its quadratic form."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from sympy import Expr, IndexedBase, Rational, exp

from .calculus import free_indices
from .derivation import Derivation
from .notation import Index, T, array, delta, named, partial, total
from .statement import MM, Statement, Variant

LogitsOf = Callable[[Any], Expr]
"""The logit of a token, as a function of its index or number."""

t, tau, kappa = Index("t", T), Index("tau", T), Index("kappa", T)
z, a, gamma = array("z", T), array("a", T), array("gamma", T)


def softmax(logits: LogitsOf, token: Index | int) -> Expr:
    """Entry `token` of the softmax of the vector with entries ``logits(index)``."""
    taken = {index.name for index in free_indices(logits(token))}
    other = Index(next(name for k in count() if (name := "sigma" + "'" * k) not in taken), T)
    return exp(logits(token)) / total(exp(logits(other)), other)


def weights(token: Index | int) -> Expr:
    """``s_t = softmax(z)_t``."""
    return named("s", softmax(lambda index: z[index], token), token)


def jacobian() -> Derivation:
    """``∂s_t/∂z_τ = s_t (δ_tτ − s_τ)``."""
    normaliser = total(exp(z[kappa]), kappa)
    return (
        Derivation("softmax-jacobian", start=_d_z(), title="Jacobian of the softmax")
        .step(
            delta(t, tau) * exp(z[t]) / normaliser - exp(z[t]) * exp(z[tau]) / normaliser**2,
            because="quotient rule; the normaliser changes by e^{z_τ}",
        )
        .step(weights(t) * (delta(t, tau) - weights(tau)), because="each quotient is a weight")
    )


def covariance() -> Derivation:
    """``aᵀ(diag(s) − s sᵀ)γ`` as a covariance and as a double sum of differences."""
    mean_a, mean_gamma = _mean(a), _mean(gamma)
    return (
        Derivation(
            "softmax-covariance", start=_quadratic_form(), title="Softmax quadratic form as a covariance"
        )
        .step(
            total(weights(t) * a[t] * gamma[t], t) - mean_a * mean_gamma,
            because="contract the delta; the rest is a product of two sums",
        )
        .step(
            total(weights(t) * (a[t] - mean_a) * (gamma[t] - mean_gamma), t),
            because="weights sum to one, so the cross terms are minus the product of the means",
        )
        .step(Rational(1, 2) * _over_pairs(a[t] - a[tau]), because="multiply out; each mean appears twice")
    )


def _d_z() -> Expr:
    return partial(weights(t), z[tau])


def _mean(vector: IndexedBase) -> Expr:
    return named(f"{vector.label}bar", total(weights(kappa) * vector[kappa], kappa))


def _quadratic_form() -> Expr:
    return total(a[t] * weights(t) * (delta(t, tau) - weights(tau)) * gamma[tau], t, tau)


def _over_pairs(factor: Expr) -> Expr:
    return total(weights(t) * weights(tau) * factor * (gamma[t] - gamma[tau]), t, tau)


JACOBIAN = Statement(
    id="softmax-jacobian",
    title="Jacobian of the softmax",
    source="standard",
    hypotheses=(),
    conclusion="∂s_t/∂a_τ = s_t (δ_tτ − s_τ), that is diag(s) − s sᵀ",
    latex=r"\frac{\partial s}{\partial a} = \operatorname{diag}(s) - s\,s^\top",
    build=lambda: (jacobian(),),
    variants=(
        Variant(
            "second-term",
            "diag(s): the normaliser taken for a constant",
            _d_z,
            lambda: delta(t, tau) * weights(t),
        ),
        Variant(
            "off-diagonal",
            "diag(s(1 − s)): off-diagonal entries left out",
            _d_z,
            lambda: delta(t, tau) * weights(t) * (1 - weights(t)),
        ),
        Variant("sign", "diag(s) + s sᵀ", _d_z, lambda: weights(t) * (delta(t, tau) + weights(tau))),
        Variant("index", "s_t (δ_tτ − s_t)", _d_z, lambda: weights(t) * (delta(t, tau) - weights(t))),
    ),
)

COVARIANCE = Statement(
    id="softmax-covariance",
    title="Softmax quadratic form as a covariance",
    source=f"standard, used in {MM}",
    hypotheses=(),
    conclusion="aᵀ(diag(s) − s sᵀ)γ = ½ Σ_tτ s_t s_τ (a_t − a_τ)(γ_t − γ_τ), the covariance of a and γ "
    "under s",
    latex=r"a^\top(\operatorname{diag}(s) - s\,s^\top)\,\gamma "
    r"= \tfrac12 \sum_{t,\tau} s_t s_\tau (a_t - a_\tau)(\gamma_t - \gamma_\tau) "
    r"= \operatorname{Cov}_s(a, \gamma)",
    build=lambda: (covariance(),),
    variants=(
        Variant(
            "half",
            "the sum over all ordered pairs without the factor one half",
            _quadratic_form,
            lambda: _over_pairs(a[t] - a[tau]),
        ),
        Variant(
            "sign",
            "a sum of a instead of a difference",
            _quadratic_form,
            lambda: Rational(1, 2) * _over_pairs(a[t] + a[tau]),
        ),
        Variant(
            "product-of-means",
            "the mean of the product without the product of the means",
            _quadratic_form,
            lambda: total(weights(t) * a[t] * gamma[t], t),
        ),
    ),
)
