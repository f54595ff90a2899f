"""Gradient descent and normalised gradient descent on the attention parameter ([MM])."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..problems import SelectionProblem
from ..validation import FloatArray, count, positive
from .path import End, Method, Path


def gradient_descent(
    problem: SelectionProblem,
    start: npt.ArrayLike,
    step: float | None = None,
    steps: int = 10_000,
) -> Path:
    """Gradient descent `p ← p − η ∇L(p)`.

    Args:
        problem: keys, scores and loss.
        start: `(D,)`.
        step: `η`; `1/problem.smoothness` if not given, for which the risk never rises.
        steps: largest number of steps. The run ends early when a step no longer changes the iterate
            in double precision (all later ones would not either), with `end == "at rest"`.

    Raises:
        ValueError: `start` does not fit the problem, or `step` or `steps` is not positive.
    """
    if step is None:
        # A risk of constant gradient zero (no pair moves) has any step size.
        step = 1 / problem.smoothness if problem.smoothness > 0 else 1.0
    return _iterate(problem, start, positive(step, "step"), count(steps, "steps"), False)


def normalized_gd(
    problem: SelectionProblem, start: npt.ArrayLike, step: float = 0.1, steps: int = 1_000
) -> Path:
    """Normalised gradient descent `p ← p − η ∇L(p)/‖∇L(p)‖`, without an ε in the denominator.

    At an exact zero of the gradient the iterate stays where it is.

    Args:
        problem: keys, scores and loss.
        start: `(D,)`.
        step: `η`, the length of every step.
        steps: number of steps.

    Raises:
        ValueError: `start` does not fit the problem, or `step` or `steps` is not positive.
    """
    return _iterate(problem, start, positive(step, "step"), count(steps, "steps"), True)


def _iterate(
    problem: SelectionProblem, start: npt.ArrayLike, step: float, steps: int, normalised: bool
) -> Path:
    p = problem.query(start, "start")
    pairs = problem.pairs
    log_step = math.log(step)
    points: list[FloatArray] = [p]
    log_times = [-math.inf]
    end: End = "horizon"
    for k in range(1, steps + 1):
        descent = pairs.descent(p)
        if normalised:
            length = step if descent.log_norm > -math.inf else 0.0
            log_time = float(np.logaddexp(log_times[-1], log_step - descent.log_norm))
        else:
            length = math.exp(log_step + descent.log_norm)
            log_time = log_step + math.log(k)
        moved = p + length * descent.direction
        if (moved == p).all():
            end = "at rest"
            break
        p = moved
        points.append(p)
        log_times.append(log_time)
    method: Method = "normalised gradient descent" if normalised else "gradient descent"
    return Path(problem, method, np.array(points), np.array(log_times), step, end)
