"""ℓ' at the score of a token in place of the attended score: the loss of a mean is not a mean of losses."""

from theory import Derivation, Index, T, Unspecified, array, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
z, gamma = array("z", T), array("gamma", T)
loss = Unspecified("ell")


def s(token):
    return softmax(lambda k: z[k], token)


margin = total(gamma[tau] * s(tau), tau)

derivation = Derivation("loss-of-one-input", start=partial(loss(margin), z[t]))
derivation.step(loss(margin, 1) * partial(margin, z[t]), because="chain rule")
derivation.step(  # slip
    loss(gamma[t], 1) * s(t) * (gamma[t] - margin),
    because="the derivative of the attended score is a covariance",
)

corrected = loss(margin, 1) * s(t) * (gamma[t] - margin)
