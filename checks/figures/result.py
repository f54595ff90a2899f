"""What a figure returns: its picture and the numbers behind it, each with its prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Reading:
    """A measured figure and the figure that theory predicts for it.

    Attributes:
        name: what was measured, with its unit if it has one.
        measured: a number, or the entries of a vector.
        predicted: of the same form.
        error: distance of the two; not always of the rounded form in which they are shown.
        parts: what the tolerance is made of, by name, in the unit of `error`.
    """

    name: str
    measured: float | tuple[float, ...]
    predicted: float | tuple[float, ...]
    error: float
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        """The sum of `parts`."""
        return sum(self.parts.values())

    @property
    def ok(self) -> bool:
        """Whether the two agree: no without a finite tolerance, or if the error is not a number."""
        return self.error <= self.tolerance < math.inf

    def __str__(self) -> str:
        relation, verdict = ("≤", "agrees") if self.ok else (">", "DISAGREES")
        parts = " + ".join(f"{name} {value:.2g}" for name, value in self.parts.items())
        return (
            f"{self.name}: measured {_short(self.measured)}, predicted {_short(self.predicted)}: {verdict} "
            f"(error {self.error:.2g} {relation} {self.tolerance:.2g} = {parts})"
        )


@dataclass(frozen=True)
class FigureResult:
    """A drawn figure.

    Attributes:
        id: as in `FIGURES`.
        picture: path of the PNG.
        readings: the numbers behind it.
    """

    id: str
    picture: Path
    readings: tuple[Reading, ...]

    @property
    def ok(self) -> bool:
        """Whether every reading agrees with its prediction."""
        return all(reading.ok for reading in self.readings)


def _short(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(f"{entry:z.4f}" for entry in value) + ")"
    return f"{value:.4g}"
