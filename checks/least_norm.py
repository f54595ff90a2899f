"""The floating-point side of hard-margin problems: scaling, solving, and recomputed residuals.

`min ‖w‖ subject to a_j·w >= b_j` is solved on rows scaled to unit norm, since solvers misjudge both
feasibility and optimality when the data are large or small. Nonnegative least squares proposes the
rows with positive multipliers; a singular value decomposition of these rows gives `w` and the
multipliers in closed form, with the condition number. The answer is kept only when the data prove
it feasible beyond rounding and it is well conditioned; the caller settles the rest exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from .exact import FarkasCertificate, RationalSolution, RationalSystem, solve
from .validation import FloatArray

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

ROUNDING: float = float(np.finfo(np.float64).eps) / 2

ACCURACY = 1e-11
"""Relative accuracy demanded of a floating-point solution.

Three digits below the finest direction that is compared anywhere (1e-8).
"""

# The relative error of the closed form in units of condition · rounding: at most 14 on 640 random
# sets up to (n, T, D) = (20, 20, 50), compared with exact solutions.
_ERROR_UNITS = 32


def _product_rounding(rows: FloatArray) -> float:
    """Bounds the error of `rows @ w` relative to `‖row‖·‖w‖`.

    `D` roundings come from the products, four from the differences that made the rows and from
    scaling them.
    """
    return float(rows.shape[1] + 4) * ROUNDING


def certainly_positive(rows: FloatArray, vector: FloatArray) -> bool:
    """Whether `rows @ vector` is positive beyond doubt, for rows rounded from exact differences."""
    with np.errstate(over="ignore", invalid="ignore"):  # out of range is not beyond doubt
        bounds = _product_rounding(rows) * np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
        return bool((rows @ vector > bounds).all())


@dataclass(frozen=True)
class Residuals:
    """Optimality residuals of a solution, recomputed from its vector and multipliers.

    Attributes:
        primal: largest shortfall of a margin, relative to `‖row‖·‖vector‖`.
        stationarity: `‖vector - Σ duals·rows‖ / ‖vector‖`.
        complementarity: `Σ duals·|slack| / ‖vector‖²`.
        gap: `upper / lower - 1` for the bounds on the least norm that follow by weak duality from
            `vector`, scaled until every positive margin is met, and from `duals`.
    """

    primal: float
    stationarity: float
    complementarity: float
    gap: float


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rows `plus - minus`, `(m, D)`, with margins `(m,)`, and where their multipliers belong.

    The rows are kept as differences, because floating-point subtraction rounds and a certificate
    must speak of the data as given. Row j belongs at flat position `slots[j]` of an array of
    shape `shape`.
    """

    title: str
    plus: FloatArray
    minus: FloatArray | None
    margins: FloatArray
    shape: tuple[int, ...]
    slots: IntArray

    @cached_property
    def rows(self) -> FloatArray:
        """The rows in floating point, each entry correctly rounded.

        Raises:
            ValueError: a difference is out of range.
        """
        if self.minus is None:
            return self.plus
        with np.errstate(over="ignore"):
            rows: FloatArray = self.plus - self.minus
        if not np.isfinite(rows).all():
            raise ValueError(f"{self.title}: key differences overflow, expected smaller keys")
        return rows

    @cached_property
    def rational(self) -> RationalSystem:
        """The constraints as exact integers over a common denominator."""
        return RationalSystem.from_floats(self.plus, self.minus, self.margins)

    def certified(self, support: Iterable[int] = ()) -> RationalSolution | FarkasCertificate:
        """Solve exactly, starting from a guess of the rows with multipliers, and verify."""
        result = solve(self.rational, support)
        violations = result.violations()
        if violations:
            raise ArithmeticError(f"{self.title}: invalid certificate: {'; '.join(violations)}")
        return result

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values per row, `(m,)`, as a read-only array of shape `shape` that is zero elsewhere."""
        full = np.zeros(int(np.prod(self.shape)), dtype=values.dtype)
        full[self.slots] = values
        full = full.reshape(self.shape)
        full.setflags(write=False)
        return full

    def gather(self, full: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values per row, `(m,)`, of an array of shape `shape`."""
        return full.ravel()[self.slots]

    @cached_property
    def scaled(self) -> Scaled:
        """The same problem on unit rows."""
        return Scaled.of(self.rows, self.margins)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A hard-margin problem with unit rows and margins of at most about 1.

    `w` solves the given problem when `w / 2**shift` solves this one; multipliers of the given rows
    are `2**(shift - exponents) / norms` times those of the unit rows.
    """

    rows: FloatArray
    margins: FloatArray
    norms: FloatArray
    exponents: IntArray
    shift: int

    @classmethod
    def of(cls, rows: FloatArray, margins: FloatArray) -> Scaled:
        """Scale by powers of two first, which is exact and keeps squares within range."""
        _, exponents = np.frexp(np.abs(rows).max(axis=1))
        units = np.ldexp(rows, -exponents[:, None])
        norms = np.sqrt(np.einsum("ij,ij->i", units, units))
        norms[norms == 0] = 1.0
        units /= norms[:, None]
        mantissas, magnitudes = np.frexp(margins / norms)
        magnitudes -= exponents
        shift = int(magnitudes[mantissas > 0].max())
        return cls(units, np.ldexp(mantissas, magnitudes - shift), norms, exponents, shift)

    def vector_of(self, vector: FloatArray) -> FloatArray:
        """The solution of the given problem from that of the scaled one."""
        with np.errstate(over="ignore"):  # the caller looks for infinities
            return np.ldexp(vector, self.shift)

    def duals_of(self, duals: FloatArray) -> FloatArray:
        """Multipliers of the given rows from those of the unit rows."""
        with np.errstate(over="ignore"):
            return np.ldexp(duals / self.norms, self.shift - self.exponents)

    def residuals(self, vector: FloatArray, duals: FloatArray) -> Residuals:
        """Residuals of a vector and multipliers of the given problem."""
        w = np.ldexp(vector, -self.shift)
        weights = np.ldexp(duals * self.norms, self.exponents - self.shift)
        norm = float(np.linalg.norm(w))
        reached = self.rows @ w
        slack = reached - self.margins
        combined = weights @ self.rows
        positive = self.margins > 0
        met = float((reached[positive] / self.margins[positive]).min())
        lower = float(self.margins @ weights / np.linalg.norm(combined))
        return Residuals(
            primal=max(0.0, -float(slack.min())) / norm,
            stationarity=float(np.linalg.norm(w - combined)) / norm,
            complementarity=float(weights @ np.abs(slack)) / norm**2,
            gap=max(0.0, norm / met / lower - 1),
        )

    def tight(self, vector: FloatArray) -> BoolArray:
        """Rows whose margin a solution meets with equality, up to its accuracy."""
        w = np.ldexp(vector, -self.shift)
        result: BoolArray = self.rows @ w - self.margins <= ACCURACY * np.linalg.norm(w)
        return result

    def support(self) -> IntArray:
        """Rows expected to carry a multiplier, or to appear in a proof of infeasibility.

        Nonnegative least squares with columns `(a_j, b_j)` and target `(0, 1)` (Lawson and Hanson,
        least distance programming): its squared residual is `1 / (1 + ‖w‖²)`.
        """
        columns = np.vstack([self.rows.T, self.margins])
        target = np.zeros(len(columns))
        target[-1] = 1.0
        try:
            weights, residual = nnls(columns, target)
            if residual < _SMALL_RESIDUAL:
                # Margins rescaled to bring ‖w‖ near 1, where the residual is not a small
                # difference. On an infeasible system this changes nothing but the weights' scale.
                columns[-1] *= max(residual, ROUNDING)
                weights, _ = nnls(columns, target)
        except RuntimeError:  # iteration limit: the exact solver starts without a guess
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(weights > 0)

    def closed_form(self, support: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Solution and multipliers of the scaled problem, from the rows that carry multipliers.

        None unless it is certainly feasible, has the signs of a solution, and is accurate.
        """
        if len(support) == 0 or len(support) > self.rows.shape[1]:
            return None
        left, singular, right = np.linalg.svd(self.rows[support], full_matrices=False)
        if singular[-1] * ACCURACY <= _ERROR_UNITS * ROUNDING * singular[0]:
            return None
        coordinates = (self.margins[support] @ left) / singular
        vector = coordinates @ right
        duals = np.zeros(len(self.margins))
        duals[support] = left @ (coordinates / singular)
        reached = self.rows @ vector
        rounding = _product_rounding(self.rows) * float(np.linalg.norm(vector))
        certain = reached.min() > rounding
        optimal = (reached - self.margins).min() >= -_ERROR_UNITS * rounding
        return (vector, duals) if certain and optimal and duals.min() >= 0 else None


# Below this residual ‖w‖ exceeds 100 and four digits of the residual have cancelled.
_SMALL_RESIDUAL = 1e-2
