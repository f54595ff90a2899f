"""Phase portrait of gradient flow in the plane: where every point ends, and what is proved about it.

A point of the picture is coloured by the limit of the gradient flow that starts there, told by the same
decisions as everywhere else. The grid is refined only where neighbouring points end in different places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import cycle, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..atlas import UNDECIDED, Atlas, Ending, Survey
from ..certificates import certified_cone
from ..certificates.enclosures import ENCLOSED_LOSSES
from ..cones import Cone, LocalCone
from ..limits import sublevel_certificate
from ..problems import SelectionProblem
from ..selection import Selection
from ..validation import FloatArray
from .canvas import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, house_style, new_figure, save_png

# Blocks of the grid along each side: the first ones are examined everywhere, the next where the corners of
# the last ones end in different places. The finest ones are 1/64 of the picture wide.
_BLOCKS = (8, 16, 32, 64)
# The grid is refined no further once the flows have taken this many steps, so that a picture takes 8 to 20 s
# (at 0.3 ms a step) and is the same on every run.
_MOST_STEPS = 60_000
# A stationary point lies within this share of the way to the edge, but none makes the picture wider than
# this many radii of the starts.
_INSIDE, _WIDEST = 0.8, 6.0
# Half-angles in radians of the cones tried: wide ones reach less far in, thin ones further.
_HALF_ANGLES = (0.03, 0.1, 0.25, 0.5, 0.9)
_FIELD_POINTS = 60
_MESH = 400
_TINT = 0.38
_CONE_ALPHA = 0.4
_DASHES = (0, (2.4, 1.4))

IntGrid = npt.NDArray[np.intp]


def draw_portrait(problem: SelectionProblem, chart: Atlas, picture: Path) -> None:
    """Write the phase portrait of a planar problem to a PNG file.

    Args:
        problem: with `D = 2`.
        chart: its atlas.
        picture: the file.

    Raises:
        ValueError: the problem is not planar.
        OSError: the file cannot be written.
    """
    with house_style():
        save_png(portrait_of(problem, chart), picture)


def portrait_of(problem: SelectionProblem, chart: Atlas, most_steps: int = _MOST_STEPS) -> Figure:
    """The phase portrait of a problem with `D = 2`, given its atlas.

    Basins are refined until their flows have taken `most_steps` steps.

    Raises:
        ValueError: the problem is not planar.
    """
    dim = problem.shape[2]
    if dim != 2:
        raise ValueError(f"problem: got D = {dim}, expected D = 2 for a phase portrait")
    return _Portrait(problem, chart, most_steps).figure()


class Basins:
    """Endings of the flow on a square grid of nodes.

    Attributes:
        axis: `(m,)`, coordinates of the nodes along both axes.
        endings: what the numbers in `labels` stand for.
        labels: `(m, m)`, the number of the ending of node `(axis[j], axis[i])` in row `i`.
        blocks: blocks along each side to which the grid was refined.
        flows: number of flows followed.
    """

    def __init__(
        self,
        survey: Survey,
        half_width: float,
        cones: Sequence[Sequence[Cone]] = (),
        most_steps: int = _MOST_STEPS,
    ) -> None:
        finest = _BLOCKS[-1]
        self.axis: FloatArray = np.linspace(-half_width, half_width, finest + 1)
        self.endings: list[Ending] = []
        self.labels: IntGrid = np.full((finest + 1, finest + 1), -1, dtype=np.intp)
        self.blocks = 0
        self.flows = 0
        self._survey = survey
        self._cones = cones
        self._reach = half_width * math.sqrt(2)
        self._steps_left = most_steps
        for level, blocks in enumerate(_BLOCKS):
            if not self._refine(finest // blocks, everywhere=level == 0):
                break
            self.blocks = blocks

    @property
    def shown(self) -> tuple[FloatArray, IntGrid]:
        """`axis` and `labels` of the nodes of the finest finished level."""
        stride = (len(self.axis) - 1) // self.blocks
        return self.axis[::stride], self.labels[::stride, ::stride]

    def _refine(self, width: int, everywhere: bool) -> bool:
        """Fill the nodes `width` apart, by flows where the block of twice the width around them is mixed.

        Whether the steps left were enough; if not, the level is left unfinished.
        """
        last = len(self.axis) - 1
        if everywhere:
            for i, j in product(range(0, last + 1, width), repeat=2):
                self._follow(i, j)
            return True
        wide, uniform = 2 * width, []
        for i, j in product(range(0, last, wide), repeat=2):
            block = self.labels[i : i + wide + 1, j : j + wide + 1]
            corners = block[::wide, ::wide]
            if (corners == corners[0, 0]).all():
                uniform.append(block[::width, ::width])
                continue
            for down, right in product(range(0, wide + 1, width), repeat=2):
                if self._steps_left <= 0:
                    return False
                self._follow(i + down, j + right)
        # Only now: a node on the edge of a mixed block has been followed by then.
        for nodes in uniform:
            nodes[nodes < 0] = nodes[0, 0]
        return True

    def _follow(self, i: int, j: int) -> None:
        if self.labels[i, j] >= 0:
            return
        node = np.array([self.axis[j], self.axis[i]])
        ending = self._proved(node)
        if ending is None:
            ending, steps = self._survey.follow(node, self._reach)
            self._steps_left -= steps
            self.flows += 1
        if ending not in self.endings:
            self.endings.append(ending)
        self.labels[i, j] = self.endings.index(ending)

    def _proved(self, node: FloatArray) -> Ending | None:
        """Where the flow from a node ends, if a certificate says so without following it."""
        for k, cones in enumerate(self._cones):
            if any(cone.excess(node) <= 0 for cone in cones):
                return ("direction", k)
        low = sublevel_certificate(self._survey.problem, node)
        return None if low is None else ("direction", 0)  # the global selection comes first


class _Portrait:
    """One picture with what its parts share."""

    def __init__(self, problem: SelectionProblem, chart: Atlas, most_steps: int = _MOST_STEPS) -> None:
        self.problem = problem
        self.chart = chart
        self.survey = Survey(problem)
        self.survey.adopt(chart)
        inside = [math.hypot(*rest.point) / _INSIDE for rest in chart.rests]
        near = [r for r in inside if r <= _WIDEST * chart.radius]
        self.half_width = max([chart.radius, *near])
        self.cones = [list(self._cones(s)) for s in self.survey.selections]
        self.basins = Basins(self.survey, self.half_width, self.cones, most_steps)
        palette = cycle((VERMILION, GREEN, PURPLE))
        self.colours: dict[Ending, str] = {UNDECIDED: GREY}
        for k, selection in enumerate(self.survey.selections):
            self.colours["direction", k] = BLUE if selection.is_global else next(palette)
        for kind, places in (("rest", self.survey.places), ("elsewhere", self.survey.others)):
            for k in range(len(places)):
                if kind == "elsewhere" or self.survey.places[k].attracting:
                    self.colours[kind, k] = next(palette)
                else:
                    self.colours[kind, k] = GREY

    def figure(self) -> Figure:
        """The whole picture."""
        figure = new_figure(12.5, 7.6)
        axes = figure.subplots()
        window = (-self.half_width, self.half_width)
        axes.set(xlim=window, ylim=window, aspect="equal")
        axes.set(xlabel="first coordinate of p", ylabel="second coordinate of p")
        axes.set_title("Where gradient flow ends, by its start")
        self._basins(axes)
        self._field(axes)
        for k, selection in enumerate(self.survey.selections):
            self._cone_region(axes, self.cones[k], self.colours["direction", k])
            self._ray(axes, selection, self.colours["direction", k])
        for k, place in enumerate(self.survey.places):
            fill = self.colours["rest", k] if place.attracting else "white"
            axes.plot(*place.point, marker="o", ms=11, mfc=fill, mec=BLACK, mew=1.8, zorder=6)
        figure.legend(handles=self._legend(), loc="outside right upper", frameon=False, labelspacing=0.8)
        return figure

    def _basins(self, axes: Axes) -> None:
        nodes, labels = self.basins.shown
        tints = [_tinted(self.colours[ending]) for ending in self.basins.endings]
        axes.pcolormesh(
            nodes,
            nodes,
            labels,
            cmap=ListedColormap(tints),
            vmin=-0.5,
            vmax=len(tints) - 0.5,
            shading="nearest",
        )

    def _field(self, axes: Axes) -> None:
        grid = np.linspace(-self.half_width, self.half_width, _FIELD_POINTS)
        units = np.array([[self.problem.descent(np.array([x, y])).direction for x in grid] for y in grid])
        axes.streamplot(
            grid,
            grid,
            units[..., 0],
            units[..., 1],
            color=BLACK,
            linewidth=0.7,
            density=1.1,
            arrowsize=0.9,
            zorder=2,
        )

    def _ray(self, axes: Axes, selection: Selection, colour: str) -> None:
        x, y = selection.solution.direction * 2 * self.half_width
        axes.plot([0, x], [0, y], color=colour, ls="-" if selection.is_global else _DASHES, lw=4, zorder=4)

    def _cones(self, selection: Selection) -> Iterator[Cone]:
        """Cones that flow never leaves, of several widths; none where none is certified."""
        if self.problem.loss not in ENCLOSED_LOSSES:
            yield LocalCone(self.problem, selection.alpha).cone()
            return
        for half_angle in _HALF_ANGLES:
            found = certified_cone(self.problem, selection.alpha, half_angle, step=0.0)
            if found is not None:
                yield found.cone

    def _cone_region(self, axes: Axes, cones: Sequence[Cone], colour: str) -> None:
        if not self._seen(cones):
            return
        mesh = np.linspace(-self.half_width, self.half_width, _MESH)
        points = np.stack(np.meshgrid(mesh, mesh), axis=-1)
        excess = np.min([cone.excess(points) for cone in cones], axis=0)
        axes.contour(mesh, mesh, excess, levels=[0.0], colors=[colour], linewidths=1.6, zorder=3)
        axes.contourf(
            mesh, mesh, excess, levels=[-np.inf, 0.0], colors=[colour], alpha=_CONE_ALPHA, zorder=1.5
        )

    def _seen(self, cones: Sequence[Cone]) -> bool:
        """Whether a cone reaches into the picture."""
        return any(cone.radius * float(np.abs(cone.axis).max()) < self.half_width for cone in cones)

    def _legend(self) -> list[Line2D | Patch]:
        handles: list[Line2D | Patch] = []
        shown = {self.basins.endings[label] for label in np.unique(self.basins.shown[1])}
        for ending, label in self._labels():
            if ending in shown:
                handles.append(Patch(fc=_tinted(self.colours[ending]), ec="none", label=label))
        for k, selection in enumerate(self.survey.selections):
            colour, kind = self.colours["direction", k], "GMM" if selection.is_global else "LMM"
            style = "-" if selection.is_global else _DASHES
            name = f"{kind} direction of {_selected(selection)}"
            handles.append(Line2D([], [], color=colour, ls=style, lw=4, label=name))
            if self._seen(self.cones[k]):
                handles.append(
                    Patch(
                        fc=to_rgba(colour, _CONE_ALPHA),
                        ec=colour,
                        lw=1.6,
                        label="flow proved to stay and to end\nin that direction",
                    )
                )
            elif self.cones[k]:
                nearest = min(cone.radius for cone in self.cones[k])
                handles.append(
                    Line2D([], [], ls="", label=f"(its proved cone begins at ‖p‖ = {nearest:.3g})")
                )
        for attracting, fill in ((True, GREY), (False, "white")):
            if any(place.attracting == attracting for place in self.survey.places):
                label = f"{'' if attracting else 'non-'}attracting stationary point"
                handles.append(
                    Line2D([], [], ls="", marker="o", ms=11, mfc=fill, mec=BLACK, mew=1.8, label=label)
                )
        handles.append(Line2D([], [], color=BLACK, lw=0.7, marker=">", ms=5, label="gradient flow"))
        blocks = self.basins.blocks
        width = 2 * self.half_width / blocks
        handles.append(
            Line2D(
                [],
                [],
                ls="",
                label=f"borders to {width:.2g}, from\n{self.basins.flows} flows followed",
            )
        )
        return handles

    def _labels(self) -> Iterator[tuple[Ending, str]]:
        """Every ending with its text, in the order of the legend."""
        for k, (selection, way) in enumerate(zip(self.survey.selections, self.chart.directions, strict=True)):
            kind = "GMM" if selection.is_global else "LMM"
            yield (
                ("direction", k),
                f"ends in the {kind} direction of {_selected(selection)}{self._share(way.starts)}",
            )
        for k, place in enumerate(self.survey.places):
            rests = self.chart.rests
            share = self._share(rests[k].starts) if k < len(rests) else ""
            yield ("rest", k), f"ends at {_pair(place.point)}{share}"
        for k, other in enumerate(self.survey.others):
            ways = self.chart.elsewhere
            share = self._share(ways[k].starts) if k < len(ways) else ""
            yield ("elsewhere", k), f"ends in the direction {_pair(other)}{share}"
        yield UNDECIDED, f"undecided{self._share(self.chart.undecided)}"

    def _share(self, starts: int) -> str:
        return f":\n{starts} of {self.chart.starts} random starts"


def _selected(selection: Selection) -> str:
    tokens = ", ".join(map(str, selection.alpha))
    return f"token{'s' if len(selection.alpha) > 1 else ''} {tokens}"


def _pair(point: FloatArray) -> str:
    return f"({point[0]:.3g}, {point[1]:.3g})".replace("-", "−")


def _tinted(colour: str) -> tuple[float, ...]:
    return tuple(1 - _TINT * (1 - channel) for channel in to_rgb(colour))
