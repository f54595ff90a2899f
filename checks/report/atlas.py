"""An atlas in a terminal: one row for each place where training can end, then what was drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..atlas import Atlas, Direction

# Longer vectors are cut: rows are to fit on a line.
_ENTRIES = 6
_FAULTS = 4


def print_atlas(chart: Atlas, console: Console) -> None:
    """Print the directions, the stationary points and the shares of random starts."""
    n, tokens, dim = chart.shape
    console.print(Text(f"n = {n}, T = {tokens}, D = {dim}, {chart.loss} loss"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("limit", "selected", "vector", "starts", "notes"):
        table.add_column(
            column,
            justify="right" if column == "starts" else "left",
            overflow="fold",
            no_wrap=column == "limit",
        )
    for row in _rows(chart):
        table.add_row(*map(Text, row))
    console.print(table)
    for line in _remarks(chart):
        console.print(Text(line), soft_wrap=True)


def _rows(chart: Atlas) -> Iterator[tuple[str, ...]]:
    def share(starts: int) -> str:
        return f"{starts} ({starts / chart.starts:.0%})"

    for way in chart.directions:
        limit = "GMM direction" if way.is_global else "LMM direction"
        chosen = " ".join(map(str, way.selection))
        yield limit, chosen, _vector(way.direction), share(way.starts), _direction_notes(way)
    for rest in chart.rests:
        kind = "attracting" if rest.attracting else "not attracting"
        notes = f"{kind}; gradient cancels to {rest.residual:.1g}"
        yield "stationary point", "", _vector(rest.point), share(rest.starts), notes
    for other in chart.elsewhere:
        yield "other direction", "", _vector(other.direction), share(other.starts), "not locally max-margin"
    if chart.undecided:
        yield "undecided", "", "", share(chart.undecided), chart.why_undecided


def _direction_notes(way: Direction) -> str:
    near = " ".join("{" + ", ".join(map(str, tokens)) + "}" for tokens in way.support)
    notes = [f"margin {way.margin:.4g}", f"neighbours {near}"]
    if way.is_degenerate:
        notes.append("degenerate: a neighbour has multiplier 0")
    notes.append("proved" if way.is_certified else "NOT PROVED")
    return "; ".join(notes)


def _remarks(chart: Atlas) -> Iterator[str]:
    if not chart.directions:
        yield "There is no locally max-margin direction."
    elif not any(way.is_global for way in chart.directions):
        yield "There is no GMM direction: the optimal tokens tie or cannot be separated."
    if chart.in_general_position:
        yield "In general position: no input has tied scores or duplicate keys."
    else:
        more = len(chart.faults) - _FAULTS
        tail = f"; and {more} more" if more > 0 else ""
        yield f"Not in general position: {'; '.join(chart.faults[:_FAULTS])}{tail}."
    dim = chart.shape[2]
    if chart.dimensions < dim:
        yield (
            f"Key differences span {chart.dimensions} of {dim} dimensions: stationary points stand for all "
            "that differ from them across that span."
        )
    if chart.rests:
        yield "Stationary points are those that flows and Newton's method found; there may be more."
    yield (
        f"Gradient flow from {chart.starts} starts, uniform in the ball of radius {chart.radius:.4g} "
        f"(seed {chart.seed})."
    )


def _vector(entries: Sequence[float]) -> str:
    shown = [f"{entry:.4g}" for entry in entries[:_ENTRIES]]
    return f"({', '.join([*shown, '…'] if len(entries) > _ENTRIES else shown)})"
