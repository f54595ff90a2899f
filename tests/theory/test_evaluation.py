"""The two evaluators, which know nothing of the normal form."""

from __future__ import annotations

import mpmath
import pytest
from sympy import Abs, Max, Rational, asin, exp, log, sqrt

from theory import DerivationError, Index, Unspecified, array, at, delta, partial, scalar, total
from theory.evaluation import STAND_INS, Decimal50, Undecided
from theory.notation import T, d
from theory.residues import PRIME, Formal, Jet

t, tau = Index("t", T), Index("tau", T)
a, b, c = Index("a", d), Index("b", d), Index("c", d)
x, u, M = array("x", T), array("u", d), array("M", d, d)
r, q = scalar("r"), scalar("q", positive=True)
ell, psi = Unspecified("ell"), Unspecified("psi", slot=c)
SIZES = {"T": 3, "d": 2}
CELLS = {
    ("r", ()): "0.5",
    ("q", ()): "1.5",
    **{("x", (k,)): str(k) for k in (1, 2, 3)},
    **{("u", (k,)): str(k + 1) for k in (1, 2)},
    **{("M", (k, m)): str(10 * k + m) for k in (1, 2) for m in (1, 2)},
}


def decimal(expression, scope=None, **options):
    with mpmath.workdps(50):
        return Decimal50(SIZES, lambda cell, symbol: CELLS[cell], **options).value(expression, scope or {})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (total(x[t], t), 6),
        (total(x[t] * x[tau], t, tau), 36),
        (total(M[a, b] * u[b], a, b), (11 + 21) * 2 + (12 + 22) * 3),
        (total(delta(t, 2) * x[t], t), 2),
        (T * r, 1.5),
        (partial(total(x[t] ** 2, t), x[2]), 4),
        (partial(r**3, r, r), 3),
        (at(M[1, 2], M[a, b], u[a] * x[1]), 2),
        (at(partial(total(M[a, b] ** 2, a, b), M[2, 1]), M[a, b], u[a] * u[b]), 12),
        (partial(at(r**2, r, 3 * q), q), 27),
        (partial(at(r**2, r, 3 * q), r), 0),
        (at(partial(r * q, q), r, q), 1.5),
        (sqrt(q) ** 2, 1.5),
        (Abs(-r), 0.5),
        (Max(r, q), 1.5),
        (log(exp(q) ** 2), 3),
    ],
)
def test_decimals_by_hand(expression, value):
    assert float(decimal(expression)) == pytest.approx(value, rel=1e-15, abs=1e-40)


@pytest.mark.parametrize("stand_in", STAND_INS)
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_derivatives_of_the_stand_ins(stand_in, order):
    with mpmath.workdps(40):
        at_point = mpmath.mpf("0.7")
        slope = mpmath.diff(lambda y: STAND_INS[stand_in](order, y), at_point)
        assert abs(slope - STAND_INS[stand_in](order + 1, at_point)) < mpmath.mpf(10) ** -15


@pytest.mark.parametrize("stand_in", STAND_INS)
def test_derivatives_of_unspecified_functions_are_derivatives(stand_in):
    options = {"stand_in": stand_in, "labels": ["ell", "psi"]}
    pairs = [
        (partial(ell(r**2), r), 2 * r * ell(r**2, 1)),
        (partial(psi(u[c] ** 2), u[1]), 2 * u[1] * psi(u[c] ** 2, 1)),
        (partial(psi(u[c] ** 2, 1), u[2]), 2 * u[2] * psi(u[c] ** 2, 1, 2)),
        (partial(psi(u[c] ** 2, 2), u[2]), 2 * u[2] * psi(u[c] ** 2, 2, 2)),
    ]
    for left, right in pairs:
        assert abs(decimal(left, **options) - decimal(right, **options)) < 1e-40 * abs(
            decimal(right, **options)
        )


def test_the_description_of_a_stand_in_is_what_is_computed():
    evaluator = Decimal50(SIZES, lambda cell, symbol: CELLS[cell], "x + x² + x³", ["ell", "psi"])
    assert evaluator.described("ell", False) == "ell(x) = x + x² + x³"
    assert float(evaluator.value(ell(r), {})) == 0.5 + 0.25 + 0.125
    assert evaluator.described("psi", True) == "psi(r) = g(2 Σ k r_k) + Σ r_k² for g(x) = x + x² + x³"
    g = 2 * (1 * 2 + 2 * 3)
    assert float(evaluator.value(psi(u[c]), {})) == g + g**2 + g**3 + 4 + 9


@pytest.mark.parametrize("expression", [1 / (total(x[t], t) - 6), log(-q), sqrt(-q), asin(q)])
def test_no_value(expression):
    with pytest.raises(Undecided):
        decimal(expression)


def test_a_stray_index_is_named():
    with pytest.raises(DerivationError, match="the index t is free where it should be bound"):
        decimal(x[t])


class TestResidues:
    def equal(self, left, right):
        ring = Formal(SIZES, seed=0)
        return ring.value(left, {}).parts == ring.value(right, {}).parts

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (total(x[t], t) ** 2, total(x[t] * x[tau], t, tau)),
            (partial(r**3 / q, r), 3 * r**2 / q),
            (partial(exp(r * q), r, q), exp(r * q) * (1 + r * q)),
            (exp(r + q), exp(r) * exp(q)),
            (exp(total(u[a] * x[1], a)), exp(u[1] * x[1]) * exp(u[2] * x[1])),
            (exp(r / 2) ** 2, exp(r)),
            (partial(ell(r * q), r, r), q**2 * ell(r * q, 2)),
            (partial(psi(r * u[c]), r), total(psi(r * u[c], a) * u[a], a)),
            (partial(psi(r * u[c]), r, r), total(psi(r * u[c], a, b) * u[a] * u[b], a, b)),
            (at(exp(total(M[1, b] * u[b], b)), M[a, b], x[1] * u[b]), exp(x[1] * total(u[b] ** 2, b))),
            (at(partial(exp(r * q), q), r, q), q * exp(q**2)),
            (partial(at(exp(r), r, q**2), q), 2 * q * exp(q**2)),
            (exp(exp(r) * q / (exp(r) + exp(q))), exp(q * exp(r - q) / (exp(r - q) + 1))),
        ],
    )
    def test_identities(self, left, right):
        assert self.equal(left, right)

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            (exp(r), exp(q)),
            (exp(r) ** 2, exp(r**2)),
            (ell(r), ell(r, 1)),
            (psi(u[c], 1), psi(u[c], 2)),
            (partial(r**2, r), r),
        ],
    )
    def test_differences(self, left, right):
        assert not self.equal(left, right)

    @pytest.mark.parametrize("expression", [log(r), sqrt(r), exp(r * Rational(1, 11))])
    def test_outside_the_field(self, expression):
        with pytest.raises(Undecided):
            self.equal(expression, expression)

    def test_jets(self):
        eps, delta_ = Jet({frozenset({1}): 1}), Jet({frozenset({2}): 1})
        assert (eps * eps).parts == {}
        assert (eps * delta_).parts == {frozenset({1, 2}): 1}
        assert (eps + eps.scaled(-1)).parts == {}
        assert Jet({frozenset(): PRIME}).parts == {}
