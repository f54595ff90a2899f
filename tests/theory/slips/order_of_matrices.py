"""Transposed layers in the wrong order: Uᵀ(Wᵀ v) for Wᵀ(Uᵀ v)."""

from theory import Derivation, Index, array, d, partial, total

a, b, c, k = Index("a", d), Index("b", d), Index("c", d), Index("k", d)
U, W, x, v = array("U", d, d), array("W", d, d), array("x", d), array("v", d)

derivation = Derivation("two-layers", start=partial(total(v[a] * U[a, b] * W[b, c] * x[c], a, b, c), x[k]))
derivation.step(total(v[a] * U[a, b] * W[b, k], a, b), because="only the term c = k depends on x_k")
derivation.step(total(U[b, k] * total(W[a, b] * v[a], a), b), because="transposed, layer by layer")  # slip

corrected = total(W[b, k] * total(U[a, b] * v[a], a), b)
