"""Small inputs on which tools of this field went wrong in public, with the right answers."""

from __future__ import annotations

import mpmath
import pytest
from sympy import Abs, Rational, exp, log

from theory import Derivation, Index, array, at, delta, partial, proves_equal, scalar, softmax, total
from theory.evaluation import Decimal50
from theory.examination import difference_at
from theory.notation import T, d

t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
e = Index("e", d)
z = array("z", T)
DIGITS = 40


def value_of(expression, sizes, cells, **places):
    """The value of an expression with 40 digits; `cells` gives decimals, or rationals as strings."""
    scope = {index: places[index.name] for index in (t, tau, k, e) if index.name in places}
    with mpmath.workdps(DIGITS + 10):
        return Decimal50(sizes, lambda cell, symbol: cells[cell]).value(expression, scope)


class TestMatrixDerivatives:
    """S1: derivatives by a matrix inside exp and log, which came out as 0."""

    three = tuple(Index(name, 3) for name in ("i", "j", "k", "l"))
    W, a, b = array("W", 3, 3), array("a", 3), array("b", 3)

    def form(self):
        i, j, *_ = self.three
        return total(self.a[i] * self.W[i, j] * self.b[j], i, j)

    def test_exponential(self):
        _, _, r, c = self.three
        chain = Derivation("exp", start=partial(exp(self.form()), self.W[r, c]))
        report = chain.step(exp(self.form()) * self.a[r] * self.b[c], because="rank one").check()
        assert report.status == "proved"

    def test_logistic(self):
        _, _, r, c = self.three
        start = partial(log(1 + exp(-self.form())), self.W[r, c])
        sigmoid = 1 / (1 + exp(self.form()))
        right = Derivation("log", start=start).step(-sigmoid * self.a[r] * self.b[c], because="rank one")
        assert right.check().status == "proved"
        wrong = Derivation("log", start=start).step(0, because="claimed by a general-purpose tool")
        assert wrong.check().status == "refuted"

    def test_one_entry(self):
        """S3: d M_11 / dM is the unit matrix, not 0."""
        _, _, r, c = self.three
        assert proves_equal(partial(self.W[1, 1], self.W[r, c]), delta(r, 1) * delta(c, 1))
        assert not proves_equal(partial(self.W[1, 1], self.W[r, c]), 0)


class TestSoftmax:
    """S2 and S4."""

    def weight(self, index):
        return softmax(lambda token: z[token], index)

    def test_gradient_of_log_sum_exp(self):
        assert proves_equal(partial(log(total(exp(z[k]), k)), z[t]), self.weight(t))

    def test_first_row_of_the_jacobian(self):
        jacobian = partial(self.weight(t), z[tau])
        cells = {("z", (1,)): "0.1", ("z", (2,)): "0.2", ("z", (3,)): "0.3"}
        row = [value_of(jacobian, {"T": 3}, cells, t=1, tau=column) for column in (1, 2, 3)]
        assert [float(entry) for entry in row] == pytest.approx([0.210243, -0.099870, -0.110373], abs=5e-7)
        with mpmath.workdps(DIGITS):
            assert abs(mpmath.fsum(row)) < mpmath.mpf(10) ** -DIGITS

    def test_rows_of_the_jacobian_sum_to_zero_at_every_size(self):
        assert proves_equal(total(partial(self.weight(t), z[tau]), tau), 0)

    def test_summation_index_equal_to_the_differentiation_index(self):
        quotient = exp(z[t]) / total(exp(z[k]), k)
        assert proves_equal(partial(quotient, z[k]), self.weight(t) * (delta(t, k) - self.weight(k)))


class TestExactGradient:
    """S5: keys (1,0), (0,1), (−1,−1), scores (1, ½, 0), p = (ln 2, ln 3)."""

    K, p, gamma = array("K", T, d), array("p", d), array("gamma", T)
    keys = ((1, 0), (0, 1), (-1, -1))

    def risk(self):
        return total(self.gamma[t] * softmax(lambda token: total(self.K[token, e] * self.p[e], e), t), t)

    def cells(self):
        cells = {("K", (r, c)): str(self.keys[r - 1][c - 1]) for r in (1, 2, 3) for c in (1, 2)}
        cells.update({("gamma", (r,)): text for r, text in ((1, "1"), (2, "0.5"), (3, "0"))})
        with mpmath.workdps(3 * DIGITS):
            cells.update({("p", (1,)): str(mpmath.log(2)), ("p", (2,)): str(mpmath.log(3))})
        return cells

    def test_value_and_gradient(self):
        sizes = {"T": 3, "d": 2}
        near = 10.0**-DIGITS
        weights = [
            value_of(
                softmax(lambda token: total(self.K[token, e] * self.p[e], e), t), sizes, self.cells(), t=row
            )
            for row in (1, 2, 3)
        ]
        for weight, exact in zip(weights, (12, 18, 1), strict=True):
            assert abs(31 * weight - exact) < 40 * near
        assert abs(31 * value_of(self.risk(), sizes, self.cells()) - 21) < 40 * near
        b = Index("e", d)
        for entry, exact in ((1, 141), (2, -78)):
            gradient = value_of(partial(self.risk(), self.p[b]), sizes, self.cells(), e=entry)
            assert abs(961 * gradient - exact) < 1_000 * near

    def test_equal_scores_have_no_gradient(self):
        c = scalar("c")
        flat = total(c * softmax(lambda token: total(self.K[token, e] * self.p[e], e), t), t)
        assert proves_equal(partial(flat, self.p[e]), 0)


@pytest.mark.parametrize("power", [Rational(11, 10), Rational(3, 2), 2, 3])
def test_power_of_an_absolute_value_at_zero(power):
    """S6: the derivative of |w|^p/p at 0 is 0, never NaN."""
    w = scalar("w")
    slope = at(partial(Abs(w) ** power / power, w), w, 0)
    report = Derivation("s6", start=slope).step(0, because="p > 1").check()
    assert report.status == "proved"


def test_errors_are_relative():
    """S7: the slope of log(1 + e^{-x}) at 30 is −9.3576e-14, and not 0."""
    x = scalar("x")
    slope = partial(log(1 + exp(-x)), x)
    zero = 0 * x
    witness = difference_at(slope, zero, {}, {}, lambda cell, symbol: "30")
    assert witness is not None
    assert float(witness.left) == pytest.approx(-9.3576e-14, rel=1e-4)
    assert difference_at(slope, -1 / (1 + exp(x)), {}, {}, lambda cell, symbol: "30") is None
    far = at(slope, x, 30)
    assert Derivation("s7", start=far).step(0, because="it looks like 0").check().status == "refuted"
