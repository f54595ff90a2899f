"""The map of one data set: the directions and stationary points that training can end in, and how often.

[MM] is arXiv 2306.13596. The directions are enumerated and proved; the stationary points are those that
flows and Newton's method found, so there may be more; the shares are of random starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .attention import PairwiseRisk
from .decisions import converges_in_direction, diverges
from .limits import Limit, limit_of
from .problems import SelectionProblem
from .selection import EnumerationLimitError, Selection, general_position_faults, lmm_directions
from .trainers import Path, gradient_flow
from .trainers.flow import cancellation_rounding, newton, span
from .trainers.path import StationaryPoint
from .validation import FloatArray, count, positive, whole

# Starts are drawn up to this many logits from the origin. There the weights of two tokens differ by a factor
# of up to e^10 = 22,000: further out a start has selected its tokens already.
_RADIUS_LOGITS = 10.0
# The first horizon of the flow, as in `limits`, and no less than this multiple of the radius of the starts.
_HORIZON_LOGITS = 1e4
_HORIZON_RADII = 1e3
# A zero of the gradient that rounding leaves free by more than the flow's own tolerance, in logits, has no
# place: far out in a valley the gradient along it is below the rounding of the gradient across.
_PLACED_LOGITS = 1e-3
# Margin problems to solve at most when selections are enumerated: 3 minutes at D = 30, seconds in the plane.
_MOST_SOLVES = 10_000
# Two results of Newton's method are the same point within their errors, or within this many logits.
_SAME_LOGITS = math.sqrt(np.finfo(float).eps)

# The flow is known to this many logits (local errors of 1e-3 over some steps, see `limits`). A random
# direction has a part along any unstable one; a few are tried, on both sides by chance.
_NUDGE_LOGITS = 1e-2
_NUDGES = 4
# Where neighbouring flows part by less than this factor, such an error stays below a logit: it is followed
# twice more only where it may not.
_PARTING = 100.0


@dataclass(frozen=True)
class Direction:
    """A locally max-margin direction.

    Attributes:
        selection: token index of each input.
        is_global: whether it selects the token of highest score of each input.
        margin: margin of the unit direction.
        direction: unit vector, of length `D`.
        support: for each input the tokens of margin exactly 1.
        is_degenerate: whether one of them has multiplier 0, so that paths converge more slowly.
        is_certified: whether the optimality conditions of ATT-SVM hold in rational arithmetic.
        starts: number of random starts whose flow ends in this direction.
    """

    selection: tuple[int, ...]
    is_global: bool
    margin: float
    direction: tuple[float, ...]
    support: tuple[tuple[int, ...], ...]
    is_degenerate: bool
    is_certified: bool
    starts: int


@dataclass(frozen=True)
class Rest:
    """A finite stationary point.

    Attributes:
        point: of length `D`; without components across the span of the key differences, on which the risk
            does not depend.
        attracting: whether the Hessian on that span is positive definite.
        residual: cancellation ratio of the gradient there (`ScaledVector.cancellation`).
        error: bound on its distance from an exact zero, from the rounding of the gradient.
        starts: number of random starts whose flow ends here.
    """

    point: tuple[float, ...]
    attracting: bool
    residual: float
    error: float
    starts: int


@dataclass(frozen=True)
class Elsewhere:
    """A direction in which flows end though it is not locally max-margin.

    Attributes:
        direction: unit vector, of length `D`.
        starts: number of random starts whose flow ends in it.
    """

    direction: tuple[float, ...]
    starts: int


@dataclass(frozen=True)
class Atlas:
    """What `atlas` found.

    Attributes:
        shape: `(n, T, D)`.
        loss: name of the loss.
        dimensions: dimension of the span of the key differences, in which all paths move.
        faults: why the data are not in general position, as sentences; empty if they are.
        directions: every locally max-margin direction, the global one first, then by decreasing margin.
        rests: the finite stationary points found, attracting ones first, then by norm.
        elsewhere: other limit directions found, by decreasing number of starts.
        undecided: number of starts for which no limit could be told.
        why_undecided: the first reason, a sentence, or empty.
        starts, seed, radius: number of random starts, their seed, and the radius of the ball that they fill
            uniformly.
    """

    shape: tuple[int, int, int]
    loss: str
    dimensions: int
    faults: tuple[str, ...]
    directions: tuple[Direction, ...]
    rests: tuple[Rest, ...]
    elsewhere: tuple[Elsewhere, ...]
    undecided: int
    why_undecided: str
    starts: int
    seed: int
    radius: float

    @property
    def in_general_position(self) -> bool:
        """Whether no input has tied scores or duplicate keys."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        return {**asdict(self), "in_general_position": self.in_general_position}


def default_radius(problem: SelectionProblem) -> float:
    """The radius of the ball of starts: 10 logits of the longest key difference."""
    return _RADIUS_LOGITS / problem.pairs.logit_scale


def atlas(problem: SelectionProblem, starts: int = 200, seed: int = 0, radius: float | None = None) -> Atlas:
    """Map where gradient flow can end, and where it ends from random starts.

    Args:
        problem: the problem.
        starts: number of random starts.
        seed: of the starts; the same seed, the same atlas.
        radius: of the ball in which they are uniform; `default_radius(problem)` if not given.

    Raises:
        EnumerationLimitError: there are too many feasible selections to list.
        ValueError: an argument is out of range.
    """
    starts, seed = count(starts, "starts"), whole(seed, "seed")
    if seed < 0:
        raise ValueError(f"seed: got {seed}, expected a whole number of at least 0")
    radius = default_radius(problem) if radius is None else positive(radius, "radius")
    survey = Survey(problem)
    endings = []
    for start in _ball(starts, problem.shape[2], radius, seed):
        survey.look_around(start, 2 * radius)
        endings.append(survey.follow(start, radius)[0])
    n, tokens, dim = problem.shape
    others = [
        Elsewhere(_tuple(direction), endings.count(("elsewhere", k)))
        for k, direction in enumerate(survey.others)
    ]
    return Atlas(
        shape=(n, tokens, dim),
        loss=problem.loss.name,
        dimensions=survey.basis.shape[1],
        faults=general_position_faults(problem),
        directions=tuple(
            _direction(selection, endings.count(("direction", k)))
            for k, selection in enumerate(survey.selections)
        ),
        rests=tuple(
            sorted(
                (
                    Rest(
                        _tuple(place.point),
                        place.attracting,
                        place.residual,
                        survey.errors[k],
                        endings.count(("rest", k)),
                    )
                    for k, place in enumerate(survey.places)
                ),
                key=lambda rest: (not rest.attracting, math.hypot(*rest.point)),
            )
        ),
        elsewhere=tuple(sorted(others, key=lambda other: -other.starts)),
        undecided=endings.count(UNDECIDED),
        why_undecided=survey.why_undecided,
        starts=starts,
        seed=seed,
        radius=radius,
    )


Ending = tuple[str, int]
"""Where a flow ends: a kind (`"direction"`, `"rest"`, `"elsewhere"`) and an index into its list."""
UNDECIDED: Ending = ("undecided", 0)

_AT_A_BORDER = (
    f"flows within {_NUDGE_LOGITS:g} logits of the path, which is what the integrator is good for, end in "
    "different places: it runs along the border of two basins"
)


class Survey:
    """Tells endings of flows on one problem apart, and remembers the stationary points it has met.

    Attributes:
        selections: the locally optimal selections.
        basis: `(D, r)`, orthonormal basis of the span of the key differences.
        places: the stationary points met so far, each once, in the span.
        errors: bound on the error of each.
        others: unit limit directions met that belong to no selection.
        why_undecided: the first reason for an undecided ending.

    Raises:
        EnumerationLimitError: there are too many feasible selections to list.
    """

    def __init__(self, problem: SelectionProblem, most_solves: int = _MOST_SOLVES) -> None:
        self.problem = problem
        try:
            self.selections = lmm_directions(problem, most_solves)
        except EnumerationLimitError as error:
            n, tokens, dim = problem.shape
            raise EnumerationLimitError(
                f"problem: too many selections to list can be separated (gave up after {most_solves} margin "
                f"problems, n = {n}, T = {tokens}, D = {dim}), expected fewer inputs, tokens or dimensions"
            ) from error
        self.basis = span(problem.pairs.key_gap)
        self.places: list[StationaryPoint] = []
        self.errors: list[float] = []
        self.others: list[FloatArray] = []
        self.why_undecided = ""
        self._left: list[FloatArray] = []  # unit directions that flows end in though they leave them nearby
        self._pairs = problem.pairs.restricted(self.basis)
        self._logit = 1 / problem.pairs.logit_scale

    def adopt(self, chart: Atlas) -> None:
        """Take over the stationary points and other directions of an atlas of the problem, in its order."""
        for rest in chart.rests:
            self.places.append(StationaryPoint(np.array(rest.point), rest.residual, rest.attracting))
            self.errors.append(rest.error)
        self.others += [np.array(other.direction) for other in chart.elsewhere]

    def follow(self, start: FloatArray, radius: float) -> tuple[Ending, int]:
        """Where the gradient flow from `start`, `(D,)`, within `radius` ends, and in how many steps."""
        path, limit = self._flow(start, radius)
        ending, steps = self._ending(path, limit), len(limit.tail.points)
        for nudged in self._nudged(path) if ending != UNDECIDED else ():
            other, beside = self._flow(nudged, max(radius, float(np.linalg.norm(nudged))))
            steps += len(beside.tail.points)
            if self._ending(other, beside) != ending:
                return self._undecided(_AT_A_BORDER), steps
        return ending, steps

    def _flow(self, start: FloatArray, radius: float) -> tuple[Path, Limit]:
        path = gradient_flow(self.problem, start, max(_HORIZON_LOGITS * self._logit, _HORIZON_RADII * radius))
        return path, limit_of(path)

    def _ending(self, path: Path, limit: Limit) -> Ending:
        if limit.kind == "point":
            return self._at_point(limit)
        if diverges(path).outcome != "yes":
            return self._undecided(limit.why)
        return self._in_direction(path, limit)

    def _nudged(self, path: Path) -> list[FloatArray]:
        """Points on both sides of the path from which flow may part from it, or nothing.

        Flow that first contracts on a border of two basins and then leaves it does so on the side on which
        the integrator put it. The points are where such a stretch begins, an error of the flow aside.
        """
        points = path.points @ self.basis
        dimensions = points.shape[1]
        if dimensions < 2 or len(points) < 3:
            return []
        rates, ways = [], []
        for point in points:
            descent, jacobian = self._pairs.descent_jacobian(point)
            along = np.outer(descent.direction, descent.direction)
            across = np.eye(dimensions) - along
            turning = across @ (jacobian + jacobian.T) @ across / 2
            # Along the curve nothing parts: that direction is moved to the end of the spectrum.
            values, vectors = np.linalg.eigh(turning - (1 + float(np.abs(turning).sum())) * along)
            rates.append(float(values[-1]))
            ways.append(vectors[:, -1])
        lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
        growth = np.concatenate(
            [[0.0], np.cumsum(lengths * (np.array(rates[1:]) + np.array(rates[:-1])) / 2)]
        )
        parting = np.maximum.accumulate(growth[::-1])[::-1] - growth
        k = int(parting.argmax())
        if not parting[k] > math.log(_PARTING):
            return []
        aside = _NUDGE_LOGITS * self._logit * (self.basis @ ways[k])
        return [path.points[k] - aside, path.points[k] + aside]

    def look_around(self, start: FloatArray, reach: float) -> None:
        """Let Newton's method look for a stationary point, attracting or not, within `reach` of `start`."""
        found = newton(self._pairs, self.basis.T @ start, reach) if self.basis.size else None
        if found is not None:
            self.place(found)

    def place(self, found: StationaryPoint) -> int | None:
        """The index of a point given in coordinates of the span, or `None` if rounding leaves it free."""
        error = location_error(self._pairs, found.point)
        if not error <= _PLACED_LOGITS * self._logit:
            return None
        point = self.basis @ found.point
        for k, known in enumerate(self.places):
            same = max(error + self.errors[k], _SAME_LOGITS * self._logit)
            if np.linalg.norm(known.point - point) <= same:
                return k
        self.places.append(StationaryPoint(point, found.residual, found.attracting))
        self.errors.append(error)
        return len(self.places) - 1

    def _at_point(self, limit: Limit) -> Ending:
        met = limit.tail.stationary_point
        assert met is not None  # what makes it a point
        inside = StationaryPoint(self.basis.T @ met.point, met.residual, met.attracting)
        index = self.place(inside)
        if index is None:
            return self._undecided(
                f"near {_text(met.point)} the gradient cancels to rounding along a whole direction, "
                "so the flow cannot be followed further"
            )
        return ("rest", index)

    def _in_direction(self, path: Path, limit: Limit) -> Ending:
        decisions = [converges_in_direction(path, s.solution.direction) for s in self.selections]
        reached = [k for k, decision in enumerate(decisions) if decision.outcome == "yes"]
        if len(reached) == 1:
            return ("direction", reached[0])
        unclear = [decision for decision in decisions if decision.outcome != "no"]
        if unclear:
            return self._undecided(unclear[0].why)
        for k, other in enumerate(self.others):
            if converges_in_direction(path, other).outcome == "yes":
                return ("elsewhere", k)
        unstable = any(converges_in_direction(path, left).outcome == "yes" for left in self._left)
        if unstable or self._is_left_nearby(limit):
            if not unstable:
                self._left.append(limit.vector)
            return self._undecided(_AT_A_BORDER)
        self.others.append(limit.vector)
        return ("elsewhere", len(self.others) - 1)

    def _is_left_nearby(self, limit: Limit) -> bool:
        """Whether flows from within the integrator's tolerance of the end of a flow leave its direction.

        An integrator that damps what is stiff also damps an instability that a step is too long to see.
        """
        end = limit.tail.points[-1]
        random = np.random.default_rng(0)
        for _ in range(_NUDGES):
            aside = self.basis @ random.standard_normal(self.basis.shape[1])
            nudged = end + _NUDGE_LOGITS * self._logit * aside / np.linalg.norm(aside)
            path = gradient_flow(self.problem, nudged, 10 * float(np.linalg.norm(end)))
            if converges_in_direction(path, limit.vector).outcome != "yes":
                return True
        return False

    def _undecided(self, why: str) -> Ending:
        self.why_undecided = self.why_undecided or why
        return UNDECIDED


def location_error(pairs: PairwiseRisk, z: FloatArray) -> float:
    """How far from `z` the zero of the gradient may be: its rounding over the least curvature.

    Infinite where the Hessian is singular.
    """
    if z.size == 0 or pairs.key_gap_norms.size == 0:
        return math.inf
    descent, jacobian = pairs.descent_jacobian(z)
    log_weights = pairs.log_pair_weights(z)
    shift = float(log_weights.max())  # weights may underflow, their ratios do not
    total = float(np.exp(log_weights - shift) @ pairs.key_gap_norms)
    scale = descent.log_norm if descent.log_norm > -math.inf else 0.0
    curvature = float(np.linalg.svd(jacobian, compute_uv=False)[-1]) * math.exp(scale - shift)
    return cancellation_rounding(pairs, z) * total / curvature if curvature > 0 else math.inf


def _direction(selection: Selection, starts: int) -> Direction:
    solution = selection.solution
    return Direction(
        selection=selection.alpha,
        is_global=selection.is_global,
        margin=solution.margin,
        direction=_tuple(solution.direction),
        support=tuple(tuple(sorted(near)) for near in selection.neighbours),
        is_degenerate=solution.is_degenerate,
        is_certified=not solution.certificate.violations(),
        starts=starts,
    )


def _ball(number: int, dim: int, radius: float, seed: int) -> Iterator[FloatArray]:
    """Points uniform in a ball of the `dim`-dimensional space."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        towards = random.standard_normal(dim)
        yield radius * random.random() ** (1 / dim) * towards / np.linalg.norm(towards)


def _tuple(vector: FloatArray) -> tuple[float, ...]:
    return tuple((vector + 0.0).tolist())  # no negative zeros


def _text(vector: Sequence[float] | FloatArray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in vector) + ")"
