"""A lost factor of the chain rule: the inverse temperature inside the softmax."""

from theory import Derivation, Index, T, array, delta, partial, scalar, softmax, total

t, tau = Index("t", T), Index("tau", T)
z, gamma = array("z", T), array("gamma", T)
beta = scalar("beta", positive=True)


def s(token):
    return softmax(lambda k: beta * z[k], token)


derivation = Derivation("temperature", start=partial(total(gamma[tau] * s(tau), tau), z[t]))
derivation.step(total(gamma[tau] * partial(s(tau), z[t]), tau), because="the scores are constant")
derivation.step(  # slip
    total(gamma[tau] * s(tau) * (delta(t, tau) - s(t)), tau),
    because="Jacobian of the softmax",
)
derivation.step(s(t) * (gamma[t] - total(gamma[tau] * s(tau), tau)), because="contract the delta")

corrected = beta * total(gamma[tau] * s(tau) * (delta(t, tau) - s(t)), tau)
