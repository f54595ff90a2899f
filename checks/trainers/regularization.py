"""Regularisation paths: minimisers of the risk over balls ([MM], Theorem 1).

Over `‖p‖ ≤ R` the risk comes within `e^{−ΓR}` of its infimum, so the risk itself distinguishes no two
candidates from about `ΓR = 37` on. What is minimised is the log-domain gap

    F(p) = log Σ_i [ℓ(γ̄_i) − ℓ(γ_i,opt)],        L(p) = L* + e^{F(p)}/n,

which has the same minimisers and never underflows: it falls like `−ΓR`, with gradient and Hessian of
ordinary size at any norm. Each local search is a Newton method with a trust region, inside the ball or
in the tangent space of its sphere; which minimum is global is decided among many starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..attention import PairwiseRisk, log_softmax
from ..margin import Infeasible, hard_margin
from ..problems import SelectionProblem
from ..selection import EnumerationLimitError, lmm_directions
from ..validation import FloatArray, finite_array
from .flow import span

# Radii in logits, 1/A with A the longest key difference. Below one logit the risk is nearly linear; from
# there the ladder goes up in decades, so that a minimum in the interior is met while it is in sight.
_FIRST_LOGITS = 1.0
_LADDER = 10.0
# Random points looked at on each rung, half on the sphere and half within the decade below it, and how
# many of them are started from: those below all others within 0.3 radii. Limits that are no LMM direction
# (where keys coincide, say) are found by them alone.
_SAMPLES, _SAMPLED_STARTS, _SAMPLES_APART = 256, 8, 0.3
_SEED = 0  # Any, but always the same: a path repeats.
# Local minima carried to the next radius, the lowest first.
_CARRIED = 8
# Minima closer than this many logits are one.
_SAME_LOGITS = 1e-3
# Starts closer than this share of the radius lead to the same minimum: the trust region bridges it.
_SAME_START = 0.02
# Solves spent on LMM directions, about a second, and choices among tied tokens looked at.
_MOST_SELECTIONS = 2_000
_MOST_TIES = 64
# A search takes 9 steps on average, and 80 in one case of a thousand.
_MAX_STEPS = 200
# A step that is cut off at the trust radius has at least this share of its length.
_LEAST_SHARE = 0.9


@dataclass(frozen=True)
class BallMinimum:
    """The best point found in a ball.

    Attributes:
        radius: `R`.
        point: `(D,)`, in the span of the key differences.
        log_gap: `F(point)`, `-inf` where the risk is at its infimum.
        residual: norm of the projected gradient of `F` in units of the logit scale, at most rounding
            for a minimum on the sphere or inside.
        starts: number of local searches.
        agreeing: how many of them ended within a thousandth of a logit of `point`.
    """

    radius: float
    point: FloatArray
    log_gap: float
    residual: float
    starts: int
    agreeing: int


def regularization_path(
    problem: SelectionProblem, radii: npt.ArrayLike, p: float = 2
) -> tuple[FloatArray, FloatArray]:
    """Global minimisers of the risk over `‖p‖ ≤ R` for each `R` in `radii`.

    Args:
        problem: keys, scores and loss.
        radii: `(m,)` positive radii, in any order.
        p: the norm of the ball; only 2 for now.

    Returns:
        `(radii, minimisers)` of shapes `(m,)` and `(m, D)`, in the order given. Each minimiser is the one
        of least norm in its class: the risk does not change across the span of the key differences.
        Of several global minimisers, as in symmetric problems, one is returned.

    "Global" rests on the search: it starts from every LMM direction (unless it takes more than 2,000
    solves to find them), the best directions among tied optimal tokens, the local minima of all smaller
    radii, the origin, and eight low ones of 256 random points per radius. Where
    `certificates.ball_certificate` holds, it confines every global minimiser without a search.

    Raises:
        ValueError: `radii` is not a vector of positive numbers, or `p` is not 2.
    """
    if p != 2:
        raise ValueError(f"p: got {p!r}, expected 2: minimisers over other balls are not available yet")
    demanded = finite_array(radii, "radii", ("m",))
    if demanded.min() <= 0:
        raise ValueError(f"radii: got {demanded.min():g}, expected positive numbers")
    found = {
        minimum.radius: minimum.point for minimum in ball_minima(problem, sorted(set(demanded.tolist())))
    }
    return demanded, np.array([found[radius] for radius in demanded.tolist()])


def ball_minima(problem: SelectionProblem, radii: Sequence[float]) -> Iterator[BallMinimum]:
    """The minima of `regularization_path` with what the search did; `radii` must increase."""
    basis = span(problem.pairs.key_gap)
    gap = LogGap(problem, basis)
    if basis.shape[1] == 0:
        origin = np.zeros(problem.shape[2])
        for radius in radii:
            yield BallMinimum(radius, origin, gap.value(np.zeros(0)), 0.0, 1, 1)
        return
    directions = [basis.T @ d for d in _limit_directions(problem)]
    random = np.random.default_rng(_SEED)
    known: list[FloatArray] = [np.zeros(basis.shape[1])]
    first = _FIRST_LOGITS / gap.logit_scale
    rungs = [first * _LADDER**k for k in range(64) if first * _LADDER**k < radii[0]]
    for radius in [*rungs, *radii]:
        sample = random.standard_normal((_SAMPLES, basis.shape[1]))
        sample *= radius / np.linalg.norm(sample, axis=1, keepdims=True)
        sample[::2] *= _LADDER ** -random.random((_SAMPLES // 2, 1))
        starts = [radius * d for d in directions]
        starts += _lowest(sample, gap.values(sample), _SAMPLES_APART * radius)
        for z in known:
            starts += _continued(z, radius)
        minima = [gap.minimise(z, radius) for z in _distinct(starts, _SAME_START * radius)]
        minima.sort(key=lambda m: m[1])
        ends = [z for z, value, _ in minima if not gap.is_flat(z, value)]
        known = _distinct(ends, _SAME_LOGITS / gap.logit_scale)[:_CARRIED]
        if radius >= radii[0]:
            point, value, residual = minima[0]
            distances = gap.logit_scale * np.linalg.norm(np.array([z for z, _, _ in minima]) - point, axis=1)
            yield BallMinimum(
                radius, basis @ point, value, residual, len(minima), int((distances <= _SAME_LOGITS).sum())
            )


def _limit_directions(problem: SelectionProblem) -> list[FloatArray]:
    """Unit LMM directions, and for optimal tokens that tie the best direction of each choice among them."""
    try:
        found = [s.solution.direction for s in lmm_directions(problem, _MOST_SELECTIONS)]
    except (EnumerationLimitError, ValueError):  # too many, or some out of the range of doubles
        found = []
    best = problem.scores == problem.scores.max(axis=1, keepdims=True)
    choices = itertools.product(*(np.flatnonzero(row).tolist() for row in best))
    for alpha in itertools.islice(choices, _MOST_TIES):
        # Tied tokens share the attention at no loss: only the others have to be left behind.
        rows = (problem.keys[np.arange(len(alpha)), list(alpha)][:, None] - problem.keys)[~best]
        try:
            found.append(hard_margin(rows).direction)
        except (Infeasible, ValueError):
            continue
    return found


def _continued(z: FloatArray, radius: float) -> list[FloatArray]:
    """A minimum of a smaller ball as starts in that of `radius`.

    From where it is the search meets a minimum in between; carried outwards along its ray it is close to
    where a minimum on the sphere has moved.
    """
    norm = float(np.linalg.norm(z))
    return [z, z * (radius / norm)] if norm > 0 else [z]


def _lowest(points: FloatArray, values: FloatArray, apart: float) -> list[FloatArray]:
    """The points `(m, r)` below all others within `apart` of them, the lowest first, a few at most."""
    squares = (points**2).sum(axis=1)
    near = squares[:, None] + squares - 2 * points @ points.T <= apart**2
    lowest = np.flatnonzero(values <= np.where(near, values, math.inf).min(axis=1))
    return [points[k] for k in lowest[np.argsort(values[lowest], kind="stable")][:_SAMPLED_STARTS]]


def _distinct(points: list[FloatArray], apart: float) -> list[FloatArray]:
    """The points in order, without those within `apart` of an earlier one."""
    kept: list[FloatArray] = []
    for z in points:
        if all(np.linalg.norm(z - other) > apart for other in kept):
            kept.append(z)
    return kept


class LogGap:
    """`F(z) = log Σ_i [ℓ(γ̄_i) − ℓ(γ_i,opt)]` at `p = basis @ z`, for a `(D, r)` basis.

    Args:
        problem: keys, scores and loss.
        basis: orthonormal columns; the identity if not given.
    """

    def __init__(self, problem: SelectionProblem, basis: FloatArray | None = None) -> None:
        self.pairs: PairwiseRisk = problem.pairs if basis is None else problem.pairs.restricted(basis)
        self._loss = problem.loss
        self._best = problem.scores.max(axis=1)
        with np.errstate(divide="ignore"):  # an optimal token loses nothing
            self._log_drops = np.log(self._best[:, None] - problem.scores)
        self._log_inputs = math.log(len(self._best))
        self.logit_scale = self.pairs.logit_scale

    def values(self, points: FloatArray) -> FloatArray:
        """`F` at points `(m, r)`, `(m,)`; `-inf` if no input has anything to lose."""
        log_attention = log_softmax((self.pairs.keys @ points.T).transpose(2, 0, 1))
        log_drops = np.logaddexp.reduce(log_attention + self._log_drops, axis=2)
        result: FloatArray = np.logaddexp.reduce(self._loss.log_rise(self._best, log_drops), axis=1)
        return result

    def value(self, z: FloatArray) -> float:
        """`F(z)`."""
        return float(self.values(z[None])[0])

    def derivatives(self, z: FloatArray, value: float) -> tuple[FloatArray, FloatArray]:
        """Gradient `(r,)` and Hessian `(r, r)` of `F` at `z`, where `F` has `value`."""
        descent, jacobian = self.pairs.descent_jacobian(z)
        log_ratio = descent.log_norm - (value - self._log_inputs)
        if descent.log_norm == -math.inf:  # the Jacobian comes unscaled then
            return np.zeros_like(z), -math.exp(self._log_inputs - value) * (jacobian + jacobian.T) / 2
        gradient = -math.exp(log_ratio) * descent.direction
        hessian = -math.exp(log_ratio) * (jacobian + jacobian.T) / 2 - np.outer(gradient, gradient)
        return gradient, hessian

    def is_flat(self, z: FloatArray, value: float) -> bool:
        """Whether gradient and Hessian at `z` are below rounding: a plateau where tokens that are not
        optimal hold all attention, from which no search gets away.
        """
        gradient, hessian = self.derivatives(z, value)
        slope, bend = float(np.abs(gradient).max()), float(np.abs(hessian).max())
        return max(slope / self.logit_scale, bend / self.logit_scale**2) < float(np.finfo(float).eps)

    def minimise(self, start: FloatArray, radius: float) -> tuple[FloatArray, float, float]:
        """A local minimum over `‖z‖ ≤ radius`: the point, its value, and the residual.

        A trust region lets the search cross the plains of `F`, which is piecewise linear at large norm,
        in steps that double, and still settle within a fraction of a logit. The residual is the norm of
        the projected gradient divided by the logit scale.
        """
        z = _into_ball(start, radius)
        value = self.value(z)
        reach = radius / 4
        residual = math.inf
        for _ in range(_MAX_STEPS):
            gradient, hessian = self.derivatives(z, value)
            tangent, slope, curvature = _projected(z, gradient, hessian, radius)
            residual = float(np.linalg.norm(slope)) / self.logit_scale
            if residual <= self._rounding(z) * 1e-1:
                break
            step, predicted = _trust_region_step(slope, curvature, reach)
            moved = _into_ball(z + tangent @ step, radius, onto_sphere=tangent.shape[1] < z.size)
            new_value = self.value(moved)
            # Differences of F are right to this much; below it the gradient has to tell.
            noise = 4 * float(np.finfo(float).eps) * (abs(value) + self.logit_scale * radius)
            if predicted <= 100 * noise:
                if not self._settles(moved, new_value, radius, residual):
                    break
                z, value = moved, new_value
                continue
            gain = (value - new_value) / predicted
            length = float(np.linalg.norm(step))
            if gain < 0.25:
                reach = length / 4
            elif gain > 0.75 and length > 0.9 * reach:
                reach = min(2 * reach, 2 * radius)
            if gain > 0.05:
                z, value = moved, new_value
            elif reach * self.logit_scale <= 1e-12:
                break
        return z, value, residual

    def _settles(self, z: FloatArray, value: float, radius: float, residual: float) -> bool:
        """Whether the projected gradient at `z` is smaller than `residual`."""
        _, slope, _ = _projected(z, *self.derivatives(z, value), radius)
        return float(np.linalg.norm(slope)) / self.logit_scale < residual

    def _rounding(self, z: FloatArray) -> float:
        """Error of the gradient relative to its scale: that of the logits, one eps of their size each."""
        return float(np.finfo(float).eps) * (
            len(self.pairs.key_gap) + self.logit_scale * float(np.linalg.norm(z))
        )


def _into_ball(z: FloatArray, radius: float, onto_sphere: bool = False) -> FloatArray:
    norm = float(np.linalg.norm(z))
    return z * (radius / norm) if norm > radius or (onto_sphere and norm > 0) else z


def _projected(
    z: FloatArray, gradient: FloatArray, hessian: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Basis `(r, k)` of the directions that are free at `z`, with slope and curvature along them.

    On the sphere, where `F` still falls outwards, these are the tangents, and the curvature is that of
    the Lagrangian `F + λ(‖z‖² − R²)/2`; elsewhere all directions are free.
    """
    norm = float(np.linalg.norm(z))
    pull = -float(gradient @ z)
    if norm < radius * (1 - 1e-12) or pull <= 0:
        return np.eye(z.size), gradient, hessian
    tangent = _complement(z / norm)
    curvature = tangent.T @ hessian @ tangent + (pull / norm**2) * np.eye(z.size - 1)
    return tangent, tangent.T @ gradient, curvature


def _complement(unit: FloatArray) -> FloatArray:
    """Orthonormal basis `(r, r − 1)` of the complement of a unit vector, by a Householder reflection."""
    mirror = unit.copy()
    mirror[0] += math.copysign(1.0, unit[0])
    reflection: FloatArray = np.eye(unit.size) - np.outer(mirror, mirror) * (2 / (mirror @ mirror))
    return reflection[:, 1:]


def _trust_region_step(slope: FloatArray, curvature: FloatArray, reach: float) -> tuple[FloatArray, float]:
    """The step of length at most `reach` that lowers the quadratic model most, and by how much.

    Solved in eigenvectors of the curvature; the shift that makes the step as long as `reach` is bisected
    (Moré and Sorensen, SIAM J. Sci. Stat. Comput. 4, 1983).
    """
    eigenvalues, vectors = np.linalg.eigh(curvature)
    along = vectors.T @ slope
    least = float(eigenvalues[0])
    size = float(np.linalg.norm(along))

    def at(shift: float) -> FloatArray:
        result: FloatArray = -along / (eigenvalues + shift)
        return result

    step = at(0.0) if least > 0 else None
    if step is None or np.linalg.norm(step) > reach:
        low, high = max(0.0, -least), max(0.0, -least) + size / reach
        # The length need not be exact. In the hard case (no slope along the lowest eigenvector) the
        # step stays short however often the bracket is halved; other starts have to do the rest.
        for _ in range(40):
            middle = (low + high) / 2
            length = float(np.linalg.norm(at(middle)))
            low, high = (middle, high) if length > reach else (low, middle)
            if _LEAST_SHARE * reach <= length <= reach:
                break
        step = at(high)
    predicted = -float(along @ step + (eigenvalues * step) @ step / 2)
    return vectors @ step, predicted
