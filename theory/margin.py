"""Optimality conditions of the hard-margin problem: least ``½‖p‖²`` subject to ``A_jᵀ p ≥ 1`` for all ``j``.

For ATT-SVM(α) the rows are ``k_{iα_i} − k_it``, one for each input and each token other than ``α_i``.
"""

from __future__ import annotations

from sympy import Expr, Integer, Rational

from .derivation import Derivation
from .notation import Index, array, at, d, partial, size, total
from .statement import Statement, Variant

m = size("m")
j, a, b = Index("j", m), Index("a", d), Index("b", d)
A, multiplier = array("A", m, d), array("lambda", m)
p, r = array("p", d), array("r", d)


def excess(j: Index, point: Expr) -> Expr:
    """``A_jᵀ p − 1``, for a point given by its entry ``b``."""
    return total(A[j, b] * point, b) - 1


def combination(b: Index) -> Expr:
    """``Σ_j λ_j A_j``, entry ``b``."""
    return total(multiplier[j] * A[j, b], j)


def lagrangian() -> Expr:
    """``½‖p‖² − Σ_j λ_j (A_jᵀ p − 1)``."""
    return Rational(1, 2) * total(p[b] ** 2, b) - total(multiplier[j] * excess(j, p[b]), j)


def _stationary(expression: Expr) -> Expr:
    """`expression` at ``p = Σ_j λ_j A_j``."""
    return at(expression, p[b], combination(b))


def _priced(point: Expr) -> Expr:
    """``Σ_j λ_j (A_jᵀ p − 1)``."""
    return total(multiplier[j] * excess(j, point), j)


def stationarity() -> Derivation:
    """``∂/∂p`` of the Lagrangian is ``p − Σ λ_j A_j``."""
    return Derivation(
        "kkt-stationarity", start=partial(lagrangian(), p[a]), title="Stationarity of the Lagrangian"
    ).step(p[a] - combination(a), because="½‖p‖² has gradient p; constraints are linear")


def norm() -> Derivation:
    """``‖p‖² − Σ λ_j = Σ λ_j (A_jᵀ p − 1)`` at ``p = Σ λ_j A_j``."""
    return (
        Derivation(
            "kkt-norm",
            start=_stationary(total(p[b] ** 2, b) - total(multiplier[j], j)),
            title="Norm and multipliers",
        )
        .step(
            _stationary(total(p[b] * combination(b), b) - total(multiplier[j], j)),
            because="p = Σ_j λ_j A_j in one of the two factors",
        )
        .step(_stationary(_priced(p[b])), because="collect what belongs to each λ_j")
    )


def sufficiency() -> Derivation:
    """``‖r‖² = ‖p‖² + ‖r − p‖² + 2 Σ λ_j (A_jᵀ r − 1) − 2 Σ λ_j (A_jᵀ p − 1)`` at ``p = Σ λ_j A_j``."""
    gap = total((r[b] - p[b]) ** 2, b) + 2 * _priced(r[b]) - 2 * _priced(p[b])
    return (
        Derivation(
            "kkt-sufficiency",
            start=_stationary(total(r[b] ** 2, b) - total(p[b] ** 2, b)),
            title="Any other feasible point is longer",
        )
        .step(
            _stationary(total((r[b] - p[b]) ** 2, b) + 2 * total(p[b] * (r[b] - p[b]), b)),
            because="‖r‖² = ‖p + (r − p)‖²",
        )
        .step(_stationary(gap), because="p = Σ_j λ_j A_j in the second term")
    )


ATT_SVM_KKT = Statement(
    id="att-svm-kkt",
    title="Optimality conditions of ATT-SVM",
    source="convex duality",
    hypotheses=(
        "rows A_j = k_{iα_i} − k_it, one for each input i and token t ≠ α_i",
        "p is feasible: A_jᵀp ≥ 1 for every j",
    ),
    conclusion="p = p_mm exactly if there are λ ≥ 0 with p = Σ_j λ_j A_j and λ_j > 0 only where A_jᵀp = 1; "
    "then ‖p_mm‖² = Σ_j λ_j, and p_mm is the only solution",
    latex=r"p_{\mathrm{mm}} = \sum_{i,t} \lambda_{it} (k_{i\alpha_i} - k_{it}),\quad \lambda \ge 0,\quad "
    r"\lambda_{it} > 0 \Rightarrow (k_{i\alpha_i} - k_{it})^\top p_{\mathrm{mm}} = 1,\quad "
    r"\lVert p_{\mathrm{mm}} \rVert^2 = \sum_{i,t} \lambda_{it}",
    build=lambda: (stationarity(), norm(), sufficiency()),
    argument="The problem is convex with linear constraints, so a solution has multipliers; the first "
    "derivation says what stationarity is. By complementarity every λ_j (A_jᵀp − 1) is zero, which makes the "
    "second one ‖p‖² = Σ λ_j and the third one ‖r‖² ≥ ‖p‖² + ‖r − p‖² for every feasible r.",
    variants=(
        Variant(
            "one-half",
            "the Lagrangian of ‖p‖² in place of ½‖p‖²",
            lambda: partial(lagrangian() + Rational(1, 2) * total(p[b] ** 2, b), p[a]),
            lambda: p[a] - combination(a),
        ),
        Variant(
            "sign",
            "p = −Σ_j λ_j A_j",
            lambda: partial(lagrangian(), p[a]),
            lambda: p[a] + combination(a),
        ),
        Variant(
            "complementarity",
            "‖p‖² = Σ_j λ_j at every stationary p",
            lambda: _stationary(total(p[b] ** 2, b) - total(multiplier[j], j)),
            lambda: Integer(0),
        ),
        Variant(
            "factor-two",
            "λ_j (A_jᵀr − 1) counted once",
            lambda: _stationary(total(r[b] ** 2, b) - total(p[b] ** 2, b)),
            lambda: _stationary(total((r[b] - p[b]) ** 2, b) + _priced(r[b]) - _priced(p[b])),
        ),
    ),
)
