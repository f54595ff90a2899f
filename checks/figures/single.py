"""One input, three tokens: where normalised gradient descent goes from six starts.

Published as the single-input experiments of arXiv 2306.13596. With equal non-optimal scores every
start ends in the globally max-margin (GMM) direction, with unequal ones some end in a locally
max-margin (LMM) direction. The angle to it falls like 1/‖p‖ for as long as one runs.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..cones import LocalCone
from ..datasets import SINGLE_GLOBAL, SINGLE_LOCAL, SINGLE_STARTS
from ..selection import Selection
from ..validation import FloatArray
from .canvas import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, house_style, new_figure, save_png
from .result import FigureResult
from .runs import STEPS, Run, SingleInput

GLOBAL = SingleInput(
    "fig-single-global",
    "One input, equal non-optimal scores: every start ends in the globally max-margin direction",
    SINGLE_GLOBAL,
    SINGLE_STARTS,
    ((0,),) * 6,
)
LOCAL = SingleInput(
    "fig-single-local",
    "One input, unequal scores: the start decides between the global and a local max-margin direction",
    SINGLE_LOCAL,
    SINGLE_STARTS,
    ((0,),) * 4 + ((1,),) * 2,
)

_NEAR_STEPS = 30  # a length of 3: out of the tokens' neighbourhood, still on its scale
_FAR = 1.5  # the far view ends at this multiple of the largest cone radius
_MARKERS = "os^vDP"
_LMM_COLOURS = (VERMILION, GREEN, PURPLE)
_DASHES = (0, (2.4, 1.4))
_CONE_ALPHA = 0.3
# Where a label may stand beside its key, in label sizes, the preferred place first.
_LABEL_SIDES = [(0.85, 0), (-0.85, 0), (0.65, -0.7), (0.65, 0.7), (-0.65, 0.7), (-0.65, -0.7)]
_VEIL = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1}
_CORNERS = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]


def draw(experiment: SingleInput, out: Path) -> FigureResult:
    """Run an experiment and write its picture to `out/ID.png`.

    Raises:
        Infeasible: a selection in whose direction a start is to end has none.
        OSError: `out` cannot be written to.
    """
    picture = out / f"{experiment.id}.png"
    readings = tuple(r for run in experiment.runs for r in (run.direction_reading, run.angle_reading))
    with house_style():
        save_png(picture_of(experiment), picture)
    return FigureResult(experiment.id, picture, readings)


def picture_of(experiment: SingleInput) -> Figure:
    """The picture of an experiment: among the tokens, far out, and the angle against the norm."""
    return _Picture(experiment).figure()


class _Picture:
    """One experiment with what all its views share."""

    def __init__(self, experiment: SingleInput) -> None:
        self.experiment = experiment
        self.problem = experiment.problem
        self.markers = dict(zip(experiment.runs, cycle(_MARKERS), strict=False))
        self.cones = {s.alpha: LocalCone(self.problem, s.alpha).cone() for s in experiment.selections}
        local = cycle(_LMM_COLOURS)
        self.colours = {s.alpha: BLUE if s.is_global else next(local) for s in experiment.selections}

    def figure(self) -> Figure:
        """The whole picture."""
        windows = [self._near_window(), self._far_window()]
        shapes = [*(float(np.ptp(x) / np.ptp(y)) for x, y in windows), 0.9]
        # Panels of equal height, as high as lets their scales be equal, and 2.3 inches for the texts.
        figure = new_figure(16, min(14 / sum(shapes), 6) + 2.3)
        figure.suptitle(self.experiment.title)
        near, far, angle = figure.subplots(1, 3, width_ratios=shapes)
        self._near(near, windows[0])
        self._far(far, windows[1])
        self._angle(angle)
        figure.legend(
            handles=self._runs_legend(),
            loc="outside lower left",
            ncols=2,
            frameon=False,
            title=f"start (left) and end of {STEPS:,} steps: angle (predicted)",
            alignment="left",
        )
        figure.legend(
            handles=self._marks_legend(),
            loc="outside lower right",
            ncols=1 + len(self.experiment.selections),
            frameon=False,
        )
        return figure

    def _near(self, axes: Axes, window: FloatArray) -> None:
        _plane(axes, window, f"Among the tokens: the first {_NEAR_STEPS} steps")
        for selection in self.experiment.selections:
            self._strip(axes, selection)
            self._ray(axes, selection, window)
        for run, marker in self.markers.items():
            colour, points = self._colour(run), run.descent.points[: _NEAR_STEPS + 1]
            axes.plot(*points.T, color=colour, lw=1.2, marker=".", ms=4, zorder=3)
            axes.plot(*points[0], color=colour, marker=marker, ms=8, mfc="white", mew=1.8, zorder=5)
        keys = self.problem.keys[0]
        axes.plot(*keys.T, ls="", marker="o", ms=17, color=BLACK, zorder=4)
        labels = self._label_centres()
        for token, (centre, score) in enumerate(zip(labels, self.problem.scores[0], strict=True)):
            text = f"token {token}\nscore {score:g}"
            axes.text(
                centre[0], centre[1], text, ha="center", va="center", zorder=6, linespacing=1.1, bbox=_VEIL
            )

    def _far(self, axes: Axes, window: FloatArray) -> None:
        _plane(axes, window, f"Far out: {STEPS:,} steps, then the flow")
        for selection in self.experiment.selections:
            self._cone(axes, selection)
            self._ray(axes, selection, window)
        for run, marker in self.markers.items():
            colour, end = self._colour(run), run.descent.points[-1]
            axes.plot(*run.flow.points.T, color=colour, lw=1.5, ls=":", zorder=3)
            axes.plot(*run.descent.points.T, color=colour, lw=1.5, zorder=3)
            axes.plot(*end, color=colour, marker=marker, ms=8, mfc="white", mew=1.5, zorder=4)

    def _angle(self, axes: Axes) -> None:
        axes.set_title("Angle between p and its limit direction")
        axes.set(xscale="log", yscale="log", xlabel="‖p‖", ylabel="angle (degrees)")
        lowest = min(run.predicted_angle(1e3) for run in self.experiment.runs)
        axes.set(xlim=(0.7, 1e3), ylim=(lowest / 2, 250))
        axes.grid(True, which="major", color=GREY, alpha=0.25)
        norms = np.geomspace(3, 1e3, 60)
        for run, marker in self.markers.items():
            colour, angles = self._colour(run), run.angles(run.descent)
            axes.plot(norms, [run.predicted_angle(r) for r in norms], color=colour, lw=0.8, zorder=2)
            axes.plot(run.descent.norms, angles, color=colour, lw=1.8, zorder=3)
            end = (run.descent.norms[-1], angles[-1])
            axes.plot(*end, color=colour, marker=marker, ms=8, mfc="white", mew=1.5, zorder=4)
        axes.text(0.03, 0.03, "a dip: p crosses\nthe limit's ray", transform=axes.transAxes, color=GREY)

    def _ray(self, axes: Axes, selection: Selection, window: FloatArray) -> None:
        x, y = selection.solution.direction * 2 * np.abs(window).max()
        axes.plot([0, x], [0, y], zorder=2, **self._ray_style(selection))

    def _ray_style(self, selection: Selection) -> dict[str, Any]:
        dashes = "-" if selection.is_global else _DASHES
        return {"color": self.colours[selection.alpha], "ls": dashes, "lw": 4, "alpha": 0.45}

    def _strip(self, axes: Axes, selection: Selection) -> None:
        """The strip between the selected token and its SVM-neighbours, which holds no token."""
        q = selection.solution.direction
        across = np.array([-q[1], q[0]])
        foot = self.problem.keys[0, selection.alpha[0]] @ q
        top, bottom = foot * q, (foot - selection.solution.margin) * q
        reach = 100 * across  # far beyond any window of this scale
        colour = self.colours[selection.alpha]
        corners = np.array([top - reach, top + reach, bottom + reach, bottom - reach])
        axes.fill(*corners.T, color=colour, alpha=0.08, lw=0, zorder=0)
        for edge in (top, bottom):
            axes.axline(edge, edge + across, color=colour, lw=1, alpha=0.7, zorder=1)

    def _cone(self, axes: Axes, selection: Selection) -> None:
        cone = self.cones[selection.alpha]
        turns = np.arctan2(cone.axis[1], cone.axis[0]) + np.linspace(-1, 1, 25) * np.arccos(1 - cone.mu)
        arc = cone.radius * np.array([np.cos(turns), np.sin(turns)])
        # Three times the radius of the view: the outer arc is never seen.
        outline = np.concatenate([arc, 3 * _FAR * arc[:, ::-1]], axis=1)
        axes.fill(*outline, color=self.colours[selection.alpha], alpha=_CONE_ALPHA, lw=0, zorder=1)

    def _colour(self, run: Run) -> str:
        return GREY if run.limit is None else self.colours[run.limit.alpha]

    def _near_points(self) -> FloatArray:
        runs = [run.descent.points[: _NEAR_STEPS + 1] for run in self.experiment.runs]
        return np.concatenate([*runs, self.problem.keys[0]])

    def _near_window(self) -> FloatArray:
        """The first steps and the keys, with room for labels on both sides."""
        points = self._near_points()
        return _window(points, sides=1.2, ends=0.35)

    def _far_window(self) -> FloatArray:
        """The cones, with some width where there is only one."""
        tips = [_FAR * self.cones[s.alpha].radius * s.solution.direction for s in self.experiment.selections]
        return _window(np.array([*tips, [-40, 0], [40, 0]]), sides=20, ends=10)

    def _label_centres(self) -> list[FloatArray]:
        """A place beside each key with as few points of the runs, keys and other labels as can be."""
        taken = self._near_points()
        size = np.array([0.95, 0.55])  # of a label of two lines, on the scale of the near window
        centres: list[FloatArray] = []
        for key in self.problem.keys[0]:
            places = [key + size * side for side in _LABEL_SIDES]
            crowds = [int((np.abs(taken - place) < size / 2).all(axis=1).sum()) for place in places]
            best = places[int(np.argmin(crowds))]
            # The corners of a label stand for it.
            taken = np.concatenate([taken, best + size * np.array(_CORNERS)])
            centres.append(best)
        return centres

    def _runs_legend(self) -> list[Line2D]:
        handles = []
        for run, marker in self.markers.items():
            angle = run.angle_reading
            label = f"{_pair(run.start)}: {angle.measured:.2f}° ({angle.predicted:.2f}°)"
            colour = self._colour(run)
            handles.append(
                Line2D([], [], color=colour, marker=marker, ms=8, mfc="white", mew=1.5, label=label)
            )
        return handles

    def _marks_legend(self) -> list[Line2D | Patch]:
        handles: list[Line2D | Patch] = []
        for selection in self.experiment.selections:
            kind, token = "GMM" if selection.is_global else "LMM", selection.alpha[0]
            colour, cone = self.colours[selection.alpha], self.cones[selection.alpha]
            half = np.degrees(np.arccos(1 - cone.mu))
            handles += [
                Line2D([], [], label=f"{kind} direction of token {token}", **self._ray_style(selection)),
                Patch(fc=to_rgba(colour, 0.08), ec=colour, label=f"margin strip of token {token}"),
                Patch(
                    color=colour,
                    alpha=_CONE_ALPHA,
                    lw=0,
                    label=f"invariant cone: ±{half:.1f}°, ‖p‖ ≥ {cone.radius:.0f}",
                ),
            ]
        return [
            *handles,
            Line2D([], [], color=BLACK, lw=1.8, label="normalised descent"),
            Line2D([], [], color=BLACK, lw=1.5, ls=":", label="gradient flow"),
            Line2D([], [], color=BLACK, lw=0.8, label="prediction w/‖p‖, w from the flow"),
        ]


def _plane(axes: Axes, window: FloatArray, title: str) -> None:
    axes.set_title(title)
    axes.set(xlim=window[0], ylim=window[1], aspect="equal")
    axes.set(xlabel="first coordinate of p and of the keys", ylabel="second coordinate")
    axes.grid(True, color=GREY, alpha=0.15)


def _window(points: FloatArray, sides: float, ends: float) -> FloatArray:
    """Limits of both axes, `(2, 2)`, around points `(m, 2)` with room left and right, above and below."""
    pad = np.array([sides, ends])
    window: FloatArray = np.stack([points.min(axis=0) - pad, points.max(axis=0) + pad], axis=1)
    return window


def _pair(point: tuple[float, float]) -> str:
    return "({:g}, {:g})".format(*point).replace("-", "−")
