"""Values for keys: the gradient moves along the tokens X, but the logits are made of the keys K."""

from theory import Derivation, Index, T, array, d, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
a, c, e = Index("a", d), Index("c", d), Index("e", d)
X, K, p, v = array("X", T, d), array("K", T, d), array("p", d), array("v", d)


def s(token):
    return softmax(lambda k: total(K[k, e] * p[e], e), token)


def score(token):
    return total(X[token, c] * v[c], c)


centred = score(t) - total(s(tau) * score(tau), tau)

derivation = Derivation("gradient-in-p", start=partial(total(score(t) * s(t), t), p[a]))
derivation.step(
    total(s(t) * centred * partial(total(K[t, e] * p[e], e), p[a]), t),
    because="Jacobian of the softmax, on the scores",
)
derivation.step(total(s(t) * centred * X[t, a], t), because="logits are linear in p")  # slip

corrected = total(s(t) * centred * K[t, a], t)
