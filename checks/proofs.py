"""Symbolic statements of `theory` as rows of a report: proofs, and false variants that must be refuted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import theory

from .verdict import Status, Verdict


@dataclass(frozen=True)
class Proof:
    """A symbolic statement, to be proved for every size."""

    of: theory.Statement

    expected: ClassVar[Status] = "proved"

    @property
    def id(self) -> str:
        return self.of.id

    @property
    def statement(self) -> str:
        return self.of.conclusion

    @property
    def source(self) -> str:
        return self.of.source

    @property
    def derivations(self) -> tuple[theory.Derivation, ...]:
        return self.of.derivations

    @property
    def controls(self) -> list[FalseVariant]:
        return [FalseVariant(self.of, variant) for variant in self.of.variants]


@dataclass(frozen=True)
class FalseVariant:
    """A false variant of a symbolic statement, to be refuted at a point."""

    of: theory.Statement
    variant: theory.Variant

    expected: ClassVar[Status] = "refuted"

    @property
    def id(self) -> str:
        """`STATEMENT-ID/drops-NAME`."""
        return f"{self.of.id}/drops-{self.variant.name}"

    @property
    def statement(self) -> str:
        return self.variant.description

    @property
    def source(self) -> str:
        return self.of.source

    @property
    def derivations(self) -> tuple[theory.Derivation, ...]:
        return (self.variant.derivation(),)


def examine_proof(check: Proof | FalseVariant, seed: int) -> Verdict:
    """Check every step of the derivations of a statement, or of one false variant."""
    started = time.perf_counter()
    reports = [derivation.check(seed) for derivation in check.derivations]
    wrong = next((report.wrong_step for report in reports if report.wrong_step), None)
    statuses = {report.status for report in reports}
    status = next(s for s in ("refuted", "supported", "proved") if s in statuses)
    steps = sum(len(report.steps) for report in reports)
    if wrong is None:
        sizes = " and ".join(dict.fromkeys(report.sizes for report in reports))
        why = f"{steps} step{'s' if steps > 1 else ''} {status} for {sizes}"
    else:
        witness = "" if wrong.witness is None else f" {wrong.witness.text}"
        why = f"step {wrong.index} ({wrong.because}) is wrong{witness}"
    fields: dict[str, Any] = {"id": check.id, "status": status, "expected": check.expected, "why": why}
    return Verdict(**fields, seconds=time.perf_counter() - started)
