"""What is computed is what is proved: losses and constants of `checks` against the formulas of `theory`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sympy import Float

from checks import losses
from checks import strategies as attst
from theory import losses as formulas
from theory.smoothness import THIRD

PAIRS = [
    (losses.LOGISTIC, formulas.LOGISTIC),
    (losses.EXPONENTIAL, formulas.EXPONENTIAL),
    (losses.CORRELATION, formulas.CORRELATION),
]
ARGUMENTS = [-300.0, -30.0, -1.5, -0.125, 0.0, 0.125, 1.0, 30.0, 300.0]


def value(formula, x):
    """A formula at a float, with digits enough to tell 1 + e^{-300} from 1."""
    return float(formula.subs(formulas.x, Float(x, 200)).evalf(200))


@pytest.mark.parametrize(("loss", "formula"), PAIRS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("x", ARGUMENTS)
def test_losses_are_their_formulas(loss, formula, x):
    # Each is one or two exponentials and logarithms of the argument: errors of a few eps of |x|.
    rounding = 4 * np.finfo(float).eps * max(1.0, abs(x))
    for computed, proved in (
        (loss.value(x), formula.value),
        (loss.slope(x), formula.slope),
        (loss.curvature(x), formula.curvature),
    ):
        assert float(computed) == pytest.approx(value(proved, x), rel=rounding, abs=0)


@pytest.mark.parametrize("bound", [0.5, 2.0, 7.0])
@pytest.mark.parametrize(("loss", "formula"), PAIRS, ids=lambda value: getattr(value, "name", ""))
def test_constants_are_the_proved_ones_or_smaller(loss, formula, bound):
    m0, m1 = loss.constants(-bound, bound)
    largest = [float(c.subs(formulas.B, bound)) for c in (formula.curvature_bound, formula.slope_bound)]
    assert m0 <= largest[0] * (1 + 1e-15)
    assert m1 <= largest[1] * (1 + 1e-15)
    if loss is not losses.LOGISTIC:  # whose slope reaches 1 at infinity only
        assert [m0, m1] == pytest.approx(largest, rel=1e-15)
    assert losses.LOGISTIC.constants(-bound, bound)[0] == pytest.approx(0.25, rel=1e-15)


@given(attst.selection_problems())
def test_the_smoothness_of_a_problem_is_the_sharp_constant(problem):
    total = 0.0
    for keys, scores in zip(problem.keys, problem.scores, strict=True):
        diameter = max(np.linalg.norm(a - b) for a in keys for b in keys)
        spread = np.ptp(scores)
        m0, m1 = problem.loss.constants(scores.min(), scores.max())
        total += m0 * spread**2 * diameter**2 / 16 + m1 * spread * diameter**2 * float(THIRD)
    assert problem.smoothness == pytest.approx(total / len(problem.keys), rel=1e-13)
