"""Rank one is claimed for cross-attention: a mean of outer products becomes an outer product of means."""

from theory import Derivation, Index, array, d, mean, n, partial, total

i = Index("i", n)
a, b, c, e = Index("a", d), Index("b", d), Index("c", d), Index("e", d)
x, z, W = array("x", n, d), array("z", n, d), array("W", d, d)

derivation = Derivation(
    "mean-logit", start=partial(mean(total(x[i, c] * W[c, e] * z[i, e], c, e), i), W[a, b])
)
derivation.step(
    mean(partial(total(x[i, c] * W[c, e] * z[i, e], c, e), W[a, b]), i),
    because="a derivative of a mean is a mean",
)
derivation.step(mean(x[i, a] * z[i, b], i), because="each logit is bilinear")
derivation.step(mean(x[i, a], i) * mean(z[i, b], i), because="take the means apart")  # slip

corrected = total(x[i, a] * z[i, b], i) / n
