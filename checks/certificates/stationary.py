"""Finite stationary points, proved to exist and to attract (Krawczyk's method in ball arithmetic).

R. Krawczyk, Computing 4 (1969): for a box `X` around `x̃` and any matrix `Y`, every zero of `g` in `X`
lies in `K(X) = x̃ − Y g(x̃) + (I − Y g'(X))(X − x̃)`; if `K(X)` lies in the interior of `X`, there is
exactly one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from flint import arb

from ..problems import SelectionProblem
from ..validation import FloatArray
from .enclosures import (
    ENCLOSED_LOSSES,
    PRECISION,
    Vector,
    between,
    dot,
    gradient_and_hessian,
    vector,
    working_precision,
)

# The box is this many times the Newton correction at its centre, so that K(X) has room to shrink.
_INFLATION = 8.0
# A box costs a third of a millisecond in two dimensions; this many reach about half as far as the Hessian
# is definite on the sets tried, where one box reaches a twentieth.
_MOST_BOXES = 256


@dataclass(frozen=True, eq=False)
class ContractionBall:
    """A ball around a stationary point in which the risk is strictly convex.

    There is exactly one zero `p*` of the gradient within `error` of `centre`. Gradient flow, and gradient
    descent with a step up to `1/problem.smoothness`, that enters the ball of radius `radius` around `p*`
    stays in it and converges to `p*`.

    Attributes:
        centre: `(D,)`.
        error: bound on `‖p* − centre‖`.
        radius: of the ball around `p*`.
    """

    centre: FloatArray
    error: float
    radius: float

    def holds(self, p: FloatArray) -> bool:
        """Whether `p` lies in the ball, wherever in its error bound `p*` is."""
        distance = float(np.linalg.norm(p - self.centre)) * (1 + 1e-12)
        return bool(distance + self.error <= self.radius)


def contraction_ball(
    problem: SelectionProblem, centre: npt.ArrayLike, radius: float = 0.0
) -> ContractionBall | None:
    """Prove that a zero of the gradient lies next to `centre` and attracts, or return `None`.

    The ball certified is the smallest that surely contains every point within `radius` of `centre`: it
    `holds` each of them.

    Args:
        problem: with a built-in loss. The keys have to span all `D` dimensions: across their span the
            risk is flat, and no stationary point is isolated.
        centre: `(D,)`, an approximate zero, for instance from Newton's method.
        radius: distance from `centre` that the ball should cover.

    Raises:
        ValueError: `centre` does not fit the problem, or `radius` is negative or not finite.
    """
    point = problem.query(centre, "centre")
    radius = float(radius)
    if not (radius >= 0 and math.isfinite(radius)):
        raise ValueError(f"radius: got {radius:g}, expected a finite number of at least 0")
    if problem.loss not in ENCLOSED_LOSSES:
        return None
    with working_precision(PRECISION):
        error = _existence(problem, point)
        if error is None:
            return None
        # Twice the error: once because p* is not the centre, once for `holds`.
        reach = radius * (1 + 1e-9) + 2 * error
        if not _is_convex(problem, point, reach + 2 * error):
            return None
    return ContractionBall(point, error, reach)


def _existence(problem: SelectionProblem, point: FloatArray) -> float | None:
    """A bound on the distance of exactly one stationary point, by Krawczyk's test."""
    exact = vector(point)
    gradient, hessian = gradient_and_hessian(problem, exact)
    middle = _floats(hessian)
    try:
        inverse = np.linalg.inv(middle)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all():
        return None
    rows = [vector(row) for row in inverse]
    correction = [dot(row, gradient) for row in rows]
    size = max(float(abs(x).upper()) for x in correction)
    # A correction of zero still needs a box with an interior.
    half_width = _INFLATION * size + 4 * float(np.finfo(float).eps) * (float(np.abs(point).max()) + 1e-3)
    if not math.isfinite(half_width):
        return None
    offset = arb(0, half_width)
    _, around = gradient_and_hessian(problem, [x + offset for x in exact])
    for a, (row, shift) in enumerate(zip(rows, correction, strict=True)):
        image = -shift
        for b, column in enumerate(zip(*around, strict=True)):
            image += (int(a == b) - dot(row, column)) * offset
        if not abs(image) < half_width:
            return None
    return half_width * math.sqrt(len(point)) * (1 + 1e-12)


def _is_convex(problem: SelectionProblem, point: FloatArray, reach: float) -> bool:
    """Whether the Hessian is positive definite in every point within `reach` of `point`.

    Boxes on which that cannot be shown at once are halved, unless it fails in their very centre.
    """
    queue = [(point - reach, point + reach)]
    for _ in range(_MOST_BOXES):
        if not queue:
            return True
        low, high = queue.pop()
        nearest = np.clip(point, low, high) - point
        if np.linalg.norm(nearest) > reach * (1 + 1e-9):
            continue
        if _is_definite(problem, [between(arb(a), arb(b)) for a, b in zip(low, high, strict=True)]):
            continue
        middle = (low + high) / 2
        if not _is_definite(problem, vector(middle)):
            return False
        widest = int(np.argmax(high - low))
        cut_high, cut_low = high.copy(), low.copy()
        cut_high[widest] = cut_low[widest] = middle[widest]
        queue += [(low, cut_high), (cut_low, high)]
    return not queue


def _is_definite(problem: SelectionProblem, box: Vector) -> bool:
    """Whether the Hessian is positive definite on a box.

    An interval Cholesky factorisation, in the eigenvectors of a Hessian inside: they are nearly
    orthogonal, and a product `VᵀHV` can only be positive definite if `H` is and `V` is regular.
    """
    _, hessian = gradient_and_hessian(problem, box)
    middle = _floats(hessian)
    if not np.isfinite(middle).all():
        return False
    _, vectors = np.linalg.eigh(middle)
    basis = [vector(column) for column in vectors.T]
    table = [[dot(left, [dot(row, right) for row in hessian]) for right in basis] for left in basis]
    size = len(table)
    for k in range(size):
        pivot = table[k][k]
        if not pivot > 0:
            return False
        for a in range(k + 1, size):
            ratio = table[a][k] / pivot
            for b in range(k + 1, a + 1):
                table[a][b] -= ratio * table[b][k]
                table[b][a] = table[a][b]
    return True


def _floats(matrix: list[Vector]) -> FloatArray:
    return np.array([[float(x.mid()) for x in row] for row in matrix])
