"""The losses and the constants of Assumption A: ``−ℓ' > 0``, ``|ℓ'| ≤ M1``, and ``ℓ'`` is ``M0``-Lipschitz.

Every constant is derived: ``M1 − |ℓ'|`` and ``M0 − |ℓ''|`` are brought into a form that is nonnegative by the
way it is written. Smaller constants than these fail.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, Rational, exp, log

from .derivation import Derivation
from .notation import at, partial, scalar
from .statement import MM, Statement, Variant

x, y = scalar("x"), scalar("y")
B = scalar("B", positive=True)


@dataclass(frozen=True)
class LossFormula:
    """A loss as a formula in `x`, with its constants on an interval.

    Attributes:
        name: of the loss.
        value: ``ℓ(x)``.
        slope: ``ℓ'(x)``.
        curvature: ``ℓ''(x)``.
        slope_bound: ``M1``; depends on ``B`` if the constants hold on ``[−B, B]`` only.
        curvature_bound: ``M0``.
    """

    name: str
    value: Expr
    slope: Expr
    curvature: Expr
    slope_bound: Expr
    curvature_bound: Expr


LOGISTIC = LossFormula(
    "logistic",
    log(1 + exp(-x)),
    -1 / (1 + exp(x)),
    exp(x) / (1 + exp(x)) ** 2,
    Integer(1),
    Rational(1, 4),
)
EXPONENTIAL = LossFormula("exponential", exp(-x), -exp(-x), exp(-x), exp(B), exp(B))
CORRELATION = LossFormula("correlation", -x, Integer(-1), Integer(0), Integer(1), Integer(0))


def derivatives(loss: LossFormula) -> tuple[Derivation, Derivation]:
    """``ℓ'`` and ``ℓ''`` as given."""
    return (
        Derivation(f"{loss.name}-slope", start=partial(loss.value, x), title=f"Slope: {loss.name}").step(
            loss.slope, because="chain rule"
        ),
        Derivation(
            f"{loss.name}-curvature", start=partial(loss.value, x, x), title=f"Curvature: {loss.name}"
        ).step(loss.curvature, because="chain rule and quotient rule"),
    )


def _shown(name: str, title: str, start: Expr, form: Expr, because: str) -> Derivation:
    return (
        Derivation(name, start=start, title=title)
        .step(form, because=because)
        .nonnegative(because="squares and exponentials")
    )


def logistic_bounds() -> tuple[Derivation, ...]:
    """``0 ≤ −ℓ' ≤ 1`` and ``0 ≤ ℓ'' ≤ ¼`` on all of R, the last one sharp at 0."""
    slope, curvature = LOGISTIC.slope, LOGISTIC.curvature
    both = 1 + exp(x)
    return (
        _shown("logistic-decreasing", "−ℓ' ≥ 0", -slope, 1 / both, "−ℓ' is a weight of a softmax"),
        _shown("logistic-M1", "1 − |ℓ'| ≥ 0", 1 + slope, exp(x) / both, "so is 1 + ℓ'"),
        Derivation("logistic-convex", start=curvature, title="ℓ'' ≥ 0").nonnegative(because="exponentials"),
        _shown(
            "logistic-M0",
            "¼ − |ℓ''| ≥ 0",
            LOGISTIC.curvature_bound - curvature,
            (1 - exp(x)) ** 2 / (4 * both**2),
            "(1 + e^x)² − 4e^x = (1 − e^x)²",
        ),
        Derivation("logistic-M0-sharp", start=at(curvature, x, 0), title="ℓ''(0) = ¼").step(
            LOGISTIC.curvature_bound, because="e^0 = 1"
        ),
    )


def exponential_bounds() -> tuple[Derivation, ...]:
    """``0 ≤ −ℓ' = ℓ'' ≤ e^B`` on ``[−B, ∞)``; a point there is ``x = −B + log(1 + y²)``."""
    inside = log(1 + y**2) - B
    return (
        Derivation("exponential-decreasing", start=-EXPONENTIAL.slope, title="−ℓ' ≥ 0").nonnegative(
            because="an exponential"
        ),
        _shown(
            "exponential-M1",
            "e^B − |ℓ'| ≥ 0",
            at(EXPONENTIAL.slope_bound + EXPONENTIAL.slope, x, inside),
            exp(B) * y**2 / (1 + y**2),
            "e^{-x} = e^B/(1 + y²)",
        ),
        _shown(
            "exponential-M0",
            "e^B − |ℓ''| ≥ 0",
            at(EXPONENTIAL.curvature_bound - EXPONENTIAL.curvature, x, inside),
            exp(B) * y**2 / (1 + y**2),
            "ℓ'' = −ℓ'",
        ),
        Derivation("exponential-sharp", start=at(-EXPONENTIAL.slope, x, -B), title="|ℓ'(−B)| = e^B").step(
            EXPONENTIAL.slope_bound, because="x = −B"
        ),
    )


def correlation_bounds() -> tuple[Derivation, ...]:
    """``−ℓ' = 1`` and ``ℓ'' = 0``."""
    return (
        Derivation("correlation-decreasing", start=-CORRELATION.slope, title="−ℓ' ≥ 0").nonnegative(
            because="it is 1"
        ),
    )


def _slope_at_30() -> Expr:
    return at(partial(LOGISTIC.value, x), x, 30)


def _assumption_a() -> tuple[Derivation, ...]:
    return (
        *derivatives(LOGISTIC),
        *logistic_bounds(),
        *derivatives(EXPONENTIAL),
        *exponential_bounds(),
        *derivatives(CORRELATION),
        *correlation_bounds(),
    )


LOSS_ASSUMPTION_A = Statement(
    id="loss-assumption-A",
    title="The losses satisfy Assumption A",
    source=f"{MM}, Assumption A",
    hypotheses=(),
    conclusion="each loss is strictly decreasing with |ℓ'| ≤ M1 and ℓ' M0-Lipschitz: logistic log(1 + "
    "e^{-x}) with M1 = 1, M0 = ¼ on R; exponential e^{-x} with M1 = M0 = e^B on [−B, B]; correlation −x "
    "with M1 = 1, M0 = 0 on R",
    latex=r"-\ell' > 0,\quad \lvert \ell' \rvert \le M_1,\quad \lvert \ell'(x) - \ell'(y) \rvert "
    r"\le M_0 \lvert x - y \rvert",
    build=_assumption_a,
    argument="Reciprocals of 1 + e^x and exponentials are positive, so −ℓ' > 0; a bound on |ℓ''| is a "
    "Lipschitz constant of ℓ'.",
    variants=(
        Variant(
            "logistic-M1",
            "M1 = 1/2 for the logistic loss",
            lambda: Rational(1, 2) + LOGISTIC.slope,
            None,
        ),
        Variant(
            "logistic-M0",
            "M0 = 1/5 for the logistic loss",
            lambda: Rational(1, 5) - LOGISTIC.curvature,
            None,
        ),
        Variant(
            "logistic-slope",
            "ℓ' = −σ(x) in place of −σ(−x)",
            lambda: partial(LOGISTIC.value, x),
            lambda: -1 / (1 + exp(-x)),
        ),
        Variant(
            "interval",
            "M1 = e^B for the exponential loss on all of R",
            lambda: EXPONENTIAL.slope_bound + EXPONENTIAL.slope,
            None,
        ),
        Variant("saturation", "ℓ'(30) = 0 for the logistic loss", _slope_at_30, lambda: Integer(0)),
    ),
)
