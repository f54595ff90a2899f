"""The factor 2 of a square is lost in the penalty, but not in the fit."""

from theory import Derivation, Index, array, d, n, partial, scalar, total

i = Index("i", n)
a, b = Index("a", d), Index("b", d)
x, y, v = array("x", n, d), array("y", n), array("v", d)
mu = scalar("mu", positive=True)


def residual():
    return total(x[i, b] * v[b], b) - y[i]


derivation = Derivation("ridge", start=partial(total(residual() ** 2, i) + mu * total(v[b] ** 2, b), v[a]))
derivation.step(
    total(2 * residual() * x[i, a], i) + mu * partial(total(v[b] ** 2, b), v[a]),
    because="power rule in the fit",
)
derivation.step(2 * total(residual() * x[i, a], i) + mu * v[a], because="and in the penalty")  # slip

corrected = 2 * total(residual() * x[i, a], i) + 2 * mu * v[a]
