"""p gᵀ for g pᵀ: the gradient in W is the transpose of what it should be."""

from theory import Derivation, Index, T, array, d, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
a, b, c, e = Index("a", d), Index("b", d), Index("c", d), Index("e", d)
X, W, p, gamma = array("X", T, d), array("W", d, d), array("p", d), array("gamma", T)


def s(token):
    return softmax(lambda k: total(X[k, c] * W[c, e] * p[e], c, e), token)


value = total(gamma[t] * s(t), t)
spread = s(t) * (gamma[t] - total(gamma[tau] * s(tau), tau))

derivation = Derivation("gradient-in-W", start=partial(value, W[a, b]))
derivation.step(
    total(spread * partial(total(X[t, c] * W[c, e] * p[e], c, e), W[a, b]), t),
    because="the attended score depends on W through the logits",
)
derivation.step(p[a] * total(spread * X[t, b], t), because="a logit is bilinear in token and query")  # slip

corrected = total(spread * X[t, a], t) * p[b]
