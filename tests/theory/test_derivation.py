from __future__ import annotations

import pytest
from sympy import IndexedBase, Matrix, MatrixSymbol, Rational, Symbol, sin

from theory import (
    Derivation,
    DerivationError,
    Index,
    Unspecified,
    array,
    delta,
    mean,
    partial,
    scalar,
    softmax,
    total,
)
from theory.notation import T, d, n

i, t, tau, kappa, a = Index("i", n), Index("t", T), Index("tau", T), Index("kappa", T), Index("a", d)
x, z, X = array("x", T), array("z", T), array("X", n, T)
r = scalar("r")
ell = Unspecified("ell")


def weight(index):
    return softmax(lambda token: z[token], index)


def jacobian():
    return Derivation("jacobian", start=partial(weight(t), z[tau]))


RIGHT = weight(t) * (delta(t, tau) - weight(tau))


def test_a_right_derivation():
    report = jacobian().step(RIGHT, because="quotient rule").check()
    assert (report.status, report.sizes, report.wrong_step) == ("proved", "all T", None)
    (step,) = report.steps
    assert (step.index, step.status, step.tier, step.because) == (1, "proved", "normal form", "quotient rule")


def test_the_wrong_step_is_found_and_the_next_is_judged_on_its_own():
    wrong = weight(t) * delta(t, tau)
    chain = (
        jacobian()
        .step(RIGHT, because="right")
        .step(wrong, because="wrong")
        .step(2 * wrong / 2, because="same")
    )
    report = chain.check()
    assert [step.status for step in report.steps] == ["proved", "refuted", "proved"]
    assert report.status == "refuted"
    assert report.wrong_step.index == 2
    assert report.wrong_step.because == "wrong"
    assert report.wrong_step.source_file == __file__
    assert "before" in report.wrong_step.witness.text


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (-RIGHT, "sign"),
        (delta(t, tau) * weight(t), "diag(s)"),
        (weight(t) * (delta(t, tau) - weight(t)), "index"),
        (weight(tau) * delta(t, tau) - weight(t) * softmax(lambda token: z[token], 1), "s_1 for s_t"),
        (RIGHT / T, "mean for sum"),
    ],
)
def test_slips_are_refuted_at_the_smallest_size(wrong, why):
    report = jacobian().step(wrong, because=why).check()
    assert report.status == "refuted"
    assert report.wrong_step.witness.sizes == {"T": 2}


def test_the_sizes_of_a_supported_derivation_are_those_it_was_checked_at():
    gap = Derivation("gap", start=total(z[t] / (x[t] * (x[t] + z[t])), t))
    gap.step(total(1 / x[t] - 1 / (x[t] + z[t]), t), because="partial fractions")
    assert (gap.check().status, gap.check().sizes) == ("supported", "T = 3")


def test_a_derivation_without_sizes():
    report = Derivation("plain", start=(r + 1) ** 2).step(r**2 + 2 * r + 1, because="multiply out").check()
    assert (report.status, report.sizes) == ("proved", "scalars")


def test_too_large_for_the_prover_is_not_too_large_for_the_checks():
    many = sum(Symbol(f"s{k}", real=True) for k in range(8))
    report = Derivation("large", start=many**5).step(many**5, because="nothing").check()
    assert report.status == "proved"
    report = Derivation("large", start=many**5 + r).step(many**5 + sin(r), because="wrong").check()
    assert report.status == "refuted"


def test_the_first_step_is_the_start_if_there_is_none():
    chain = (
        Derivation("late").step(total(x[t], t), because="start").step(total(x[tau], tau), because="rename")
    )
    assert chain.start == total(x[t], t)
    assert len(chain.check().steps) == 1


def test_nonnegative():
    chain = Derivation("variance", start=total(weight(t) * (x[t] - r) ** 2, t))
    report = chain.nonnegative(because="weights times squares").check()
    assert report.status == "proved"
    assert report.steps[0].nonnegative
    assert report.steps[0].tier == "sign certificate"
    wrong = Derivation("linear", start=total(x[t], t)).nonnegative(because="hope").check()
    assert wrong.wrong_step.witness.left.startswith("-")


def test_adding_a_step_forgets_the_report():
    chain = jacobian().step(RIGHT, because="right")
    assert chain.check().status == "proved"
    assert chain.step(2 * RIGHT, because="wrong").check().status == "refuted"


def test_the_same_seed_gives_the_same_report():
    def report(seed):
        return jacobian().step(delta(t, tau) * weight(t), because="slip").check(seed)

    assert report(5) == report(5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Derivation(""), "a derivation needs a name, got ''"),
        (lambda: jacobian().check(), "jacobian: nothing to check, add a step"),
        (
            lambda: jacobian().step(RIGHT, because=" "),
            "jacobian: step 1: say because of what the step holds, got ' '",
        ),
        (lambda: Derivation("empty").nonnegative("x"), "empty: nothing to be nonnegative, give a start"),
        (lambda: jacobian().step("z", "text"), "jacobian: step 1: expected a SymPy expression, got str"),
        (
            lambda: jacobian().step(None, "none"),
            "jacobian: step 1: expected a SymPy expression, got NoneType",
        ),
        (
            lambda: jacobian().step(Matrix([1, 2]), "matrix"),
            "jacobian: step 1: expected a scalar (write matrices entry by entry), got MutableDenseMatrix",
        ),
        (
            lambda: jacobian().step(MatrixSymbol("W", 2, 2), "matrix"),
            "jacobian: step 1: expected a scalar (write matrices entry by entry), got MatrixSymbol",
        ),
        (
            lambda: jacobian().step(0.5 * RIGHT, "half"),
            "jacobian: step 1: write Rational(...) for the floating-point number 0.500000000000000",
        ),
        (
            lambda: jacobian().step(x[kappa], "stray"),
            "jacobian: step 1: free index kappa does not occur in the start (free there: t, tau)",
        ),
        (
            lambda: Derivation("axes", start=x[a]),
            "axes: start: x[a]: index a runs to d, axis 1 of x to T",
        ),
        (
            lambda: Derivation("axes", start=X[t, i]),
            "axes: start: X[t, i]: index t runs to T, axis 1 of X to n",
        ),
        (
            lambda: Derivation("undeclared", start=IndexedBase("w")[t]),
            "undeclared: start: declare w with array(name, *shape)",
        ),
        (
            lambda: Derivation("symbol", start=x[Symbol("k")]),
            "symbol: start: x[k]: expected an Index or a number, got k",
        ),
        (
            lambda: Derivation("number", start=t * x[t]),
            "number: start: the index t is used as a number",
        ),
        (
            lambda: Derivation("pole", start=x[t] / (total(x[t], t) - total(x[tau], tau))),
            "pole: start: division by zero",
        ),
    ],
)
def test_mistakes_are_one_line(make, message):
    with pytest.raises(DerivationError) as caught:
        make()
    assert str(caught.value) == message


def test_no_point_with_a_value():
    from sympy import asin

    chain = Derivation("nowhere", start=asin(3 + r**2)).step(asin(4 + r**2), because="x")
    with pytest.raises(DerivationError, match="nowhere: step 1: no point found"):
        chain.check()


def test_rationals_and_integers_are_read():
    report = Derivation("half", start=mean(x[t], t) * Rational(1, 2)).step(
        total(x[t], t) / (2 * T), because="definition"
    )
    assert report.check().status == "proved"
