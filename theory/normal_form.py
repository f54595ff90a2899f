"""The equality prover: a normal form of indexed expressions, for every size at once.

An expression becomes a sum of terms: a rational coefficient, sums over bound indices, and a product of powers
of atoms. An atom is an array entry, a scalar, Kronecker's delta, the exponential of a monomial, a function
with normal forms as arguments, or a sum that is raised to a negative or fractional power. Equal normal forms
prove equality, with denominators nonzero, roots real and free indices in range; different ones prove nothing.

Known gaps: functions other than ``exp`` and ``log`` are opaque, sums are not unrolled at numeric sizes, and
fractions with different denominators are only brought over a common one when they stand outside every sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from sympy import (
    Add,
    Derivative,
    E,
    Expr,
    KroneckerDelta,
    Mul,
    NumberSymbol,
    Pow,
    Rational,
    Sum,
    Symbol,
    exp,
    log,
    sympify,
)
from sympy.core.function import Application, AppliedUndef
from sympy.tensor.indexed import Indexed

from .algebra import TooLarge, collected, delta_of, exp_of, log_of, power_of, scaled, summed, times
from .calculus import bound_index, carried_out
from .notation import Applied, At, DerivationError, Index, Named
from .terms import ONE, Atom, Factor, Place, Term, Terms, Where, fresh


@dataclass(frozen=True)
class NormalForm:
    """A normal form; two of them are equal when their terms have the same names and coefficients."""

    coefficients: Mapping[str, Fraction]
    terms: Terms = field(compare=False, repr=False)


def proves_equal(left: Any, right: Any) -> bool:
    """Whether ``left = right`` is proved for every size.

    A `False` means "not proved", never "different".

    Raises:
        DerivationError: a side contains something that cannot be read.
    """
    try:
        first, second = normal_form(sympify(left)), normal_form(sympify(right))
        if first == second:
            return True
        return not _cleared(collected([*first.terms, *scaled(second.terms, Fraction(-1))]))
    except TooLarge:
        return bool(left == right)


@lru_cache(maxsize=1_000)
def normal_form(expression: Expr) -> NormalForm:
    """The normal form of an expression, derivatives carried out.

    Raises:
        DerivationError: something in it cannot be read.
        TooLarge: it has too many terms.
    """
    terms = _read(expression, {})
    return NormalForm({term.text({}): term.coefficient for term in terms}, terms)


def _cleared(terms: Terms) -> Terms:
    """Terms multiplied by every denominator that stands outside their sums; zero exactly if they are zero."""
    done: set[str] = set()
    while True:
        powers: dict[str, Factor] = {}
        for term in terms:
            for atom, power in term.factors:
                if (
                    atom.kind == "power"
                    and power < 0
                    and power.denominator == 1
                    and not atom.support & term.bound
                ):
                    key = atom.text({})
                    powers[key] = min(
                        powers.get(key, (atom, power)), (atom, power), key=lambda factor: factor[1]
                    )
        left = [key for key in sorted(powers) if key not in done]
        if not left:
            return terms
        key = left[0]
        done.add(key)
        atom, lowest = powers[key]
        products: list[Term] = []
        for term in terms:
            here = next((power for other, power in term.factors if other.text({}) == key), Fraction(0))
            rest = replace(term, factors=tuple(f for f in term.factors if f[0].text({}) != key))
            products += times((rest,), power_of(atom.inner[0], here - lowest))
        terms = collected(products)


# ---------------------------------------------------------------- reading


def _read(expression: Expr, scope: Mapping[Index, Place]) -> Terms:
    if isinstance(expression, Rational):
        return collected([Term(Fraction(int(expression.p), int(expression.q)))])
    if isinstance(expression, Index):
        raise DerivationError(f"the index {expression} is used as a number")
    if isinstance(expression, Symbol):
        return (_atom("scalar", expression.name, positive=bool(expression.is_positive)),)
    if isinstance(expression, Indexed):
        places = tuple(_place(index, scope, expression) for index in expression.indices)
        return (_atom("entry", str(expression.base.label), places),)
    if isinstance(expression, KroneckerDelta):
        return delta_of(*(_place(index, scope, expression) for index in expression.args[:2]))
    if isinstance(expression, Add):
        return collected(term for part in expression.args for term in _read(part, scope))
    if isinstance(expression, Mul):
        return reduce(times, (_read(part, scope) for part in expression.args), ONE)
    if isinstance(expression, Sum):
        opened = [(index, fresh(str(index.size))) for index in map(bound_index, reversed(expression.limits))]
        # Outermost first, so that of two sums over the same index the inner one has it.
        return summed(_read(expression.function, {**scope, **dict(opened)}), (place for _, place in opened))
    if isinstance(expression, Named):
        return _read(expression.definition, scope)
    if isinstance(expression, Derivative | At):
        return _read(carried_out(expression), scope)
    if isinstance(expression, exp) or expression == E:
        return exp_of(_read(expression.args[0], scope)) if expression.args else exp_of(ONE)
    if isinstance(expression, Pow):
        base = _read(expression.base, scope)
        if isinstance(expression.exp, Rational):
            return power_of(base, Fraction(int(expression.exp.p), int(expression.exp.q)))
        return exp_of(times(_read(expression.exp, scope), log_of(base)))  # x^e = exp(e log x)
    if isinstance(expression, log) and len(expression.args) == 1:
        return log_of(_read(expression.args[0], scope))
    if isinstance(expression, Applied):
        return _applied(expression, scope)
    if isinstance(expression, AppliedUndef):
        name = str(expression.func)
        raise DerivationError(f"write Unspecified({name!r}) for the unknown function {expression}")
    if isinstance(expression, Application) and all(isinstance(part, Expr) for part in expression.args):
        inner = tuple(_read(part, scope) for part in expression.args)
        return (_atom("function", str(expression.func), inner=inner),)
    if isinstance(expression, NumberSymbol):
        return (_atom("function", str(expression)),)
    raise DerivationError(f"cannot read {type(expression).__name__} ({expression})")


def _applied(expression: Applied, scope: Mapping[Index, Place]) -> Terms:
    if expression.slot is None:
        label = f"{expression.label} {int(expression.taken)}"
        return (_atom("applied", label, inner=(_read(expression.argument, scope),)),)
    slot = fresh(str(expression.slot.size))
    argument = _read(expression.argument, {**scope, expression.slot: slot})
    taken = tuple(_place(index, scope, expression) for index in expression.taken)
    return (_atom("applied", expression.label, taken, (argument,), slot),)


def _atom(
    kind: str,
    label: str = "",
    places: tuple[Where, ...] = (),
    inner: tuple[Terms, ...] = (),
    slot: Place | None = None,
    positive: bool = False,
) -> Term:
    return Term(Fraction(1), factors=((Atom(kind, label, places, inner, slot, positive), Fraction(1)),))


def _place(index: Expr, scope: Mapping[Index, Place], where: Expr) -> Where:
    if isinstance(index, Index):
        return scope.get(index, Place(index.name, str(index.size)))
    if index.is_Integer:
        return int(index)
    raise DerivationError(f"{where}: expected an Index or a number, got {index}")
