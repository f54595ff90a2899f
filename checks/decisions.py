"""Three-valued decisions about a path, each with its error, its tolerance in parts, and its basis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Decision:
    """What a path says about a question.

    Attributes:
        name: the question, e.g. ``"converges_in_direction"``.
        outcome: ``"yes"``, ``"no"`` or ``"undecided"``.
        error: the measured quantity that was held against the tolerance.
        tolerance: parts of the tolerance by name; their sum is the tolerance.
        basis: what carries the outcome, e.g. ``"certificate"`` or ``"flow"``.
        why: one sentence for a reader who does not know the code.
    """

    name: str
    outcome: Outcome
    error: float = math.nan
    tolerance: Mapping[str, float] = field(default_factory=dict)
    basis: str = ""
    why: str = ""

    @property
    def severity(self) -> float:
        """`error / tolerance`; infinite where there is no tolerance."""
        total = sum(self.tolerance.values())
        return self.error / total if total > 0 else math.inf
