"""Hard-margin problems solved and certified over the rationals.

Every finite float is a rational number, so `min ‖w‖ subject to a_j·w >= b_j` with float data has
an exact rational solution, or an exact Farkas certificate that it has none. Both come out of one
nonnegative least-squares problem (Lawson and Hanson, *Solving Least Squares Problems*, chapter 23):
minimise `‖E y - e‖` over `y >= 0`, where column j of `E` is `(a_j, b_j)` and `e` is the
last unit vector. At the solution `‖residual‖² = 1 - b·y`, and

* a zero residual says `Σ y_j a_j = 0` and `Σ y_j b_j = 1`: the constraints contradict each other;
* otherwise `λ = y / (1 - b·y)` are multipliers and `w = Σ λ_j a_j` is the solution.

The arithmetic runs on integers (rows and margins share a power-of-two denominator each, linear
systems are eliminated without fractions); results are handed out as `fractions.Fraction`.
The verifiers at the end of the module share no code with the solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from .validation import FloatArray

IntegerRows: TypeAlias = Sequence[Sequence[int]]
Rationals: TypeAlias = tuple[Fraction, ...]


@dataclass(frozen=True)
class RationalSystem:
    """Constraints `(rows[j] / row_scale) · w >= margins[j] / margin_scale`, in integers."""

    rows: IntegerRows
    row_scale: int
    margins: Sequence[int]
    margin_scale: int

    @classmethod
    def from_floats(
        cls,
        plus: FloatArray,
        minus: FloatArray | None,
        margins: FloatArray,
    ) -> RationalSystem:
        """Rows `plus - minus`, `(m, D)`, subtracted exactly, and margins `(m,)`; all finite."""
        numerators, scale = integers(plus if minus is None else np.stack([plus, minus]))
        if minus is None:
            rows = numerators
        else:
            rows = [
                [a - b for a, b in zip(left, right, strict=True)]
                for left, right in zip(*numerators, strict=True)
            ]
        margin_numerators, margin_scale = integers(margins)
        return cls(rows, scale, margin_numerators, margin_scale)


@dataclass(frozen=True)
class RationalSolution:
    """The exact solution of a hard-margin problem, with the multipliers that prove it.

    Attributes:
        system: the constraints, one row each.
        vector: the vector of least norm, `D` fractions.
        duals: one nonnegative multiplier per row; `vector` is their combination of the rows, and a
            positive multiplier sits on a tight row only. That makes `vector` the one solution:
            `‖u‖² - ‖vector‖² >= ‖u - vector‖²` for every other feasible `u`.
    """

    system: RationalSystem
    vector: Rationals
    duals: Rationals

    @property
    def norm_squared(self) -> Fraction:
        """`‖vector‖²`; the squared margin is its inverse."""
        return sum((x * x for x in self.vector), Fraction())

    @property
    def active(self) -> tuple[bool, ...]:
        """Whether each row is exactly tight."""
        return tuple(slack == 0 for slack in _scaled_slacks(self.system, self.vector))

    def violations(self) -> tuple[str, ...]:
        """The optimality conditions that fail, as sentences; empty for a valid certificate."""
        return solution_violations(self.system, self.vector, self.duals)

    def zero_multiplier_rows(self) -> tuple[int, ...]:
        """Tight rows whose multiplier is zero in *every* dual solution, not in this one alone.

        Row j has a positive multiplier in some dual solution unless a vector `u` exists with
        `a·u = 0` on the rows of positive multiplier, `a·u >= 0` on the other tight rows and
        `a_j·u >= 1` (linear programming duality). That is again a system to solve exactly.
        """
        tight = [j for j, is_active in enumerate(self.active) if is_active]
        support = [j for j in tight if self.duals[j]]
        silent = [j for j in tight if not self.duals[j]]
        rows = self.system.rows
        both_signs = [*(rows[j] for j in support), *([-x for x in rows[j]] for j in support)]
        found = []
        for j in silent:
            margins = [0] * len(both_signs) + [int(k == j) for k in silent]
            probe = RationalSystem([*both_signs, *(rows[k] for k in silent)], 1, margins, 1)
            if isinstance(solve(probe), RationalSolution):
                found.append(j)
        return tuple(found)


@dataclass(frozen=True)
class FarkasCertificate:
    """Nonnegative multipliers that contradict the constraints.

    They combine the rows to the zero vector and the margins to a positive number, so no vector
    meets every constraint.

    Attributes:
        system: the constraints, one row each.
        multipliers: one per row, scaled to integers without a common factor.
    """

    system: RationalSystem
    multipliers: Rationals

    def violations(self) -> tuple[str, ...]:
        """The identities that fail, as sentences; empty for a valid certificate."""
        return farkas_violations(self.system, self.multipliers)


def integers(values: FloatArray) -> tuple[list[Any], int]:
    """Nested lists of integers and the least power of two `s` with `values = integers / s`."""
    ratios = [x.as_integer_ratio() for x in values.ravel().tolist()]
    scale = max((denominator for _, denominator in ratios), default=1)
    flat = np.empty(values.size, dtype=object)
    flat[:] = [numerator * (scale // denominator) for numerator, denominator in ratios]
    return flat.reshape(values.shape).tolist(), scale


def solve(system: RationalSystem, warm_start: Iterable[int] = ()) -> RationalSolution | FarkasCertificate:
    """Solve a hard-margin problem exactly.

    `warm_start` names rows that are expected to carry positive multipliers, for instance those of
    a floating-point solution; a wrong guess costs time, never correctness.
    """
    weights, denominator = _nonnegative_least_squares(system.rows, system.margins, warm_start)
    # residual² = 1 - b·y, over the common denominator of y
    residual = denominator - sum(system.margins[j] * y for j, y in weights.items())
    count, dimension = len(system.rows), len(system.rows[0])
    if residual == 0:
        divisor = gcd(*weights.values())
        multipliers = [Fraction()] * count
        for j, y in weights.items():
            multipliers[j] = Fraction(y // divisor)
        return FarkasCertificate(system, tuple(multipliers))
    # The integer problem is the given one under w -> w · margin_scale / row_scale.
    stretch = Fraction(system.row_scale, residual * system.margin_scale)
    combined = _combine(system.rows, weights, dimension)
    duals = [Fraction()] * count
    for j, y in weights.items():
        duals[j] = y * stretch * system.row_scale
    return RationalSolution(system, tuple(x * stretch for x in combined), tuple(duals))


def _nonnegative_least_squares(
    rows: IntegerRows, margins: Sequence[int], warm_start: Iterable[int]
) -> tuple[dict[int, int], int]:
    """Lawson and Hanson's active-set method on the columns `(a_j, b_j)`, target `(0, 1)`.

    Returns `(numerators of the positive entries of y, their common denominator)`. Terminates
    because every pass of the outer loop lowers the residual of a least-squares problem that is
    determined by its support; no tolerance is involved.
    """
    columns = [(*row, margin) for row, margin in zip(rows, margins, strict=True)]
    sizes = [max(map(abs, column)).bit_length() for column in columns]
    largest = max(sizes)
    weights, denominator = _restrict(columns, list(warm_start))
    while True:
        fitted = _combine(columns, weights, len(columns[0]))
        fitted[-1] -= denominator
        # Negative gradient of each idle column, over `denominator`. Entering the column that is
        # best relative to its size (to a power of two) only saves iterations.
        best, entering = 0, -1
        for j, column in enumerate(columns):
            if j not in weights:
                descent = -_dot(column, fitted) << (largest - sizes[j])
                if descent > best:
                    best, entering = descent, j
        if entering < 0:
            return weights, denominator
        weights, denominator = _advance(columns, weights, denominator, entering)


def _advance(
    columns: IntegerRows, weights: dict[int, int], denominator: int, entering: int
) -> tuple[dict[int, int], int]:
    """Let one column enter, and go to the nearest support on which the fit is positive."""
    current = {j: Fraction(y, denominator) for j, y in weights.items()}
    current[entering] = Fraction()
    while True:
        support = list(current)
        # A column that can enter is never a combination of the support, to which the residual is
        # orthogonal, and removing columns keeps the rest independent: a solution exists.
        solved = _least_squares(columns, support)
        assert solved is not None
        numerators, denominator = solved
        if all(y > 0 for y in numerators):
            return dict(zip(support, numerators, strict=True)), denominator
        target = {j: Fraction(y, denominator) for j, y in zip(support, numerators, strict=True)}
        step = min(y / (y - target[j]) for j, y in current.items() if target[j] <= 0)
        moved = {j: y + step * (target[j] - y) for j, y in current.items()}
        current = {j: y for j, y in moved.items() if y > 0}


def _restrict(columns: IntegerRows, support: list[int]) -> tuple[dict[int, int], int]:
    """The least-squares fit on a guessed support, shrunk until it is positive.

    Dependent columns have no unique fit; then nothing is taken over from the guess.
    """
    while support:
        solved = _least_squares(columns, support)
        if solved is None:
            break
        numerators, denominator = solved
        if all(y > 0 for y in numerators):
            return dict(zip(support, numerators, strict=True)), denominator
        support = [j for j, y in zip(support, numerators, strict=True) if y > 0]
    return {}, 1


def _least_squares(columns: IntegerRows, support: list[int]) -> tuple[list[int], int] | None:
    """Solve the normal equations of the supporting columns without fractions.

    Fraction-free Gauss–Jordan elimination (Bareiss): all divisions are exact, and every diagonal
    entry ends as the determinant, which is positive for independent columns. Returns the solution's
    numerators and that denominator, or None for dependent columns.
    """
    chosen = [columns[j] for j in support]
    table = [[*(_dot(left, right) for right in chosen), left[-1]] for left in chosen]
    previous = 1
    for k, pivot_row in enumerate(table):
        pivot = pivot_row[k]
        if pivot == 0:
            return None
        tail = pivot_row[k + 1 :]
        for i, row in enumerate(table):
            if i != k:
                factor = row[k]
                row[k + 1 :] = [
                    (pivot * x - factor * y) // previous for x, y in zip(row[k + 1 :], tail, strict=True)
                ]
        previous = pivot
    return [row[-1] for row in table], previous


def _dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(map(mul, left, right))


def _combine(rows: IntegerRows, weights: dict[int, int], dimension: int) -> list[int]:
    """`Σ weights[j] · rows[j]`."""
    if not weights:
        return [0] * dimension
    coefficients = list(weights.values())
    return [_dot(coefficients, entries) for entries in zip(*(rows[j] for j in weights), strict=True)]


# --- Independent verification -------------------------------------------------------------------


def solution_violations(
    system: RationalSystem, vector: Sequence[Fraction], duals: Sequence[Fraction]
) -> tuple[str, ...]:
    """Check the optimality conditions of a hard-margin problem, exactly and by definition."""
    found = []
    slacks = _scaled_slacks(system, vector)
    for j, slack in enumerate(slacks):
        if slack < 0:
            found.append(f"row {j} misses its margin")
        if duals[j] < 0:
            found.append(f"multiplier {j} is negative")
        if duals[j] and slack:
            found.append(f"row {j} has a nonzero multiplier but is not tight")
    combined = _combined_rows(system, duals)
    if any(total != system.row_scale * x for total, x in zip(combined, vector, strict=True)):
        found.append("the vector is not the combination of the rows by the multipliers")
    return tuple(found)


def farkas_violations(system: RationalSystem, multipliers: Sequence[Fraction]) -> tuple[str, ...]:
    """Check a Farkas certificate, exactly and by definition."""
    found = [f"multiplier {j} is negative" for j, y in enumerate(multipliers) if y < 0]
    if any(_combined_rows(system, multipliers)):
        found.append("the rows do not combine to the zero vector")
    if sum(y * margin for y, margin in zip(multipliers, system.margins, strict=True)) <= 0:
        found.append("the margins do not combine to a positive number")
    return tuple(found)


def _scaled_slacks(system: RationalSystem, vector: Sequence[Fraction]) -> list[int]:
    """`a_j·vector - b_j` for every row, times one positive integer common to all rows."""
    denominator = lcm(*(x.denominator for x in vector))
    numerators = [x.numerator * (denominator // x.denominator) for x in vector]
    unit = system.row_scale * denominator
    return [
        system.margin_scale * sum(a * x for a, x in zip(row, numerators, strict=True)) - unit * margin
        for row, margin in zip(system.rows, system.margins, strict=True)
    ]


def _combined_rows(system: RationalSystem, weights: Sequence[Fraction]) -> list[Fraction]:
    """`Σ weights[j] · rows[j]` in the integer rows of the system."""
    total = [Fraction()] * len(system.rows[0])
    for weight, row in zip(weights, system.rows, strict=True):
        if weight:
            total = [t + weight * a for t, a in zip(total, row, strict=True)]
    return total
