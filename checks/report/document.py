"""Verdicts as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from ..verdict import Verdict


def results_document(verdicts: Sequence[Verdict], seed: int, interrupted: bool = False) -> dict[str, Any]:
    """The object that ``attcheck verify --json`` writes; rows in the order of `verdicts`."""
    return {
        "attcheck": version("attcheck"),
        "seed": seed,
        "interrupted": interrupted,
        "results": [
            {**asdict(verdict), "as_expected": verdict.as_expected, "seconds": round(verdict.seconds, 3)}
            for verdict in verdicts
        ],
    }
