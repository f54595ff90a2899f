"""The published experiments, run again and drawn, with what they measure against what is predicted."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from . import loss, multi, single
from .result import FigureResult, Reading

__all__ = ["FIGURES", "FigureResult", "Reading", "draw"]

FIGURES: Mapping[str, Callable[[Path], FigureResult]] = MappingProxyType(
    {experiment.id: partial(single.draw, experiment) for experiment in (single.GLOBAL, single.LOCAL)}
    | {
        multi.MULTI.id: partial(multi.draw, multi.MULTI),
        loss.COMPARISON.id: partial(loss.draw, loss.COMPARISON),
    }
)
"""Every figure by id, in the order in which they are drawn; each takes the folder to write to."""


def draw(ids: Sequence[str], out: Path) -> list[FigureResult]:
    """Run the figures named and write each to `out/ID.png`.

    Args:
        ids: ids from `FIGURES`.
        out: folder for the pictures, made if missing.

    Raises:
        ValueError: an id is unknown; nothing has been drawn then.
        OSError: `out` cannot be made or written to.
    """
    for id_ in ids:
        if id_ not in FIGURES:
            near = difflib.get_close_matches(id_, FIGURES)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ValueError(f"figure: got {id_!r}, {hint}expected one of {', '.join(FIGURES)}")
    out.mkdir(parents=True, exist_ok=True)
    return [FIGURES[id_](out) for id_ in ids]
