"""A transposed Jacobian: W r for Wᵀ r in the gradient of least squares."""

from sympy import Rational

from theory import Derivation, Index, array, d, partial, total

a, b, c = Index("a", d), Index("b", d), Index("c", d)
W, x, y = array("W", d, d), array("x", d), array("y", d)


def residual(row):
    return total(W[row, b] * x[b], b) - y[row]


derivation = Derivation("least-squares", start=partial(Rational(1, 2) * total(residual(a) ** 2, a), x[c]))
derivation.step(total(residual(a) * partial(residual(a), x[c]), a), because="chain rule")
derivation.step(total(W[c, a] * residual(a), a), because="the Jacobian of the residual is W")  # slip

corrected = total(W[a, c] * residual(a), a)
