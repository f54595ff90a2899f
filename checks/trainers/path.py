"""The one path type: what every trainer returns and every decision reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..problems import SelectionProblem
from ..validation import FloatArray, unit

Method = Literal["gradient descent", "normalised gradient descent", "gradient flow"]
End = Literal["horizon", "at rest", "stationary", "budget"]


@dataclass(frozen=True, eq=False)
class StationaryPoint:
    """A finite zero of the gradient, found by Newton's method.

    Attributes:
        point: `(D,)`.
        residual: cancellation ratio of the gradient there, 0 for an exact zero.
        attracting: whether the Hessian is positive definite on the span of the key differences
            (the risk does not change across that span).
    """

    point: FloatArray
    residual: float
    attracting: bool


@dataclass(frozen=True, eq=False)
class Path:
    """An optimisation path.

    Attributes:
        problem: the problem it was computed on.
        method: the trainer.
        points: `(m, D)`, the start first. Discrete trainers keep every iterate.
        log_times: `(m,)` natural log of the physical time `t` of `dp/dt = −∇L`; `-inf` at the start.
            Gradient descent advances `t` by its step, a normalised step by `step/‖∇L‖`.
        step: step size of a discrete trainer, else `None`.
        end: why the path ends: ``"horizon"`` (the steps or the norm asked for), ``"at rest"`` (the
            next step is below the rounding of the iterate), ``"stationary"`` (a finite stationary
            point), ``"budget"`` (the integrator's step budget).
        stationary_point: the point in which it ends, when `end` is ``"stationary"``.
    """

    problem: SelectionProblem
    method: Method
    points: FloatArray
    log_times: FloatArray
    step: float | None
    end: End
    stationary_point: StationaryPoint | None = None

    @cached_property
    def norms(self) -> FloatArray:
        """Euclidean norms of the points, `(m,)`."""
        result: FloatArray = np.linalg.norm(self.points, axis=1)
        return result

    @cached_property
    def direction(self) -> FloatArray:
        """Best estimate of the limit direction, a unit vector `(D,)`.

        The secant of the second half of the path by length: where `p = s p̂ + w` with `w` bounded
        and convergent, `p/‖p‖` is off by `‖w‖/s`, but a secant only by the change of `w`. A path
        that did not move has the direction of its descent, and one that rests in a stationary
        point that of the point itself.
        """
        return self.secant(0.5)

    def secant(self, share: float) -> FloatArray:
        """Unit direction from the last point within `share` of the final displacement to the end.

        Args:
            share: in `(0, 1)`; the secant starts at the last point whose distance from the end is
                at least `1 − share` times that of the start.
        """
        if self.stationary_point is None:
            back = np.linalg.norm(self.points - self.points[-1], axis=1)
            far = np.flatnonzero(back >= (1 - share) * back[0])
            if back[far[-1]] > 0:
                return unit(self.points[-1] - self.points[far[-1]])
            descent = self.problem.descent(self.points[-1])
            if descent.log_norm > -np.inf:
                return descent.direction
        return unit(self.points[-1]) if self.points[-1].any() else self.points[-1]
