"""One equation or one sign: proved for every size, supported at some sizes, or refuted at a point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, Literal

import mpmath
from sympy import Expr, Integer, Symbol

from .calculus import free_indices
from .evaluation import STAND_INS, Cell, Decimal50, Scope, Undecided
from .normal_form import proves_equal
from .notation import Applied, DerivationError, Index
from .residues import Formal
from .signs import shown_nonnegative

Status = Literal["proved", "supported", "refuted"]
Tier = Literal["normal form", "sign certificate", "explicit sizes", "evaluation"]

EXPLICIT_SIZES: Mapping[str, int] = {"n": 2, "T": 3}
"""Sizes of the independent checks; every other size is 2. At n = 1, T = 2 or d = 1 a lost 1/n, a transposed
Jacobian and a wrong index go unseen."""
_OTHER_SIZE = 2

_LADDER = ((1, 2, 1), (2, 2, 1), (1, 3, 1), (1, 2, 2), (2, 2, 2), (2, 3, 2), (3, 4, 3))
"""(n, T, every other size) at which a witness is looked for, the smallest first: a person is to check it."""
_POINTS_PER_SIZE = 2
_MORE_FOR_SIGNS = 5
"""A false equation fails at almost every point, a false inequality perhaps at few."""
_ATTEMPTS = 20
"""Points tried until a proved equation has a value: roots and logarithms have none at many."""
_MAX_INDEX_VALUES = 12

ValueOf = Callable[[Cell, Symbol | None], str]

_DIGITS = 50
_RELATIVE = mpmath.mpf(10) ** -30
"""Smallest relative difference that counts. Rounding and differencing leave 1e-45 or less at 50 digits."""
_STABLE = mpmath.mpf(10) ** -6
"""A true difference changes by less than this share of itself when the precision is doubled; rounding and
differencing errors fall by twenty orders of magnitude or more."""


class TierMismatch(AssertionError):  # noqa: N818  (a fault of the package, not of an input)
    """The normal form proved an equation that evaluation contradicts: a fault of the prover."""


@dataclass(frozen=True)
class Witness:
    """A point at which two sides differ, or at which one is negative (`right` is empty then).

    It is small, and its numbers are short enough to check it by hand.
    """

    sizes: dict[str, int]
    indices: dict[str, int]
    values: dict[str, str]
    left: str
    right: str
    why: str
    stand_in: str
    """What unspecified functions are taken to be, a key of `STAND_INS`."""

    @property
    def text(self) -> str:
        """One line: where, and the two values."""
        parts = [f"{name} = {value}" for name, value in (*self.sizes.items(), *self.indices.items())]
        parts += [f"{name} = {value}" for name, value in self.values.items()]
        outcome = f"{self.left} before, {self.right} after" if self.right else self.left
        where = f"at {', '.join(parts)}: " if parts else ""
        return f"{where}{outcome} ({self.why})"


def examine(left: Expr, right: Expr, seed: int = 0) -> tuple[Status, Tier, Witness | None]:
    """How the equation ``left = right`` stands: proved, supported at some sizes, or refuted by a witness."""
    if proves_equal(left, right):
        _confirm(left, right, seed)
        return "proved", "normal form", None
    witness = find_witness(left, right, seed)
    if witness is not None:
        return "refuted", "evaluation", witness
    if formally_equal(left, right, seed):
        return "supported", "explicit sizes", None
    return "supported", "evaluation", None


def examine_sign(expression: Expr, seed: int = 0) -> tuple[Status, Tier, Witness | None]:
    """How the claim stands that an expression is nowhere negative."""
    certified = shown_nonnegative(expression)
    witness = find_witness(expression, None, seed)
    if certified and witness is not None:
        raise TierMismatch(f"certified to be nonnegative, but negative {witness.text}")
    if certified:
        return "proved", "sign certificate", None
    return ("supported" if witness is None else "refuted"), "evaluation", witness


def weakest(statuses: Iterable[Status]) -> Status:
    """What a whole is, of which these are the parts."""
    found = set(statuses)
    order: tuple[Status, ...] = ("refuted", "supported", "proved")
    return next(status for status in order if status in found)


def _confirm(left: Expr, right: Expr, seed: int) -> None:
    names = size_names(left, right)
    sizes = explicit_sizes(names)
    if formally_equal(left, right, seed) is False:
        raise TierMismatch(f"proved, but different as rational functions at {sizes}: {left} and {right}")
    random = Random(seed)
    for _ in range(_ATTEMPTS):
        seen = False
        for _, witness in _differences(left, right, sizes, _Point(random), "sin x + exp x"):
            seen = True
            if witness is not None:
                raise TierMismatch(f"proved, but different {witness.text}")
        if seen:
            return
    raise DerivationError(f"no point found at which there is a value of {left} and {right}")


def formally_equal(left: Expr, right: Expr, seed: int = 0) -> bool | None:
    """Equality at the explicit sizes as rational functions; or None if unreadable."""
    sizes = explicit_sizes(size_names(left, right))
    ring = Formal(sizes, seed)
    try:
        for scope in _scopes(left, right, sizes, Random(seed)):
            if ring.value(left, scope).parts != ring.value(right, scope).parts:
                return False
    except Undecided:
        return None
    return True


def find_witness(left: Expr, right: Expr | None, seed: int = 0) -> Witness | None:
    """A small point at which the two sides differ beyond rounding, or None.

    Without a right side: a small point at which the left side is negative.

    Raises:
        DerivationError: there is no point at which the sides have a value.
    """
    random, names, seen = Random(seed), size_names(left, *_present(right)), False
    ladder = [tuple({"n": n, "T": tokens}.get(name, other) for name in names) for n, tokens, other in _LADDER]
    distinct = list(dict.fromkeys(ladder))
    points = _POINTS_PER_SIZE * len(ladder) // len(distinct)
    if right is None:
        points *= _MORE_FOR_SIGNS
    for values in distinct:
        sizes = dict(zip(names, values, strict=True))
        for stand_in in STAND_INS:
            for _ in range(points):
                point = _Point(random)
                for scope, witness in _differences(left, right, sizes, point, stand_in):
                    seen = True
                    if witness is not None:
                        return _shrunk(left, right, scope, point, stand_in, witness)
    if not seen:
        sides = " and ".join(map(str, (left, *_present(right))))
        raise DerivationError(f"no point found at which there is a value of {sides}")
    return None


def _present(right: Expr | None) -> tuple[Expr, ...]:
    return () if right is None else (right,)


class _Point:
    """Values of cells, drawn when they are first asked for: short decimals other than 0."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.values: dict[Cell, str] = {}
        self.positive: set[Cell] = set()

    def __call__(self, cell: Cell, symbol: Symbol | None) -> str:
        if cell not in self.values:
            tenths = self.random.choice([k for k in range(-20, 21) if k])
            if symbol is not None and symbol.is_positive:
                self.positive.add(cell)
                tenths = abs(tenths)
            self.values[cell] = f"{tenths / 10:g}"
        return self.values[cell]


def _differences(
    left: Expr, right: Expr | None, sizes: Mapping[str, int], point: _Point, stand_in: str
) -> Iterator[tuple[Scope, Witness | None]]:
    """For each choice of the free indices at one point: the witness, or None where the sides agree."""
    together = _Comparison(left, right, sizes, point, stand_in)
    for scope in _scopes(left, right, sizes, point.random):
        try:
            differ = together.differing(scope) is not None
            yield scope, difference_at(left, right, sizes, scope, point, stand_in) if differ else None
        except Undecided:
            continue


def _shrunk(
    left: Expr, right: Expr | None, scope: Scope, point: _Point, stand_in: str, witness: Witness
) -> Witness:
    """A witness at the same sizes with as many zeros and ones as will do."""
    for cell, drawn in list(point.values.items()):
        for simple in ("1",) if cell in point.positive else ("0", "1", "-1"):
            point.values[cell] = simple
            try:
                smaller = difference_at(left, right, witness.sizes, scope, point, stand_in)
            except Undecided:
                smaller = None
            if smaller is not None:
                witness = smaller
                break
            point.values[cell] = drawn
    return witness


def difference_at(
    left: Expr,
    right: Expr | None,
    sizes: Mapping[str, int],
    scope: Scope,
    value: ValueOf,
    stand_in: str = "sin x + exp x",
) -> Witness | None:
    """The witness that the two sides differ at one point, or None if they agree there up to rounding.

    Without a right side: the witness that the left side is negative.
    """
    used: dict[Cell, str] = {}

    def recorded(cell: Cell, symbol: Symbol | None) -> str:
        used[cell] = value(cell, symbol)
        return used[cell]

    comparison = _Comparison(left, right, sizes, recorded, stand_in)
    values = comparison.differing(scope)
    if values is None:
        return None
    taken = comparison.functions()
    return Witness(
        sizes=dict(sizes),
        indices={index.name: place for index, place in scope.items()},
        values={_shown(cell): text for cell, text in sorted(used.items())},
        left=_short(values[0], values),
        right="" if right is None else _short(values[1], values),
        why=f"with {taken}" if taken else f"the {'sign' if right is None else 'value'} is wrong",
        stand_in=stand_in,
    )


def evaluated_again(left: Expr, right: Expr | None, witness: Witness) -> Witness | None:
    """What the two sides are at the point of a witness: a witness again, or None if they agree there.

    Raises:
        DerivationError: the witness does not give a point at which the sides have values.
    """
    found = {index for part in (left, *_present(right)) for index in free_indices(part)}
    free = sorted(found, key=lambda index: index.name)
    missing = [index.name for index in free if index.name not in witness.indices]
    missing += sorted(set(size_names(left, *_present(right))) - set(witness.sizes))
    if missing:
        raise DerivationError(f"the point gives no value of {', '.join(missing)}")
    if witness.stand_in not in STAND_INS:
        raise DerivationError(f"stand_in: got {witness.stand_in!r}, expected one of {', '.join(STAND_INS)}")

    def value(cell: Cell, symbol: Symbol | None) -> str:
        text = witness.values.get(_shown(cell))
        if text is None:
            raise DerivationError(f"the point gives no value of {_shown(cell)}")
        return text

    scope = {index: witness.indices[index.name] for index in free}
    try:
        return difference_at(left, right, witness.sizes, scope, value, witness.stand_in)
    except (Undecided, TypeError, ValueError) as error:
        raise DerivationError(f"the point gives no values of both sides: {error}") from error


class _Comparison:
    """The two sides at one point, at growing precision."""

    def __init__(
        self, left: Expr, right: Expr | None, sizes: Mapping[str, int], value: ValueOf, stand_in: str
    ) -> None:
        self.sides = left, Integer(0) if right is None else right
        self.sign_only = right is None
        applied = {part for side in self.sides for part in side.atoms(Applied)}
        self.vectors = dict(sorted((part.label, part.slot is not None) for part in applied))
        self.stand_in = stand_in
        labels = list(self.vectors)
        self.evaluators = {
            digits: Decimal50(sizes, value, stand_in, labels) for digits in (_DIGITS, 2 * _DIGITS)
        }

    def functions(self) -> str:
        """What the unspecified functions are taken to be."""
        any_precision = self.evaluators[_DIGITS]
        return ", ".join(any_precision.described(*item) for item in self.vectors.items())

    def differing(self, scope: Scope) -> tuple[Any, Any] | None:
        """The values of the two sides if they differ beyond rounding."""
        coarse = self._values(scope, _DIGITS)
        if coarse is None:
            return None
        fine = self._values(scope, 2 * _DIGITS)
        if fine is None:
            return None
        with mpmath.workdps(2 * _DIGITS):
            gap = fine[0] - fine[1]
            moved = coarse[0] - coarse[1] - gap
            return None if abs(moved) > _STABLE * abs(gap) else fine

    def _values(self, scope: Scope, digits: int) -> tuple[Any, Any] | None:
        """The two values, if they differ at this precision."""
        with mpmath.workdps(digits):
            evaluator = self.evaluators[digits]
            left, right = (evaluator.value(side, scope) for side in self.sides)
            if abs(left - right) <= _RELATIVE * max(abs(left), abs(right)):
                return None
            return None if self.sign_only and left > 0 else (left, right)


def _scopes(
    left: Expr, right: Expr | None, sizes: Mapping[str, int], random: Random
) -> list[dict[Index, int]]:
    """Choices of values for the free indices: all of them, or a random dozen."""
    expressions = (left, *_present(right))
    free = sorted(
        {index for part in expressions for index in free_indices(part)}, key=lambda index: index.name
    )
    extents = [
        int(index.size) if isinstance(index.size, Integer) else sizes[index.size.name] for index in free
    ]
    choices = [dict(zip(free, where, strict=True)) for where in product(*(range(1, e + 1) for e in extents))]
    return random.sample(choices, _MAX_INDEX_VALUES) if len(choices) > _MAX_INDEX_VALUES else choices


def _short(value: Any, values: tuple[Any, Any]) -> str:
    """Six digits; what is rounding beside the other value is 0."""
    return mpmath.nstr(value, 6) if abs(value) > _RELATIVE * max(map(abs, values)) else "0.0"


def _shown(cell: Cell) -> str:
    name, where = cell
    return f"{name}[{','.join(map(str, where))}]" if where else name


def explicit_sizes(names: list[str]) -> dict[str, int]:
    """The sizes at which the independent checks run."""
    return {name: EXPLICIT_SIZES.get(name, _OTHER_SIZE) for name in names}


def described_sizes(names: list[str]) -> str:
    """For which sizes something is proved."""
    return f"all {', '.join(names)}" if names else "scalars"


def size_names(*expressions: Expr) -> list[str]:
    """Names of the symbolic sizes in some expressions, in the order n, T, d, others."""
    found = set()
    for expression in expressions:
        for symbol in expression.atoms(Symbol):
            if isinstance(symbol, Index) and isinstance(symbol.size, Symbol):
                found.add(symbol.size.name)
            elif not isinstance(symbol, Index) and symbol.is_integer and symbol.is_positive:
                found.add(symbol.name)
    order = {"n": 0, "T": 1, "d": 2}
    return sorted(found, key=lambda name: (order.get(name, 3), name))
