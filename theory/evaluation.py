"""Expressions at explicit sizes: ways to check an equation that know nothing of the normal form.

Sums are unrolled over ``1 .. size`` and entries get values. In `Decimal50` the values are short decimals, the
arithmetic has 50 digits or more, and derivatives are central differences; the residues of `Formal` are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import mpmath
from sympy import (
    Add,
    Derivative,
    Expr,
    Integer,
    KroneckerDelta,
    Mul,
    Pow,
    Rational,
    Sum,
    Symbol,
    exp,
    log,
)
from sympy.tensor.indexed import Indexed

from .calculus import free_indices
from .notation import Applied, At, DerivationError, Index, Named

Scope = Mapping[Index, int]
Cell = tuple[str, tuple[int, ...]]
"""An array entry (name, indices) or a scalar (name, ())."""


class Undecided(Exception):  # noqa: N818  (an outcome, not an error)
    """The expression is outside what this way of evaluating can read."""


class Evaluator:
    """Walks an expression at explicit sizes; subclasses supply the arithmetic.

    Args:
        sizes: values of the symbolic sizes, by name.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self._shifts: dict[Cell, Any] = {}
        self.assigned: dict[Cell, tuple[Any, Any]] = {}
        """Cells that an `At` gives a value, and what `meaning` makes of that value."""
        self._memory: dict[Any, Any] = {}

    # ---- what a subclass supplies

    def number(self, value: Rational) -> Any:
        raise NotImplementedError

    def cell(self, cell: Cell, symbol: Symbol | None) -> Any:
        raise NotImplementedError

    def derivative(self, body: Expr, cell: Cell, scope: Scope) -> Any:
        raise NotImplementedError

    def power(self, base: Any, exponent: Any, expression: Pow, scope: Scope) -> Any:
        raise NotImplementedError

    def function(self, expression: Expr, arguments: list[Any], scope: Scope) -> Any:
        raise NotImplementedError

    def applied(self, label: str, taken: Any, arguments: list[Any]) -> Any:
        raise NotImplementedError

    def meaning(self, value: Expr, scope: Scope) -> Any:
        """What a subclass wants to know of a value that is put in for a cell, besides the value."""
        return None

    # ---- the walk

    def extent(self, index: Index) -> int:
        if isinstance(index.size, Integer):
            return int(index.size)
        return self.sizes[index.size.name]

    def place(self, index: Any, scope: Scope) -> int:
        if isinstance(index, Index):
            if index not in scope:
                raise DerivationError(f"the index {index} is free where it should be bound")
            return scope[index]
        return int(index)

    def value(self, expression: Expr, scope: Scope) -> Any:
        """The value of `expression` with its free indices as in `scope`."""
        used = tuple((index, scope[index]) for index in free_indices(expression) if index in scope)
        key = (expression, used)
        if key not in self._memory:
            self._memory[key] = self._value(expression, dict(used))
        return self._memory[key]

    def _value(self, expression: Expr, scope: Scope) -> Any:
        if isinstance(expression, Rational):
            return self.number(expression)
        if isinstance(expression, Symbol):
            if expression.name in self.sizes:
                return self.number(Integer(self.sizes[expression.name]))
            return self._shifted((expression.name, ()), expression)
        if isinstance(expression, Indexed):
            return self._shifted(self.where(expression, scope), None)
        if isinstance(expression, KroneckerDelta):
            left, right = (self.place(index, scope) for index in expression.args[:2])
            return self.number(Integer(int(left == right)))
        if isinstance(expression, Add):
            result = self.number(Integer(0))
            for part in expression.args:
                result = result + self.value(part, scope)
            return result
        if isinstance(expression, Mul):
            result = self.number(Integer(1))
            for part in expression.args:
                result = result * self.value(part, scope)
            return result
        if isinstance(expression, Sum):
            return self._unrolled(expression.function, list(expression.limits), scope)
        if isinstance(expression, Derivative):
            return self._derivative(expression, scope)
        if isinstance(expression, Named):
            return self.value(expression.definition, scope)
        if isinstance(expression, At):
            return self._at(expression, scope)
        if isinstance(expression, Applied):
            return self._applied(expression, scope)
        if isinstance(expression, Pow):
            base = self.value(expression.base, scope)
            return self.power(base, self.value(expression.exp, scope), expression, scope)
        if expression.args:
            return self.function(expression, [self.value(part, scope) for part in expression.args], scope)
        raise Undecided(f"no value for {expression}")

    def where(self, expression: Expr, scope: Scope) -> Cell:
        """The cell that an array entry or a scalar symbol names."""
        if isinstance(expression, Indexed):
            return str(expression.base.label), tuple(self.place(i, scope) for i in expression.indices)
        return expression.name, ()

    def _shifted(self, cell: Cell, symbol: Symbol | None) -> Any:
        value = self.assigned[cell][0] if cell in self.assigned else self.cell(cell, symbol)
        return value + self._shifts[cell] if cell in self._shifts else value

    def _unrolled(self, body: Expr, limits: list[Any], scope: Scope) -> Any:
        if not limits:
            return self.value(body, scope)
        index = limits[-1][0]
        result = self.number(Integer(0))
        for position in range(1, self.extent(index) + 1):
            result = result + self._unrolled(body, limits[:-1], {**scope, index: position})
        return result

    def _derivative(self, expression: Derivative, scope: Scope) -> Any:
        body, variables = expression.expr, expression.variables
        if len(variables) > 1:
            body = Derivative(body, *variables[:-1], evaluate=False)
        cell = self.where(variables[-1], scope)
        key = body, cell, tuple((index, scope[index]) for index in free_indices(body) if index in scope)
        if key not in self._memory:
            self._memory[key] = self.derivative(body, cell, dict(key[2]))
        return self._memory[key]

    def shifted_value(self, body: Expr, cell: Cell, shift: Any, scope: Scope) -> Any:
        """The value of `body` with `shift` added to one cell."""
        shifts, memory = self._shifts, self._memory
        self._memory = {}
        self._shifts = {**shifts, cell: shifts[cell] + shift if cell in shifts else shift}
        try:
            return self.value(body, scope)
        finally:
            self._shifts, self._memory = shifts, memory

    def _at(self, expression: At, scope: Scope) -> Any:
        body, entry, value = expression.args
        places, assigned = expression.places, {}
        for where in product(*(range(1, self.extent(place) + 1) for place in places)):
            here = {**scope, **dict(zip(places, where, strict=True))}
            assigned[self.where(entry, here)] = self.value(value, here), self.meaning(value, here)
        state = self._shifts, self._memory, self.assigned
        # Derivatives taken outside move the value, not the cell; those taken inside move the cell.
        self._shifts = {cell: shift for cell, shift in self._shifts.items() if cell not in assigned}
        self._memory, self.assigned = {}, {**self.assigned, **assigned}
        try:
            return self.value(body, scope)
        finally:
            self._shifts, self._memory, self.assigned = state

    def _applied(self, expression: Applied, scope: Scope) -> Any:
        if expression.slot is None:
            return self.applied(
                expression.label, int(expression.taken), [self.value(expression.argument, scope)]
            )
        slot = expression.slot
        arguments = [
            self.value(expression.argument, {**scope, slot: position})
            for position in range(1, self.extent(slot) + 1)
        ]
        taken = tuple(sorted(self.place(index, scope) for index in expression.taken))
        return self.applied(expression.label, taken, arguments)


# ---------------------------------------------------------------- decimals


def polynomial_stand_in(order: int, x: Any) -> Any:
    """``x + x² + x³`` and its derivatives: an unspecified function that a person can evaluate by hand."""
    return [x + x**2 + x**3, 1 + 2 * x + 3 * x**2, 2 + 6 * x, mpmath.mpf(6)][order] if order < 4 else x * 0


def generic_stand_in(order: int, x: Any) -> Any:
    """``sin x + exp x`` and its derivatives: none of them satisfies an accidental polynomial identity."""
    return mpmath.sin(x + order * mpmath.pi / 2) + mpmath.exp(x)


STAND_INS: dict[str, Callable[[int, Any], Any]] = {
    "x + x² + x³": polynomial_stand_in,
    "sin x + exp x": generic_stand_in,
}


class Decimal50(Evaluator):
    """High-precision evaluation at short decimal values, derivatives by central differences.

    Args:
        sizes: values of the symbolic sizes, by name.
        values: a function of a cell and its symbol that returns its value as a string.
        stand_in: what an unspecified function is taken to be; one of `STAND_INS`.
        labels: names of the unspecified functions; each is taken to be a different one.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        values: Callable[[Cell, Symbol | None], str],
        stand_in: str = "sin x + exp x",
        labels: Sequence[str] = (),
    ) -> None:
        super().__init__(sizes)
        self.values = values
        self.stand_in_text = stand_in
        self.stand_in = STAND_INS[stand_in]
        self.labels = labels

    def _scale(self, label: str) -> int:
        """Distinct names get distinct functions: the argument is multiplied by 1, 2, …"""
        return 1 + self.labels.index(label)

    def described(self, label: str, vector: bool) -> str:
        """What an unspecified function, of a scalar or a vector, is taken to be."""
        text = self.stand_in_text
        scale = "" if self._scale(label) == 1 else f"{self._scale(label)} "
        if vector:
            return f"{label}(r) = g({scale}Σ k r_k) + Σ r_k² for g(x) = {text}"
        return f"{label}(x) = g({scale}x) for g(x) = {text}" if scale else f"{label}(x) = {text}"

    def number(self, value: Rational) -> Any:
        return mpmath.mpf(int(value.p)) / int(value.q)

    def cell(self, cell: Cell, symbol: Symbol | None) -> Any:
        return mpmath.mpf(self.values(cell, symbol))

    def derivative(self, body: Expr, cell: Cell, scope: Scope) -> Any:
        # A central difference errs by O(h²) and loses log10(1/h) digits: with h = 10^(-digits/2) at twice the
        # digits asked for, about `digits` digits are right. `difference_at` looks for differences that stay
        # when the precision grows, so neither error can pass for a difference.
        digits = mpmath.mp.dps
        with mpmath.workdps(2 * digits):
            h = mpmath.mpf(10) ** (-(digits // 2))
            up = self.shifted_value(body, cell, h, scope)
            down = self.shifted_value(body, cell, -h, scope)
            return (up - down) / (2 * h)

    def power(self, base: Any, exponent: Any, expression: Pow, scope: Scope) -> Any:
        if base == 0 and exponent < 0:
            raise Undecided("division by zero at this point")
        result = mpmath.power(base, exponent)
        if not isinstance(result, mpmath.mpf):
            raise Undecided("a root of a negative number at this point")
        return result

    def function(self, expression: Expr, arguments: list[Any], scope: Scope) -> Any:
        name = type(expression).__name__.lower()
        if isinstance(expression, exp):
            return mpmath.exp(arguments[0])
        if isinstance(expression, log):
            if arguments[0] <= 0:
                raise Undecided("a logarithm of a nonpositive number at this point")
            return mpmath.log(arguments[0])
        known = {"abs": mpmath.fabs, "max": max, "min": min}.get(name) or getattr(mpmath, name, None)
        result = known(*arguments) if callable(known) else None
        if not isinstance(result, mpmath.mpf):
            raise Undecided(f"no real value for {type(expression).__name__} at this point")
        return result

    def applied(self, label: str, taken: Any, arguments: list[Any]) -> Any:
        scale = self._scale(label)
        if isinstance(taken, int):
            return scale**taken * self.stand_in(taken, scale * arguments[0])
        mixed = sum(k * x for k, x in enumerate(arguments, 1))
        result = self.stand_in(len(taken), scale * mixed) * scale ** len(taken)
        for k in taken:
            result = result * k
        # A second part that is not a function of the same linear form: the sum of the squares.
        if not taken:
            return result + sum(x * x for x in arguments)
        if len(taken) == 1:
            return result + 2 * arguments[taken[0] - 1]
        return result + (2 if len(taken) == 2 and taken[0] == taken[1] else 0)
