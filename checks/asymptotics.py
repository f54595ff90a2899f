"""Three-valued decisions about how a path approaches its limit: which one, how fast, and on what clock.

All of them read the path as `limit_of` continues it. Lengths are measured in logits, `A` times the
length with `A` the longest key difference: that is the unit in which the flow is integrated and in
which attention weights respond.

A third kind of end, besides directions of full attention and finite points, is the *valley*: on a face of
the keys the attention of several tokens stays balanced, and the norm diverges without any of them being
selected. Within some thirty logits the gradient along the valley sinks below the rounding of the terms that
balance across it, and no path can be followed farther: `approach` reads it off how it got there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from .decisions import Decision, Outcome, converges_in_direction, limit_basis, limit_sentence
from .limits import Limit, limit_of
from .trainers import Path, gradient_flow
from .trainers.flow import span
from .validation import FloatArray, positive

Clock = Literal["steps", "log steps"]

# Between a tolerance and this multiple of it neither outcome is claimed, as in `decisions`.
_GREY = 10.0
# Offsets are compared over the two decades of the norm that end here, in logits, or farther out where
# the path had to be followed farther. Offsets with a limit reach it exponentially in the norm.
_RATE_HORIZON = 1e6
# The flow is off by 1e-3 logits at each step and by 1e-2 over a decade (see `limits`).
_LOGIT_ERROR = 1e-2
# Increments "faster" by less than this factor are not told from ones that keep pace with ‖p‖.
_FASTER = 0.1
# Beyond this share of the rate asked for, a horizon error decides nothing.
_MOST_HORIZON = 0.1
# The assembled Hessian is right to about 1e-14 of its largest entry; 1e-10 leaves four digits.
_CURVATURE = 1e-10
# A gradient that cancels to this much and further. At a finite limit it is met within a hundredth of a logit
# of the point even where the risk is flat to fourth order; in a valley, where the gradient falls by e per
# logit or slower, the rest of the way down to rounding (1e-13) takes sixteen logits.
_CANCELLED = 1e-6
_VALLEY_LOGITS = 5.0


@lru_cache(maxsize=64)
def approach(path: Path) -> Limit:
    """`limit_of`, with valleys told from stationary points.

    A path that was still on the move when its gradient had cancelled to rounding gets the kind
    ``"direction"``, with the secant of that last stretch.
    """
    limit = limit_of(path)
    point = limit.tail.stationary_point
    if limit.kind != "point" or point is None or point.attracting:
        return limit
    pairs, points = path.problem.pairs, limit.tail.points
    # The last stretch only: a path may pass by a saddle before.
    first = len(points) - 1
    while first > 0 and pairs.descent(points[first - 1]).cancellation <= _CANCELLED:
        first -= 1
    distances = np.linalg.norm(points - points[first], axis=1)
    length = float(distances[-1])
    logits = length * pairs.logit_scale
    if logits < _VALLEY_LOGITS:
        return limit
    middle = first + int(np.flatnonzero(distances[first:] <= length / 2)[-1])
    direction = (points[-1] - points[first]) / length
    drift = _angle(points[middle] - points[first], direction) + _angle(points[-1] - points[middle], direction)
    why = (
        f"it moved on by {logits:.3g} logits in a valley while its gradient cancelled from {_CANCELLED:.0e} "
        "to rounding"
    )
    return Limit("direction", limit.tail, direction, drift, _LOGIT_ERROR / logits, None, why)


def tends_to_one_of(path: Path, targets: Sequence[npt.ArrayLike]) -> Decision:
    """Whether `p(t)/‖p(t)‖` converges to the direction of one of `targets`.

    The error is the distance to the nearest.

    Raises:
        ValueError: a target is zero or does not have shape `(D,)`.
    """
    name = "tends_to_one_of"
    limit = approach(path)
    if limit.kind == "unknown":
        return Decision(name, "undecided", basis="none", why=limit_sentence(limit))
    if limit.kind == "direction" and limit.tail.stationary_point is not None:
        decisions = [_valley_decision(path, limit, target) for target in targets]
    else:
        decisions = [converges_in_direction(path, target) for target in targets]
    for outcome in ("yes", "undecided"):
        for k, decision in enumerate(decisions):
            if decision.outcome == outcome:
                why = f"target {k} of {len(targets)}: {decision.why}"
                return Decision(name, outcome, decision.error, decision.tolerance, decision.basis, why)
    why = f"none of {len(targets)} targets is its limit direction; {limit_sentence(limit)}"
    if limit.kind == "direction":
        shown = ", ".join(f"{x:.4g}" for x in limit.vector)
        why = f"its limit direction ({shown}) is none of the {len(targets)} targets; {limit_sentence(limit)}"
    nearest = min(decisions, key=lambda decision: decision.error, default=None)
    if nearest is None or not math.isfinite(nearest.error):
        return Decision(name, "no", basis=limit_basis(limit), why=why)
    return Decision(name, "no", nearest.error, nearest.tolerance, limit_basis(limit), why)


def _valley_decision(path: Path, limit: Limit, target: npt.ArrayLike) -> Decision:
    """`converges_in_direction` for a valley."""
    error = float(np.linalg.norm(limit.vector - _unit(path, target)))
    tolerance = {"integrator": limit.resolution, "horizon": 3 * limit.drift}
    return _graded("converges_in_direction", error, tolerance, "flow", limit.why)


def avoids_direction(path: Path, target: npt.ArrayLike) -> Decision:
    """Whether `p(t)/‖p(t)‖` does not converge to `target/‖target‖`: it goes elsewhere, or stays finite.

    Raises:
        ValueError: `target` is zero or does not have shape `(D,)`.
    """
    found = converges_in_direction(path, target)
    opposite: Mapping[Outcome, Outcome] = {"yes": "no", "no": "yes", "undecided": "undecided"}
    return Decision("avoids_direction", opposite[found.outcome], basis=found.basis, why=found.why)


def tends_to_local_minimum(path: Path) -> Decision:
    """Whether the path tends to a finite strict local minimum (on the span of the key differences).

    ``"no"`` when the norm diverges and at a saddle; ``"undecided"`` where the least curvature is zero to
    rounding. The error is the least eigenvalue of the Hessian, negated, in units of the largest in size.
    """
    name = "tends_to_local_minimum"
    limit = approach(path)
    point = limit.tail.stationary_point
    if point is None or limit.kind != "point":
        outcome: Outcome = "undecided" if limit.kind == "unknown" else "no"
        return Decision(name, outcome, basis=limit_basis(limit), why=limit_sentence(limit))
    basis = span(path.problem.pairs.key_gap)
    _, jacobian = path.problem.pairs.restricted(basis).descent_jacobian(basis.T @ point.point)
    eigenvalues = np.linalg.eigvalsh(-(jacobian + jacobian.T) / 2)
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    least = float(eigenvalues[0]) / largest if largest > 0 else 0.0
    why = f"{limit_sentence(limit)}; least over largest curvature {least:.2g}"
    if least > _CURVATURE:
        outcome = "yes"
    elif least < -_CURVATURE:
        outcome = "no"
    else:
        outcome = "undecided"
    return Decision(name, outcome, -least, {"rounding": _CURVATURE}, limit_basis(limit), why)


def error_falls_like(path: Path, target: npt.ArrayLike, power: float = 1) -> Decision:
    """Whether `‖p‖^power · ‖p/‖p‖ − target/‖target‖‖` stays bounded along a path that tends to `target`.

    With `P` the projection off the target, that product is `‖p‖^(power−1) ‖Pp‖` to first order. The error
    is what its largest value over the last decade of the norm exceeds that over the decade before, divided
    by `‖p‖^(power−1)` at the end and in logits. A bounded product stops growing; where the
    offset `Pp` grows like `log ‖p‖` it goes on by 2.3 logits or more per decade.

    Raises:
        ValueError: `target` is zero or does not have shape `(D,)`, or `power` is not positive.
    """
    name = "error_falls_like"
    power = positive(power, "power")
    found = _late(path, target)
    if found.outcome != "yes":
        return Decision(name, found.outcome, basis=found.basis, why=found.why)
    norms, offsets = _late_offsets(path, target)
    end = norms[-1]
    products = np.linalg.norm(offsets, axis=1) * (norms / end) ** (power - 1)
    last, before = products[norms > end / 10].max(), products[norms <= end / 10].max()
    error = max(float(last - before), 0.0)
    why = (
        f"from norm {end / 10:.2g} to {end:.2g} the offset from the limit direction goes from "
        f"{float(np.linalg.norm(offsets[norms <= end / 10][-1])):.4g} to "
        f"{float(np.linalg.norm(offsets[-1])):.4g} logits"
    )
    return _graded(name, error, {"integrator": _LOGIT_ERROR}, found.basis, why)


def increments_converge_faster(path: Path, target: npt.ArrayLike) -> Decision:
    """Whether increments `Δp/‖Δp‖` approach `target/‖target‖` faster than `p/‖p‖` does.

    Compares the increment over the last decade of the norm with `p` at its end. The error is the ratio
    of their distances from the target; one that kept pace with `p/‖p‖` would be of order one. An offset that
    cannot be told from zero has nothing to be compared with: ``"yes"`` if the increment's is as small.

    Raises:
        ValueError: `target` is zero or does not have shape `(D,)`.
    """
    name = "increments_converge_faster"
    found = _late(path, target)
    if found.outcome != "yes":
        return Decision(name, found.outcome, basis=found.basis, why=found.why)
    norms, offsets = _late_offsets(path, target)
    first = np.flatnonzero(norms <= norms[-1] / 10)[-1]
    moved = float(np.linalg.norm(offsets[-1] - offsets[first])) / (1 - norms[first] / norms[-1])
    offset = float(np.linalg.norm(offsets[-1]))
    if max(moved, offset) <= _LOGIT_ERROR:
        why = f"p keeps within {max(moved, offset):.1g} logits of its limit ray, the integrator's error"
        return Decision(name, "yes", basis=found.basis, why=why)
    why = (
        f"over the last decade the offset of {offset:.4g} logits changes by {moved:.2g}: increments are off "
        f"by {moved / norms[-1]:.2g}, p/‖p‖ by {offset / norms[-1]:.2g} (both in logits per unit of norm)"
    )
    resolved = max(offset, _LOGIT_ERROR)
    tolerance = {"pace": _FASTER, "integrator": _LOGIT_ERROR / resolved}
    return _graded(name, moved / resolved, tolerance, found.basis, why)


def offset_tends_to(path: Path, target: npt.ArrayLike, offset: npt.ArrayLike) -> Decision:
    """Whether `Pp(t) → offset` along a path that tends to `target`; `P` projects off the target.

    The error is the distance in logits at the end of the path as followed.

    Raises:
        ValueError: `target` is zero, or an argument does not have shape `(D,)`.
    """
    name = "offset_tends_to"
    expected = path.problem.query(offset, "offset") * path.problem.pairs.logit_scale
    found = _late(path, target)
    if found.outcome != "yes":
        return Decision(name, found.outcome, basis=found.basis, why=found.why)
    norms, offsets = _late_offsets(path, target)
    first = np.flatnonzero(norms <= norms[-1] / 10)[-1]
    error = float(np.linalg.norm(offsets[-1] - expected))
    tolerance = {
        "integrator": _LOGIT_ERROR,
        "horizon": 3 * float(np.linalg.norm(offsets[-1] - offsets[first])),
    }
    why = f"at norm {norms[-1]:.2g} its offset is {error:.2g} logits from the one predicted"
    return _graded(name, error, tolerance, found.basis, why)


def norm_grows_like(path: Path, rate: float, clock: Clock, target: npt.ArrayLike) -> Decision:
    """Whether `‖p(k)‖ / clock(k) → rate`, with the clock `k` or `log k` of the step number.

    Compares the growth of the norm per unit of the clock, over two successive windows at the end, with
    `rate`. Constant-step descent on the clock `log k` is followed by the flow, whose physical time is `k`
    times the step, over two decades of the norm; everything else uses the iterates, from the quarter to
    the half and from there to the end. The error is relative to `rate`.

    A path that still turns, however slowly, loses a share of each step, up to the angles of `p` and of the
    secant of the later window to the limit direction; zigzags are in neither, and are no excuse. What two
    windows cannot show is a regime that ends far beyond them, as with a token of nearly tight margin, whose
    weight takes long to vanish: whoever claims a rate of iterates has to start beyond that.
    ``"no"`` also when the later window is far off and no nearer than the earlier one.

    Args:
        path: from `gradient_descent` or `normalized_gd`.
        rate: positive.
        clock: ``"steps"`` or ``"log steps"``.
        target: `(D,)`, a vector in the direction to which the path tends.

    Raises:
        ValueError: `rate` is not positive, `clock` is unknown, `target` is zero or not of shape `(D,)`, or
            the path is not of a discrete trainer.
    """
    name = "norm_grows_like"
    rate = positive(rate, "rate")
    axis = _unit(path, target)
    if clock not in ("steps", "log steps"):
        raise ValueError(f"clock: got {clock!r}, expected 'steps' or 'log steps'")
    if path.step is None:
        raise ValueError(f"path: got {path.method}, expected a discrete trainer, whose steps can be counted")
    last = len(path.points) - 1
    if clock == "log steps" and path.method == "gradient descent":
        limit = limit_of(path)
        if limit.kind != "direction":
            outcome: Outcome = "undecided" if limit.kind == "unknown" else "no"
            return Decision(name, outcome, basis=limit_basis(limit), why=limit_sentence(limit))
        tail = followed = _followed(path)
        if tail.end != "horizon":
            return Decision(name, "undecided", basis="none", why=_unfinished(tail))
        earlier = np.logaddexp(path.log_times[-1], limit.tail.log_times[-1])
        times, norms = np.logaddexp(earlier, tail.log_times) - math.log(path.step), tail.norms
        end = norms[-1]
        at = [int(np.flatnonzero(norms <= share * end)[-1]) for share in (0.01, 0.1, 1.0)]
        # The time of a step is known up to a factor: a unit of log time in all is generous.
        rounding, basis = 1 / float(times[at[2]] - times[at[1]]), "flow"
    else:
        if last < 8:
            why = f"{last} steps are too few"
            return Decision(name, "undecided", basis="iterates", why=why)
        steps = np.arange(1, last + 1, dtype=float)
        times, norms = np.concatenate([[-math.inf], np.log(steps)]), path.norms
        times = np.arange(last + 1, dtype=float) if clock == "steps" else times
        at, followed = [last // 4, last // 2, last], path
        rounding, basis = 4 * float(np.finfo(float).eps) * last, "iterates"
    early, late = (float((norms[b] - norms[a]) / (times[b] - times[a])) for a, b in itertools.pairwise(at))
    error, before = abs(late / rate - 1), abs(early / rate - 1)
    middle = followed.points[at[1]]
    way = followed.points[at[2]] - middle
    turn = sum(_angle(vector, axis) for vector in (way, middle))
    # The norm gains the cosine of the angle between p and the step; twice 1 − cos, for what it varies.
    tolerance = {"horizon": 3 * abs(late - early) / rate, "turning": turn**2, "rounding": rounding}
    why = f"per unit of {clock} the norm grows by {early:.6g} and then by {late:.6g}, expected {rate:.6g}"
    if tolerance["horizon"] + tolerance["turning"] > _MOST_HORIZON:
        outcome = "no" if error > _MOST_HORIZON and error >= before else "undecided"
        return Decision(name, outcome, error, tolerance, basis, why)
    return _graded(name, error, tolerance, basis, why)


def equals(
    name: str, measured: float, predicted: float, tolerance: Mapping[str, float], why: str
) -> Decision:
    """Whether two numbers agree to within the sum of `tolerance`, in the unit of their difference.

    Args:
        name: the question, as it stands in a report.
        measured: a number.
        predicted: the number expected.
        tolerance: its parts.
        why: what was measured, as a phrase.
    """
    sentence = f"{why}: measured {measured:.8g}, predicted {predicted:.8g}"
    return _graded(name, abs(measured - predicted), tolerance, "evaluation", sentence)


def _graded(name: str, error: float, tolerance: Mapping[str, float], basis: str, why: str) -> Decision:
    total = sum(tolerance.values())
    outcome: Outcome = "yes" if error <= total else "no" if error > _GREY * total else "undecided"
    return Decision(name, outcome, error, tolerance, basis, why)


def _angle(vector: FloatArray, axis: FloatArray) -> float:
    """Chord between the unit vector of `vector` and `axis`; 2, the largest there is, for a zero vector."""
    norm = float(np.linalg.norm(vector))
    return float(np.linalg.norm(vector / norm - axis)) if norm > 0 else 2.0


def _unit(path: Path, target: npt.ArrayLike) -> FloatArray:
    axis = path.problem.query(target, "target")
    if not axis.any():
        raise ValueError("target: got the zero vector, expected a direction")
    unit: FloatArray = axis / np.linalg.norm(axis)
    return unit


def _late(path: Path, target: npt.ArrayLike) -> Decision:
    """`converges_in_direction`, undecided where the path cannot be followed as far as rates need."""
    found = converges_in_direction(path, target)
    if found.outcome == "yes" and (flow := _followed(path)).end != "horizon":
        return Decision(found.name, "undecided", basis="none", why=_unfinished(flow))
    return found


def _unfinished(flow: Path) -> str:
    return f"the path cannot be followed: the flow ended at norm {flow.norms[-1]:.3g} ({flow.end})"


@lru_cache(maxsize=64)
def _followed(path: Path) -> Path:
    """The last two decades of the norm or more, by flow, to `_RATE_HORIZON` logits at least."""
    tail = limit_of(path).tail
    reached = float(tail.norms[-1])
    horizon = max(_RATE_HORIZON / path.problem.pairs.logit_scale, 100 * reached)
    return gradient_flow(path.problem, tail.points[-1], horizon)


def _late_offsets(path: Path, target: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Norms of the last two decades, `(m,)`, and offsets `Pp` off the ray of `target` in logits, `(m, D)`."""
    axis = _unit(path, target)
    flow = _followed(path)
    offsets = flow.points - np.outer(flow.points @ axis, axis)
    return flow.norms, offsets * path.problem.pairs.logit_scale
