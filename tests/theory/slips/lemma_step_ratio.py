"""Lemma 1 with the wrong step ratio: W and p are trained with the same step η."""

from theory import Derivation, Index, Unspecified, array, at, d, partial, scalar, total

a, b, k, m = Index("a", d), Index("b", d), Index("k", d), Index("m", d)
W, u, p, x = array("W", d, d), array("u", d), array("p", d), array("x", d)
eta = scalar("eta", positive=True)
f = Unspecified("f")
squared_norm = total(u[m] ** 2, m)
logit = total(x[k] * W[k, m] * u[m], k, m)


def at_the_lift(expression):
    return at(expression, W[k, m], p[k] * u[m] / squared_norm)


derivation = Derivation("lemma-1", start=at_the_lift(W[a, b] - eta * partial(f(logit), W[a, b])))
derivation.step(
    at_the_lift(W[a, b] - eta * f(logit, 1) * x[a] * u[b]),
    because="chain rule; the logit is bilinear",
)
derivation.step(
    p[a] * u[b] / squared_norm - eta * f(total(x[k] * p[k], k), 1) * x[a] * u[b],
    because="W u = p at W = p uᵀ/‖u‖²",
)
derivation.step(  # slip
    (p[a] - eta * f(total(x[k] * p[k], k), 1) * x[a]) * u[b] / squared_norm,
    because="factor out uᵀ/‖u‖²: a step of p",
)

corrected = (p[a] - eta * squared_norm * f(total(x[k] * p[k], k), 1) * x[a]) * u[b] / squared_norm
