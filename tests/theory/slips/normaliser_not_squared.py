"""The quotient rule with the denominator not squared."""

from sympy import exp

from theory import Derivation, Index, T, array, delta, partial, total

t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
z = array("z", T)
normaliser = total(exp(z[k]), k)

derivation = Derivation("quotient", start=partial(exp(z[t]) / normaliser, z[tau]))
derivation.step(
    (partial(exp(z[t]), z[tau]) * normaliser - exp(z[t]) * partial(normaliser, z[tau])) / normaliser**2,
    because="quotient rule",
)
derivation.step(
    (delta(t, tau) * exp(z[t]) * normaliser - exp(z[t]) * exp(z[tau])) / normaliser**2,
    because="both derivatives are exponentials",
)
derivation.step(  # slip
    delta(t, tau) * exp(z[t]) / normaliser - exp(z[t]) * exp(z[tau]) / normaliser,
    because="cancel the normaliser",
)

corrected = delta(t, tau) * exp(z[t]) / normaliser - exp(z[t]) * exp(z[tau]) / normaliser**2
