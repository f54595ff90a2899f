"""Invariant cones of the plane, certified in ball arithmetic for all radii at once.

`checks.cones` computes cones in any dimension from the worst ratio of all weights. In the plane the
angle is one number, so the field itself can be enclosed: on a piece of angles, and for *all* radii from
`R` on, because `exp(−ρm)` lies in `[0, exp(−Rm)]`. The conditions and the proof that they suffice are in
``notes/cones.md``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from ..cones import Cone
from ..margin import MarginSolution, att_svm
from ..problems import SelectionProblem
from ..validation import FloatArray, positive
from .enclosures import (
    ENCLOSED_LOSSES,
    PRECISION,
    between,
    descent_slope,
    dot,
    rational,
    up_to,
    vector,
    working_precision,
)

# The cone handed out is this much thinner than the one verified, so that rounding in `Cone.excess`
# (1e-14 in the cosine) cannot let a point in; below _LEAST_ANGLE it would not be enough.
_THINNER = 1e-6
_LEAST_ANGLE = 1e-3
# A piece of angles that cannot be decided is halved; a proof that needs thinner pieces is given up.
_MOST_HALVINGS = 14
_FIRST_PIECES = 12
# Beyond this many logits nothing is left of the weights that could decide anything.
_FARTHEST_LOGITS = 1e6
# Nearer than this all tokens share the attention: a cone from here on is one from the origin on.
_NEAREST_LOGITS = 1e-3
# Relative width at which the bisection for the radius stops.
_RADIUS_RESOLUTION = 1e-2
# Tried around a given point. Thin cones exclude other tokens, wide ones leave room for the step.
_HALF_ANGLES = (0.03, 0.1, 0.25, 0.5, 0.9)
_APEX_SHARES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class CertifiedCone:
    """A cone of the plane that gradient descent never leaves, with what was verified.

    From every point of `apex + cone`, gradient flow and gradient descent with any step up to `step` stay in
    it, their norm grows without bound, and their direction tends to that of `p_mm(alpha)`.

    Attributes:
        cone: around `p_mm(alpha)`.
        apex: `(2,)`, where its tip is: the origin, unless it came from `cone_containing`.
        alpha: the selection.
        half_angle: the angle verified, in radians, a little more than that of `cone`.
        radius: the radius from which it was verified.
        step: the largest step covered.
        band: width in radians of the bands along both sides on which the field was shown to point inwards;
            no step from inside can pass them.
        pieces: number of angle intervals examined.
    """

    cone: Cone
    apex: FloatArray
    alpha: tuple[int, ...]
    half_angle: float
    radius: float
    step: float
    band: float
    pieces: int

    def holds(self, p: FloatArray) -> bool:
        """Whether `p`, `(2,)`, lies in the cone."""
        return bool(self.cone.excess(p - self.apex) <= 0)


def verified_cone(
    problem: SelectionProblem,
    alpha: Sequence[int],
    half_angle: float,
    radius: float,
    step: float | None = None,
) -> CertifiedCone | None:
    """Certify the cone of given half-angle and radius around `p_mm(alpha)`, or return `None`.

    Args:
        problem: with `D = 2` and a built-in loss.
        alpha: token index of each input.
        half_angle: radians, from 1e-3 to below π/2.
        radius: the least norm.
        step: the largest step of gradient descent; `1/problem.smoothness` if not given, 0 for gradient
            flow alone.

    Raises:
        Infeasible: ATT-SVM(alpha) has no solution.
        ValueError: the problem is not planar or has another loss, or an argument is out of range.
    """
    return _Verifier(problem, alpha, half_angle, step).at(positive(radius, "radius"))


def certified_cone(
    problem: SelectionProblem, alpha: Sequence[int], half_angle: float, step: float | None = None
) -> CertifiedCone | None:
    """The cone of given half-angle around `p_mm(alpha)` with the smallest radius that can be certified.

    `None` if no radius up to 1e6 logits can: for instance when `alpha` is not locally optimal, or when the
    cone reaches angles at which another token wins. Arguments and errors as for `verified_cone`.
    """
    verifier = _Verifier(problem, alpha, half_angle, step)
    logit = 1 / problem.pairs.logit_scale
    # Every condition that holds from some radius on holds from larger ones: bracket, then bisect.
    low, high = logit, logit
    best = verifier.at(high)
    if best is None:
        while best is None:
            low, high = high, 2 * high
            if high > _FARTHEST_LOGITS * logit:
                return None
            best = verifier.at(high)
    else:
        while (found := verifier.at(low)) is not None:
            best, high, low = found, low, low / 2
            if low < _NEAREST_LOGITS * logit:
                return best
    while high > low * (1 + _RADIUS_RESOLUTION):
        middle = math.sqrt(low * high)
        found = verifier.at(middle)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best


def cone_containing(
    problem: SelectionProblem, alpha: Sequence[int], p: FloatArray, step: float | None = None
) -> CertifiedCone | None:
    """A certified cone along `p_mm(alpha)` that contains `p` near its inner edge.

    A path approaches a line parallel to the axis rather than the axis itself. Besides cones with their tip
    in the origin, those are tried whose tip is half or all of the way from the axis to `p`: they are
    certified long before `p` comes into a narrow cone from the origin. A few half-angles of each are
    tried, the smallest first; `None` if none of them can be certified.

    Args:
        problem: with `D = 2` and a built-in loss.
        alpha: token index of each input.
        p: `(2,)`, not zero.
        step: as for `verified_cone`.

    Raises:
        Infeasible: ATT-SVM(alpha) has no solution.
        ValueError: as for `verified_cone`, or `p` is zero or has the wrong shape.
    """
    point = problem.query(p)
    if not point.any():
        raise ValueError("p: got the zero vector, expected a point with a direction")
    axis = att_svm(problem, alpha).direction
    along, across = float(axis @ point), float(axis[0] * point[1] - axis[1] * point[0])
    if along <= 0:
        return None
    for share in _APEX_SHARES:
        apex = share * across * np.array([-axis[1], axis[0]])
        angle = abs(math.atan2((1 - share) * across, along))
        radius = float(np.linalg.norm(point - apex)) * (1 - 1e-9)
        for half_angle in _HALF_ANGLES:
            if angle <= half_angle * (1 - 2 * _THINNER):
                found = _Verifier(problem, alpha, half_angle, step, apex).at(radius)
                if found is not None and found.holds(point):
                    return found
    return None


class _Verifier:
    """Encloses the field in polar coordinates around the axis of one selection."""

    def __init__(
        self,
        problem: SelectionProblem,
        alpha: Sequence[int],
        half_angle: float,
        step: float | None,
        apex: FloatArray | None = None,
    ) -> None:
        if problem.shape[2] != 2:
            raise ValueError(f"problem: got keys of dimension {problem.shape[2]}, expected 2")
        if problem.loss not in ENCLOSED_LOSSES:
            raise ValueError(f"problem: got the loss {problem.loss!r}, expected one of {ENCLOSED_LOSSES}")
        half_angle = positive(half_angle, "half_angle")
        if not _LEAST_ANGLE <= half_angle < math.pi / 2:
            raise ValueError(f"half_angle: got {half_angle:g}, expected from {_LEAST_ANGLE:g} to below π/2")
        solution = att_svm(problem, alpha)
        self.problem = problem
        self.alpha = tuple(int(t) for t in alpha)
        self.half_angle = half_angle
        if step is None:  # a risk that is constant has any step size
            step = 1 / problem.smoothness if problem.smoothness > 0 else 0.0
        self.step = positive(step, "step") if step else 0.0
        self.axis = solution.direction
        self.apex = np.zeros(2) if apex is None else apex
        with working_precision(PRECISION):
            self._pairs = _polar_pairs(problem, self.alpha, solution, self.apex)
            self._margins = [arb(float(problem.scores[i, t])) for i, t in enumerate(self.alpha)]

    def at(self, radius: float) -> CertifiedCone | None:
        """The certificate for all norms of at least `radius`, or `None`."""
        with working_precision(PRECISION):
            sweep = _Sweep(self.problem, self._pairs, self._margins, arb(radius))
            theta = self.half_angle
            if not sweep.covers(-theta, theta, "outwards"):
                return None
            # (iii): a step, which leads outwards, turns by less than the band.
            turn = (arb(self.step) * sweep.fastest / arb(radius)).atan().upper()
            if not turn < theta:
                return None
            # Wide enough for the thinner cone that is handed out, too.
            band = min(float(turn) + 2 * _THINNER * theta, theta)
            if not (
                sweep.covers(theta - band, theta, "clockwise")
                and sweep.covers(-theta, band - theta, "anticlockwise")
            ):
                return None
        inner = theta * (1 - _THINNER)
        # 1 − cos by the half angle, without cancellation.
        cone = Cone(self.axis, 2 * math.sin(inner / 2) ** 2, radius * (1 + 1e-12))
        return CertifiedCone(cone, self.apex, self.alpha, theta, radius, self.step, band, sweep.pieces)


@dataclass(frozen=True)
class _PolarPair:
    """One key difference `a_it = k_iα − k_it`: length, angle from the axis, score gap, and `exp(−a·apex)`."""

    owner: int
    length: arb
    angle: arb
    score_gap: arb
    lead: arb


def _polar_pairs(
    problem: SelectionProblem, alpha: tuple[int, ...], solution: MarginSolution, apex: FloatArray
) -> list[_PolarPair]:
    exact = [rational(x) for x in solution.certificate.vector]
    tip = vector(apex)
    pairs = []
    for i, chosen in enumerate(alpha):
        best = vector(problem.keys[i, chosen])
        for t, key in enumerate(problem.keys[i]):
            if t == chosen:
                continue
            difference = [x - y for x, y in zip(best, vector(key), strict=True)]
            along = dot(difference, exact)
            across = exact[0] * difference[1] - exact[1] * difference[0]
            pairs.append(
                _PolarPair(
                    owner=i,
                    length=dot(difference, difference).sqrt(),
                    angle=arb.atan2(across, along),
                    score_gap=arb(float(problem.scores[i, chosen])) - arb(float(problem.scores[i, t])),
                    lead=(-dot(difference, tip)).exp(),
                )
            )
    return pairs


class _Sweep:
    """Checks one sign of the field on angle intervals, for all norms from `radius` on.

    Attributes:
        fastest: bound on the part of `∇L` across `p` over the angles swept outwards so far.
        pieces: intervals examined.
    """

    def __init__(
        self, problem: SelectionProblem, pairs: list[_PolarPair], margins: list[arb], radius: arb
    ) -> None:
        self._loss = problem.loss
        self._inputs = len(margins)
        self._pairs = pairs
        self._margins = margins
        self._radius = radius
        self.fastest = arb(0)
        self.pieces = 0

    def covers(self, low: float, high: float, sense: str) -> bool:
        """Whether the field points in `sense` on all of `[low, high]`."""
        ends = np.linspace(low, high, _FIRST_PIECES + 1).tolist()
        ends[0], ends[-1] = low, high
        queue = [(a, b, 0) for a, b in itertools.pairwise(ends)]
        while queue:
            a, b, halvings = queue.pop()
            if self._holds(between(arb(a), arb(b)), sense):
                continue
            middle = (a + b) / 2
            # What cannot be shown at a single angle cannot be shown on any interval around it.
            if halvings == _MOST_HALVINGS or not self._holds(arb(middle), sense):
                return False
            queue += [(a, middle, halvings + 1), (middle, b, halvings + 1)]
        return True

    def _holds(self, theta: arb, sense: str) -> bool:
        self.pieces += 1
        angles = [theta - pair.angle for pair in self._pairs]
        slopes = [pair.length * angle.cos() for pair, angle in zip(self._pairs, angles, strict=True)]
        if not all(slope > 0 for slope in slopes):
            return False
        lows = [slope.lower() for slope in slopes]
        weights = [(-self._radius * low).exp().upper() for low in lows]
        factors = self._factors(weights)
        if sense == "outwards":
            effects = slopes
            speed = arb(0)
            for pair, angle, factor, weight in zip(self._pairs, angles, factors, weights, strict=True):
                speed += abs(factor * pair.length * angle.sin()) * weight
            bound = speed.upper()
        else:
            turn = 1 if sense == "clockwise" else -1
            effects = [
                turn * pair.length * angle.sin() for pair, angle in zip(self._pairs, angles, strict=True)
            ]
            bound = self.fastest
        if not self._dominates(slopes, lows, factors, effects):
            return False
        if bound > self.fastest:
            self.fastest = bound
        return True

    def _factors(self, weights: list[arb]) -> list[arb]:
        """What multiplies `exp(−ρ a·p̂)` in the weight of each pair, given bounds on that exponential.

        The weight is `c_i s_it (γ̄_i − γ_it)/n` with `s_it = s_iα exp(−a·apex) exp(−ρ a·p̂)`.
        """
        drops = [arb(0)] * self._inputs
        masses = [arb(1)] * self._inputs
        for pair, weight in zip(self._pairs, weights, strict=True):
            odds = pair.lead * weight
            drops[pair.owner] += up_to(odds) * pair.score_gap
            masses[pair.owner] += odds
        selected = [between(1 / mass, arb(1)) for mass in masses]
        slopes = [
            descent_slope(self._loss, margin - drop)
            for margin, drop in zip(self._margins, drops, strict=True)
        ]
        return [
            slopes[pair.owner]
            * selected[pair.owner]
            * pair.lead
            * (pair.score_gap - drops[pair.owner])
            / self._inputs
            for pair in self._pairs
        ]

    def _dominates(self, slopes: list[arb], lows: list[arb], factors: list[arb], effects: list[arb]) -> bool:
        """Whether `Σ factor·effect·exp(−ρ slope) > 0` for every `ρ ≥ R`.

        Only pairs that may have the least slope can dominate; each of them has to contribute
        positively, and together with whatever the rest may take away.
        """
        least = min(slope.upper() for slope in slopes)
        floor: arb | None = None
        taken = arb(0)
        for low, factor, effect in zip(lows, factors, effects, strict=True):
            worst = (factor * effect).lower()
            if low <= least:
                if not worst > 0:
                    return False
                floor = worst if floor is None or worst < floor else floor
            elif not worst >= 0:
                taken -= worst * (-self._radius * (low - least)).exp()
        return floor is not None and bool(taken < floor)
