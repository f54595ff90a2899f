"""A sign: the minus in e^{−m} is lost on the way through the logistic loss."""

from sympy import exp, log

from theory import Derivation, Index, array, d, partial, scalar, total

a, b = Index("a", d), Index("b", d)
x, v = array("x", d), array("v", d)
y = scalar("y")
margin = y * total(x[b] * v[b], b)

derivation = Derivation("logistic", start=partial(log(1 + exp(-margin)), v[a]))
derivation.step(
    partial(exp(-margin), v[a]) / (1 + exp(-margin)),
    because="derivative of the logarithm",
)
derivation.step(  # slip
    exp(-margin) / (1 + exp(-margin)) * y * x[a],
    because="the margin is linear in v",
)
derivation.step(y * x[a] / (1 + exp(margin)), because="multiply by the exponential of the margin")

corrected = -exp(-margin) / (1 + exp(-margin)) * y * x[a]
