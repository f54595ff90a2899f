"""Sums, products, powers, exponentials and logarithms of terms, put in normal form as they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from .notation import DerivationError
from .terms import ONE, Atom, Factor, Place, Term, Terms, Where, fresh, group_text, groups_of, text_of

_MAX_TERMS = 5_000
"""More terms than any identity of this field has; beyond it a product is refused instead of worked out."""


class TooLarge(DerivationError):  # noqa: N818  (an outcome, not an error)
    """An expression that is too large to be multiplied out."""


def collected(terms: Iterable[Term]) -> Terms:
    """Like terms added up."""
    found: dict[str, Term] = {}
    for term in terms:
        key = term.text({})
        old = found.get(key)
        found[key] = term if old is None else replace(old, coefficient=old.coefficient + term.coefficient)
    if len(found) > _MAX_TERMS:
        raise TooLarge(f"more than {_MAX_TERMS} terms when multiplied out")
    return tuple(term for term in found.values() if term.coefficient)


def scaled(terms: Terms, factor: Fraction) -> Terms:
    return tuple(replace(term, coefficient=term.coefficient * factor) for term in terms)


def times(left: Terms, right: Terms) -> Terms:
    if len(left) * len(right) > _MAX_TERMS:
        raise TooLarge(f"more than {_MAX_TERMS} terms when multiplied out")
    return collected(
        term
        for a in left
        for b in right
        for term in _simplified(a.coefficient * b.coefficient, a.bound | b.bound, (*a.factors, *b.factors))
    )


def summed(terms: Terms, places: Iterable[Place]) -> Terms:
    extra = frozenset(places)
    return collected(s for t in terms for s in _simplified(t.coefficient, t.bound | extra, t.factors))


def _simplified(coefficient: Fraction, bound: frozenset[Place], factors: tuple[Factor, ...]) -> Terms:
    """One term put in order; a contraction or an expansion can make several of it."""
    merged: dict[str, Factor] = {}
    for atom, power in factors:
        key = atom.text({})
        merged[key] = (atom, merged[key][1] + power if key in merged else power)
    factors = tuple((a, Fraction(1) if a.kind == "delta" else p) for a, p in merged.values() if p)
    for k, (atom, power) in enumerate(factors):
        rest = (*factors[:k], *factors[k + 1 :])
        if atom.kind == "delta":
            old, new = _contraction(atom, bound)
            if old is None or (old not in bound and not any(old in other.support for other, _ in rest)):
                continue
            moved = reduce(times, (_moved(a, p, old, new) for a, p in rest), ONE)
            if old not in bound:  # δ_ab f(b) = δ_ab f(a): the delta stays
                moved = times(moved, (Term(Fraction(1), factors=((atom, power),)),))
            return summed(scaled(moved, coefficient), bound - {old})
        if atom.kind == "number" and power.denominator == 1:
            return _simplified(coefficient * Fraction(atom.label) ** int(power), bound, rest)
        if atom.kind == "power" and (
            power > 1 or (power.denominator == 1 and not (power < 0 and atom.primitive))
        ):
            whole = int(power)  # rounds towards zero
            left = ((atom, power - whole),) if power != whole else ()
            opened = power_of(atom.inner[0], Fraction(whole))
            return summed(times(opened, (Term(coefficient, frozenset(), (*rest, *left)),)), bound)
        if atom.kind == "power" and power < 0:
            found = _cancelled(atom, bound, rest)
            if found is not None:
                return _simplified(coefficient, found[0], (*found[1], (atom, power + 1)))
            divided = _divided(atom, power, rest)
            if divided is not None:
                return collected(
                    term for c, parts in divided for term in _simplified(coefficient * c, bound, parts)
                )
    used = frozenset().union(*(atom.support for atom, _ in factors))
    idle = sorted(bound - used)
    if not idle:
        return (Term(coefficient, bound, factors),)
    sizes = [_size(place.size) for place in idle]
    return times((Term(coefficient, bound & used, factors),), reduce(times, sizes, ONE))


def _size(size: str) -> Terms:
    if size.isdigit():
        return (Term(Fraction(size)),)
    return (Term(Fraction(1), factors=((Atom("scalar", size, positive=True), Fraction(1)),)),)


def _contraction(atom: Atom, bound: frozenset[Place]) -> tuple[Place | None, Where]:
    """Which index a delta replaces, and by what; (None, 0) where that would not be sound."""
    left, right = atom.places
    if isinstance(left, Place) and isinstance(right, Place):
        if left.size != right.size:
            return None, 0
        small, large = min(left, right), max(left, right)
        return (small, large) if small in bound and large not in bound else (large, small)
    place, number = (left, right) if isinstance(left, Place) else (right, left)
    assert isinstance(place, Place)
    assert isinstance(number, int)
    inside = number == 1 or (place.size.isdigit() and number <= int(place.size))
    return (place, number) if inside and place in bound else (None, 0)


def _cancelled(
    atom: Atom, bound: frozenset[Place], rest: tuple[Factor, ...]
) -> tuple[frozenset[Place], tuple[Factor, ...]] | None:
    """``Σ_b F(b) · (Σ_b F(b))^{-k}``: what is left without the first sum, if it is there."""
    key = text_of(atom.inner[0], {})
    free, groups = groups_of(bound - atom.support, rest)
    for k, group in enumerate(groups):
        if f"1*{group_text(group, {})}" == key:
            others = [factor for other in (*groups[:k], *groups[k + 1 :]) for factor in other[1]]
            return bound - set(group[0]), (*free, *others)
    return None


def _divided(
    atom: Atom, power: Fraction, rest: tuple[Factor, ...]
) -> list[tuple[Fraction, tuple[Factor, ...]]] | None:
    """``M P^{-k}``, with ``M`` the leading monomial of ``P``, as ``P^{1-k}`` less the other monomials."""
    base = atom.inner[0]
    if power.denominator != 1 or len(base) < 2 or any(term.bound for term in base):
        return None
    names = sorted({a.text({}) for term in base for a, _ in term.factors})

    def order(term: Term) -> tuple[Fraction, list[Fraction]]:
        powers = {a.text({}): p for a, p in term.factors}
        return sum(powers.values(), Fraction(0)), [powers.get(name, Fraction(0)) for name in names]

    lead = max(base, key=order)
    here = {a.text({}): p for a, p in rest}
    if any(here.get(a.text({}), Fraction(0)) < p for a, p in lead.factors):
        return None
    taken = (*rest, *((a, -p) for a, p in lead.factors))
    others = [
        (-term.coefficient / lead.coefficient, (*taken, *term.factors, (atom, power)))
        for term in base
        if term is not lead
    ]
    return [(1 / lead.coefficient, (*taken, (atom, power + 1))), *others]


def _moved(atom: Atom, power: Fraction, old: Place, new: Where) -> Terms:
    """A power of an atom with one index written as another."""
    if old not in atom.support:
        return (Term(Fraction(1), factors=((atom, power),)),)
    places = tuple(new if place == old else place for place in atom.places)
    if atom.kind == "delta":
        return delta_of(places[0], places[1])
    inner = tuple(renamed(terms, {old: new}) for terms in atom.inner)
    if atom.kind == "exp":
        return exp_of(scaled(inner[0], power))
    if atom.kind == "power":
        return power_of(inner[0], power)
    if atom.kind == "function" and atom.label == "log" and power == 1:
        return log_of(inner[0])
    return (Term(Fraction(1), factors=((replace(atom, places=places, inner=inner), power),)),)


def renamed(terms: Terms, names: Mapping[Place, Where]) -> Terms:
    """Terms with indices renamed, and every bound index made fresh."""
    result: list[Term] = []
    for term in terms:
        own = {place: fresh(place.size) for place in term.bound}
        factors: Terms = (Term(term.coefficient, factors=term.factors),)
        for old, new in {**names, **own}.items():
            factors = collected(
                t
                for f in factors
                for t in scaled(
                    reduce(times, (_moved(a, p, old, new) for a, p in f.factors), ONE), f.coefficient
                )
            )
        result += summed(factors, own.values())
    return collected(result)


def delta_of(left: Where, right: Where) -> Terms:
    if left == right:
        return ONE
    if isinstance(left, int) and isinstance(right, int):
        return ()
    return (Term(Fraction(1), factors=((Atom("delta", places=(left, right)), Fraction(1)),)),)


# ---------------------------------------------------------------- powers, exponentials, logarithms


def power_of(base: Terms, power: Fraction) -> Terms:
    if not base:
        if power < 0:
            raise DerivationError("division by zero")
        return ()
    if power.denominator == 1 and power >= 0:
        if len(base) ** int(power) > _MAX_TERMS:
            raise TooLarge(f"more than {_MAX_TERMS} terms when multiplied out")
        return reduce(times, (renamed(base, {}) for _ in range(int(power))), ONE)
    whole = power.denominator == 1
    content, shared = _content(base, whole)
    out: list[Factor] = [(atom, share * power) for atom, share in shared]
    rest = times(base, (Term(1 / content, factors=tuple((a, -s) for a, s in shared)),))
    if not whole and content != 1:
        out.append((Atom("number", str(content)), power))
        content = Fraction(1)
    parts = [rest]
    if len(rest) == 1 and whole:
        free, groups = groups_of(rest[0].bound, rest[0].factors)
        parts = [(Term(Fraction(1), frozenset(b), f),) for b, f in groups]
        parts += [(Term(Fraction(1), factors=tuple(free)),)] if free else []
    out += [
        (Atom("power", inner=(part,), primitive=whole), power) for part in parts if text_of(part, {}) != "1*"
    ]
    return _simplified(content ** int(power) if whole else Fraction(1), frozenset(), tuple(out))


def _content(base: Terms, whole: bool) -> tuple[Fraction, list[Factor]]:
    """A number and powers of atoms that divide every term, fit to be taken out of a power.

    Of a fractional power only positive ones are.
    """
    top = reduce(gcd, (term.coefficient.numerator for term in base))
    content = Fraction(top, reduce(lcm, (term.coefficient.denominator for term in base)))
    if whole and _sign(base) < 0:
        content = -content
    powers = [
        {atom.text({}): power for atom, power in term.factors if not atom.support & term.bound}
        for term in base
    ]
    atoms = {atom.text({}): atom for term in base for atom, _ in term.factors}
    shared: list[Factor] = []
    for key, atom in atoms.items():
        # A factor missing from a term is there with power 0: 1 + 1/x is (x + 1)/x.
        least = min(here.get(key, Fraction(0)) for here in powers)
        if least and atom.kind != "delta" and (whole or atom.positive):
            shared.append((atom, least))
    return content, shared


def _sign(base: Terms) -> int:
    """The sign of the first term that can be told apart without the names of bound indices."""
    totals: dict[str, Fraction] = {}
    for term in base:
        hidden = {place: "*" for place in term.support if place.serial >= 0}
        key = term.text(hidden)
        totals[key] = totals.get(key, Fraction(0)) + term.coefficient
    return next((1 if totals[key] > 0 else -1 for key in sorted(totals) if totals[key]), 1)


def exp_of(exponent: Terms) -> Terms:
    """``exp(Σ c M) = Π exp(M)^c``, where ``exp(log(x))^c`` is ``x^c``."""
    result, factors = ONE, []
    for term in exponent:
        (atom, power), *others = term.factors or ((None, Fraction(0)),)
        if atom is not None and not others and power == 1 and (atom.kind, atom.label) == ("function", "log"):
            result = times(result, power_of(atom.inner[0], term.coefficient))
        else:
            monomial = replace(term, coefficient=Fraction(1))
            factors.append((Atom("exp", inner=((monomial,),), positive=True), term.coefficient))
    return times(result, _simplified(Fraction(1), frozenset(), tuple(factors)))


def log_of(argument: Terms) -> Terms:
    """A logarithm, with positive factors of its argument taken out."""
    if not argument:
        raise DerivationError("logarithm of zero")
    factors = _content(argument, False)[1]
    rest = times(argument, (Term(Fraction(1), factors=tuple((a, -p) for a, p in factors)),))
    outside: list[Term] = []
    for atom, power in factors:
        single = (Term(Fraction(1), factors=((atom, Fraction(1)),)),)
        logarithm = renamed(atom.inner[0], {}) if atom.kind == "exp" else _opaque_log(single)
        outside += scaled(logarithm, power)
    if text_of(rest, {}) != "1*":
        outside += _opaque_log(rest)
    return collected(outside)


def _opaque_log(argument: Terms) -> Terms:
    return (Term(Fraction(1), factors=((Atom("function", "log", inner=(argument,)), Fraction(1)),)),)
