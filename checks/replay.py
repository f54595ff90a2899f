"""Run a saved counterexample again, without Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .catalogue import Check, TargetError, find, load_checks
from .proofs import FalseVariant, Proof, run_witness
from .store import Counterexample, CounterexampleError, decoded_arguments, load
from .trial import Trial, run_trial


@dataclass(frozen=True)
class Replay:
    """A counterexample and how it fared this time.

    Attributes:
        counterexample: what the file says.
        check: what it refutes.
        arguments: the decoded arguments.
        trial: this run.
    """

    counterexample: Counterexample
    check: Check
    arguments: Mapping[str, Any]
    trial: Trial


def replay(path: Path, claim_file: Path | None = None) -> Replay:
    """Run the counterexample in `path` again.

    Args:
        path: a counterexample file.
        claim_file: where the claim is now, if not where it was.

    Raises:
        CounterexampleError: the file cannot be read, or does not fit the claim.
        TargetError: the claim cannot be found.
    """
    counterexample = load(path)
    check = _check_of(counterexample, path, claim_file)
    try:
        arguments = decoded_arguments(counterexample.arguments)
    except ValueError as error:
        raise CounterexampleError(f"{path}: {error}") from error
    if isinstance(check, Proof | FalseVariant):
        try:
            return Replay(counterexample, check, arguments, run_witness(check, arguments))
        except ValueError as error:
            raise CounterexampleError(f"{path}: {error}") from error
    if set(arguments) != set(check.arguments):
        raise CounterexampleError(
            f"{path}: arguments: got ({', '.join(arguments)}), expected those of {check.id}: "
            f"({', '.join(check.arguments)})"
        )
    return Replay(counterexample, check, arguments, run_trial(check.body, arguments))


def _check_of(counterexample: Counterexample, path: Path, claim_file: Path | None) -> Check:
    file = claim_file or (counterexample.claim_file and Path(counterexample.claim_file))
    if file:
        try:
            checks = {check.id: check for check in load_checks(file)}
        except TargetError as error:
            if claim_file:
                raise
            raise TargetError(
                f"{error}; if the claim is somewhere else, name its file with --claims"
            ) from error
        if counterexample.claim not in checks:
            raise TargetError(
                f"{path}: claim: got {counterexample.claim!r}, expected one of those in {file}: "
                f"{', '.join(checks)}"
            )
        return checks[counterexample.claim]
    return find(counterexample.claim)
