"""Symbolic statements of `theory` as rows of a report: proofs, and false variants that must be refuted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import theory
from theory.examination import weakest

from .store import Counterexample, encode, save
from .trial import Trial
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


def examine_proof(check: Proof | FalseVariant, seed: int, store: Path | None) -> Verdict:
    """Check every step of the derivations of a statement, or of one false variant.

    Args:
        check: the statement or variant.
        seed: of the numeric re-checks.
        store: folder for counterexamples, or `None` to keep none.
    """
    started = time.perf_counter()
    reports = [derivation.check(seed) for derivation in check.derivations]
    status = weakest(report.status for report in reports)
    row: dict[str, Any] = {"id": check.id, "status": status, "expected": check.expected}
    if status == "refuted":
        row |= _refutation(check, reports, seed, store)
    else:
        steps = sum(len(report.steps) for report in reports)
        sizes = " and ".join(dict.fromkeys(report.sizes for report in reports))
        row["why"] = f"{steps} step{'s' if steps > 1 else ''} {status} for {sizes}"
    return Verdict(**row, seconds=time.perf_counter() - started)


def run_witness(check: Proof | FalseVariant, arguments: Mapping[str, Any]) -> Trial:
    """Evaluate a step again at the point that a counterexample file gives.

    Raises:
        ValueError: the arguments name no step of the statement, or no point for it.
    """
    expected = {"derivation": str, "step": int, "witness": dict}
    for name, kind in expected.items():
        if not isinstance(arguments.get(name), kind):
            raise ValueError(f"arguments.{name}: got {arguments.get(name)!r}, expected a {kind.__name__}")
    derivations = {derivation.name: derivation for derivation in check.derivations}
    name = arguments["derivation"]
    if name not in derivations:
        raise ValueError(f"arguments.derivation: got {name!r}, expected one of {', '.join(derivations)}")
    point = arguments["witness"]
    if set(point) != {field.name for field in fields(theory.Witness)}:
        raise ValueError(
            f"arguments.witness: got the fields ({', '.join(point)}), expected those of a witness"
        )
    for part in ("sizes", "indices", "values"):
        if not isinstance(point[part], dict):
            raise ValueError(f"arguments.witness.{part}: got {point[part]!r}, expected an object")
    found = derivations[name].at(arguments["step"], theory.Witness(**point))
    return Trial("passed") if found is None else Trial("failed", why=found.text)


def _refutation(
    check: Proof | FalseVariant, reports: list[theory.DerivationReport], seed: int, store: Path | None
) -> dict[str, Any]:
    report, wrong = next((report, report.wrong_step) for report in reports if report.wrong_step)
    assert wrong is not None
    assert wrong.witness is not None
    why = f"step {wrong.index} ({wrong.because}) is wrong {wrong.witness.text}"
    row: dict[str, Any] = {"why": why}
    if store is None:
        return row
    point = {"derivation": report.name, "step": wrong.index, "witness": asdict(wrong.witness)}
    counterexample = Counterexample(
        claim=check.id,
        claim_file=None,
        statement=check.statement,
        arguments={name: encode(value, name) for name, value in point.items()},
        decision=None,
        why=why,
        seed=seed,
        origin="found",
    )
    try:
        row["counterexample"] = str(save(counterexample, store))
    except OSError as error:
        row["why"] += f"; the counterexample was not saved: {error}"
    return row
