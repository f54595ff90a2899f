from __future__ import annotations

import pytest
from sympy import Abs, Integer, Rational, exp, log, sqrt

from theory import Index, array, delta, scalar, softmax, total
from theory.notation import T, named
from theory.signs import shown_nonnegative

t, tau = Index("t", T), Index("tau", T)
x = array("x", T)
r, q = scalar("r"), scalar("q", positive=True)


@pytest.mark.parametrize(
    "expression",
    [
        Integer(0),
        Rational(1, 2),
        q,
        T,
        r**2,
        r**-4,
        exp(-r),
        Abs(r),
        sqrt(q),
        q / (q + 1),
        delta(t, tau),
        1 - delta(t, tau),
        total(x[t] ** 2 * (1 - delta(t, tau)), t),
        softmax(lambda k: x[k], t),
        named("s", softmax(lambda k: x[k], t), t),
        q * total(softmax(lambda k: x[k], t) * x[t] ** 2, t),
    ],
)
def test_shown(expression):
    assert shown_nonnegative(expression)


@pytest.mark.parametrize("expression", [Integer(-1), r, r**3, -q, q - 1, x[t], log(q), 1 - q, q * x[t]])
def test_not_shown(expression):
    assert not shown_nonnegative(expression)
