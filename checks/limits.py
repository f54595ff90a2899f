"""Where a path goes: the limit of its continuation, and certificates for it.

Gradient descent moves like `log t`: no affordable number of steps reaches a norm at which an
asymptotic statement can be read off. A path is therefore continued from its last point by gradient
flow, by arc length, until the secant directions of successive decades of the norm agree. Where a
certificate (``notes/certificates.md``) covers the path itself, it says so besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from .certificates import cone_containing, contraction_ball
from .certificates.enclosures import ENCLOSED_LOSSES
from .cones import LocalCone
from .margin import Infeasible, att_svm
from .problems import SelectionProblem
from .selection import is_locally_optimal, optimal_tokens
from .trainers import Path, StationaryPoint, gradient_flow
from .validation import FloatArray

# Horizons in units of one logit, 1/A with A the longest key difference. Flow is continued hundredfold
# until successive decades agree to _STEADY, the rounding level of a secant's usefulness for 1e-6
# decisions; beyond 1e8 logits the weights themselves are rounded by 1e-8.
_FIRST_HORIZON = 1e4
_LAST_HORIZON = 1e8
_STEADY = 1e-8
# Directions closer than this are those of the same selection, for lack of any other that close.
_SELECTED = 1e-6
# Every path is followed to this multiple of the norm from which it is followed.
_GROWTH = 1e3
# Directions that still change by more from one decade to the next have not settled: the slowest approach
# there is, log R/R with a multiplier of zero, is below 1e-6 at the last horizon.
_SETTLED = 1e-4
# A discrete step that changes logits by at most this much follows the flow's curve.
_FLOW_LIKE_LOGITS = 0.1
# A normalised step of up to one logit circles the flow's curve at a bounded distance.
_NORMALISED_LOGITS = 1.0
# The product of a step 1/L and L may exceed 1 by its rounding; every proof has that much room.
_ROUNDED_STEP = 1e-12


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof, from one point of the path, of where it ends.

    Attributes:
        name: ``"sublevel"``, ``"invariant cone"``, ``"planar cone"`` or ``"contraction ball"``.
        direction: `(D,)`, the certified limit direction; for a contraction ball the centre of a certified
            ball around the limit itself.
        alpha: the selection whose max-margin direction it is, empty for a contraction ball.
    """

    name: str
    direction: FloatArray
    alpha: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Limit:
    """Where the continuation of a path goes.

    Attributes:
        kind: ``"direction"`` (the norm diverges), ``"point"`` (a finite stationary point), or
            ``"unknown"``.
        tail: the flow with which the path was continued (the path itself when it needs none).
        vector: unit limit direction, or the stationary point, `(D,)`; zeros if unknown.
        drift: distance of the unit secants of the last two decades of the norm.
        resolution: bound on the error of the last secant from the integrator: its local tolerance,
            spread over the length of the secant.
        certificate: a proof that covers the path, if one was found.
        why: one sentence.
    """

    kind: Literal["direction", "point", "unknown"]
    tail: Path
    vector: FloatArray
    drift: float
    resolution: float
    certificate: Certificate | None
    why: str


# Decisions about the same path share the continuation; paths hash by identity.
@lru_cache(maxsize=64)
def limit_of(path: Path) -> Limit:
    """Continue `path` by gradient flow and read off where it goes."""
    unknown = _not_followed_by_flow(path)
    zero = np.zeros(path.problem.shape[2])
    if unknown:
        return Limit("unknown", path, zero, np.inf, np.inf, None, unknown)
    logit = 1 / path.problem.pairs.logit_scale
    tail, horizon = path, max(_FIRST_HORIZON * logit, _GROWTH * float(path.norms[-1]))
    if path.method == "gradient flow":
        # A flow may stop anywhere: it is followed as far as any other path, from its start.
        horizon = max(_FIRST_HORIZON * logit, _GROWTH * float(path.norms[0]))
        if path.end == "horizon" and path.norms[-1] < horizon:
            tail = _join(path, gradient_flow(path.problem, path.points[-1], horizon))
    else:
        tail = gradient_flow(path.problem, path.points[-1], horizon)
    last_horizon = max(_LAST_HORIZON * logit, horizon)
    while True:
        point = tail.stationary_point
        if point is not None:
            kind = "attracting" if point.attracting else "not attracting"
            why = (
                f"it tends to the finite stationary point {_short(point.point)} ({kind}; gradient "
                f"cancels to {point.residual:.1g})"
            )
            return Limit("point", tail, point.point, 0.0, 0.0, point_certificate(path, point), why)
        if tail.end != "horizon":
            why = f"the flow used up its steps at norm {tail.norms[-1]:.3g}"
            return Limit("unknown", tail, zero, np.inf, np.inf, None, why)
        last, drift = _decades(tail)
        reached = float(tail.norms[-1])
        steady = drift <= _STEADY and _selects(path.problem, tail.points[-1], last)
        if steady or reached >= last_horizon:
            break
        tail = _join(tail, gradient_flow(path.problem, tail.points[-1], 100 * reached))
    if drift > _SETTLED:
        why = f"at norm {reached:.3g} the directions of the last two decades still differ by {drift:.2g}"
        return Limit("unknown", tail, zero, np.inf, np.inf, None, why)
    why = (
        f"its norm was followed to {reached:.3g}; the directions of the last two decades differ by "
        f"{drift:.1g}"
    )
    # Local errors of 1e-3 logits over the steps of a decade add up to about 1e-2 logits at most.
    resolution = 1e-2 * logit / reached
    return Limit("direction", tail, last, drift, resolution, _certificate(path), why)


def sublevel_certificate(problem: SelectionProblem, p: FloatArray) -> Certificate | None:
    """Prove that monotone descent from `p` ends in the GMM direction.

    If `L(p) − L* < (1/n) min_i [ℓ(γ_i,second) − ℓ(γ_i,opt)]`, every input keeps `γ̄_i` above its second
    score for ever, so every weight in `−∇L = Σ w (k_opt − k_t)` stays positive (``notes/certificates.md``).
    """
    n, _, _ = problem.shape
    order = np.sort(problem.scores, axis=1)
    if (order[:, -1] == order[:, -2]).any():
        return None
    loss = problem.loss.value
    best, second = loss(order[:, -1]), loss(order[:, -2])
    slack = float((second - best).min()) / n
    # Risk and infimum are sums of n rounded values of this size.
    rounding = 8 * np.finfo(float).eps * float(np.abs(second).max())
    if not problem.risk(p) - float(best.mean()) < slack - rounding:
        return None
    alpha = optimal_tokens(problem)
    try:
        return Certificate("sublevel", att_svm(problem, alpha).direction, alpha)
    except Infeasible:
        return None


def cone_certificate(problem: SelectionProblem, p: FloatArray, step: float | None) -> Certificate | None:
    """Prove that descent from `p` ends in the LMM direction of the selection most attended at `p`."""
    alpha = tuple(int(t) for t in problem.pairs.log_attention(p).argmax(axis=1))
    try:
        if not is_locally_optimal(problem, alpha):
            return None
    except Infeasible:
        return None
    local = LocalCone(problem, alpha)
    if local.cone(step=step).excess(p) > 0:
        return None
    return Certificate("invariant cone", local.axis, alpha)


def planar_certificate(problem: SelectionProblem, p: FloatArray, step: float | None) -> Certificate | None:
    """Prove the same as `cone_certificate` in the plane, where balls certify far wider cones."""
    if not p.any():
        return None
    alpha = tuple(int(t) for t in problem.pairs.log_attention(p).argmax(axis=1))
    try:
        found = cone_containing(problem, alpha, p, 0.0 if step is None else step)
    except Infeasible:
        return None
    return None if found is None else Certificate("planar cone", found.cone.axis, alpha)


def point_certificate(path: Path, point: StationaryPoint) -> Certificate | None:
    """Prove that `path` tends to the stationary point next to `point`: it is in a ball that contracts."""
    if path.method == "normalised gradient descent" or not point.attracting:
        return None
    if path.step is not None and path.step * path.problem.smoothness > 1 + _ROUNDED_STEP:
        return None
    # Flow that ends in a stationary point has Newton's result as its last point.
    end = path.points[-2 if path.stationary_point is not None and len(path.points) > 1 else -1]
    ball = contraction_ball(path.problem, point.point, float(np.linalg.norm(end - point.point)))
    return None if ball is None else Certificate("contraction ball", ball.centre, ())


def _certificate(path: Path) -> Certificate | None:
    problem, end = path.problem, path.points[-1]
    if path.method == "normalised gradient descent":
        return None
    if path.step is None or path.step * problem.smoothness <= 1 + _ROUNDED_STEP:
        found = sublevel_certificate(problem, end)
        if found is not None:
            return found
    if problem.shape[2] == 2 and problem.loss in ENCLOSED_LOSSES:
        return planar_certificate(problem, end, path.step)
    return cone_certificate(problem, end, path.step)


def _not_followed_by_flow(path: Path) -> str:
    """Why the flow from the last point says nothing about the path, or an empty string."""
    if path.step is None:
        return ""
    scale = path.problem.pairs.logit_scale
    if path.method == "normalised gradient descent":
        if path.step * scale <= _NORMALISED_LOGITS:
            return ""
        return (
            f"a normalised step of {path.step:g} changes logits by up to {path.step * scale:.2g}: "
            "too coarse for the flow to stand for it"
        )
    if path.step * path.problem.smoothness <= 1 + _ROUNDED_STEP:
        return ""
    log_length = np.log(path.step) + path.problem.descent(path.points[-1]).log_norm
    if log_length + np.log(scale) <= np.log(_FLOW_LIKE_LOGITS):
        return ""
    return (
        f"the step {path.step:g} is above 1/L = {1 / path.problem.smoothness:.3g} and still changes "
        f"logits by {np.exp(log_length) * scale:.2g} at the end: the flow does not stand for it"
    )


def _selects(problem: SelectionProblem, p: FloatArray, direction: FloatArray) -> bool:
    """Whether `direction` is the max-margin direction of the selection attended at `p`.

    The limit in general position is. Where it is not (yet), some token may be about to lose its weight,
    however steady the direction has been: keys that nearly tie take long to be told apart.
    """
    alpha = tuple(int(t) for t in problem.pairs.log_attention(p).argmax(axis=1))
    try:
        target = att_svm(problem, alpha).direction
    except Infeasible:
        return False
    return float(np.linalg.norm(direction - target)) <= _SELECTED


def _decades(tail: Path) -> tuple[FloatArray, float]:
    """Unit secant of the last decade of the distance covered, and its change from the one before."""
    distance = np.linalg.norm(tail.points - tail.points[0], axis=1)
    at: Callable[[float], FloatArray] = lambda share: tail.points[  # noqa: E731
        np.flatnonzero(distance <= share * distance[-1])[-1]
    ]
    end, middle, early = tail.points[-1], at(0.1), at(0.01)
    last = (end - middle) / np.linalg.norm(end - middle)
    before = middle - early
    norm = float(np.linalg.norm(before))
    return last, float(np.linalg.norm(last - before / norm)) if norm > 0 else np.inf


def _join(first: Path, second: Path) -> Path:
    return Path(
        first.problem,
        first.method,
        np.concatenate([first.points, second.points[1:]]),
        np.concatenate([first.log_times, np.logaddexp(first.log_times[-1], second.log_times[1:])]),
        None,
        second.end,
        second.stationary_point,
    )


def _short(vector: FloatArray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in vector) + ")"
