"""s_1 for s_t: what was worked out for the first token is used for all."""

from theory import Derivation, Index, T, array, d, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
a, e = Index("a", d), Index("e", d)
K, p, gamma = array("K", T, d), array("p", d), array("gamma", T)


def s(token):
    return softmax(lambda k: total(K[k, e] * p[e], e), token)


mean_key = total(s(tau) * K[tau, a], tau)

derivation = Derivation("gradient-in-p", start=partial(total(gamma[t] * s(t), t), p[a]))
derivation.step(total(gamma[t] * partial(s(t), p[a]), t), because="the scores do not depend on p")
derivation.step(total(gamma[t] * s(1) * (K[t, a] - mean_key), t), because="Jacobian of the softmax")  # slip

corrected = total(gamma[t] * s(t) * (K[t, a] - mean_key), t)
