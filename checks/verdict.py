"""What the harness says about a statement, a claim or a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["proved", "supported", "refuted", "vacuous", "undecided", "error"]


@dataclass(frozen=True)
class Verdict:
    """One row of a report.

    Attributes:
        id: of the statement, claim or control.
        status: the verdict.
        expected: the status it should have: ``"proved"``, ``"supported"`` or ``"refuted"``.
        examples: examples that met the hypotheses, undecided ones included.
        drawn: examples drawn, explicit ones included.
        discarded: drawn examples that did not meet the hypotheses.
        undecided: examples whose outcome could not be decided.
        seconds: wall-clock time.
        worst: the failing decision of a refutation, else the passed decision closest to its tolerance;
            the fields of a `Decision`, or empty.
        counterexample: path of the counterexample file, if one was written.
        origin: whether a counterexample was ``"given"`` with the claim or ``"found"`` by search.
        why: one sentence.
    """

    id: str
    status: Status
    expected: Status
    examples: int = 0
    drawn: int = 0
    discarded: int = 0
    undecided: int = 0
    seconds: float = 0.0
    worst: dict[str, Any] | None = None
    counterexample: str | None = None
    origin: Literal["given", "found"] | None = None
    why: str = ""

    @property
    def as_expected(self) -> bool:
        """Whether the status is the expected one; a proof is more than the support expected."""
        return self.status == self.expected or (self.status, self.expected) == ("proved", "supported")


def exit_status(verdicts: list[Verdict]) -> int:
    """0: all as expected; 1: refuted but should hold, or a control not refuted; 2: a claim's code failed;
    3: only vacuous or undecided results in the way."""
    surprises = {verdict.status for verdict in verdicts if not verdict.as_expected}
    if surprises & {"refuted", "supported", "proved"}:
        return 1
    if "error" in surprises:
        return 2
    return 3 if surprises else 0
