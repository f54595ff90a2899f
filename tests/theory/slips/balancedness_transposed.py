"""W x for Wᵀ x in the gradient in p, on the way to the conservation of WᵀW − p pᵀ."""

from theory import Derivation, Index, Unspecified, array, d, partial, total

a, b, k, m = Index("a", d), Index("b", d), Index("k", d), Index("m", d)
W, p, x = array("W", d, d), array("p", d), array("x", d)
f = Unspecified("f")
value = f(total(x[a] * W[a, b] * p[b], a, b))
slope = f(total(x[a] * W[a, b] * p[b], a, b), 1)
pulled = total(x[a] * W[a, k] * p[m], a)

derivation = Derivation(
    "balancedness",
    start=total(W[a, k] * partial(value, W[a, m]), a) - p[m] * partial(value, p[k]),
)
derivation.step(
    total(W[a, k] * slope * x[a] * p[m], a) - p[m] * partial(value, p[k]),
    because="the argument is bilinear in W's rows and p",
)
derivation.step(  # slip
    slope * (pulled - p[m] * total(W[k, a] * x[a], a)), because="its gradient in p is W x"
)

corrected = slope * (pulled - p[m] * total(W[a, k] * x[a], a))
