"""Indexed notation: sizes, indices, arrays, sums, derivatives and unspecified functions.

Everything is written entry by entry, with indices that run from 1 to a symbolic size, because general-purpose
matrix calculus silently drops terms of softmax quotients. Nothing here computes: a derivative stays a
derivative until a prover reads it, so that each prover can read it in its own way.

>>> i, t = Index("i", n), Index("t", T)
>>> X = array("X", n, T, d)
>>> total(X[i, t, 1], i, t)
Sum(X[i, t, 1], (t, 1, T), (i, 1, n))
"""

from __future__ import annotations

from typing import Any

from sympy import (
    Derivative,
    Expr,
    Function,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Sum,
    Symbol,
    Tuple,
    sympify,
)
from sympy.tensor.indexed import Indexed


class DerivationError(ValueError):
    """Something that is not a derivation in this notation; the one-line message says what to change."""


class Index(Symbol):  # type: ignore[misc]
    """An index running over ``1, ..., size``.

    Args:
        name: how it is written.
        size: a SymPy symbol (`n`, `T`, `d` or one's own) or a positive integer.

    Raises:
        DerivationError: an argument is neither.
    """

    __slots__ = ("size",)
    size: Expr

    def __new__(cls, name: str, size: Any) -> Index:
        if not isinstance(name, str) or not name:
            raise DerivationError(f"an index needs a name, got {name!r}")
        bound = sympify(size)
        if not (isinstance(bound, Symbol) or (isinstance(bound, Integer) and bound > 0)):
            raise DerivationError(
                f"index {name}: its size must be a symbol or a positive integer, got {size!r}"
            )
        index: Index = Symbol.__xnew__(cls, name, integer=True, positive=True)
        index.size = bound
        return index

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.name, self.size), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.size)


def size(name: str) -> Symbol:
    """A symbolic size: a positive integer of which nothing else is known."""
    return Symbol(name, integer=True, positive=True)


n, T, d = size("n"), size("T"), size("d")
"""Number of inputs, tokens per input, embedding dimension."""


def array(name: str, *shape: Any) -> IndexedBase:
    """A real array of the given shape: a vector ``(d,)``, a matrix ``(T, d)``, tokens ``(n, T, d)``."""
    if not shape:
        raise DerivationError(f"array {name}: give its shape; a scalar is a plain symbol")
    return IndexedBase(name, shape=tuple(sympify(s) for s in shape), real=True)


def scalar(name: str, *, positive: bool = False) -> Symbol:
    """A real scalar such as a step size."""
    return Symbol(name, real=True, positive=True) if positive else Symbol(name, real=True)


def total(expression: Any, *indices: Index) -> Expr:
    """The sum over the full range of each index; the first index given is the outermost sum."""
    result = sympify(expression)
    for index in reversed(indices):
        if not isinstance(index, Index):
            raise DerivationError(f"total: sum over an Index, got {index!r}")
        result = Sum(result, (index, 1, index.size))
    return result


def mean(expression: Any, index: Index) -> Expr:
    """The average over the range of `index`."""
    return total(expression, index) / index.size


def delta(left: Any, right: Any) -> Expr:
    """Kronecker's delta."""
    return KroneckerDelta(left, right)


def partial(expression: Any, *variables: Any) -> Expr:
    """The derivative of `expression` with respect to array entries or scalars, not carried out.

    ``partial(risk, p[a])`` is entry ``a`` of the gradient; ``partial(risk, p[a], p[b])`` is an entry of the
    Hessian. An index of the variable that is bound inside `expression` is a different index.
    """
    result = sympify(expression)
    if not variables:
        raise DerivationError("partial: name at least one variable to differentiate by")
    for variable in variables:
        if not isinstance(variable, Indexed | Symbol) or isinstance(variable, Index):
            raise DerivationError(
                f"partial: differentiate by an array entry or a scalar symbol, got {variable!r}"
            )
        result = Derivative(result, variable, evaluate=False)
    return result


class Named(Function):  # type: ignore[misc]
    """An expression that is written by a name: the name, its indices, what it stands for."""

    @classmethod
    def eval(cls, *args: Any) -> None:
        return None

    @property
    def definition(self) -> Expr:
        return self.args[2]

    def _eval_is_commutative(self) -> bool:
        return True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        base, _, above = self.args[0].name.partition("^")
        indices = ",".join(map(printer._print, self.args[1]))
        text = printer._print(Symbol(base)) + (f"_{{{indices}}}" if indices else "")
        text += f"^{{{above}}}" if above else ""
        return rf"\left({text}\right)^{{{exp}}}" if exp else text

    def _sympystr(self, printer: Any) -> str:
        indices = ", ".join(map(printer._print, self.args[1]))
        return f"{self.args[0]}[{indices}]" if indices else str(self.args[0])


def named(name: str, definition: Any, *indices: Index | int) -> Expr:
    """`definition`, printed as `name` with its free indices: ``named("s", weight, i, t)``.

    Provers read the definition, so a name cannot hide a mistake. What follows ``^`` in a name is printed
    above.
    """
    return Named(Symbol(name), Tuple(*indices), sympify(definition))


class At(Function):  # type: ignore[misc]
    """An expression where an array or a scalar has given values: the expression, the entry, its value.

    The indices of the entry are bound in the value.
    """

    @classmethod
    def eval(cls, *args: Any) -> None:
        return None

    @property
    def places(self) -> tuple[Index, ...]:
        """The indices that the entry binds in the value."""
        return self.args[1].indices if isinstance(self.args[1], Indexed) else ()

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        expression, entry, value = map(printer._print, self.args)
        text = rf"\left. {expression} \right|_{{{entry} = {value}}}"
        return rf"\left({text}\right)^{{{exp}}}" if exp else text


def at(expression: Any, entry: Any, value: Any) -> Expr:
    """`expression` where every `entry` is `value`: ``at(f, W[k, l], p[k] * u[l])`` is ``f`` at ``W = p uᵀ``.

    Derivatives inside `expression` are taken first.

    Raises:
        DerivationError: `entry` is not an array entry with distinct indices, or a scalar symbol.
    """
    if isinstance(entry, Indexed):
        places = entry.indices
        fine = all(isinstance(place, Index) for place in places) and len(set(places)) == len(places)
    else:
        fine = isinstance(entry, Symbol) and not entry.is_integer
    if not fine:
        raise DerivationError(f"at: give a value to a scalar or to entries such as W[k, l], got {entry!r}")
    return At(sympify(expression), entry, sympify(value))


class Applied(Function):  # type: ignore[misc]
    """An unspecified function, or one of its derivatives, at an argument.

    Arguments: the name; the derivatives taken, as an order for a function of a scalar or as a tuple of
    indices for a function of a vector; the index bound by the argument (empty for a scalar); the argument.
    """

    @classmethod
    def eval(cls, *args: Any) -> None:
        return None

    @property
    def label(self) -> str:
        return str(self.args[0])

    @property
    def taken(self) -> Any:
        """The order (scalar argument) or the indices (vector argument) of the derivatives taken."""
        return self.args[1]

    @property
    def slot(self) -> Index | None:
        """The index that the argument binds, for a function of a vector."""
        return self.args[2][0] if self.args[2] else None

    @property
    def argument(self) -> Expr:
        return self.args[3]

    def _eval_is_commutative(self) -> bool:
        return True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name = printer._print(self.args[0])
        inner = printer._print(self.argument)
        if self.slot is not None:
            inner = rf"({inner})_{{{printer._print(self.slot)}}}"
            taken = "".join(rf"\partial_{{{printer._print(index)}}}" for index in self.taken)
            text = rf"{taken} {name}\left({inner}\right)"
        else:
            order = int(self.taken)
            mark = "'" * order if order <= 3 else rf"^{{({order})}}"
            text = rf"{name}{mark}\left({inner}\right)"
        return rf"\left({text}\right)^{{{exp}}}" if exp else text

    def _sympystr(self, printer: Any) -> str:
        inner = printer._print(self.argument)
        if self.slot is not None:
            taken = "".join(f"d_{index} " for index in self.taken)
            return f"{taken}{self.label}({self.slot} -> {inner})"
        return f"{self.label}{chr(39) * int(self.taken)}({inner})"


class Unspecified:
    """A differentiable function of which nothing is known but its name.

    ``loss = Unspecified("ell")``: ``loss(m)`` is its value, ``loss(m, 1)`` its first derivative at ``m``.

    ``head = Unspecified("psi", slot=c)`` is a function of a vector whose entries are written with the index
    ``c``: ``head(r[c])`` is its value, ``head(r[c], a)`` its partial derivative by entry ``a``.
    """

    def __init__(self, name: str, slot: Index | None = None) -> None:
        self.name = name
        self.slot = slot

    def __call__(self, argument: Any, *taken: Any) -> Expr:
        label = Symbol(self.name)
        if self.slot is None:
            order = taken[0] if taken else 0
            if len(taken) > 1 or not isinstance(order, int) or order < 0:
                raise DerivationError(f"{self.name}: the derivative's order must be one integer, got {taken}")
            return Applied(label, Integer(order), Tuple(), sympify(argument))
        for index in taken:
            if not isinstance(index, Index | int):
                raise DerivationError(f"{self.name}: differentiate by an Index, got {index!r}")
        return Applied(label, Tuple(*taken), Tuple(self.slot), sympify(argument))
