from __future__ import annotations

import pytest
from sympy import (
    Derivative,
    Function,
    Integer,
    KroneckerDelta,
    MatrixSymbol,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    cos,
    exp,
    log,
    oo,
    sin,
    sqrt,
)

from theory import (
    DerivationError,
    Index,
    Unspecified,
    array,
    at,
    delta,
    mean,
    normal_form,
    partial,
    proves_equal,
    scalar,
    softmax,
    total,
)
from theory.calculus import replace_index
from theory.notation import T, d, n, named

i, j = Index("i", n), Index("j", n)
t, tau, kappa = Index("t", T), Index("tau", T), Index("kappa", T)
a, b, c, e = Index("a", d), Index("b", d), Index("c", d), Index("e", d)
x, y, z, u = array("x", T), array("y", T), array("z", T), array("u", d)
A, M, X = array("A", d, d), array("M", d, d), array("X", n, T)
r, q = scalar("r"), scalar("q", positive=True)
ell, psi = Unspecified("ell"), Unspecified("psi", slot=c)
norm2 = total(u[a] ** 2, a)


def weight(index):
    return softmax(lambda k: z[k], index)


EQUAL = {
    "name of a bound index": (total(x[t], t), total(x[tau], tau)),
    "order of sums": (total(X[i, t], i, t), total(X[i, t], t, i)),
    "sum of a sum": (total(x[t] + y[t], t), total(x[t], t) + total(y[tau], tau)),
    "factor out of a sum": (total(r * x[t], t), r * total(x[t], t)),
    "square of a sum": (total(x[t], t) ** 2, total(x[t] * x[tau], t, tau)),
    "third power of a sum": (total(x[t], t) ** 3, total(x[t] * x[tau] * x[kappa], t, tau, kappa)),
    "unused index": (total(r, t), T * r),
    "unused index of numeric size": (total(r, Index("k", 3)), 3 * r),
    "same index twice": (total(total(x[t], t), t), T * total(x[t], t)),
    "mean": (n * mean(r, i), n * r),
    "delta under a sum": (total(delta(t, tau) * x[t], t), x[tau]),
    "delta of free indices": (delta(t, tau) * x[t], delta(t, tau) * x[tau]),
    "delta is idempotent": (delta(t, tau) ** 2, delta(t, tau)),
    "delta chain": (total(delta(t, kappa) * delta(kappa, tau), kappa), delta(t, tau)),
    "delta and the first entry": (total(delta(t, 1) * x[t], t), x[1]),
    "delta in a function": (total(delta(t, tau) * ell(x[t]), t), ell(x[tau])),
    "weights sum to one": (total(weight(t), t), 1),
    "weights under a function": (ell(total(weight(t), t) * r), ell(r)),
    "shift of the logits": (softmax(lambda k: z[k] + r, t), weight(t)),
    "cancelled twice": (total(exp(z[t]), t) ** 2 * weight(t), exp(z[t]) * total(exp(z[tau]), tau)),
    "norm": (total(u[a] * u[a] / norm2, a), 1),
    "unit vector": (total((u[a] / sqrt(norm2)) ** 2, a), 1),
    "root of a square sum": (norm2 / sqrt(norm2), sqrt(norm2)),
    "root times root": (sqrt(norm2) * sqrt(total(u[b] ** 2, b)), norm2),
    "positive factor out of a root": (sqrt(q**2 * norm2), q * sqrt(norm2)),
    "exponential of a sum": (exp(total(x[t], t) + r), exp(r) * exp(total(x[tau], tau))),
    "exponential squared": (exp(r) ** 2, exp(r) * exp(r)),
    "e": (exp(1 + r), exp(1) * exp(r)),
    "symbolic exponents": (q**r * q ** (1 - r), q),
    "powers of a power": ((q**r) ** 2 / q**r, q**r),
    "power of a product": ((q * T) ** r, T**r * q**r),
    "log of a product": (log(q**2 * T * exp(r)), 2 * log(q) + log(T) + r),
    "derivative of a power": (partial(q**r, q), r * q**r / q),
    "sigmoid": (exp(-r) / (1 + exp(-r)), 1 / (1 + exp(r))),
    "derivative of the sigmoid": (partial(1 / (1 + exp(-r)), r), 1 / (1 + exp(r)) - 1 / (1 + exp(r)) ** 2),
    "derivative of the sigmoid under a sum": (
        total(partial(1 / (1 + exp(x[t])), x[tau]) * y[tau], t, tau),
        total((1 / (1 + exp(x[t])) ** 2 - 1 / (1 + exp(x[t]))) * y[t], t),
    ),
    "two denominators under a sum": (
        total((x[t] - y[t]) / ((1 + x[t]) * (1 + y[t])), t),
        total(1 / (1 + y[t]) - 1 / (1 + x[t]), t),
    ),
    "logistic loss": (log(1 + exp(-r)), log(1 + exp(r)) - r),
    "log of an exponential": (log(exp(total(x[t], t))), total(x[t], t)),
    "log-sum-exp": (partial(log(total(exp(z[t]), t)), z[tau]), weight(tau)),
    "sign of a denominator": (1 / (r - q), -1 / (q - r)),
    "common factor of a denominator": (q / (q * r + q**2), 1 / (r + q)),
    "cyclic trace": (
        total(A[a, b] * A[b, c] * A[c, a], a, b, c),
        total(A[b, a] * A[a, c] * A[c, b], c, b, a),
    ),
    "partial derivatives commute": (psi(u[c], a, b), psi(u[e], b, a).xreplace({e: c})),
    "derivative under a sum": (partial(total(x[t] ** 2, t), x[t]), 2 * x[t]),
    "second derivatives": (partial(total(u[a] ** 2, a), u[b], u[c]), 2 * delta(b, c)),
    "function of a vector": (
        partial(psi(r * u[c]), r),
        total(psi(r * u[c], e) * u[e], e),
    ),
    "name": (named("s", weight(t), t), weight(t)),
    "value put in": (at(M[a, b] * u[a], M[a, b], u[a] * u[b]), u[a] ** 2 * u[b]),
    "value put in for swapped indices": (at(M[b, a], M[a, b], u[a] * x[1]), u[b] * x[1]),
    "derivative before the value": (at(partial(r**2, r), r, q), 2 * q),
    "derivative of a value": (partial(at(r**3, r, 2 * q), q), 24 * q**2),
}

DIFFERENT = {
    "number of factors": (total(x[t], t) ** 2, total(x[t] ** 2, t)),
    "transpose": (A[a, b], A[b, a]),
    "path, not cycle": (
        total(A[a, b] * A[b, c] * A[c, a], a, b, c),
        total(A[a, b] * A[b, c] * A[a, c], a, b, c),
    ),
    "derivative by entry and order": (ell(r, 1), ell(r, 2)),
    "two functions": (ell(r), Unspecified("rho")(r)),
    "unused index": (total(x[t], t), T * x[t]),
    "softmax without the second term": (partial(weight(t), z[tau]), delta(t, tau) * weight(t)),
    "two softmaxes": (weight(t), softmax(lambda k: x[k], t)),
    "a root of a square": (sqrt(r**2), r),
    "root distributed over a sum": (sqrt(norm2), total(u[a], a)),
    "a power distributed over a product": ((x[t] * y[t]) ** r, x[t] ** r * y[t] ** r),
    "value before the derivative": (at(partial(r**2, r), r, q), partial(at(r**2, r, q), r)),
    "free index and bound index": (total(X[i, t], i), X[i, t]),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name):
    left, right = EQUAL[name]
    assert proves_equal(left, right)
    assert proves_equal(right, left)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name):
    assert not proves_equal(*DIFFERENT[name])


class TestGaps:
    """True, but not proved: the prover may say no, never yes by mistake."""

    def test_identities_of_functions_are_not_known(self):
        assert not proves_equal(sin(r) ** 2 + cos(r) ** 2, Integer(1))

    def test_denominators_inside_a_sum_stay_apart(self):
        apart = 1 / x[t] - 1 / (x[t] + y[t])
        assert not proves_equal(total(y[t] / (x[t] * (x[t] + y[t])), t), total(apart, t))
        assert proves_equal(y[t] / (x[t] * (x[t] + y[t])), apart)

    def test_a_delta_is_contracted_only_in_a_known_range(self):
        # At T = 1 the left side is 0.
        assert not proves_equal(total(delta(t, 2) * x[t], t), x[2])
        three = Index("k", 3)
        assert proves_equal(total(delta(three, 2) * array("w", 3)[three], three), array("w", 3)[2])

    def test_a_delta_between_axes_is_left_alone(self):
        assert not proves_equal(total(delta(t, a) * u[a], a), total(delta(t, a) * u[a], a) + 0 * u[a] + u[1])
        assert not proves_equal(total(delta(t, a), a), Integer(1))

    def test_too_many_terms_are_not_multiplied_out(self):
        many = (x[1] + x[2] + x[3] + x[4] + x[5] + x[6]) ** 5
        assert not proves_equal(many, many + 1)
        with pytest.raises(DerivationError, match="more than 5000 terms when multiplied out"):
            normal_form(many)

    def test_many_interchangeable_sums_take_no_time(self):
        indices = [Index(f"k{k}", T) for k in range(12)]
        factors = total(x[t], t) ** 12
        product = Integer(1)
        for index in indices:
            product *= x[index]
        assert proves_equal(factors, total(product, *indices))


class TestTraps:
    """Inputs on which general-purpose calculus goes wrong."""

    def test_the_summation_index_is_not_the_differentiation_index(self):
        assert proves_equal(partial(total(x[t] ** 2, t), x[t]), 2 * x[t])
        assert proves_equal(partial(weight(t), z[kappa]), weight(t) * (delta(t, kappa) - weight(kappa)))

    def test_a_renamed_index_is_not_captured(self):
        once = total(x[t] * y[tau], tau)
        moved = replace_index(once, t, tau)
        assert proves_equal(moved, x[tau] * total(y[t], t))
        assert not proves_equal(moved, total(x[tau] * y[tau], tau))

    def test_sums_with_different_names_cancel(self):
        assert proves_equal(total(x[t], t) - total(x[tau], tau), Integer(0))

    def test_merged_exponentials_are_split(self):
        assert proves_equal((exp(r) ** 2) * exp(q), exp(r) * exp(r + q))

    def test_a_delta_with_a_free_index(self):
        assert proves_equal(Sum(KroneckerDelta(t, tau) * x[t], (t, 1, T)), x[tau])

    def test_an_entry_differentiated_by_a_matrix(self):
        assert proves_equal(partial(M[1, 1], M[a, b]), delta(a, 1) * delta(b, 1))

    def test_derivatives_by_an_entry_whose_index_is_summed(self):
        # The variable of a Derivative is not among SymPy's free symbols.
        inner = partial(ell(u[a] * r), u[a])
        assert proves_equal(total(inner, a), total(ell(u[b] * r, 1) * r, b))
        twice = Derivative(u[a] ** 3, u[a], u[a])
        assert proves_equal(replace_index(twice, a, b), 6 * u[b])


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (MatrixSymbol("W", 2, 2), "cannot read MatrixSymbol (W)"),
        (Piecewise((r, r > 0), (0, True)), "cannot read Piecewise"),
        (oo * Symbol("k"), "cannot read Infinity (oo)"),
        (Function("f")(r), "write Unspecified('f') for the unknown function f(r)"),
        (x[t] * t, "the index t is used as a number"),
        (x[t + 1], "x[t + 1]: expected an Index or a number, got t + 1"),
        (1 / (total(x[t], t) - total(x[tau], tau)), "division by zero"),
        (log(total(x[t], t) - total(x[tau], tau)), "logarithm of zero"),
        (Sum(x[t], (t, 1, n)), "the sum over t must run from 1 to T, got (1, n)"),
        (Sum(r, (Symbol("k"), 1, T)), "sums run over an Index, got k"),
    ],
)
def test_what_cannot_be_read_is_named(expression, message):
    with pytest.raises(DerivationError) as caught:
        normal_form(expression)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_normal_form_is_a_table_of_coefficients():
    form = normal_form(3 * total(x[t], t) - Rational(1, 2) * r + total(x[tau], tau))
    assert sorted(form.coefficients.values()) == [Rational(-1, 2), 4]
    assert form == normal_form(4 * total(x[kappa], kappa) - r / 2)
