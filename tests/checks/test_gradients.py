"""A claimed gradient against code."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import CORRELATION, EXPONENTIAL, LOGISTIC, SelectionProblem
from checks import strategies as attst
from checks.derivatives import Scalar, derivatives, finite_difference, risk_gradient
from checks.gradients import attention_slips, check_gradient

KEYS = [[[1, 0], [0, 1], [-1, -1]], [[1, 2], [0.5, 1], [-1, 0]], [[0, 1], [2, 0], [1, -1]]]
SCORES = [[1, 0.5, 0], [0, 1, 0.25], [-0.5, 0.25, 1]]
QUERY = np.array([math.log(2), math.log(3)])
PROBLEM = SelectionProblem(KEYS, SCORES)

WEIGHT = np.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.6], [0.7, 0.2, 0.9]])


def tail(x):
    """log(1 + e^{-x}) for real and complex arrays."""
    return np.log1p(np.exp(-x))


def real_tail(x):
    """log(1 + e^{-x}) that takes no complex numbers, and keeps every digit."""
    return float(np.logaddexp(0, -x))


def coarse_tail(x):
    """log(1 + e^{-x}) that takes no complex numbers, and loses digits from 1 + e^{-x} on."""
    return math.log(1 + math.exp(-x))


def slope(x):
    return -1 / (1 + np.exp(x))


def bilinear(W):
    return np.exp((WEIGHT * W).sum()) + (W @ W @ WEIGHT).trace()


def bilinear_gradient(W):
    return np.exp((WEIGHT * W).sum()) * WEIGHT + (W @ WEIGHT).T + (WEIGHT @ W).T


# ---------------------------------------------------------------- small derivatives are derivatives


@pytest.mark.parametrize("f", [tail, real_tail, coarse_tail])
def test_a_claimed_zero_far_out_is_wrong(f):
    """S7: the derivative of log(1 + e^{-x}) at 30 is −9.3576e-14."""
    report = check_gradient(f, 0, at=30)
    assert report.outcome == "wrong"
    assert report.slips == ("0 where the derivative is not 0",)
    assert report.off[0].derivative == pytest.approx(-9.3576e-14, rel=0.01)


@pytest.mark.parametrize("f", [tail, real_tail])
@pytest.mark.parametrize("x", [-40.0, -1.0, 0.0, 3.0, 30.0, 50.0, 300.0])
def test_the_right_slope_is_right_however_small(f, x):
    assert check_gradient(f, slope, at=x).ok
    assert check_gradient(f, 1.001 * slope(x), at=x).outcome == "wrong"


def test_a_zero_beside_large_entries_is_wrong():
    report = check_gradient(lambda x: 1e3 * x[0] + tail(x[1]), [1e3, 0], at=[1.0, 30.0])
    assert [entry.index for entry in report.off] == [(1,)]


@pytest.mark.parametrize(("x", "said"), [(40.0, "differences do not settle it"), (500.0, "does not change")])
def test_what_rounding_hides_is_undecided_and_never_right(x, said):
    for claim in (0.0, slope(x)):
        report = check_gradient(coarse_tail, claim, at=x)
        assert report.outcome == "undecided"
        assert not report
        assert said in str(report)
    assert check_gradient(coarse_tail, 1.0, at=x).outcome == "wrong"


@pytest.mark.parametrize("gap", [30, 40, 100, 600])
def test_saturated_attention(gap):
    """N1: textbook softmax gradients are 0 from a gap of 37 on."""
    problem = SelectionProblem([[[0, 0], [1, 1]]], [[0, 1]], CORRELATION)
    point = np.array([gap / 2, gap / 2])
    true = -math.exp(-gap) / (1 + math.exp(-gap)) ** 2
    assert check_gradient(problem.risk, [true, true], at=point).ok
    assert check_gradient(problem.risk, problem.gradient, at=point).ok
    report = check_gradient(problem.risk, [0, 0], at=point)
    assert report.slips == ("0 where the derivative is not 0",)


def test_exact_gradient():
    """S5: (141, −78)/961."""
    problem = SelectionProblem([KEYS[0]], [SCORES[0]], CORRELATION)
    assert check_gradient(problem.risk, np.array([-141, 78]) / 961, at=QUERY).ok
    assert check_gradient(problem.risk, np.array([-141, 77]) / 961, at=QUERY).off[0].index == (1,)


@pytest.mark.parametrize("power", [1.1, 1.5, 2, 3])
def test_power_of_an_absolute_value_at_zero(power):
    """S6."""
    assert check_gradient(lambda w: np.abs(w) ** power / power, 0, at=0).ok


def test_entries_that_cancel_are_zero_up_to_rounding():
    def f(x):
        return (x[0] - 0.1) ** 2 * 10 + x[1]

    assert check_gradient(f, [1e-16, 1], at=[0.1, 2.0]).ok
    flat = SelectionProblem([[[0, 0], [1, 1]], [[0, 0], [1, -1]]], [[0, 1], [0, 1]])
    assert check_gradient(flat.risk, flat.gradient, at=[0, 0]).ok
    equal = SelectionProblem([KEYS[0]], [[1, 1, 1]])
    assert check_gradient(equal.risk, [0, 0], at=QUERY).ok
    assert not check_gradient(equal.risk, [0, 1e-9], at=QUERY).ok


# ---------------------------------------------------------------- matrices


def test_a_matrix_and_the_slips_of_matrices():
    point = WEIGHT.T + 0.25
    assert check_gradient(bilinear, bilinear_gradient, at=point).ok
    for claimed, names in {
        "transpose": (bilinear_gradient(point).T, ("the transpose",)),
        "sign": (-bilinear_gradient(point), ("the opposite sign",)),
        "both": (-bilinear_gradient(point).T, ("the transpose and the opposite sign",)),
        "half": (
            bilinear_gradient(point) / 2,
            ("a factor of 1/2 too many, such as 1/n for n = 2",),
        ),
        "sum for mean": (
            7 * bilinear_gradient(point),
            ("a factor of 7 too many: a lost 1/7, such as 1/n for n = 7",),
        ),
        "temperature": (
            bilinear_gradient(point) * math.sqrt(3),
            ("a factor of √3 too many: a lost 1/√3, such as 1/√d for d = 3",),
        ),
        "logarithm": (
            bilinear_gradient(point) / math.log(2),
            ("a factor of 1/ln 2: another base of the logarithm",),
        ),
        "any": (bilinear_gradient(point) * 0.7312, ("a factor of 0.7312 in every entry",)),
    }.values():
        report = check_gradient(bilinear, claimed, at=point)
        assert report.outcome == "wrong"
        assert report.slips == names


def test_the_general_purpose_zero_of_a_matrix_derivative():
    """S1: d/dW of e^{aᵀWb} is e^{aᵀWb} a bᵀ, for which tools return 0."""
    a, b = np.array([1.0, -0.5, 2.0]), np.array([0.5, 1.0, -1.0])

    def f(W):
        return np.exp(a @ W @ b)

    point = WEIGHT / 2
    assert check_gradient(f, f(point) * np.outer(a, b), at=point).ok
    report = check_gradient(f, np.zeros((3, 3)), at=point)
    assert len(report.off) == 9
    assert report.slips == ("0 where the derivative is not 0",)


def test_one_wrong_entry_is_named_and_nothing_else():
    point = WEIGHT.T + 0.25
    claimed = bilinear_gradient(point)
    claimed[1, 2] += 0.125
    report = check_gradient(bilinear, claimed, at=point)
    assert report.slips == ()
    (entry,) = report.off
    assert entry.index == (1, 2)
    assert entry.claimed - entry.derivative == pytest.approx(0.125)
    assert str(report).startswith("wrong: 1 of 9 entries is wrong (complex step). Entry [1, 2]: claimed ")


def test_with_one_entry_any_factor_would_do_so_none_is_named():
    assert check_gradient(np.sin, 0.7312, at=0.0).slips == ()
    assert check_gradient(np.sin, 2.0, at=0.0).slips != ()


# ---------------------------------------------------------------- slips of attention


@pytest.mark.parametrize("name", attention_slips(PROBLEM))
def test_every_known_slip_of_attention_is_recognised(name):
    slips = attention_slips(PROBLEM)
    report = check_gradient(PROBLEM.risk, slips[name](QUERY), at=QUERY, slips=slips)
    assert report.outcome == "wrong"
    assert name in report.slips
    assert len(report.slips) <= 2, "a lost 1/n is a factor of n too"
    assert name in str(report)


def test_a_known_slip_and_a_factor():
    slips = attention_slips(PROBLEM)
    report = check_gradient(
        PROBLEM.risk, -3 * slips["diag(s) for diag(s) − s sᵀ"](QUERY), at=QUERY, slips=slips
    )
    (name,) = report.slips
    assert name.startswith("diag(s) for diag(s) − s sᵀ and the opposite sign and a factor of 3 too many")


def test_a_right_gradient_has_no_slip_and_no_slip_is_right_where_it_changes_nothing():
    slips = attention_slips(PROBLEM)
    assert check_gradient(PROBLEM.risk, PROBLEM.gradient, at=QUERY, slips=slips).slips == ()
    one = SelectionProblem([KEYS[0]], [SCORES[0]])
    lost = attention_slips(one)["the factor 1/n left out"]
    assert check_gradient(one.risk, lost, at=QUERY, slips=attention_slips(one)).ok


@given(problem=attst.selection_problems(n=(1, 3), tokens=(2, 4)), data=st.data())
def test_the_gradient_of_this_package_is_right_by_differences_at_many_digits(problem, data):
    p = data.draw(attst.starts(problem))
    report = check_gradient(problem.risk, problem.gradient, at=p)
    assert report.ok, report
    assert report.method == "many digits"


@pytest.mark.parametrize("loss", [LOGISTIC, EXPONENTIAL, CORRELATION])
def test_many_digits_agree_with_differences(loss):
    problem = SelectionProblem(KEYS, SCORES, loss)
    known, method = derivatives(Scalar(lambda p: problem.risk(p), QUERY))  # Not recognised as a risk.
    assert method == "finite differences"
    for value, derivative in zip(risk_gradient(problem, QUERY), known, strict=True):
        assert abs(value - derivative.value) <= derivative.error + derivative.rounding


# ---------------------------------------------------------------- functions of all kinds


@pytest.mark.parametrize(
    ("f", "x", "true"),
    [
        (lambda x: np.linalg.norm(x) * x[0], [1.0, 2.0], [6 / math.sqrt(5), 2 / math.sqrt(5)]),
        (lambda x: abs(x[0]) * x[1], [-1.5, 2.0], [-2.0, 1.5]),
        (lambda x: (x * np.conj(x)).sum(), [1.0, 2.0], [2.0, 4.0]),
    ],
)
def test_code_that_takes_complex_arrays_without_being_analytic(f, x, true):
    report = check_gradient(f, true, at=x)
    assert report.ok, report
    assert report.method.startswith("finite differences")
    assert not check_gradient(f, -np.array(true), at=x)


def test_a_kink_is_undecided():
    report = check_gradient(lambda x: abs(x), 0, at=0)
    assert report.outcome == "undecided"
    assert "f has a kink: its slope is -1 on one side and 1 on the other" in str(report)


def test_a_kink_nearby_does_no_harm():
    assert check_gradient(lambda x: max(float(x), 0.0) ** 2, 0.02, at=0.01).ok


def test_the_edge_of_the_domain():
    assert check_gradient(lambda x: math.sqrt(x), 0.5 / math.sqrt(1e-3), at=1e-3).ok
    report = check_gradient(lambda x: math.sqrt(x), 0.0, at=0.0)
    assert "f has no value on one side of the point" in str(report)


def test_entries_on_which_f_does_not_depend():
    assert check_gradient(lambda x: math.sin(x[0]), [math.cos(1), 0], at=[1.0, 2.0]).ok
    assert check_gradient(lambda x: math.sin(x[0]), [math.cos(1), 1e-9], at=[1.0, 2.0]).off


def test_f_may_change_its_argument():
    def f(x):
        x *= x
        return x.sum()

    at = np.array([1.0, 2.0])
    assert check_gradient(f, [2, 4], at=at).ok
    assert at.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("f", "derivative"),
    [
        (lambda x: math.exp(x), lambda x: math.exp(x)),
        (lambda x: math.sin(3 * x), lambda x: 3 * math.cos(3 * x)),
        (lambda x: 1 / (1 + 25 * x * x), lambda x: -50 * x / (1 + 25 * x * x) ** 2),
        (coarse_tail, slope),
        (lambda x: (1 + x) ** 5 - 1 - 5 * x, lambda x: 5 * ((1 + x) ** 4 - 1)),
        (lambda x: math.sin(100 * x), lambda x: 100 * math.cos(100 * x)),
    ],
)
def test_error_estimates_of_differences_hold(f, derivative):
    for x in np.random.default_rng(0).normal(scale=4, size=200).tolist():
        function = Scalar(f, np.array(x))
        found = finite_difference(function.along(0), x, function.value, abs(x))
        room = found.error + found.rounding + 1e-13 * abs(derivative(x))
        assert abs(found.value - derivative(x)) <= room


# ---------------------------------------------------------------- reports and bad arguments


def test_what_a_report_says():
    report = check_gradient(lambda x: (x**2).sum(), lambda x: -2 * x, at=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert re.sub(r" ± \d\.\de-1\d", "", str(report)) == (
        "wrong: 5 of 5 entries are wrong (complex step). The claim is what one gets with the opposite sign. "
        "Entry [0]: claimed -2, derivative 2. Entry [1]: claimed -4, derivative 4. "
        "Entry [2]: claimed -6, derivative 6. Entry [3]: claimed -8, derivative 8. And 1 more."
    )
    right = check_gradient(lambda x: (x**2).sum(), lambda x: 2 * x, at=[1.0, 2.0])
    assert (
        str(right) == "right: all 2 entries agree with the derivative (complex step) within a relative 1e-06."
    )
    with pytest.raises(AssertionError):
        assert report.ok, report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.sum, [1, 1], [1, math.nan]), r"at\[1\]: got nan, expected a finite number"),
        ((np.sum, [1, 1], []), r"at: got shape \(0,\), expected no axis of length 0"),
        ((np.sum, [1, 1], ["a"]), r"at: got entries of type <U1, expected an array of reals"),
        ((np.sum, [[1, 1]], [1, 1]), r"grad: got shape \(1, 2\), expected that of at, \(2,\)$"),
        (
            (np.sum, np.ones((3, 2)), np.ones((2, 3))),
            r"grad: got shape \(3, 2\), expected that of at, \(2, 3\), of which it is the transpose",
        ),
        ((np.sum, [1, math.inf], [1, 1]), r"grad\[1\]: got inf, expected a finite number"),
        ((np.sum, lambda x: math.nan, 1.0), r"^grad: got nan, expected a finite number"),
        ((np.sum, [[1], [1, 2]], [1, 1]), r"grad: got ragged nested lists"),
        ((np.sin, [1, 1], [1, 1]), r"f: got an array of shape \(2,\) at the point, expected one number"),
        ((lambda x: 1j, [1, 1], [1, 1]), r"f: got 1j at the point, expected a real number"),
        ((lambda x: math.nan, [1, 1], [1, 1]), r"f: got nan at the point, expected a finite number"),
        ((lambda x: None, [1, 1], [1, 1]), r"f: got None at the point, expected a real number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_gradient(*arguments)
    assert "\n" not in str(caught.value)


def test_bad_slips_and_tolerances_are_named():
    with pytest.raises(ValueError, match=r"slips\['mine'\]: got shape \(3,\), expected that of at, \(2,\)"):
        check_gradient(np.sum, [1, 1], at=[1, 1], slips={"mine": [1, 2, 3]})
    with pytest.raises(ValueError, match="rtol: got 0, expected a positive finite number"):
        check_gradient(np.sum, [1, 1], at=[1, 1], rtol=0)


def test_the_notes_show_what_is_printed(capsys):
    page = (Path(__file__).parents[2] / "notes" / "reviewing-a-derivation.md").read_text(encoding="utf-8")
    code, shown = re.search(
        r"<!-- gradient -->\n```python\n(.*?)```\n\n```text\n(.*?)```", page, re.S
    ).groups()
    exec(code, {})
    printed = capsys.readouterr().out
    error = r" ± \d\.\de-\d\d"  # An estimate, which another processor may round differently.
    assert re.sub(error, "", printed) == re.sub(error, "", shown)
