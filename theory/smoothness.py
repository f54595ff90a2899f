"""A sharp Lipschitz constant of ``∇_p L``, for every number of tokens.

In a direction ``u`` the Hessian of one input is ``ℓ'' Cov_s(γ, a)² + ℓ' κ``, where ``a = K u`` and ``κ`` is
the third cumulant ``Σ_t s_t (γ_t − γ̄)(a_t − ā)²``. With ``G`` and ``D`` the ranges of ``γ`` and ``a``, the
covariance is at most ``GD/4`` in absolute value and ``κ`` at most ``√3/18 G D²``.

A number in ``[0, 1)`` is written ``y²/(1 + y²)``; the end 1 follows by continuity.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr, Integer, Rational, sqrt

from . import attention
from .attention import key_logits, loss, margin, mean_key, risk
from .attention import weights as attention_weights
from .derivation import Derivation
from .notation import Index, T, array, at, d, mean, named, partial, scalar, total
from .softmax import t, tau, weights
from .statement import MM, Statement, Variant

Vector = Callable[[Index], Expr]

a, gamma, y, g = array("a", T), array("gamma", T), array("y", T), array("g", T)
u = array("u", d)
low, low_score = scalar("a0"), scalar("gamma0")
D, G = scalar("D", positive=True), scalar("G", positive=True)
mu0, mu1, pi, m, x = (scalar(name) for name in ("mu0", "mu1", "pi", "m", "x"))
q, r = scalar("q", positive=True), scalar("r", positive=True)
k, k_prime = array("k", d), array("kprime", d)
M0, M1, norm_v, norm_w, norm_x = (scalar(name, positive=True) for name in ("M0", "M1", "v", "W", "X"))
THIRD = sqrt(3) / 18
"""The largest third cumulant ``E[(γ − γ̄)(a − ā)²]`` of variables in ``[0, 1]``."""


def mean_of(vector: Vector, name: str = "") -> Expr:
    """``Σ_t s_t v_t``, with a name or written out."""
    entry = total(weights(tau) * vector(tau), tau)
    return named(name, entry) if name else entry


def covariance(left: Vector, right: Vector) -> Expr:
    """``Σ_t s_t (v_t − v̄)(w_t − w̄)``."""
    v, w = mean_of(left), mean_of(right)
    return total(weights(t) * (left(t) - v) * (right(t) - w), t)


def third_cumulant(scores: Vector, logits: Vector) -> Expr:
    """``Σ_t s_t (γ_t − γ̄)(a_t − ā)²``."""
    v, w = mean_of(scores), mean_of(logits)
    return total(weights(t) * (scores(t) - v) * (logits(t) - w) ** 2, t)


def _a(index: Index) -> Expr:
    return a[index]


def _gamma(index: Index) -> Expr:
    return gamma[index]


def share(root: Expr) -> Expr:
    """A number in ``[0, 1)``."""
    return root**2 / (1 + root**2)


# ---------------------------------------------------------------- the Hessian in a direction


def curvature() -> Derivation:
    """``uᵀ ∇²L u = (1/n) Σ_i [ℓ''(m_i) Cov_i² + ℓ'(m_i) κ_i]`` with ``a_i = K_i u``."""
    A, B, E, i = attention.a, attention.b, attention.e, attention.i
    first, second = loss(margin(key_logits, i), 1), loss(margin(key_logits, i), 2)
    along = total((attention.K[i, t, E] - mean_key(i, E)) * u[E], E)
    weight, spread = attention_weights(key_logits, i, t), attention.score(i, t) - margin(key_logits, i)
    slope = total(attention.key_gradient(i, E) * u[E], E)
    return (
        Derivation(
            "hessian-direction",
            start=total(u[A] * u[B] * partial(risk(key_logits), attention.p[A], attention.p[B]), A, B),
            title="Hessian in a direction",
        )
        .step(
            mean(second * slope**2 + first * total(weight * spread * along**2, t), i),
            because="hessian-p; u does not depend on input and token",
        )
        .step(
            mean(
                second * total(weight * spread * along, t) ** 2
                + first * total(weight * spread * along**2, t),
                i,
            ),
            because="wᵀu is a covariance (softmax-covariance)",
        )
    )


# ---------------------------------------------------------------- the covariance


def _within(token: Index) -> Expr:
    """A vector with entries in ``[a0, a0 + D)``."""
    return named("a", low + D * share(y[token]), token)


def variance() -> Derivation:
    """``D²/4 − Var_s(a) ≥ 0`` for ``a`` of range ``D``."""
    centre = mean_of(_within) - low - D / 2
    return (
        Derivation(
            "variance-bound",
            start=D**2 / 4 - covariance(_within, _within),
            title="Variance of a bounded variable (Popoviciu)",
        )
        .step(
            centre**2 + total(weights(t) * (D - (_within(t) - low)) * (_within(t) - low), t),
            because="complete the square around the middle of the range",
        )
        .step(
            centre**2 + total(weights(t) * D**2 * y[t] ** 2 / (1 + y[t] ** 2) ** 2, t),
            because="a_t = a0 + D y²/(1 + y²)",
        )
        .nonnegative(because="a square, and weights times squares")
    )


def cauchy_schwarz() -> Derivation:
    """``Var_s(a) Var_s(γ) − Cov_s(a, γ)² ≥ 0``."""
    mean_a, mean_gamma = mean_of(_a, "abar"), mean_of(_gamma, "gammabar")
    crossed = (a[t] - mean_a) * (gamma[tau] - mean_gamma) - (a[tau] - mean_a) * (gamma[t] - mean_gamma)
    return (
        Derivation(
            "covariance-bound",
            start=covariance(_a, _a) * covariance(_gamma, _gamma) - covariance(_a, _gamma) ** 2,
            title="Cauchy and Schwarz, by Lagrange's identity",
        )
        .step(Rational(1, 2) * total(weights(t) * weights(tau) * crossed**2, t, tau), because="multiply out")
        .nonnegative(because="weights times squares")
    )


# ---------------------------------------------------------------- the third cumulant


def scaling() -> Derivation:
    """``κ(γ0 + G γ, a0 + D a) = G D² κ(γ, a)``."""
    return Derivation(
        "cumulant-scaling",
        start=third_cumulant(lambda k: low_score + G * gamma[k], lambda k: low + D * a[k]),
        title="Third cumulant under shifts and scales",
    ).step(G * D**2 * third_cumulant(_gamma, _a), because="shifts drop out of differences from the mean")


def tilted() -> Derivation:
    """``κ = π(1−π)[v_1 − v_0 + (1 − 2π)(μ_1 − μ_0)²]``.

    Means and variances are those under the weights ``sγ/π`` and ``s(1−γ)/(1−π)``, with ``π = γ̄``.
    """
    return Derivation(
        "cumulant-tilted", start=third_cumulant(_gamma, _a), title="Third cumulant by tilted means"
    ).step(
        _mixture(1 - 2 * mean_of(_gamma, "pi")),
        because="the variance of a mixture is that within plus that between",
    )


def _mixture(between: Expr) -> Expr:
    """``π(1−π)[v_1 − v_0 + between · (μ_1 − μ_0)²]``."""
    share_of_ones = mean_of(_gamma, "pi")
    one, wide_one = _tilted_moments("1", _gamma, share_of_ones)
    zero, wide_zero = _tilted_moments("0", lambda k: 1 - gamma[k], 1 - share_of_ones)
    return share_of_ones * (1 - share_of_ones) * (wide_one - wide_zero + between * (one - zero) ** 2)


def _mixture_slip() -> Expr:
    return _mixture(1 - mean_of(_gamma, "pi"))


def _tilted_moments(name: str, tilt: Vector, mass: Expr) -> tuple[Expr, Expr]:
    """Mean and variance of ``a`` under the weights ``s_t tilt(t) / mass``."""
    centre = named(f"mu{name}", total(weights(tau) * tilt(tau) * a[tau], tau) / mass)
    return centre, named(f"v{name}", total(weights(t) * tilt(t) * (a[t] - centre) ** 2, t) / mass)


def tilted_variance() -> Derivation:
    """``μ_1(1 − μ_1) − v_1 ≥ 0`` for ``a`` and ``γ`` with entries in ``[0, 1)``."""

    def score(k: Index) -> Expr:
        return named("gamma", share(g[k]), k)

    def logit(k: Index) -> Expr:
        return named("a", share(y[k]), k)

    mass = named("pi", total(weights(tau) * score(tau), tau))
    centre = named("mu1", total(weights(tau) * score(tau) * logit(tau), tau) / mass)
    width = named("v1", total(weights(t) * score(t) * (logit(t) - centre) ** 2, t) / mass)
    return (
        Derivation(
            "tilted-variance", start=centre * (1 - centre) - width, title="Variance of a variable in [0, 1]"
        )
        .step(
            total(weights(t) * score(t) * logit(t) * (1 - logit(t)), t) / mass,
            because="v_1 is the mean of squares less the square of the mean",
        )
        .step(
            total(weights(t) * score(t) * y[t] ** 2 / (1 + y[t] ** 2) ** 2, t) / mass,
            because="1 − y²/(1 + y²) = 1/(1 + y²)",
        )
        .nonnegative(because="weights times squares")
    )


def between() -> Derivation:
    """``(1−μ_0) μ_1² + μ_0 (1−μ_1)² − (μ_1 − μ_0)² = μ_0 (1 − μ_0) ≥ 0``."""
    inside = at((1 - mu0) * mu1**2 + mu0 * (1 - mu1) ** 2 - (mu1 - mu0) ** 2, mu0, q / (1 + q))
    return (
        Derivation("cumulant-between", start=inside, title="The gap between the two means")
        .step(q / (1 + q) ** 2, because="what remains is μ_0 (1 − μ_0), with μ_0 = q/(1 + q)")
        .nonnegative(because="q > 0")
    )


def one_variable() -> Derivation:
    """``y(1−y)(1−2y) − π(1−π) m (1 − 2πm) = y(1−2y) π(1−m) ≥ 0`` with ``y = πm``.

    Here ``m`` is in ``[0, 1]`` and ``π`` in ``[0, ½]``.
    """
    product = pi * m
    start = product * (1 - product) * (1 - 2 * product) - pi * (1 - pi) * (m * (1 - m) + (1 - 2 * pi) * m**2)
    half = r / (1 + r) / 2
    inside = at(at(start, pi, half), m, q / (1 + q))
    y_here = half * q / (1 + q)
    return (
        Derivation("cumulant-one-variable", start=inside, title="From two variables to one")
        .step(y_here * (1 - 2 * y_here) * half * (1 - q / (1 + q)), because="m(1−m) + (1−2π)m² = m(1 − 2πm)")
        .step(
            r**2 * q * (1 + q + r) / (4 * (1 + r) ** 3 * (1 + q) ** 3),
            because="π = ½ r/(1 + r), m = q/(1 + q)",
        )
        .nonnegative(because="q > 0 and r > 0")
    )


def largest() -> Derivation:
    """``√3/18 − y(1−y)(1−2y) = 2 (x − 1/(2√3))² (x + 1/√3) ≥ 0`` at ``y = ½ − x``, ``x ≥ 0``."""
    product = at(mu1 * (1 - mu1) * (1 - 2 * mu1), mu1, Rational(1, 2) - x**2)
    return (
        Derivation("cumulant-largest", start=THIRD - product, title="The largest third cumulant")
        .step(
            2 * (x**2 - sqrt(3) / 6) ** 2 * (x**2 + sqrt(3) / 3),
            because="the maximum is a double root; x² for x",
        )
        .nonnegative(because="squares")
    )


def attained() -> Derivation:
    """Two tokens with ``γ = a = (0, 1)`` and ``s_2 = ½ − √3/6`` have ``κ = √3/18``."""
    return Derivation(
        "cumulant-attained",
        start=at(pi * (1 - pi) ** 3 + (1 - pi) * (0 - pi) * (0 - pi) ** 2, pi, Rational(1, 2) - sqrt(3) / 6),
        title="The bound is attained",
    ).step(THIRD, because="κ = π(1−π)(1−2π) for two tokens")


# ---------------------------------------------------------------- the published constant


def diameter() -> Derivation:
    """``2‖k‖² + 2‖k'‖² − ‖k − k'‖² ≥ 0``: a diameter is at most twice the largest norm."""
    E = attention.e
    return (
        Derivation("diameter-bound", start=_spread(2), title="Diameter and norms")
        .step(total((k[E] + k_prime[E]) ** 2, E), because="parallelogram law")
        .nonnegative(because="squares")
    )


def _spread(factor: int) -> Expr:
    """``factor · (‖k‖² + ‖k'‖²) − ‖k − k'‖²``."""
    E = attention.e
    return total(factor * (k[E] ** 2 + k_prime[E] ** 2) - (k[E] - k_prime[E]) ** 2, E)


def _published_less_sharp(factor: Expr) -> Expr:
    """The published constant, with `factor` for 3, less the sharp one at ``G = 2‖v‖‖X‖``, ``D = 2‖W‖‖X‖``."""
    published = M0 * (norm_v * norm_w * norm_x**2) ** 2 + factor * M1 * norm_v * norm_w**2 * norm_x**3
    G_here, D_here = 2 * norm_v * norm_x, 2 * norm_w * norm_x
    return published - M0 * G_here**2 * D_here**2 / 16 - M1 * G_here * D_here**2 * THIRD


def published() -> Derivation:
    """The published constant is at least the sharp one."""
    return (
        Derivation("published-bound", start=_published_less_sharp(Integer(3)), title="The published constant")
        .step(
            M1 * norm_v * norm_w**2 * norm_x**3 * (3 - 4 * sqrt(3) / 9), because="the terms in M0 are equal"
        )
        .nonnegative(because="4√3/9 < 3")
    )


# ---------------------------------------------------------------- statements

SMOOTHNESS_SHARP = Statement(
    id="smoothness-sharp",
    title="A sharp Lipschitz constant of the gradient",
    source="derived here",
    hypotheses=("Assumption A", "scores of input i have range G_i, its keys have diameter D_i"),
    conclusion="∇_p L is Lipschitz with L = (1/n) Σ_i (M0 G_i² D_i²/16 + M1 G_i D_i²/(6√3)); the second "
    "term is attained for T = 2",
    latex=r"\lVert \nabla_p L(p) - \nabla_p L(p') \rVert \le \frac1n \sum_i \Bigl( \frac{M_0 G_i^2 "
    r"D_i^2}{16} + \frac{M_1 G_i D_i^2}{6\sqrt3} \Bigr) \lVert p - p' \rVert",
    build=lambda: (
        curvature(),
        variance(),
        cauchy_schwarz(),
        scaling(),
        tilted(),
        tilted_variance(),
        between(),
        one_variable(),
        largest(),
        attained(),
    ),
    argument="For a unit vector u, the entries of a_i = K_i u have range at most D_i, and |uᵀ∇²L u| is "
    "bounded term by term. Covariance: |Cov| ≤ √Var(a) √Var(γ) ≤ G D/4. Third cumulant: by scaling, a and "
    "γ may be taken in [0, 1]. It changes sign when γ becomes 1 − γ, so an upper bound is enough, and it "
    "is 0 if π is 0 or 1. As v_0 ≥ 0 and v_1 ≤ μ_1(1−μ_1) ≤ ¼: if π ≥ ½, κ ≤ π(1−π)v_1 ≤ 1/16 < √3/18; if "
    "π ≤ ½, κ ≤ π(1−π)[μ_1(1−μ_1) + (1−2π)(μ_1−μ_0)²], where (μ_1−μ_0)² is at most a mean of m² over m = "
    "μ_1 and m = 1 − μ_1, and for each of them π(1−π)[m(1−m) + (1−2π)m²] ≤ y(1−y)(1−2y) ≤ √3/18 with y = "
    "πm ≤ ½.",
    variants=(
        Variant(
            "variance-constant",
            "D²/8 in place of D²/4 for the variance",
            lambda: D**2 / 8 - covariance(_within, _within),
            None,
        ),
        Variant(
            "cumulant-constant",
            "9/100 in place of √3/18 = 0.0962… for the third cumulant",
            lambda: Rational(9, 100) - at(mu1 * (1 - mu1) * (1 - 2 * mu1), mu1, Rational(1, 2) - x**2),
            None,
        ),
        Variant(
            "between-groups",
            "1 − π in place of 1 − 2π in the third cumulant of a mixture",
            lambda: third_cumulant(_gamma, _a),
            _mixture_slip,
        ),
        Variant(
            "cross-term",
            "twice the squared covariance in the inequality of Cauchy and Schwarz",
            lambda: covariance(_a, _a) * covariance(_gamma, _gamma) - 2 * covariance(_a, _gamma) ** 2,
            None,
        ),
    ),
)

SMOOTHNESS = Statement(
    id="smoothness",
    title="The published Lipschitz constant of the gradient",
    source=MM,
    hypotheses=("Assumption A", "keys K_i = X_i W"),
    conclusion="∇_p L is Lipschitz with L_p = (1/n) Σ_i (M0 ‖v‖² ‖W‖² ‖X_i‖⁴ + 3 M1 ‖v‖ ‖W‖² ‖X_i‖³) in "
    "spectral norms; the sharp constant is never larger",
    latex=r"L_p = \frac1n \sum_i \bigl( M_0 \lVert v \rVert^2 \lVert W \rVert^2 \lVert X_i \rVert^4 "
    r"+ 3 M_1 \lVert v \rVert \lVert W \rVert^2 \lVert X_i \rVert^3 \bigr)",
    build=lambda: (diameter(), published()),
    argument="By smoothness-sharp, with G_i ≤ 2‖v‖‖X_i‖ (|γ_it| ≤ ‖v‖‖x_it‖) and D_i ≤ 2‖W‖‖X_i‖ "
    "(diameter and ‖k_it‖ ≤ ‖W‖‖x_it‖), because the sharp constant grows with G_i and D_i.",
    reading=True,
    variants=(
        Variant(
            "factor",
            "a factor ½ in place of 3",
            lambda: _published_less_sharp(Rational(1, 2)),
            None,
        ),
        Variant("diameter", "‖k − k'‖² ≤ ‖k‖² + ‖k'‖²", lambda: _spread(1), None),
    ),
)
