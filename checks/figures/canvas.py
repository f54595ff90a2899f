"""Drawing without global state: the house style, the palette, and files written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart under the common colour-vision deficiencies.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
GREY, BLACK = "#7F7F7F", "#000000"

_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "legend.fontsize": 11,
    "legend.handlelength": 2.4,
    "figure.titlesize": 14,
    "figure.constrained_layout.wspace": 0.04,
    "figure.constrained_layout.h_pad": 0.08,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_DPI = 150


@contextmanager
def house_style() -> Iterator[None]:
    """Draw independently of the user's own matplotlib settings, which are restored afterwards."""
    with matplotlib.style.context(["default", _STYLE]):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches, on the Agg backend and laid out without overlaps."""
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write `figure` to `path` so that equal figures have equal bytes and no file is ever half-written.

    Raises:
        OSError: the folder of `path` is missing or cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # The version of matplotlib, which it writes by default, is the only thing that varies.
        figure.savefig(temporary, format="png", dpi=_DPI, metadata={"Software": None})
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
