"""γ and a are swapped: the scores are centred, and the logits stand where the scores belong."""

from theory import Derivation, Index, T, array, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
a, gamma = array("a", T), array("gamma", T)


def s(token):
    return softmax(lambda k: a[k], token)


mean_score = total(s(tau) * gamma[tau], tau)

derivation = Derivation("attended-score", start=partial(total(s(tau) * gamma[tau], tau), a[t]))
derivation.step(s(t) * gamma[t] - s(t) * mean_score, because="Jacobian of the softmax")
derivation.step(s(t) * (a[t] - total(s(tau) * a[tau], tau)), because="factor out the weight")  # slip

corrected = s(t) * (gamma[t] - mean_score)
