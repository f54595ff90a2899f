from __future__ import annotations

import pickle

import pytest
from sympy import latex

from theory import DerivationError, Index, Unspecified, array, at, mean, partial, scalar, total
from theory.notation import T, d, named

t, a, c = Index("t", T), Index("a", d), Index("c", d)
x, M = array("x", T), array("M", d, d)
r = scalar("r")
ell, psi = Unspecified("ell"), Unspecified("psi", slot=c)


def test_an_index_is_told_apart_by_its_size():
    assert Index("t", T) == t
    assert Index("t", d) != t
    assert pickle.loads(pickle.dumps(t)) == t
    assert pickle.loads(pickle.dumps(t)).size == T


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Index("", T), "an index needs a name, got ''"),
        (lambda: Index("k", 0), "index k: its size must be a symbol or a positive integer, got 0"),
        (lambda: Index("k", T + 1), "index k: its size must be a symbol or a positive integer, got T + 1"),
        (lambda: array("x"), "array x: give its shape; a scalar is a plain symbol"),
        (lambda: total(x[t], T), "total: sum over an Index, got T"),
        (lambda: partial(r), "partial: name at least one variable to differentiate by"),
        (
            lambda: partial(x[t], t),
            "partial: differentiate by an array entry or a scalar symbol, got t",
        ),
        (
            lambda: partial(r**2, r**2),
            "partial: differentiate by an array entry or a scalar symbol, got r**2",
        ),
        (
            lambda: at(M[a, a], M[a, a], r),
            "at: give a value to a scalar or to entries such as W[k, l], got M[a, a]",
        ),
        (lambda: at(r, T, 3), "at: give a value to a scalar or to entries such as W[k, l], got T"),
        (lambda: ell(r, 1, 2), "ell: the derivative's order must be one integer, got (1, 2)"),
        (lambda: ell(r, -1), "ell: the derivative's order must be one integer, got (-1,)"),
        (lambda: psi(x[1], r), "psi: differentiate by an Index, got r"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(DerivationError) as caught:
        make()
    assert str(caught.value) == message


def test_mean_and_total():
    assert total(x[t], t, a) == total(total(x[t], a), t)
    assert mean(x[t], t) * T == total(x[t], t)


@pytest.mark.parametrize(
    ("expression", "text", "formula"),
    [
        (ell(r, 1), "ell'(r)", r"\ell'\left(r\right)"),
        (ell(r, 4), "ell''''(r)", r"\ell^{(4)}\left(r\right)"),
        (ell(r) ** 2, "ell(r)**2", r"\left(\ell\left(r\right)\right)^{2}"),
        (psi(M[a, c], a), "d_a psi(c -> M[a, c])", r"\partial_{a} \psi\left(({M}_{a,c})_{c}\right)"),
        (named("s", x[t], t), "s[t]", "s_{t}"),
        (named("s^W", x[t], t) ** 2, "s^W[t]**2", r"\left(s_{t}^{W}\right)^{2}"),
        (named("abar", r), "abar", r"\bar{a}"),
        (at(r**2, r, 3), "At(r**2, r, 3)", r"\left. r^{2} \right|_{r = 3}"),
    ],
)
def test_printing(expression, text, formula):
    assert str(expression) == text
    assert latex(expression) == formula
