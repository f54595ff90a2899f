"""Verdicts in a terminal: a progress bar while they are reached, then a table and what needs a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..catalogue import Check
from ..runner import Progress as RunProgress
from ..search import Budget
from ..store import argument_lines, load
from ..verdict import Verdict

_COLOURS = {
    "proved": "green",
    "supported": "green",
    "refuted": "green",
    "vacuous": "yellow",
    "undecided": "yellow",
    "error": "red",
}
_LOUD = "bold red"


class LiveProgress(RunProgress):
    """A progress bar on a terminal, and the verdicts reached so far.

    Args:
        console: where to draw; nothing is drawn unless it is a terminal.
    """

    def __init__(self, console: Console) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self._order: list[str] = []
        self._bar = Progress(
            TextColumn("verifying"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("verifying", total=None, now="")

    def __enter__(self) -> LiveProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def started(self, checks: Sequence[Check], budget: Budget) -> None:
        self._order = [check.id for check in checks]
        self._bar.update(self._task, total=len(checks))

    def examined(self, id: str, examples: int) -> None:
        self._bar.update(self._task, now=f"{id}: {examples} examples")

    def finished(self, verdict: Verdict) -> None:
        self.verdicts[verdict.id] = verdict
        self._bar.advance(self._task)

    @property
    def in_order(self) -> list[Verdict]:
        """The verdicts reached so far, in the order of the checks."""
        return [self.verdicts[id] for id in self._order if id in self.verdicts]


def print_verdicts(verdicts: Sequence[Verdict], console: Console) -> None:
    """Print a table of all verdicts, then every one that is not as expected in full."""
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("evidence", no_wrap=True, overflow="ellipsis", ratio=1)
    for verdict in verdicts:
        name = f"  drops-{verdict.id.partition('/drops-')[2]}" if "/drops-" in verdict.id else verdict.id
        colour = _COLOURS[verdict.status] if verdict.as_expected else _LOUD
        # `Text` throughout: what a claim says is no markup.
        table.add_row(
            Text(name),
            Text(verdict.status if verdict.as_expected else f"{verdict.status} !", style=colour),
            Text(f"{verdict.seconds:.1f}"),
            Text(_evidence(verdict)),
        )
    console.print(table)
    for verdict in verdicts:
        if not verdict.as_expected:
            title = f"\n{verdict.id}: {verdict.status}, expected {verdict.expected}"
            console.print(Text(title, style=_LOUD))
            for line in _details(verdict):
                console.print(Text(f"  {line}"), soft_wrap=True)
    console.print()
    console.print(_summary(verdicts))


def _details(verdict: Verdict) -> list[str]:
    lines = [verdict.why]
    if verdict.counterexample:
        # A file that cannot be read back (any more) is no reason to lose the report.
        with suppress(ValueError):
            lines += argument_lines(load(Path(verdict.counterexample)).arguments)
        lines.append(f"attcheck replay {verdict.counterexample}")
    return lines


def _evidence(verdict: Verdict) -> str:
    counts = f"{verdict.examples} examples"
    if verdict.discarded:
        counts += f", {verdict.discarded} discarded"
    if verdict.undecided:
        counts += f", {verdict.undecided} undecided"
    if verdict.status == "supported" and verdict.drawn:
        return counts
    if verdict.origin == "given":
        return f"given: {verdict.why}"
    if verdict.origin == "found":
        plural = "" if verdict.examples == 1 else "s"
        return f"found after {verdict.examples} example{plural}: {verdict.why}"
    return verdict.why


def _summary(verdicts: Sequence[Verdict]) -> Text:
    claims = [verdict for verdict in verdicts if verdict.expected != "refuted"]
    controls = [verdict for verdict in verdicts if verdict.expected == "refuted"]
    parts = []
    if claims:
        counted = Counter(verdict.status for verdict in claims)
        parts.append(", ".join(f"{number} {status}" for status, number in counted.items()))
    if controls:
        refuted = sum(verdict.status == "refuted" for verdict in controls)
        parts.append(f"{refuted} of {len(controls)} controls refuted")
    if not parts:
        return Text("nothing was verified")
    surprises = sum(not verdict.as_expected for verdict in verdicts)
    end = Text(f"{surprises} not as expected", style=_LOUD) if surprises else Text("all as expected")
    return Text(f"{'; '.join(parts)}: ") + end
