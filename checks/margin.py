"""Hard-margin problems: ATT-SVM, its relaxed form, the label SVM, and the general oracle.

All are `min ‖w‖ subject to a_j·w >= b_j` ([MM], arXiv 2306.13596, ATT-SVM; `b_j = 0` on relaxed
rows as in its Theorem 6). Whatever floating point cannot settle beyond rounding, and every claim of
infeasibility, is decided in exact arithmetic; see `checks.least_norm` and `checks.exact`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .exact import FarkasCertificate, RationalSolution
from .least_norm import ACCURACY, BoolArray, Constraints, Residuals
from .problems import JointProblem, SelectionProblem
from .validation import FloatArray, finite_array, unit


@dataclass(frozen=True, eq=False)
class MarginSolution:
    """The vector of least norm that gives every constraint its margin.

    Attributes:
        vector: `(D,)`.
        duals: nonnegative multipliers, `vector = Σ duals·rows`; `(n, T)` with 0 at the selected
            tokens for `att_svm`, one per row otherwise.
        constraints: the problem solved.
    """

    vector: FloatArray
    duals: FloatArray
    constraints: Constraints = field(repr=False)

    @property
    def margin(self) -> float:
        """Margin of the unit vector, `1 / ‖vector‖`."""
        peak = float(np.abs(self.vector).max())  # keeps squares within range
        return float(1 / np.linalg.norm(self.vector / peak)) / peak

    @cached_property
    def direction(self) -> FloatArray:
        """`vector / ‖vector‖`, `(D,)`."""
        direction = unit(self.vector)
        direction.setflags(write=False)
        return direction

    @cached_property
    def active(self) -> BoolArray:
        """Whether each margin is tight up to the accuracy of `vector`, shape of `duals`.

        Whether it is tight exactly is `exact.active`, or `selection.svm_neighbours`.
        """
        return self.constraints.spread(self.constraints.scaled.tight(self.vector))

    @cached_property
    def residuals(self) -> Residuals:
        """Optimality residuals, recomputed from `vector` and `duals`."""
        return self.constraints.scaled.residuals(self.vector, self._row_duals)

    @property
    def gap(self) -> float:
        """Relative duality gap, see `Residuals`."""
        return self.residuals.gap

    @cached_property
    def exact(self) -> RationalSolution | None:
        """The solution over the rationals, with its proof; computed when first asked for."""
        result = self.constraints.certified(np.flatnonzero(self._row_duals))
        if not isinstance(result, RationalSolution):
            raise ArithmeticError(f"{self.constraints.title}: feasible in floats, not in fractions")
        return result

    @cached_property
    def error(self) -> float:
        """Distance of `vector` from the exact solution, relative to its norm."""
        true = self.certificate.vector
        # Subtracted as fractions: the two agree in nearly all digits that a float has.
        pairs = zip(self.vector.tolist(), true, strict=True)
        difference = [float(Fraction(computed) - x) for computed, x in pairs]
        return float(np.linalg.norm(difference) * self.margin)

    @cached_property
    def zero_multipliers(self) -> BoolArray:
        """Active constraints that have multiplier 0 in every dual solution, shape of `duals`.

        Duals need not be unique, so this is decided exactly. A constraint that is tight only up to
        rounding counts, and so does one whose multiplier is at rounding level: at any norm that a
        computation reaches they act like the exact case.
        """
        certificate = self.certificate
        silent = self.constraints.gather(self.active) & ~np.array(certificate.active)
        silent[list(certificate.zero_multiplier_rows())] = True
        pull = self._row_duals * np.linalg.norm(self.constraints.rows, axis=1)
        silent |= (pull > 0) & (pull <= ACCURACY * pull.max())
        return self.constraints.spread(silent)

    @property
    def is_degenerate(self) -> bool:
        """Whether some active constraint has multiplier 0 in every dual solution."""
        return bool(self.zero_multipliers.any())

    @property
    def certificate(self) -> RationalSolution:
        """`exact`, for those who cannot do without.

        Raises:
            ValueError: there is no exact solution.
        """
        if self.exact is None:
            raise ValueError(f"{self.constraints.title}: the solution has no exact certificate")
        return self.exact

    @property
    def _row_duals(self) -> FloatArray:
        return self.constraints.gather(self.duals)


class Infeasible(ValueError):  # noqa: N818  (part of the public contract)
    """No vector meets every margin; the message says so in a sentence, `proof` proves it.

    Attributes:
        proof: the exact constraints with nonnegative multipliers that combine the rows to zero and
            the margins to a positive number; `proof.violations()` checks it.
    """

    def __init__(self, message: str, proof: FarkasCertificate) -> None:
        super().__init__(message, proof)
        self.proof = proof

    @property
    def certificate(self) -> tuple[Fraction, ...]:
        """The multipliers, one per row, scaled to integers without a common factor."""
        return self.proof.multipliers

    def __str__(self) -> str:
        return str(self.args[0])


def att_svm(
    problem: SelectionProblem, alpha: Sequence[int], *, relaxed: Iterable[int] = ()
) -> MarginSolution:
    """ATT-SVM(alpha): the least `p` with `(k_{i,alpha_i} - k_it)·p >= 1` for all `t != alpha_i`.

    Args:
        problem: keys of shape `(n, T, D)`.
        alpha: index of the selected token of each input, length `n`.
        relaxed: inputs whose margins need only be 0 ([MM], Theorem 6).

    Raises:
        Infeasible: no vector separates the selected tokens.
        ValueError: `alpha` or `relaxed` is out of range, or no margin is left to keep.
    """
    constraints = selection_constraints(problem.keys, alpha, relaxed)
    tokens = problem.keys.shape[1]

    def name(j: int) -> str:
        i, t = divmod(int(constraints.slots[j]), tokens)
        return f"(k[{i},{alpha[i]}] - k[{i},{t}])"

    return _solution_or_proof(constraints, name)


def label_svm(joint: JointProblem, alpha: Sequence[int]) -> MarginSolution:
    """Label SVM: the least `v` with `Y_i v·x_{i,alpha_i} >= 1`; `duals` has shape `(n,)`.

    Raises:
        Infeasible: no head separates the labels of the selected tokens.
        ValueError: `alpha` is out of range.
    """
    n, tokens, _ = joint.tokens.shape
    alpha = checked_selection(alpha, n, tokens)
    points = joint.tokens[np.arange(n), alpha] * joint.labels[:, None]
    title = f"labels of the tokens {alpha}"
    constraints = Constraints(title, points, None, np.ones(n), (n,), np.arange(n))
    return _solution_or_proof(constraints, lambda i: f"Y[{i}] x[{i},{alpha[i]}]")


def hard_margin(rows: npt.ArrayLike, margins: npt.ArrayLike = 1.0) -> MarginSolution:
    """The least `w` with `rows @ w >= margins`.

    Args:
        rows: `(m, D)`.
        margins: a number or `(m,)`; nonnegative, not all zero.

    Raises:
        Infeasible: no vector meets every margin.
        ValueError: an argument has the wrong shape, is not finite, or is out of range.
    """
    matrix = finite_array(rows, "rows", ("m", "D"))
    count = len(matrix)
    if np.ndim(margins) == 0:
        margins = np.full(count, margins)
    demanded = finite_array(margins, "margins", ("m",))
    if demanded.shape != (count,):
        raise ValueError(f"margins: got shape {demanded.shape}, expected a number or ({count},), one per row")
    if demanded.min() < 0 or not demanded.any():
        raise ValueError(f"margins: got {demanded.tolist()}, expected no negative entry and a positive one")
    constraints = Constraints("hard margin", matrix, None, demanded, (count,), np.arange(count))
    return _solution_or_proof(constraints, lambda j: f"rows[{j}]")


def checked_selection(alpha: Sequence[int], n: int, tokens: int) -> tuple[int, ...]:
    """`alpha` as a tuple of `n` token indices.

    Raises:
        ValueError: it is not one.
    """
    expected = f"expected {n} token indices from 0 to {tokens - 1}, one per input"
    try:
        chosen = tuple(operator.index(t) for t in alpha)
    except TypeError as error:
        raise ValueError(f"alpha: got {alpha!r}, {expected}") from error
    if len(chosen) != n:
        raise ValueError(f"alpha: got {len(chosen)} entries, {chosen}, {expected}")
    for i, t in enumerate(chosen):
        if not 0 <= t < tokens:
            raise ValueError(f"alpha[{i}]: got {t}, {expected}")
    return chosen


def selection_constraints(keys: FloatArray, alpha: Sequence[int], relaxed: Iterable[int] = ()) -> Constraints:
    """The constraints of ATT-SVM(alpha) for keys `(n, T, D)`, input by input, token by token.

    Raises:
        ValueError: `alpha` or `relaxed` is out of range, or no margin is left to keep.
    """
    n, tokens, dim = keys.shape
    alpha = checked_selection(alpha, n, tokens)
    inputs = np.arange(n)
    others = np.ones((n, tokens), dtype=bool)
    others[inputs, alpha] = False
    slots = np.flatnonzero(others)
    margins = np.ones((n, tokens - 1))
    for i in relaxed:
        if not 0 <= i < n:
            raise ValueError(f"relaxed: got {i!r}, expected indices of inputs from 0 to {n - 1}")
        margins[i] = 0.0
    if not margins.any():
        raise ValueError(f"relaxed: got all {n} inputs, expected one or more to keep margin 1")
    return Constraints(
        title=f"selection {alpha}",
        plus=np.repeat(keys[inputs, alpha], tokens - 1, axis=0),
        minus=keys.reshape(-1, dim)[slots],
        margins=margins.ravel(),
        shape=(n, tokens),
        slots=slots,
    )


def solve_constraints(constraints: Constraints) -> MarginSolution | FarkasCertificate:
    """The solution, or a verified proof that there is none."""
    scaled = constraints.scaled
    support = scaled.support()
    closed = scaled.closed_form(support)
    if closed is not None:
        certificate = None
        vector, duals = scaled.vector_of(closed[0]), scaled.duals_of(closed[1])
        carrying = int(np.count_nonzero(closed[1]))
    else:
        certificate = constraints.certified(support.tolist())
        if isinstance(certificate, FarkasCertificate):
            return certificate
        vector, duals = _floats(certificate.vector), _floats(certificate.duals)
        carrying = sum(map(bool, certificate.duals))
    overflow = not (np.isfinite(vector).all() and np.isfinite(duals).all())
    if overflow or np.count_nonzero(duals) < carrying:
        raise ValueError(
            f"{constraints.title}: the solution leaves the range of double precision, "
            "expected data nearer to 1"
        )
    vector.setflags(write=False)
    solution = MarginSolution(vector, constraints.spread(duals), constraints)
    if certificate is not None:
        solution.__dict__["exact"] = certificate  # what the cached property would compute
    return solution


def _floats(values: Iterable[Fraction]) -> FloatArray:
    """Correctly rounded, infinite where out of range."""

    def rounded(value: Fraction) -> float:
        try:
            return float(value)
        except OverflowError:
            return float("inf")

    return np.array([rounded(x) for x in values])


def _solution_or_proof(constraints: Constraints, name: Callable[[int], str]) -> MarginSolution:
    """Solve, and raise `Infeasible` with a readable sentence if there is no solution."""
    result = solve_constraints(constraints)
    if isinstance(result, MarginSolution):
        return result
    terms = [
        f"{'' if weight == 1 else f'{weight} '}{name(j)}"
        for j, weight in enumerate(result.multipliers)
        if weight
    ]
    identity = " + ".join(terms)
    if len(identity) > _READABLE_IDENTITY:
        identity = f"a combination with positive coefficients of {len(terms)} constraint rows"
    raise Infeasible(f"{constraints.title}: no vector meets every margin, because {identity} is zero", result)


# Longer identities (many rows, or coefficients from data off any lattice) are left to the proof.
_READABLE_IDENTITY = 240
