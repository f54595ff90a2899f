"""Two inputs, two losses: which input has the larger gradient, and where the paths end.

Published as the loss comparison of arXiv 2306.13596. The keys pull p up for the input whose better token
scores C and down for the one whose better token scores 1. Under ℓ(x) = −x a larger C always has the larger
gradient; under the logistic loss a margin that is already large has a small one. Both end in the same
direction, at offsets from its ray that depend on C and the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import brentq

from ..datasets import two_gains
from ..gains import log_gradient_ratio, logistic_threshold, predicted_log_ratio, predicted_offset
from ..losses import CORRELATION, LOGISTIC, Loss
from ..problems import SelectionProblem
from ..trainers import Path as Run
from ..trainers import gradient_flow, normalized_gd
from .canvas import BLACK, BLUE, GREY, PURPLE, VERMILION, house_style, new_figure, save_png
from .result import FigureResult, Reading

GAINS = (*range(1, 11), 100)  # as published
STEP, STEPS = 0.1, 1_000
_EPS = float(np.finfo(float).eps)
# As in `runs`: the secant of a flow to this norm has the limit direction to 1e-8.
_FLOW_NORM = 1e7
_DIRECTION = 1e-8
# Attention at the start, and where it has become 1 for every purpose: e^-40 is below rounding.
_EARLY, _LATE = 0.0, 40.0
_ROOT = 1e-12
Colour = tuple[float, float, float, float]
# The look of the picture: for the ratios loss, advance, attention, label, marker and colour.
_CASES = (
    (CORRELATION, _EARLY, 0.5, "ℓ(x) = −x, any attention", "s", BLUE),
    (LOGISTIC, _EARLY, 0.5, "logistic, at the start (attention 1/2)", "o", VERMILION),
    (LOGISTIC, _LATE, 1.0, "logistic, in the end (attention 1)", "D", PURPLE),
)
_RAY: dict[str, Any] = {"color": BLACK, "lw": 5, "alpha": 0.2}
_PREDICTED: dict[str, Any] = {"color": BLACK, "lw": 1.2, "zorder": 2}


@dataclass(frozen=True, eq=False)
class GainRun:
    """Normalised gradient descent from the origin for one gain and one loss."""

    gain: float
    loss: Loss

    @cached_property
    def problem(self) -> SelectionProblem:
        """The data set."""
        return two_gains(self.gain, self.loss)

    @cached_property
    def descent(self) -> Run:
        """The published run."""
        return normalized_gd(self.problem, np.zeros(2), STEP, STEPS)

    @cached_property
    def flow(self) -> Run:
        """The curve that it follows up to its step."""
        return gradient_flow(self.problem, np.zeros(2), _FLOW_NORM)

    @cached_property
    def predicted_offset(self) -> float:
        """Second coordinate of p in the limit: `½ log[C ℓ'(C)/ℓ'(1)]`."""
        return predicted_offset(self.gain, self.loss)

    @cached_property
    def offset_reading(self) -> Reading:
        """Second coordinate of p after the published steps.

        Beside the balance the unit gradient turns back by one radian per unit of length: each step takes a
        tenth off the distance, and the balance itself has no error from the step. It is still moving like
        `C e^{−|p|}`, hardly slower than the run can follow, which lags behind by 2/STEP times as much.
        """
        measured = float(self.descent.points[-1, 1])
        chords = np.linalg.norm(np.diff(self.flow.points, axis=0), axis=1)
        lengths = np.concatenate([[0.0], np.cumsum(chords)])
        near = np.abs(self.flow.points[:, 1] - self.predicted_offset) <= 1
        arrival = float(lengths[np.flatnonzero(~near)[-1] + 1]) if not near.all() else 0.0
        end = float(np.interp(STEP * STEPS, lengths, self.flow.points[:, 0]))
        return Reading(
            f"{self.loss.name}, C = {self.gain:g}: offset from the ray of (1, 0) after {STEPS:,} steps, "
            "½ log[C ℓ'(C)/ℓ'(1)]",
            measured,
            self.predicted_offset,
            abs(measured - self.predicted_offset),
            {
                "settling": (1 - STEP) ** (STEPS - arrival / STEP),
                "saturation": (1 + self.gain) * math.exp(abs(self.predicted_offset) - end) * 2 / STEP,
                "rounding": 32 * _EPS * STEP * STEPS,
            },
        )


@dataclass(frozen=True, eq=False)
class LossComparison:
    """The experiment.

    Attributes:
        id: as in `FIGURES`.
        gains: the scores `C`.
    """

    id: str
    gains: tuple[float, ...]

    @cached_property
    def runs(self) -> tuple[GainRun, ...]:
        """Runs of the correlation loss, then of the logistic loss, by gain."""
        return tuple(GainRun(gain, loss) for loss in (CORRELATION, LOGISTIC) for gain in self.gains)

    def of(self, loss: Loss) -> list[GainRun]:
        """The runs of one loss."""
        return [run for run in self.runs if run.loss is loss]

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What is measured against what is predicted."""
        return (
            self._direction(),
            _threshold("1/2", _EARLY, 0.5),
            _threshold("1", _LATE, 1.0),
            *(run.offset_reading for run in self.runs),
        )

    def _direction(self) -> Reading:
        """The limit direction of the flow that is farthest from (1, 0)."""
        target = np.array([1.0, 0.0])
        worst = max(self.runs, key=lambda run: float(np.linalg.norm(run.flow.direction - target)))
        return Reading(
            f"all flows: limit direction, the worst of {len(self.runs)}, GMM direction",
            tuple(worst.flow.direction.tolist()),
            (1.0, 0.0),
            float(np.linalg.norm(worst.flow.direction - target)),
            {"integrator": _DIRECTION},
        )


COMPARISON = LossComparison("fig-loss", tuple(float(gain) for gain in GAINS))


def _threshold(shown: str, advance: float, attention: float) -> Reading:
    """The gain at which the logistic gradients computed are equal, against the root of the closed form."""

    def log_ratio(gain: float) -> float:
        return log_gradient_ratio(gain, LOGISTIC, [advance, 0])

    measured, predicted = float(brentq(log_ratio, 1.01, 10.0, xtol=_ROOT)), logistic_threshold(attention)
    return Reading(
        f"logistic: C of equal gradients at attention {shown}, root of C σ(−Cs) = σ(−s)",
        measured,
        predicted,
        abs(measured - predicted),
        {"bisection": 2 * _ROOT},
    )


def draw(experiment: LossComparison, out: Path) -> FigureResult:
    """Run the experiment and write its picture to `out/ID.png`.

    Raises:
        OSError: `out` cannot be written to.
    """
    picture = out / f"{experiment.id}.png"
    with house_style():
        save_png(picture_of(experiment), picture)
    return FigureResult(experiment.id, picture, experiment.readings)


def picture_of(experiment: LossComparison) -> Figure:
    """Paths under both losses, the ratio of the gradients, and the offsets in the limit."""
    figure = new_figure(16, 9)
    figure.suptitle(
        "Two inputs, two losses: the loss decides which input leads, not the direction of the limit"
    )
    (correlation, ratio), (logistic, offset) = figure.subplots(2, 2, width_ratios=[1.25, 1])
    colours = dict(zip(experiment.gains, _colours(len(experiment.gains)), strict=True))
    _paths(correlation, experiment, CORRELATION, colours)
    _paths(logistic, experiment, LOGISTIC, colours)
    _ratios(ratio, experiment)
    _offsets(offset, experiment, colours)
    lines = [Line2D([], [], color=c, lw=2.2, label=f"{gain:g}") for gain, c in colours.items()]
    legend = figure.legend(handles=lines, loc="outside lower left", ncols=6, frameon=False)
    legend.set_title("C, the better score of the first input")
    figure.legend(handles=_marks(), loc="outside lower right", ncols=3, frameon=False)
    return figure


def _paths(axes: Axes, experiment: LossComparison, loss: Loss, colours: dict[float, Colour]) -> None:
    formula = "ℓ(x) = −x" if loss is CORRELATION else "ℓ(x) = log(1 + exp(−x))"
    axes.set_title(f"Paths under {formula}")
    axes.set(xlim=(0, 12.5), xlabel="first coordinate of p", ylabel="second coordinate")
    axes.set(ylim=(-0.5, 2.9) if loss is CORRELATION else (-4.6, 0.6))
    axes.grid(True, color=GREY, alpha=0.15)
    axes.plot([0, 13], [0, 0], zorder=1, **_RAY)
    for run in experiment.of(loss):
        colour = colours[run.gain]
        axes.plot(*run.descent.points.T, color=colour, lw=2, zorder=3)


def _ratios(axes: Axes, experiment: LossComparison) -> None:
    axes.set_title("Gradient of the first input over that of the second")
    axes.set(xscale="log", yscale="log", xlim=(0.95, 110), ylim=(2e-3, 200), xlabel="C", ylabel="ratio")
    axes.grid(True, color=GREY, alpha=0.25)
    axes.axhspan(axes.get_ylim()[0], 1, color=GREY, alpha=0.12, lw=0)
    axes.text(22, 0.3, "the second input leads", color=GREY)
    gains = np.geomspace(1, 100, 200)
    for loss, advance, attention, _, marker, colour in _CASES:
        predicted = [math.exp(predicted_log_ratio(float(gain), loss, attention)) for gain in gains]
        measured = [math.exp(log_gradient_ratio(gain, loss, [advance, 0])) for gain in experiment.gains]
        axes.plot(gains, predicted, **_PREDICTED)
        axes.plot(experiment.gains, measured, ls="", marker=marker, ms=7, color=colour, zorder=3)
        if loss is LOGISTIC:
            threshold = logistic_threshold(attention)
            axes.plot([threshold] * 2, [2e-3, 1], color=colour, lw=1)
            axes.text(threshold * 1.04, 6e-3, f"{threshold:.3f}", color=colour)


def _offsets(axes: Axes, experiment: LossComparison, colours: dict[float, Colour]) -> None:
    axes.set_title("Offset from the ray of (1, 0) in the limit")
    axes.set(xscale="log", xlim=(0.95, 110), ylim=(-4.6, 2.9), xlabel="C", ylabel="second coordinate of p")
    axes.grid(True, color=GREY, alpha=0.25)
    axes.text(13, 0.5, "ℓ(x) = −x")
    axes.text(13, -2.6, "logistic")
    farthest = experiment.of(LOGISTIC)[-1]
    off = f"at C = {farthest.gain:g}: {farthest.descent.points[-1, 1]:.2f} ↓".replace("-", "−")
    axes.text(105, -4.4, off, ha="right")
    gains = np.geomspace(1, 100, 400)
    for loss, marker in ((CORRELATION, "s"), (LOGISTIC, "o")):
        axes.plot(gains, [predicted_offset(float(gain), loss) for gain in gains], **_PREDICTED)
        for run in experiment.of(loss):
            axes.plot(
                run.gain, run.descent.points[-1, 1], marker=marker, ms=7, color=colours[run.gain], zorder=3
            )


def _marks() -> list[Line2D]:
    ratios = [Line2D([], [], ls="", marker=m, ms=7, color=c, label=label) for _, _, _, label, m, c in _CASES]
    return [
        *ratios,
        Line2D([], [], color=BLACK, lw=1.2, label="predicted in closed form"),
        Line2D([], [], label="GMM direction (1, 0)", **_RAY),
    ]


def _colours(count: int) -> list[Colour]:
    """A sequence from dark blue to yellowish green, told apart by lightness alone."""
    return [matplotlib.colormaps["viridis"](float(x)) for x in np.linspace(0, 0.88, count)]
