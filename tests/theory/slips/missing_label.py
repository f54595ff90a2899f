"""The label is lost in the chain rule, as if Y² = 1 had been used once too often."""

from theory import Derivation, Index, T, Unspecified, array, d, mean, n, partial, total

i, t = Index("i", n), Index("t", T)
a, c = Index("a", d), Index("c", d)
X, Y, v, s = array("X", n, T, d), array("Y", n), array("v", d), array("s", n, T)
loss = Unspecified("ell")


def attended(entry):
    return total(X[i, t, entry] * s[i, t], t)


margin = Y[i] * total(v[c] * attended(c), c)

derivation = Derivation("gradient-in-v", start=partial(mean(loss(margin), i), v[a]))
derivation.step(mean(loss(margin, 1) * partial(margin, v[a]), i), because="chain rule")
derivation.step(mean(loss(margin, 1) * attended(a), i), because="the model is linear in v")  # slip

corrected = mean(loss(margin, 1) * Y[i] * attended(a), i)
