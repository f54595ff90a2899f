"""Three inputs of seven tokens: normalised gradient descent against gradient descent.

Published as the multiple-input experiment of arXiv 2306.13596. Both run along the same curve to the same
direction. Normalised descent passes along it at constant speed, so that its norm grows like `t`; descent
slows down exponentially, and its norm grows like `log t`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..datasets import MULTI_INPUT
from ..margin import MarginSolution, att_svm
from ..problems import SelectionProblem
from ..selection import optimal_tokens
from ..trainers import Path as Run
from ..trainers import gradient_descent, gradient_flow, normalized_gd
from ..validation import FloatArray
from .canvas import BLACK, BLUE, GREY, VERMILION, house_style, new_figure, save_png
from .result import FigureResult, Reading

STEPS = 1_000
NORMALISED_STEP, STEP = 0.1, 1.0  # as published
# As in `runs`: the secant of a flow to this norm has the limit direction to 1e-8.
_FLOW_NORM = 1e7
_DIRECTION = 1e-8
_LOGIT_ERROR = 1e-2
_ATTENTION = 0.9  # descent passes this well within the published number of steps
# The look of the picture.
_WINDOW = ((-1.8, 5.7), (-2.0, 3.9))
_MARKERS = "os^"
_FARTHEST = 1e9  # steps, to which only the flow goes
_RAY: dict[str, Any] = {"color": BLACK, "lw": 5, "alpha": 0.2}
_BEST: dict[str, Any] = {"ls": "", "ms": 10, "color": BLACK}
_OTHER: dict[str, Any] = {"ls": "", "ms": 8, "color": GREY, "mfc": "white", "mew": 1.4}
_ASYMPTOTE: dict[str, Any] = {"color": BLACK, "lw": 0.8}
_FLOW: dict[str, Any] = {"color": BLACK, "lw": 1.4, "ls": ":"}


@dataclass(frozen=True, eq=False)
class Trainer:
    """One of the two published runs, with the clock by which it follows the flow.

    Attributes:
        name: for legends and readings.
        colour, width: of its line in the picture.
        marked: steps whose numbers stand in the picture.
        run: the published run, from the origin.
        halved: the same with half the step and twice the steps.
        clock: `(m,)` number of steps, not whole, that the flow takes to each of its points.
        axis: on which the flow moves evenly with that number, ``"linear"`` or ``"log"``.
    """

    name: str
    colour: str
    width: float
    marked: tuple[int, ...]
    run: Run
    halved: Run
    clock: FloatArray
    axis: Literal["linear", "log"]


@dataclass(frozen=True, eq=False)
class MultiInput:
    """The experiment.

    Attributes:
        id: as in `FIGURES`.
        problem: `D = 2`, unique optimal tokens that can be separated.
    """

    id: str
    problem: SelectionProblem

    @cached_property
    def solution(self) -> MarginSolution:
        """ATT-SVM of the optimal tokens."""
        return att_svm(self.problem, optimal_tokens(self.problem))

    @cached_property
    def target(self) -> FloatArray:
        """Unit GMM direction from the exact solution, `(2,)`."""
        exact = np.array([float(x) for x in self.solution.certificate.vector])
        unit: FloatArray = exact / np.linalg.norm(exact)
        return unit

    @cached_property
    def flow(self) -> Run:
        """The curve that both runs follow, up to the size of their steps."""
        return gradient_flow(self.problem, np.zeros(2), _FLOW_NORM)

    @cached_property
    def normalised(self) -> Trainer:
        """Normalised descent: its clock is the length of the flow."""
        chords = np.linalg.norm(np.diff(self.flow.points, axis=0), axis=1)
        runs = [normalized_gd(self.problem, np.zeros(2), NORMALISED_STEP / k, k * STEPS) for k in (1, 2)]
        clock = np.concatenate([[0.0], np.cumsum(chords)]) / NORMALISED_STEP
        return Trainer("normalised descent", BLUE, 1.6, (20, 30, 40, 50), runs[0], runs[1], clock, "linear")

    @cached_property
    def descent(self) -> Trainer:
        """Descent: its clock is the time of the flow, infinite where that overflows."""
        runs = [gradient_descent(self.problem, np.zeros(2), STEP / k, k * STEPS) for k in (1, 2)]
        with np.errstate(over="ignore"):
            clock = np.exp(self.flow.log_times) / STEP
        return Trainer("descent", VERMILION, 4, (10, 30, 100, 1_000), runs[0], runs[1], clock, "log")

    @cached_property
    def trainers(self) -> tuple[Trainer, Trainer]:
        """Both."""
        return self.normalised, self.descent

    def attention(self, points: FloatArray) -> FloatArray:
        """The least attention on an optimal token over the inputs, at points `(m, 2)`, `(m,)`."""
        alpha = list(optimal_tokens(self.problem))
        inputs = np.arange(len(alpha))
        return np.array([self.problem.attention(p)[inputs, alpha].min() for p in points])

    def predicted(self, trainer: Trainer, steps: FloatArray) -> FloatArray:
        """Points of the flow after so many steps of `trainer`, `(m, 2)`."""
        known = np.isfinite(trainer.clock)
        clock, points = trainer.clock[known], self.flow.points[known]
        if trainer.axis == "log":
            # Up to the first point that the flow kept, a tenth of a logit, it moves evenly in time.
            first = steps <= clock[1]
            later = [
                np.interp(np.log(np.maximum(steps, clock[1])), np.log(clock[1:]), c[1:]) for c in points.T
            ]
            early = [np.interp(steps, clock[:2], c[:2]) for c in points.T]
            return np.where(first[:, None], np.stack(early, axis=1), np.stack(later, axis=1))
        return np.stack([np.interp(steps, clock, column) for column in points.T], axis=1)

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What is measured against what is predicted."""
        return (
            self._direction(),
            self._linear_growth(),
            self._logarithmic_growth(),
            *(self._final_norm(trainer) for trainer in self.trainers),
            *(self._selected(trainer) for trainer in self.trainers),
        )

    def _direction(self) -> Reading:
        return Reading(
            "flow from (0, 0): limit direction, exact GMM direction",
            tuple(self.flow.direction.tolist()),
            tuple(self.target.tolist()),
            float(np.linalg.norm(self.flow.direction - self.target)),
            {"integrator": _DIRECTION},
        )

    def _linear_growth(self) -> Reading:
        norms, half = self.normalised.run.norms, STEPS // 2
        rate = float(norms[-1] - norms[half]) / (STEPS - half)
        # The norm gains the cosine of the angle between p and the step, twice 1 − cos for what it varies.
        offset = float(
            np.linalg.norm(self.flow.points[-1] - (self.flow.points[-1] @ self.target) * self.target)
        )
        turning = NORMALISED_STEP * (offset / (NORMALISED_STEP * half)) ** 2
        return Reading(
            "normalised descent: norm gained per step over the second half, the step",
            rate,
            NORMALISED_STEP,
            abs(rate - NORMALISED_STEP),
            {"turning": turning, "rounding": 4e-16 * STEPS},
        )

    def _logarithmic_growth(self) -> Reading:
        norms, times = self.flow.norms, self.flow.log_times
        middle = int(np.flatnonzero(norms <= norms[-1] / 10)[-1])
        span = float(times[-1] - times[middle])
        rate, predicted = float(norms[-1] - norms[middle]) / span, 1 / self.solution.margin
        # A step of the flow is known in time up to a factor: a unit of log time in all is generous.
        return Reading(
            "descent, followed by the flow: norm gained per unit of log t, ‖p_mm‖",
            rate,
            predicted,
            abs(rate - predicted),
            {"clock": predicted / span},
        )

    def _final_norm(self, trainer: Trainer) -> Reading:
        measured = float(trainer.run.norms[-1])
        [point] = self.predicted(trainer, np.array([float(STEPS)]))
        predicted = float(np.linalg.norm(point))
        return Reading(
            f"{trainer.name}: norm after {STEPS:,} steps, that of the flow",
            measured,
            predicted,
            abs(measured - predicted),
            # A method of first order loses half of its error with half the step.
            {
                "step": 2 * abs(measured - float(trainer.halved.norms[-1])),
                "integrator": _LOGIT_ERROR / self.problem.pairs.logit_scale,
            },
        )

    def _selected(self, trainer: Trainer) -> Reading:
        steps = np.arange(STEPS + 1.0)
        measured = _crossing(self.attention(trainer.run.points))
        halved = _crossing(self.attention(trainer.halved.points)) / 2
        flow = self.attention(self.predicted(trainer, steps))
        predicted = _crossing(flow)
        # An error of the integrator in the logits moves the crossing by its share of the slope there.
        before, after = flow[int(predicted)], flow[int(predicted) + 1]
        slope = np.log(after / (1 - after)) - np.log(before / (1 - before))
        return Reading(
            f"{trainer.name}: steps until all attend by {_ATTENTION:g} to their best token, the flow's",
            measured,
            predicted,
            abs(measured - predicted),
            {"step": 2 * abs(measured - halved), "integrator": _LOGIT_ERROR / float(slope)},
        )


def _crossing(attention: FloatArray) -> float:
    """The step, interpolated, at which attention first passes `_ATTENTION`; infinite if it never does."""
    above = np.flatnonzero(attention >= _ATTENTION)
    if above.size == 0:
        return float("inf")
    k = int(above[0])
    return k if k == 0 else k - 1 + float((_ATTENTION - attention[k - 1]) / (attention[k] - attention[k - 1]))


MULTI = MultiInput("fig-multi", MULTI_INPUT)


def draw(experiment: MultiInput, out: Path) -> FigureResult:
    """Run the experiment and write its picture to `out/ID.png`.

    Raises:
        OSError: `out` cannot be written to.
    """
    picture = out / f"{experiment.id}.png"
    with house_style():
        save_png(picture_of(experiment), picture)
    return FigureResult(experiment.id, picture, experiment.readings)


def picture_of(experiment: MultiInput) -> Figure:
    """Tokens and paths in the plane; attention, and the norm on both clocks."""
    figure = new_figure(16, 7)
    figure.suptitle(
        "Three inputs of seven tokens: normalised descent selects the best sooner, along the same curve"
    )
    grid = figure.add_gridspec(2, 3, width_ratios=[1.15, 1, 1])
    _plane(figure.add_subplot(grid[:, 0]), experiment)
    _attention(figure.add_subplot(grid[:, 1]), experiment)
    _linear(figure.add_subplot(grid[0, 2]), experiment)
    _logarithmic(figure.add_subplot(grid[1, 2]), experiment)
    figure.legend(handles=_legend(experiment), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _plane(axes: Axes, experiment: MultiInput) -> None:
    keys, alpha = experiment.problem.keys, optimal_tokens(experiment.problem)
    axes.set_title("Keys, and both paths with their step numbers")
    axes.set(aspect="equal", xlabel="first coordinate of p and of the keys", ylabel="second coordinate")
    axes.set(xlim=_WINDOW[0], ylim=_WINDOW[1])
    axes.grid(True, color=GREY, alpha=0.15)
    ray = 10 * experiment.target
    axes.plot([0, ray[0]], [0, ray[1]], zorder=1, **_RAY)
    for marker, tokens, best in zip(_MARKERS, keys, alpha, strict=True):
        axes.plot(*np.delete(tokens, best, axis=0).T, marker=marker, zorder=3, **_OTHER)
        axes.plot(*tokens[best], marker=marker, zorder=4, **_BEST)
    for trainer, side in zip(experiment.trainers, (1, -1), strict=True):
        points = trainer.run.points
        axes.plot(*points.T, color=trainer.colour, lw=trainer.width, zorder=2)
        for k in trainer.marked:
            # Numbers of the two runs stand on different sides of the curve that they share.
            axes.plot(*points[k], marker="o", ms=6, color=trainer.colour, mec="white", zorder=5)
            place: dict[str, Any] = {"xytext": (0, 9 * side), "textcoords": "offset points"}
            place["va"] = "bottom" if side > 0 else "top"
            axes.annotate(f"{k:,}", points[k], color=trainer.colour, ha="center", **place)


def _attention(axes: Axes, experiment: MultiInput) -> None:
    axes.set_title("Least attention on a best token")
    axes.set(xscale="log", xlim=(1, STEPS), ylim=(0, 1.02), xlabel="step", ylabel="attention")
    axes.grid(True, color=GREY, alpha=0.25)
    axes.axhline(_ATTENTION, color=GREY, lw=1)
    steps = np.geomspace(1, STEPS, 200)
    for trainer in experiment.trainers:
        attention = experiment.attention(trainer.run.points)
        reached = _crossing(attention)
        axes.plot(attention, color=trainer.colour, lw=2)
        axes.plot(reached, _ATTENTION, marker="o", ms=7, color=trainer.colour, mec="white", zorder=4)
        # Outwards, where no curve is in the way.
        side, align = (-9, "right") if trainer is experiment.normalised else (9, "left")
        place: dict[str, Any] = {"xytext": (side, -1.4 * side), "textcoords": "offset points", "ha": align}
        axes.annotate(
            f"{reached:.0f} steps", (reached, _ATTENTION), color=trainer.colour, va="center", **place
        )
        axes.plot(steps, experiment.attention(experiment.predicted(trainer, steps)), **_FLOW)


def _linear(axes: Axes, experiment: MultiInput) -> None:
    axes.set_title("Norm against the step")
    axes.set(xlim=(0, STEPS), ylim=(0, 105), xlabel="step", ylabel="‖p‖")
    axes.grid(True, color=GREY, alpha=0.25)
    _norms(axes, experiment, np.linspace(0, STEPS, 200))


def _logarithmic(axes: Axes, experiment: MultiInput) -> None:
    axes.set_title("… and against its logarithm, much farther")
    axes.set(xscale="log", xlim=(1, _FARTHEST), ylim=(0, 21), xlabel="step", ylabel="‖p‖")
    axes.grid(True, color=GREY, alpha=0.25)
    steps = np.geomspace(1, _FARTHEST, 200)
    _norms(axes, experiment, steps)
    # ‖p_mm‖ log t up to a constant, which is read off the far end of the flow.
    rate, log_steps = 1 / experiment.solution.margin, experiment.flow.log_times[-1] - np.log(STEP)
    axes.plot(steps, rate * (np.log(steps) - log_steps) + experiment.flow.norms[-1], **_ASYMPTOTE)


def _norms(axes: Axes, experiment: MultiInput, steps: FloatArray) -> None:
    for trainer in experiment.trainers:
        axes.plot(trainer.run.norms, color=trainer.colour, lw=2)
        axes.plot(steps, np.linalg.norm(experiment.predicted(trainer, steps), axis=1), **_FLOW)


def _legend(experiment: MultiInput) -> list[Line2D]:
    runs = [
        Line2D([], [], color=t.colour, lw=t.width, label=f"{t.name}, step {t.run.step:g}")
        for t in experiment.trainers
    ]
    return [
        *runs,
        Line2D([], [], label="predicted from the flow", **_FLOW),
        Line2D([], [], label="‖p_mm‖ log t + const", **_ASYMPTOTE),
        Line2D([], [], label="GMM direction", **_RAY),
        Line2D([], [], marker="o", label="best token (shape: input)", **_BEST),
        Line2D([], [], marker="o", label="other tokens", **_OTHER),
    ]
