"""A wrong summation index: s_t γ_t for s_τ γ_τ in the second term of the gradient."""

from theory import Derivation, Index, T, array, partial, softmax, total

t, tau = Index("t", T), Index("tau", T)
z, gamma = array("z", T), array("gamma", T)


def s(token):
    return softmax(lambda k: z[k], token)


derivation = Derivation("attended-score", start=partial(total(gamma[tau] * s(tau), tau), z[t]))
derivation.step(total(gamma[tau] * partial(s(tau), z[t]), tau), because="the scores are constant")
derivation.step(  # slip
    gamma[t] * s(t) - s(t) * total(gamma[t] * s(tau), tau),
    because="Jacobian of the softmax",
)
derivation.step(0, because="weights sum to one")

corrected = gamma[t] * s(t) - s(t) * total(gamma[tau] * s(tau), tau)
