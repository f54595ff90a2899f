"""A lost term of the product rule: the gradient of the margin is taken for a constant."""

from theory import Derivation, Index, T, Unspecified, array, partial, softmax, total

t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
z, gamma = array("z", T), array("gamma", T)
loss = Unspecified("ell")


def s(token):
    return softmax(lambda index: z[index], token)


margin = total(gamma[k] * s(k), k)


def slope_of_margin(token):
    return s(token) * (gamma[token] - margin)


derivation = Derivation("hessian", start=partial(loss(margin), z[t], z[tau]))
derivation.step(partial(loss(margin, 1) * slope_of_margin(t), z[tau]), because="gradient of the loss")
derivation.step(  # slip
    loss(margin, 2) * slope_of_margin(t) * slope_of_margin(tau),
    because="product rule",
)

corrected = loss(margin, 2) * slope_of_margin(t) * slope_of_margin(tau) + loss(margin, 1) * partial(
    slope_of_margin(t), z[tau]
)
