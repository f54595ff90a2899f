"""‖p‖² for ‖p‖³ in the derivative of the direction p/‖p‖."""

from sympy import sqrt

from theory import Derivation, Index, array, d, delta, partial, total

a, b, c = Index("a", d), Index("b", d), Index("c", d)
p = array("p", d)
norm = sqrt(total(p[c] ** 2, c))

derivation = Derivation("direction", start=partial(p[a] / norm, p[b]))
derivation.step(delta(a, b) / norm - p[a] * partial(norm, p[b]) / norm**2, because="quotient rule")
derivation.step(delta(a, b) / norm - p[a] * p[b] / norm**2, because="the norm grows along p")  # slip

corrected = delta(a, b) / norm - p[a] * p[b] / norm**3
