"""ℓ for ℓ', which goes unnoticed for the exponential loss but for the sign."""

from theory import Derivation, Index, Unspecified, array, d, mean, n, partial, total

i = Index("i", n)
a, b = Index("a", d), Index("b", d)
x, v = array("x", n, d), array("v", d)
loss = Unspecified("ell")
margin = total(x[i, b] * v[b], b)

derivation = Derivation("risk", start=partial(mean(loss(margin), i), v[a]))
derivation.step(mean(partial(loss(margin), v[a]), i), because="a derivative of a mean is a mean")
derivation.step(mean(loss(margin) * partial(margin, v[a]), i), because="chain rule")  # slip
derivation.step(total(loss(margin) * x[i, a], i) / n, because="the margin is linear")

corrected = mean(loss(margin, 1) * partial(margin, v[a]), i)
