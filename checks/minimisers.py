"""Where constrained minimisers go as the ball grows: the decision for [MM], Theorem 1."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .certificates.ball import ball_certificate
from .decisions import Decision, Outcome
from .problems import SelectionProblem
from .trainers.regularization import LogGap
from .validation import FloatArray, finite_array

_EPS = float(np.finfo(float).eps)
# A target from a margin oracle is known by its duality gap; a gap at rounding leaves √eps in direction.
_TARGET = math.sqrt(_EPS)
# Between the tolerance and this multiple of it neither outcome is claimed.
_GREY = 10.0
# A direction that still turns by more than this (radians) has not been seen to converge.
_SETTLED = 1e-2


def minimisers_tend_to(
    problem: SelectionProblem,
    radii: npt.ArrayLike,
    minimisers: npt.ArrayLike,
    target: npt.ArrayLike,
    slow: bool = False,
) -> Decision:
    """Whether `p̄(R)/R → target/‖target‖`, with an error of the order that theory gives.

    *Direction.* As `p̄(R) = R q̂ + w(R)` with `w` bounded, or growing like `log R`, the secant
    `p̄(R₃) − p̄(R₂)` over the last two radii is far closer to the limit than `p̄(R₃)/R₃`. The error is its
    distance from the target, held against the change from the secant before.

    *Rate.* `‖p̄(R) − R q̂‖` has to stay bounded (error `O(1/R)`), or with `slow` to grow like `log R` (error
    `O(log R/R)`). Between two radii of ratio `ρ` the order `R^{−1/2}` would let it grow by `√ρ`: a growth
    below the fourth root of `ρ` times the order claimed is accepted, one above `√ρ` is not.

    Where `certificates.ball_certificate` holds at the largest radius it proves the limit direction, and
    confines every global minimiser. It then carries the outcome, unless a minimiser lies outside or the
    secants contradict it: then the search is unreliable and the outcome is "undecided".

    Args:
        problem: keys, scores and loss.
        radii: `(m,)`, at least three, increasing, each several times the one before.
        minimisers: `(m, D)`, as from `regularization_path`.
        target: `(D,)`, the direction claimed.
        slow: claim the error `O(log R/R)`: for a support vector of the target with multiplier 0.

    Raises:
        ValueError: an argument has the wrong shape, `target` is zero, or the radii do not increase.
    """
    name = "minimisers_tend_to"
    ball, points, axis = _checked(problem, radii, minimisers, target)
    radius, ratio = float(ball[-1]), float(ball[-1] / ball[-2])
    moves = np.diff(points[-3:], axis=0)
    lengths = np.linalg.norm(moves, axis=1)
    if lengths[-1] < 0.5 * (radius - ball[-2]):
        why = (
            f"the minimiser over the ball of radius {radius:.3g} has norm "
            f"{np.linalg.norm(points[-1]):.3g}: the minimisers do not move outwards"
        )
        return Decision(name, "no", basis="search", why=why)
    last = moves[1] / lengths[1]
    drift = float(np.linalg.norm(last - moves[0] / max(lengths[0], np.finfo(float).tiny)))
    error = float(np.linalg.norm(last - axis))
    tolerance = {"target": _TARGET, "minimiser": _rounding(problem, points[-1], radius), "horizon": 3 * drift}
    total = sum(tolerance.values())
    # Offsets in logits; what rounding and the target leave of them is not told from a bounded one.
    logit = problem.pairs.logit_scale
    offsets = np.linalg.norm(points - ball[:, None] * axis, axis=1) * logit
    blurred = logit * radius * (tolerance["target"] + tolerance["minimiser"])
    growth = float(offsets[-1] / max(offsets[-2], 1.0, blurred))
    order = math.log(logit * radius) / math.log(logit * ball[-2]) if slow else 1.0
    why = (
        f"the direction in which the minimisers move from R = {ball[-2]:.3g} to {radius:.3g} is "
        f"{error:.2g} from the target; their offset from it, {offsets[-1]:.3g} logits, grew {growth:.2g}-fold"
    )
    certificate = ball_certificate(problem, radius)
    basis = "search" if certificate is None else "certificate: ball"
    outcome = _compared(error, total)
    if certificate is not None:
        trusted = certificate.holds(points[-1] * (1 + 1e-12)) and (
            np.linalg.norm(last - certificate.axis) <= _GREY * total
        )
        proved = float(np.linalg.norm(certificate.axis - axis))
        outcome = _compared(proved, _TARGET) if trusted else "undecided"
        why = (
            f"every global minimiser is certified to have a cosine of at least {certificate.cosine:.6g} to "
            f"the GMM direction, which is {proved:.2g} from the target; {why}"
        )
        if not trusted:
            why = f"the search and the certificate disagree: one of them is unreliable here; {why}"
    if outcome != "yes":
        return Decision(name, outcome, error, tolerance, basis, why)
    if certificate is None and total > _SETTLED:
        return Decision(name, "undecided", error, tolerance, basis, f"it has not settled yet; {why}")
    allowed = order * ratio**0.25
    if growth > allowed:
        outcome = "no" if growth > order * ratio**0.5 else "undecided"
        claimed = "log R" if slow else "a bounded offset"
        why = f"that is more than {claimed} allows; {why}"
        return Decision(name, outcome, growth, {"rate": allowed}, basis, why)
    return Decision(name, "yes", error, tolerance, basis, why)


def _checked(
    problem: SelectionProblem, radii: npt.ArrayLike, minimisers: npt.ArrayLike, target: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    ball = finite_array(radii, "radii", ("m",))
    points = finite_array(minimisers, "minimisers", ("m", "D"))
    if len(ball) < 3 or ball[0] <= 0 or (np.diff(ball) <= 0).any():
        raise ValueError(f"radii: got {ball.tolist()}, expected at least three, positive and increasing")
    if points.shape != (len(ball), problem.shape[2]):
        raise ValueError(
            f"minimisers: got shape {points.shape}, expected {(len(ball), problem.shape[2])}: one per radius"
        )
    axis = problem.query(target, "target")
    if not axis.any():
        raise ValueError("target: got the zero vector, expected a direction")
    return ball, points, axis / np.linalg.norm(axis)


def _compared(error: float, tolerance: float) -> Outcome:
    if error <= tolerance:
        return "yes"
    return "no" if error > _GREY * tolerance else "undecided"


def _rounding(problem: SelectionProblem, point: FloatArray, radius: float) -> float:
    """How far the direction of a minimiser can be off because logits are rounded.

    The slope of `F` is off by some eps times the logits, `A·eps·AR`; its curvature along the sphere is at
    least that of the constraint, `pull/R²` with `pull = −∇F·p`.
    """
    gap = LogGap(problem)
    gradient, _ = gap.derivatives(point, gap.value(point))
    pull = -float(gradient @ point)
    logits = gap.logit_scale * radius
    return 8 * _EPS * logits**2 / pull if pull > 0 else math.inf
