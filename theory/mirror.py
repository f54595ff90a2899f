"""One step of ℓp mirror descent, ``ψ(W) = (1/p) Σ |W_jk|^p`` with ``p = 1 + k > 1``, entry by entry.

An entry is written ``σ r`` with a sign ``σ`` and ``r > 0``; absolute values are never differentiated. ``ψ``
is even, so a negative entry is the positive one reflected.
"""

from __future__ import annotations

from sympy import Expr, Integer

from .derivation import Derivation
from .notation import at, partial, scalar
from .statement import MD, Statement, Variant

k, r, y, t, u = (scalar(name, positive=True) for name in ("k", "r", "y", "t", "u"))
w0, eta = scalar("w0", positive=True), scalar("eta", positive=True)
slope = scalar("g")


def potential(entry: Expr) -> Expr:
    """``|w|^p/p`` for an entry of absolute value `entry`."""
    return entry ** (1 + k) / (1 + k)


def divergence(there: Expr, sign: int = 1) -> Expr:
    """``D_ψ(x, y)`` for ``y > 0`` and ``x`` of absolute value `there` and of a sign."""
    return potential(there) - potential(y) - y**k * (sign * there - y)


def mirror_map() -> Derivation:
    """``ψ'(r) = r^{p−1}``."""
    return Derivation("mirror-map", start=partial(potential(r), r), title="Mirror map").step(
        r**k, because="power rule with p = 1 + k"
    )


def inverse() -> Derivation:
    """``ψ'(u^{1/(p−1)}) = u``."""
    return Derivation(
        "mirror-inverse", start=at(partial(potential(r), r), r, u ** (1 / k)), title="Inverse mirror map"
    ).step(u, because="mirror-map; (u^{1/k})^k = u")


def _objective() -> Expr:
    """``η g r + D_ψ(r, w0)``, of which the step is the minimiser."""
    return eta * slope * r + potential(r) - potential(w0) - w0**k * (r - w0)


def stationarity() -> Derivation:
    """``∂/∂r [η g r + D_ψ(r, w0)] = ψ'(r) − (ψ'(w0) − η g)``."""
    return Derivation(
        "mirror-stationarity", start=partial(_objective(), r), title="Stationarity of the Bregman step"
    ).step(r**k - (w0**k - eta * slope), because="mirror-map")


def convexity() -> Derivation:
    """``ψ'' = k r^{k−1} ≥ 0``: the objective is convex, so a stationary point is the minimiser."""
    return (
        Derivation("mirror-convexity", start=partial(_objective(), r, r), title="Convexity of the objective")
        .step(k * r**k / r, because="power rule; the other terms are linear")
        .nonnegative(because="k > 0 and r > 0")
    )


def gradient_descent() -> Derivation:
    """``p = 2`` gives ``w0 − η g``."""
    return Derivation(
        "mirror-euclidean",
        start=at((w0**k - eta * slope) ** (1 / k), k, 1),
        title="p = 2 is gradient descent",
    ).step(w0 - eta * slope, because="k = 1")


def _bracket(ratio: Expr) -> Expr:
    """``D_ψ(t y, y)/y^p``."""
    return (ratio ** (1 + k) - 1) / (1 + k) - (ratio - 1)


def same_sign() -> Derivation:
    """``D_ψ(t y, y) = y^p [(t^p − 1)/p − (t − 1)]``."""
    return Derivation(
        "bregman-same-sign", start=divergence(t * y), title="Divergence of entries of the same sign"
    ).step(y ** (1 + k) * _bracket(t), because="take y^p out")


def bracket_at_one() -> Derivation:
    """The bracket is 0 at ``t = 1``."""
    return Derivation("bregman-zero", start=at(_bracket(t), t, 1), title="The bracket at t = 1").step(
        0, because="x = y"
    )


def bracket_slope_at_one() -> Derivation:
    """So is its slope."""
    return Derivation(
        "bregman-slope", start=at(partial(_bracket(t), t), t, 1), title="The slope of the bracket at t = 1"
    ).step(0, because="t^k − 1")


def bracket_convex() -> Derivation:
    """The bracket is strictly convex."""
    return (
        Derivation("bregman-convex", start=partial(_bracket(t), t, t), title="Convexity of the bracket")
        .step(k * t**k / t, because="power rule")
        .nonnegative(because="k > 0 and t > 0")
    )


def opposite_sign() -> Derivation:
    """``D_ψ(−t y, y) = y^p [t^p/p + t + k/p] > 0``."""
    return (
        Derivation(
            "bregman-opposite-sign",
            start=divergence(t * y, -1),
            title="Divergence of entries of opposite sign",
        )
        .step(y ** (1 + k) * (t ** (1 + k) / (1 + k) + t + k / (1 + k)), because="take y^p out")
        .nonnegative(because="every factor is positive")
    )


MIRROR_STEP = Statement(
    id="mirror-step",
    title="One step of ℓp mirror descent",
    source=MD,
    hypotheses=("ψ(W) = (1/p) Σ_jk |W_jk|^p with p > 1", "W⁺ minimises η⟨∇L, W'⟩ + D_ψ(W', W) over W'"),
    conclusion="W⁺ = sign(u) |u|^{1/(p−1)} entry by entry, with u = sign(W) |W|^{p−1} − η ∇L; p = 2 is "
    "gradient descent; D_ψ ≥ 0 with equality only between equal matrices",
    latex=r"W^+ = \operatorname{sign}(u)\, \lvert u \rvert^{1/(p-1)},\quad "
    r"u = \operatorname{sign}(W)\, \lvert W \rvert^{p-1} - \eta \nabla L",
    build=lambda: (
        mirror_map(),
        stationarity(),
        convexity(),
        inverse(),
        gradient_descent(),
        same_sign(),
        bracket_at_one(),
        bracket_slope_at_one(),
        bracket_convex(),
        opposite_sign(),
    ),
    argument="ψ and ⟨∇L, W'⟩ are sums over the entries, so the step is taken entry by entry. The "
    "objective is strictly convex and ψ' is odd and onto, so its minimiser is the point where ψ'(w) = u, "
    "for u of either sign. The bracket is strictly convex in t with value and slope 0 at t = 1, hence "
    "positive elsewhere; D_ψ(x, 0) = |x|^p/p.",
    variants=(
        Variant(
            "exponent",
            "|u|^{1/p} in place of |u|^{1/(p−1)}",
            lambda: at(partial(potential(r), r), r, u ** (1 / (1 + k))),
            lambda: u,
        ),
        Variant(
            "sign-of-the-step",
            "u = ψ'(W) + η ∇L",
            lambda: partial(_objective(), r),
            lambda: r**k - (w0**k + eta * slope),
        ),
        Variant(
            "mirror-map",
            "a step in W itself: u = W − η ∇L",
            lambda: partial(_objective(), r),
            lambda: r**k - (w0 - eta * slope),
        ),
        Variant(
            "divergence",
            "|D_ψ| without the linear term",
            lambda: potential(t * y) - potential(y),
            None,
        ),
        Variant("slope", "D_ψ(y, y) = 1", lambda: divergence(1 * y), lambda: Integer(1)),
    ),
)
