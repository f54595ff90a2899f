"""The plain mean of the keys for the attended mean: right only where attention is uniform."""

from theory import Derivation, Index, T, array, d, mean, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
a, e = Index("a", d), Index("e", d)
K, p, gamma = array("K", T, d), array("p", d), array("gamma", T)


def s(token):
    return softmax(lambda k: total(K[k, e] * p[e], e), token)


derivation = Derivation("gradient-in-p", start=partial(total(gamma[t] * s(t), t), p[a]))
derivation.step(total(gamma[t] * partial(s(t), p[a]), t), because="the scores do not depend on p")
derivation.step(
    total(gamma[t] * s(t) * (K[t, a] - total(s(tau) * K[tau, a], tau)), t),
    because="Jacobian of the softmax",
)
derivation.step(  # slip
    total(gamma[t] * s(t) * (K[t, a] - mean(K[tau, a], tau)), t),
    because="centre the keys",
)

corrected = total(s(t) * (gamma[t] - total(s(tau) * gamma[tau], tau)) * K[t, a], t)
