from __future__ import annotations

from fractions import Fraction

import pytest

from theory.algebra import TooLarge, collected, delta_of, exp_of, log_of, power_of, renamed, summed, times
from theory.notation import DerivationError
from theory.terms import ONE, Atom, Place, Term, fresh, text_of

T_ = Place("t", "T")
MINUS = Fraction(-1)
TAU = Place("tau", "T")


def entry(name, *places, power=1, coefficient=1):
    atom = Atom("entry", name, places)
    return (Term(Fraction(coefficient), factors=((atom, Fraction(power)),)),)


def same(left, right):
    return text_of(left, {}) == text_of(right, {})


def test_like_terms_are_added_and_zeros_dropped():
    assert collected([*entry("x", T_), *entry("x", T_, coefficient=-1)]) == ()
    (term,) = collected([*entry("x", T_), *entry("x", T_)])
    assert term.coefficient == 2


def test_a_sum_over_an_idle_index_is_a_factor_of_its_size():
    k, three = fresh("T"), fresh("3")
    assert same(summed(entry("x", T_), [three]), entry("x", T_, coefficient=3))
    (term,) = summed(entry("x", T_), [k])
    assert {atom.label for atom, _ in term.factors} == {"x", "T"}


def test_a_delta_replaces_the_bound_index():
    k = fresh("T")
    assert same(summed(times(delta_of(k, T_), entry("x", k)), [k]), entry("x", T_))
    wide = fresh("n")
    kept = summed(times(delta_of(wide, T_), entry("x", wide)), [wide])
    assert {atom.kind for term in kept for atom, _ in term.factors} == {"delta", "entry"}
    assert delta_of(1, 2) == ()
    assert delta_of(T_, T_) == ONE


def test_a_power_gets_fresh_sums():
    k = fresh("T")
    total = summed(entry("x", k), [k])
    (square,) = power_of(total, Fraction(2))
    assert len(square.bound) == 2
    assert not square.bound & {k}


def test_negative_powers_split_and_cancel():
    k, m = fresh("T"), fresh("T")
    product = times(summed(entry("x", k), [k]), summed(entry("y", m), [m]))
    inverse = power_of(product, Fraction(-1))
    assert [atom.kind for atom, _ in inverse[0].factors] == ["power", "power"]
    assert same(times(renamed(product, {}), inverse), ONE)
    assert same(times(renamed(product, {}), power_of(product, Fraction(-3))), power_of(product, Fraction(-2)))


def test_roots_keep_what_may_be_negative():
    scalar = (Term(Fraction(4), factors=((Atom("scalar", "r"), Fraction(2)),)),)
    (root,) = power_of(scalar, Fraction(1, 2))
    assert {atom.kind for atom, _ in root.factors} == {"number", "power"}
    assert same(times((root,), (root,)), scalar)


def test_exponentials_of_sums_are_products():
    both = exp_of(collected([*entry("x", T_), *entry("y", T_, coefficient=-2)]))
    assert same(both, times(exp_of(entry("y", T_, coefficient=-2)), exp_of(entry("x", T_))))
    assert same(times(both, exp_of(entry("y", T_, coefficient=2))), exp_of(entry("x", T_)))
    assert same(log_of(both), collected([*entry("x", T_), *entry("y", T_, coefficient=-2)]))


def test_renaming_reaches_into_exponents_and_denominators():
    k = fresh("T")
    weight = times(exp_of(entry("z", T_)), power_of(summed(exp_of(entry("z", k)), [k]), Fraction(-1)))
    moved = renamed(weight, {T_: TAU})
    assert same(times(moved, renamed(summed(exp_of(entry("z", k)), [k]), {})), exp_of(entry("z", TAU)))


def test_contracting_inside_a_denominator():
    k, m = fresh("T"), fresh("T")
    ratio = times(entry("x", k), power_of(collected([*entry("x", k), *entry("y", m)]), Fraction(-1)))
    merged = summed(times(ratio, delta_of(k, m)), [k])
    assert same(
        summed(merged, [m]),
        summed(
            times(entry("x", m), power_of(collected([*entry("x", m), *entry("y", m)]), Fraction(-1))), [m]
        ),
    )


def test_refusals():
    with pytest.raises(DerivationError, match="division by zero"):
        power_of((), Fraction(-1))
    with pytest.raises(DerivationError, match="logarithm of zero"):
        log_of(())
    assert power_of((), Fraction(1, 2)) == ()
    many = collected([term for k in range(1, 9) for term in entry("x", k)])
    with pytest.raises(TooLarge):
        power_of(many, Fraction(5))
