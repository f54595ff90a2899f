"""diag(s) for the Jacobian of the softmax: the normaliser is taken for a constant."""

from sympy import exp

from theory import Derivation, Index, T, array, delta, partial, total

t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
z, gamma = array("z", T), array("gamma", T)


def s(token):
    return exp(z[token]) / total(exp(z[k]), k)


derivation = Derivation("attended-score", start=partial(total(gamma[tau] * s(tau), tau), z[t]))
derivation.step(
    total(gamma[tau] * partial(s(tau), z[t]), tau),
    because="scores do not depend on the logits",
)
derivation.step(  # slip
    total(gamma[tau] * delta(t, tau) * s(tau), tau),
    because="the derivative of the exponential is the exponential",
)
derivation.step(gamma[t] * s(t), because="only the term τ = t is left")

corrected = total(gamma[tau] * s(tau) * (delta(t, tau) - s(t)), tau)
