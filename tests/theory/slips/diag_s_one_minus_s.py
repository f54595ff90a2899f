"""diag(s(1 − s)) for the Jacobian of the softmax, as for the sigmoid: the off-diagonal is forgotten."""

from sympy import exp

from theory import Derivation, Index, T, array, delta, partial, total

t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
z = array("z", T)
normaliser = total(exp(z[k]), k)
s_t, s_tau = exp(z[t]) / normaliser, exp(z[tau]) / normaliser

derivation = Derivation("softmax-jacobian", start=partial(s_t, z[tau]))
derivation.step(
    partial(exp(z[t]), z[tau]) / normaliser - exp(z[t]) * partial(normaliser, z[tau]) / normaliser**2,
    because="quotient rule",
)
derivation.step(
    delta(t, tau) * exp(z[t]) / normaliser - exp(z[t]) * exp(z[tau]) / normaliser**2,
    because="both derivatives are exponentials",
)
derivation.step(delta(t, tau) * s_t * (1 - s_t), because="factor out the weight")  # slip

corrected = s_t * (delta(t, tau) - s_tau)
