"""A covariance as a double sum without the factor ½: each pair is counted twice."""

from sympy import Rational

from theory import Derivation, Index, T, array, softmax, total

t, tau = Index("t", T), Index("tau", T)
z, a, gamma = array("z", T), array("a", T), array("gamma", T)


def s(token):
    return softmax(lambda k: z[k], token)


def mean_of(vector):
    return total(s(tau) * vector[tau], tau)


pairs = total(s(t) * s(tau) * (a[t] - a[tau]) * (gamma[t] - gamma[tau]), t, tau)

derivation = Derivation(
    "covariance", start=total(s(t) * (a[t] - mean_of(a)) * (gamma[t] - mean_of(gamma)), t)
)
derivation.step(
    total(s(t) * a[t] * gamma[t], t) - mean_of(a) * mean_of(gamma),
    because="multiply out; weights sum to one",
)
derivation.step(pairs, because="a mean of products less a product of means")  # slip

corrected = Rational(1, 2) * pairs
