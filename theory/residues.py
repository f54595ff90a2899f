"""Exact evaluation at explicit sizes, modulo a large prime: identities of rational functions.

Entries get random residues, exponentials of distinct monomials are independent unknowns with random values of
their own, and derivatives are read off infinitesimals with ``ε² = 0``. Agreement is an identity of rational
functions in the entries and the exponentials, up to the odds given at `PRIME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from typing import Any

from sympy import Add, Expr, Integer, KroneckerDelta, Mul, Pow, Rational, Sum, Symbol, cancel, exp
from sympy.tensor.indexed import Indexed

from .evaluation import Cell, Evaluator, Scope, Undecided
from .notation import Named

PRIME = 2**127 - 1
"""Modulus of `Formal`. Two different rational functions of total degree D agree at a random point with
probability at most D / PRIME; the expressions here have degrees in the hundreds, so below 1e-35."""

_ROOTS = 5040
"""Exponentials are powers of this order of a random residue, so that any root up to the tenth is one too."""


class Jet:
    """A residue plus multiples of infinitesimals, each of square zero: a truncated Taylor polynomial."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[frozenset[int], int]) -> None:
        self.parts = {key: value % PRIME for key, value in parts.items() if value % PRIME}

    @property
    def real(self) -> int:
        return self.parts.get(frozenset(), 0)

    def nilpotent(self) -> Jet:
        return Jet({key: value for key, value in self.parts.items() if key})

    def __add__(self, other: Jet) -> Jet:
        parts = dict(self.parts)
        for key, value in other.parts.items():
            parts[key] = parts.get(key, 0) + value
        return Jet(parts)

    def __mul__(self, other: Jet) -> Jet:
        parts: dict[frozenset[int], int] = {}
        for a, x in self.parts.items():
            for b, y in other.parts.items():
                if not a & b:
                    parts[a | b] = parts.get(a | b, 0) + x * y
        return Jet(parts)

    def scaled(self, factor: int) -> Jet:
        return Jet({key: value * factor for key, value in self.parts.items()})

    def series(self, coefficients: Callable[[int], int]) -> Jet:
        """``Σ_k coefficients(k) N^k`` with N the nilpotent part; finite, because N is nilpotent."""
        step, result, k = self.nilpotent(), Jet({frozenset(): coefficients(0)}), 1
        powered = step
        while powered.parts:
            result = result + powered.scaled(coefficients(k))
            powered, k = powered * step, k + 1
        return result


def _inverse(value: int) -> int:
    if value % PRIME == 0:
        raise Undecided("division by zero at this point")
    return pow(value, -1, PRIME)


@lru_cache(maxsize=10_000)
def _parts(argument: Expr) -> tuple[tuple[tuple[Rational, Expr], ...], Expr]:
    """A rational function as rational multiples of monomials, over a common denominator in lowest terms."""
    numerator, denominator = cancel(argument).as_numer_denom()
    content, denominator = denominator.primitive()
    terms = (term.as_coeff_Mul() for term in Add.make_args(numerator.expand()))
    return tuple((coefficient / content, monomial) for coefficient, monomial in terms), denominator


def _symbol(residue: int) -> Symbol:
    """A symbol that stands for a residue, which its name tells."""
    return Symbol(f"r{residue}")


def _residue(polynomial: Expr) -> int:
    """The value of a polynomial in the symbols that `_symbol` makes."""
    if isinstance(polynomial, Rational):
        return int(polynomial.p) * _inverse(int(polynomial.q)) % PRIME
    if isinstance(polynomial, Symbol):
        return int(polynomial.name[1:])
    if isinstance(polynomial, Pow):
        return pow(_residue(polynomial.base), int(polynomial.exp), PRIME)
    result = 0 if isinstance(polynomial, Add) else 1
    for part in polynomial.args:
        value = _residue(part)
        result = (result + value if isinstance(polynomial, Add) else result * value) % PRIME
    return result


class Formal(Evaluator):
    """Exact evaluation at a random point of the field of rational functions in entries and exponentials."""

    def __init__(self, sizes: Mapping[str, int], seed: int) -> None:
        super().__init__(sizes)
        self._random = Random(seed)
        self._unknowns: dict[Any, int] = {}
        self._eps = 0

    def unknown(self, key: Any) -> int:
        if key not in self._unknowns:
            self._unknowns[key] = self._random.randrange(1, PRIME)
        return self._unknowns[key]

    def number(self, value: Rational) -> Jet:
        return Jet({frozenset(): int(value.p) * _inverse(int(value.q))})

    def cell(self, cell: Cell, symbol: Symbol | None) -> Jet:
        return Jet({frozenset(): self.unknown(cell)})

    def derivative(self, body: Expr, cell: Cell, scope: Scope) -> Jet:
        self._eps += 1
        eps = self._eps
        moved = self.shifted_value(body, cell, Jet({frozenset({eps}): 1}), scope)
        return Jet({key - {eps}: value for key, value in moved.parts.items() if eps in key})

    def power(self, base: Jet, exponent: Any, expression: Pow, scope: Scope) -> Jet:
        power = expression.exp
        if not isinstance(power, Integer):
            raise Undecided("a power that is not whole")
        whole = int(power)
        if whole < 0:
            inverse = _inverse(base.real)
            base = base.series(lambda k: (-1) ** k * pow(inverse, k + 1, PRIME))
        result = Jet({frozenset(): 1})
        for _ in range(abs(whole)):
            result = result * base
        return result

    def function(self, expression: Expr, arguments: list[Jet], scope: Scope) -> Jet:
        if not isinstance(expression, exp):
            raise Undecided(f"{type(expression).__name__} is not a rational function of exponentials")
        value = 1
        terms, denominator = _parts(self._explicit(expression.args[0], scope))
        for coefficient, monomial in terms:
            # Monomials over a denominator are known by their value: a ratio can be written in many ways.
            key = _residue(monomial) * _inverse(_residue(denominator)) % PRIME
            if key > PRIME // 2:
                key, coefficient = PRIME - key, -coefficient
            steps = coefficient * _ROOTS
            if steps.q != 1:
                raise Undecided("an exponential with a fractional coefficient")
            value = value * pow(self.unknown(("exp", key)), int(steps), PRIME) % PRIME
        factorials = [1]

        def coefficient_of(k: int) -> int:
            while len(factorials) <= k:
                factorials.append(factorials[-1] * len(factorials))
            return value * _inverse(factorials[k])

        return arguments[0].series(coefficient_of)

    def _explicit(self, expression: Expr, scope: Scope) -> Expr:
        """`expression` in plain scalar symbols, sums written out."""
        if isinstance(expression, Rational):
            return expression
        if isinstance(expression, Symbol):
            if expression.name in self.sizes:
                return Integer(self.sizes[expression.name])
            if (expression.name, ()) in self.assigned:
                return self.assigned[expression.name, ()][1]
            return _symbol(self.unknown((expression.name, ())))
        if isinstance(expression, Indexed):
            name, where = self.where(expression, scope)
            if (name, where) in self.assigned:
                return self.assigned[name, where][1]
            return _symbol(self.unknown((name, where)))
        if isinstance(expression, Named):
            return self._explicit(expression.definition, scope)
        if isinstance(expression, KroneckerDelta):
            left, right = (self.place(index, scope) for index in expression.args[:2])
            return Integer(int(left == right))
        if isinstance(expression, Sum):
            terms = [scope]
            for limit in reversed(expression.limits):
                extent = self.extent(limit[0])
                terms = [{**here, limit[0]: k} for here in terms for k in range(1, extent + 1)]
            return Add(*(self._explicit(expression.function, here) for here in terms))
        if isinstance(expression, Add | Mul) or (
            isinstance(expression, Pow) and isinstance(expression.exp, Integer)
        ):
            return expression.func(*(self._explicit(part, scope) for part in expression.args))
        # Anything else (a softmax inside an exponential) is one more unknown, named by its value.
        return _symbol(self.value(expression, scope).real)

    def meaning(self, value: Expr, scope: Scope) -> Expr:
        return self._explicit(value, scope)

    def applied(self, label: str, taken: Any, arguments: list[Jet]) -> Jet:
        point = tuple(argument.real for argument in arguments)
        if isinstance(taken, int):
            factorials = [1]

            def coefficient_of(k: int) -> int:
                while len(factorials) <= k:
                    factorials.append(factorials[-1] * len(factorials))
                return self.unknown((label, taken + k, point)) * _inverse(factorials[k])

            return arguments[0].series(coefficient_of)
        return self._taylor(label, taken, point, [argument.nilpotent() for argument in arguments])

    def _taylor(self, label: str, taken: tuple[int, ...], point: tuple[int, ...], steps: list[Jet]) -> Jet:
        """The Taylor series of a function of a vector: ``Σ_m (1/m!) Σ_k ∂_k… ψ · N_k…``."""
        result = Jet({frozenset(): self.unknown((label, taken, point))})
        layer: list[tuple[tuple[int, ...], Jet]] = [((), Jet({frozenset(): 1}))]
        weight, m = 1, 1
        while layer:
            layer = [
                ((*slots, k), moved)
                for slots, jet in layer
                for k, step in enumerate(steps, 1)
                if (moved := jet * step).parts
            ]
            weight = weight * _inverse(m) % PRIME
            for slots, jet in layer:
                unknown = self.unknown((label, tuple(sorted((*taken, *slots))), point))
                result = result + jet.scaled(unknown * weight)
            m += 1
        return result
