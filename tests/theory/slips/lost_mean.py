"""The factor 1/n of the empirical risk is lost."""

from theory import Derivation, Index, Unspecified, array, d, mean, n, partial, total

i = Index("i", n)
a, b = Index("a", d), Index("b", d)
x, v, y = array("x", n, d), array("v", d), array("y", n)
loss = Unspecified("ell")
margin = y[i] * total(x[i, b] * v[b], b)

derivation = Derivation("risk-in-the-head", start=partial(mean(loss(margin), i), v[a]))
derivation.step(mean(partial(loss(margin), v[a]), i), because="a derivative of a mean is a mean")
derivation.step(mean(loss(margin, 1) * partial(margin, v[a]), i), because="chain rule")
derivation.step(total(loss(margin, 1) * y[i] * x[i, a], i), because="the margin is linear in v")  # slip

corrected = mean(loss(margin, 1) * y[i] * x[i, a], i)
