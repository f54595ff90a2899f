from __future__ import annotations

import pytest
from sympy import Derivative, MatrixSymbol, Sum, Symbol, exp

from theory import DerivationError, Index, Unspecified, array, at, partial, scalar, total
from theory.calculus import bound_index, carried_out, differentiate, free_indices, replace_index
from theory.notation import T, d, n, named

t, tau, kappa = Index("t", T), Index("tau", T), Index("kappa", T)
a, b, c = Index("a", d), Index("b", d), Index("c", d)
x, y, u, M = array("x", T), array("y", T), array("u", d), array("M", d, d)
r, q = scalar("r"), scalar("q")
ell, psi = Unspecified("ell"), Unspecified("psi", slot=c)


class TestFreeIndices:
    @pytest.mark.parametrize(
        ("expression", "names"),
        [
            (x[t] * y[tau], "t tau"),
            (total(x[t] * y[tau], t), "tau"),
            (x[t] * total(x[t], t), "t"),
            (partial(total(x[t], t), x[tau]), "tau"),
            (partial(total(x[t], t), x[t]), "t"),
            (psi(u[c], a), "a"),
            (psi(u[c] * u[b]), "b"),
            (at(M[a, b], M[a, b], u[a]), "a b"),
            (at(r, r, total(x[t], t) * y[tau]), "tau"),
            (named("s", x[t], t), "t"),
            (exp(r), ""),
        ],
    )
    def test_by_name(self, expression, names):
        assert " ".join(index.name for index in free_indices(expression)) == names


class TestReplaceIndex:
    def test_bound_indices_stay(self):
        assert replace_index(total(x[t], t), t, tau) == total(x[t], t)
        assert replace_index(x[t] * total(x[t], t), t, tau) == x[tau] * total(x[t], t)

    def test_bound_indices_make_way(self):
        moved = replace_index(total(x[t] * y[tau], tau), t, tau)
        assert isinstance(moved, Sum)
        assert moved.limits[0][0] != tau
        assert free_indices(moved) == (tau,)

    def test_the_slot_of_a_function_makes_way(self):
        moved = replace_index(psi(u[c] * u[b]), b, c)
        assert free_indices(moved) == (c,)
        assert moved.slot != c

    def test_the_indices_of_a_value_make_way(self):
        moved = replace_index(at(M[a, b], M[c, a], u[c] * u[b]), b, c)
        assert [index.name for index in free_indices(moved)] == ["a", "c"]
        assert carried_out(moved) == u[a] * u[c]

    def test_every_variable_of_a_derivative_is_renamed(self):
        twice = Derivative(u[a] ** 3, u[a], u[a])
        assert replace_index(twice, a, b) == Derivative(u[b] ** 3, u[b], u[b])

    def test_names_follow(self):
        assert str(replace_index(named("s", x[t], t), t, tau)) == "s[tau]"


class TestDifferentiate:
    def test_other_arrays_and_numbers_are_constant(self):
        assert differentiate(x[t] * 3 + q, y[tau]) == 0
        assert differentiate(q, x[t]) == 0

    def test_powers_with_a_variable_exponent(self):
        assert differentiate(r**q, q).subs({r: 2, q: 3}).evalf() == pytest.approx(8 * 0.6931471805599453)

    def test_a_function_of_a_vector_has_a_sum_over_its_entries(self):
        slope = differentiate(psi(r * u[c]), r)
        assert isinstance(slope, Sum)
        assert free_indices(slope) == ()

    def test_no_rule(self):
        with pytest.raises(DerivationError, match="no rule to differentiate MatrixSymbol"):
            differentiate(MatrixSymbol("W", 2, 2), r)


class TestAt:
    def test_a_free_index_that_is_also_bound(self):
        # The value of M_kl uses k; the expression sums over an index of the same name.
        put_in = carried_out(at(total(M[a, b], a), M[a, b], u[a] * x[1]))
        assert free_indices(put_in) == ()

    def test_an_outer_derivative_sees_the_value(self):
        assert differentiate(at(r**2, r, 3 * q), q) == 18 * q
        assert differentiate(at(r**2, r, 3 * q), r) == 0

    def test_an_inner_derivative_does_not(self):
        assert carried_out(at(partial(r * q, q), r, q)) == q


def test_limits_of_sums():
    assert bound_index((t, 1, T)) == t
    with pytest.raises(DerivationError, match=r"sums run over an Index, got k \(write total"):
        bound_index((Symbol("k"), 1, T))
    with pytest.raises(DerivationError, match=r"the sum over t must run from 1 to T, got \(0, T\)"):
        bound_index((t, 0, T))
    with pytest.raises(DerivationError, match=r"the sum over t must run from 1 to T, got \(1, n\)"):
        bound_index((t, 1, n))
