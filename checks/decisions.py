"""Three-valued decisions about a path, each with its error, its tolerance in parts, and its basis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from .cones import Cone
from .limits import Limit, limit_of
from .trainers import Path
from .trainers.flow import cancellation_rounding
from .validation import FloatArray, finite_array, unit

Outcome = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Decision:
    """What a path says about a question.

    Attributes:
        name: the question, e.g. ``"converges_in_direction"``.
        outcome: ``"yes"``, ``"no"`` or ``"undecided"``.
        error: the measured quantity that was held against the tolerance.
        tolerance: parts of the tolerance by name; their sum is the tolerance.
        basis: what carries the outcome, e.g. ``"certificate"`` or ``"flow"``.
        why: one sentence for a reader who does not know the code.
    """

    name: str
    outcome: Outcome
    error: float = math.nan
    tolerance: Mapping[str, float] = field(default_factory=dict)
    basis: str = ""
    why: str = ""

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self.name} is a decision with three outcomes, no condition: use expect(…), or its .outcome"
        )

    @property
    def severity(self) -> float:
        """`error / tolerance`; infinite where there is no tolerance."""
        total = sum(self.tolerance.values())
        return self.error / total if total > 0 else math.inf


# A norm that the flow carries past this multiple of where the path stood is growing without bound
# for every purpose here: a finite stationary point would have stopped the flow.
_GROWTH = 1e-3
# A target from a margin oracle is known by its duality gap; a gap at rounding leaves √eps in direction.
_TARGET = math.sqrt(np.finfo(float).eps)
# Between the tolerance and this multiple of it neither outcome is claimed.
_GREY = 10.0


def diverges(path: Path) -> Decision:
    """Whether `‖p(t)‖ → ∞`.

    ``"no"`` when the path tends to a finite stationary point. The error is the norm where the path
    stood divided by the norm to which its continuation was followed.
    """
    limit = limit_of(path)
    if limit.kind == "unknown":
        return Decision("diverges", "undecided", basis="none", why=limit_sentence(limit))
    if limit.kind == "point":
        return Decision("diverges", "no", basis=limit_basis(limit), why=limit_sentence(limit))
    start = float(path.norms[0 if limit.tail is path else -1])
    return Decision(
        "diverges",
        "yes",
        error=start / float(limit.tail.norms[-1]),
        tolerance={"growth": _GROWTH},
        basis=limit_basis(limit),
        why=limit_sentence(limit),
    )


def stationary(path: Path) -> Decision:
    """Whether the path tends to a finite stationary point of the risk.

    The error is the cancellation ratio of the gradient at the point found.
    """
    limit = limit_of(path)
    point = limit.tail.stationary_point
    if point is None:
        outcome: Outcome = "undecided" if limit.kind == "unknown" else "no"
        return Decision("stationary", outcome, basis=limit_basis(limit), why=limit_sentence(limit))
    rounding = cancellation_rounding(path.problem.pairs, point.point)
    return Decision(
        "stationary",
        "yes",
        error=point.residual,
        tolerance={"rounding": rounding},
        basis=limit_basis(limit),
        why=limit_sentence(limit),
    )


def converges_in_direction(path: Path, target: npt.ArrayLike) -> Decision:
    """Whether `p(t)/‖p(t)‖ → target/‖target‖`.

    The error is the distance of the unit limit direction from the unit target. The tolerance is the
    sum of what the target, the integrator and the finite horizon can account for; a direction that
    is still drifting by more than it is off is undecided.

    Raises:
        ValueError: `target` is zero or does not have shape `(D,)`.
    """
    name = "converges_in_direction"
    axis = finite_array(target, "target", ("D",))
    if axis.shape != path.points[0].shape:
        raise ValueError(f"target: got shape {axis.shape}, expected {path.points[0].shape}")
    if not axis.any():
        raise ValueError("target: got the zero vector, expected a direction")
    axis = unit(axis)
    limit = limit_of(path)
    if limit.kind == "unknown":
        return Decision(name, "undecided", basis="none", why=limit_sentence(limit))
    norm = float(np.linalg.norm(limit.vector))
    if norm == 0:
        return Decision(name, "no", basis=limit_basis(limit), why=limit_sentence(limit))
    error = float(np.linalg.norm(limit.vector / norm - axis))
    tolerance = {"target": _TARGET, "integrator": limit.resolution, "horizon": 3 * limit.drift}
    total = sum(tolerance.values())
    certificate = limit.certificate
    why = f"its limit direction is {error:.2g} from the target; {limit_sentence(limit)}"
    outcome: Outcome
    if certificate is not None and (np.linalg.norm(limit.vector - certificate.direction) > _GREY * total):
        outcome = "undecided"
        why = (
            f"the {certificate.name} certificate names the direction of {certificate.alpha}, the flow "
            f"another one: one of them is unreliable here; {why}"
        )
    elif error <= total:
        outcome = "yes"
    elif error > _GREY * total:
        outcome = "no"
    else:
        outcome = "undecided"
    return Decision(name, outcome, error, tolerance, limit_basis(limit), why)


def follows(path: Path, predicted: FloatArray) -> Decision:
    """Whether the points of `path` equal `predicted` `(m, D)` up to rounding, iterate by iterate.

    Where one of the two came to rest earlier, its last point stands for the rest. The error is the
    largest distance relative to the largest norm.
    """
    length = max(len(path.points), len(predicted))
    index = np.arange(length)
    measured = path.points[np.minimum(index, len(path.points) - 1)]
    expected = predicted[np.minimum(index, len(predicted) - 1)]
    scale = max(1.0, float(np.linalg.norm(expected, axis=1).max()))
    error = float(np.linalg.norm(measured - expected, axis=1).max()) / scale
    # Each step adds a rounding error of a few eps and the following ones carry it on; descent with
    # steps up to 1/L stretches it in directions of negative curvature. Measured over 2,000 draws of
    # 1,000 steps: at most 4 eps per step of the path.
    tolerance = {"rounding": 100 * float(np.finfo(float).eps) * length}
    outcome: Outcome = "yes" if error <= tolerance["rounding"] else "no"
    why = f"over {length} iterates the largest relative distance from the prediction is {error:.2g}"
    return Decision("follows", outcome, error, tolerance, "iterates", why)


def stays_in_cone(path: Path, cone: Cone) -> Decision:
    """Whether a path that starts in `cone` never leaves it.

    Looks at every stored point of the path and of its continuation by gradient flow. The error is
    the largest relative excess `max(1 − μ − cos, R/‖p‖ − 1)` over the points.

    Raises:
        ValueError: the path does not start in the cone.
    """
    eps = float(np.finfo(float).eps)
    # A cosine of two D-vectors and a norm are right to a few D eps.
    rounding = 8 * eps * path.problem.shape[2]
    start = float(cone.excess(path.points[0]))
    if start > rounding:
        raise ValueError(
            f"path: starts outside the cone (relative excess {start:.3g}), expected a start within it"
        )
    limit = limit_of(path)
    excess = cone.excess(path.points)
    worst, where = float(excess.max()), f"iterate {int(excess.argmax())}"
    tolerance = {"rounding": rounding}
    basis = "iterates"
    if worst <= rounding and limit.tail is not path:
        basis = "iterates and flow"
        # An integrator error of 1e-3 logits turns a point at norm r by this much.
        tolerance["integrator"] = 1e-3 / (path.problem.pairs.logit_scale * float(path.norms[-1]))
        tail = cone.excess(limit.tail.points)
        if tail.max() > worst:
            worst, where = float(tail.max()), "its continuation by gradient flow"
    total = sum(tolerance.values())
    if worst > total:
        outcome: Outcome = "no" if worst > _GREY * total else "undecided"
        return Decision(
            "stays_in_cone",
            outcome,
            worst,
            tolerance,
            basis,
            f"{where} lies outside the cone by a relative {worst:.3g}",
        )
    if limit.kind == "unknown":
        return Decision("stays_in_cone", "undecided", worst, tolerance, basis, limit_sentence(limit))
    why = f"{len(path.points)} iterates and {len(limit.tail.points)} points of the flow lie inside"
    return Decision("stays_in_cone", "yes", worst, tolerance, basis, why)


def limit_basis(limit: Limit) -> str:
    if limit.certificate is not None:
        return f"certificate: {limit.certificate.name}"
    if limit.kind == "point":
        return "Newton"
    return "flow" if limit.kind == "direction" else "none"


def limit_sentence(limit: Limit) -> str:
    return f"the path cannot be followed: {limit.why}" if limit.kind == "unknown" else limit.why
