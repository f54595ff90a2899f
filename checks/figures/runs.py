"""Runs of normalised gradient descent in the plane, with where they are to end and how exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..margin import MarginSolution, att_svm
from ..problems import SelectionProblem
from ..selection import Selection, lmm_directions
from ..trainers import Path, gradient_flow, normalized_gd
from ..validation import FloatArray
from .result import Reading

STEP, STEPS = 0.1, 1_000  # as published
# The flow's secant runs over the second half of this norm. Its integrator is off by about 1e-2
# logits in all (see checks.limits), which is 2e-9 of that length: below the accuracy asked for.
_FLOW_NORM = 1e7
_DIRECTION = 1e-8
_LOGIT_ERROR = 1e-2


@dataclass(frozen=True, eq=False)
class SingleInput:
    """A single-input experiment in the plane.

    Attributes:
        id: as in `FIGURES`.
        title: for the picture.
        problem: `n = 1`, `D = 2`.
        starts: points of the plane.
        ends: the selection in whose ATT-SVM direction each start is to end.

    Raises:
        ValueError: the problem has another shape, or `ends` another length than `starts`.
    """

    id: str
    title: str
    problem: SelectionProblem
    starts: tuple[tuple[float, float], ...]
    ends: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        n, _, dim = self.problem.shape
        if (n, dim) != (1, 2):
            raise ValueError(f"problem: got shape {self.problem.shape}, expected (1, T, 2)")
        if len(self.starts) != len(self.ends):
            raise ValueError(f"ends: got {len(self.ends)}, expected {len(self.starts)}, one per start")

    @cached_property
    def selections(self) -> tuple[Selection, ...]:
        """The locally-optimal selections, the global one first."""
        return tuple(lmm_directions(self.problem))

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """One run per start."""
        return tuple(Run(self, *pair) for pair in zip(self.starts, self.ends, strict=True))


@dataclass(frozen=True, eq=False)
class Run:
    """Normalised gradient descent from one start, and the gradient flow from the same start.

    Attributes:
        experiment: what it is a run of.
        start: a point of the plane.
        end: the selection in whose direction it is to end.
    """

    experiment: SingleInput
    start: tuple[float, float]
    end: tuple[int, ...]

    @cached_property
    def descent(self) -> Path:
        """The published run."""
        return normalized_gd(self.experiment.problem, self.start, STEP, STEPS)

    @cached_property
    def flow(self) -> Path:
        """The curve that the run follows up to its step size, carried on to where the limit shows."""
        return gradient_flow(self.experiment.problem, self.start, _FLOW_NORM)

    @cached_property
    def target(self) -> FloatArray:
        """Unit ATT-SVM direction of the selection `end`, from its exact solution, `(2,)`."""
        return _exact_direction(att_svm(self.experiment.problem, self.end))

    @cached_property
    def limit(self) -> Selection | None:
        """The selection in whose direction the flow does end, `None` if in no LMM direction."""
        for selection in self.experiment.selections:
            if np.linalg.norm(self.flow.direction - _exact_direction(selection.solution)) <= _DIRECTION:
                return selection
        return None

    @cached_property
    def predicted_offset(self) -> float:
        """Signed distance `w` of the flow from the ray of `target`, far out.

        `p = s p̂ + w` with `w` convergent: the angle to `p̂` tends to `w/‖p‖`.
        """
        return float(self._offsets(self.flow)[-1])

    def angles(self, path: Path) -> FloatArray:
        """Unsigned angles of the points of a path to `target`, in degrees, `(m,)`; 90 at the origin."""
        along = path.points @ self.target
        across = np.abs(self._offsets(path))
        result: FloatArray = np.where(path.norms > 0, np.degrees(np.arctan2(across, along)), 90.0)
        return result

    def predicted_angle(self, norm: float) -> float:
        """Angle in degrees at a norm, from `predicted_offset` alone."""
        across = abs(self.predicted_offset)
        return math.degrees(math.atan2(across, math.sqrt(max(norm**2 - across**2, 0.0))))

    @cached_property
    def predicted_norm(self) -> float:
        """Norm of the flow at the length of the published run.

        Not the norm that the run has reached: a run that stalls must not shift its own prediction.
        """
        return float(np.interp(STEP * STEPS, self._lengths, self.flow.norms))

    @cached_property
    def direction_reading(self) -> Reading:
        """The limit direction of the flow against `target`."""
        return Reading(
            f"flow from {self._at}: limit direction, exact ATT-SVM direction of {self.end}",
            tuple(self.flow.direction.tolist()),
            tuple(self.target.tolist()),
            float(np.linalg.norm(self.flow.direction - self.target)),
            {"integrator": _DIRECTION},
        )

    @cached_property
    def angle_reading(self) -> Reading:
        """The angle of the published run to `target` at its last step, in degrees."""
        norm = self.predicted_norm
        measured, predicted = float(self.angles(self.descent)[-1]), self.predicted_angle(norm)
        return Reading(
            f"descent from {self._at}: degrees to that direction after {STEPS:,} steps",
            measured,
            predicted,
            abs(measured - predicted),
            # By this norm the offset has settled: what is left of its change decays exponentially.
            {
                "step": math.degrees(self._step_error() / norm),
                "integrator": math.degrees(_LOGIT_ERROR / self.experiment.problem.pairs.logit_scale / norm),
            },
        )

    @property
    def _at(self) -> str:
        return "({:g}, {:g})".format(*self.start)

    @cached_property
    def _lengths(self) -> FloatArray:
        """Length of the flow up to each of its points, `(m,)`."""
        chords = np.linalg.norm(np.diff(self.flow.points, axis=0), axis=1)
        return np.concatenate([[0.0], np.cumsum(chords)])

    def _step_error(self) -> float:
        """How far finite steps can take the run off the flow, to first order.

        Descent is Euler's method for the flow by arc length: a length `ds` with curvature `κ` puts it
        `(η/2) κ ds` aside, and the linearised flow carries that on, growing or shrinking as neighbouring
        curves part or close in. Read off the flow alone, so that no fault of the run can widen it.
        """
        pairs = self.experiment.problem.pairs
        inside = int(np.searchsorted(self._lengths, STEP * STEPS)) + 1
        parting, curvature = [], []
        for point in self.flow.points[:inside]:
            descent, jacobian = pairs.descent_jacobian(point)
            x, y = descent.direction
            normal = np.array([-y, x])
            parting.append(float(normal @ jacobian @ normal))
            curvature.append(abs(float(normal @ jacobian @ descent.direction)))
        error = 0.0
        with np.errstate(over="ignore"):
            for k, ds in enumerate(np.diff(self._lengths[:inside])):
                growth = float(np.exp(ds * (parting[k] + parting[k + 1]) / 2))
                error = error * growth + STEP / 2 * ds * (curvature[k] * growth + curvature[k + 1]) / 2
        return error

    def _offsets(self, path: Path) -> FloatArray:
        """Signed distances of the points of a path from the line along `target`, `(m,)`."""
        x, y = self.target
        result: FloatArray = path.points @ np.array([-y, x])
        return result


def _exact_direction(solution: MarginSolution) -> FloatArray:
    vector = np.array([float(entry) for entry in solution.certificate.vector])
    unit: FloatArray = vector / np.linalg.norm(vector)
    return unit
