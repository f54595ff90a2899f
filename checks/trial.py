"""One example: a property run on given arguments."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hypothesis.errors import HypothesisDeprecationWarning, StopTest, UnsatisfiedAssumption

from .claim import Property, Undecided, recorded_decisions
from .decisions import Decision

TrialOutcome = Literal["passed", "failed", "undecided", "discarded", "error"]

_LONGEST = 2_000  # Characters of a message that are kept.
_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Trial:
    """How a property fared on one example.

    Attributes:
        outcome: ``"failed"`` by an assertion or a decision; ``"error"`` when the code raised anything
            else, which never counts against the statement.
        decisions: every decision that `expect` saw.
        why: one sentence, empty if passed.
    """

    outcome: TrialOutcome
    decisions: tuple[Decision, ...] = ()
    why: str = ""

    @property
    def failing(self) -> Decision | None:
        """The decision that failed; None after a plain assertion, or if nothing failed."""
        last = self.decisions[-1] if self.decisions else None
        return last if last is not None and last.outcome == "no" else None

    @property
    def closest(self) -> Decision | None:
        """The passed decision closest to its tolerance."""
        passed = [decision for decision in self.decisions if decision.outcome == "yes"]
        return max(passed, key=severity, default=None)


def severity(decision: Decision | None) -> float:
    """`error / tolerance` where both are finite, else 0: what cannot be measured ranks last."""
    if decision is None or not math.isfinite(decision.severity):
        return 0.0
    return decision.severity


def run_trial(body: Property, arguments: Mapping[str, Any]) -> Trial:
    """Run a property on one example; nothing that its code raises escapes, except an interrupt."""
    with recorded_decisions() as seen, warnings.catch_warnings():
        # Given and replayed examples call `assume` outside of Hypothesis, which it would rather not see.
        warnings.simplefilter("ignore", HypothesisDeprecationWarning)
        try:
            returned = body(**arguments)
        except (KeyboardInterrupt, StopTest):
            raise
        except UnsatisfiedAssumption:
            return Trial("discarded", tuple(seen), "the arguments do not meet the hypotheses")
        except Undecided as undecided:
            return Trial("undecided", tuple(seen), str(undecided))
        except AssertionError as error:
            if _raised_here(error):
                return Trial("error", tuple(seen), describe(error))
            return Trial("failed", tuple(seen), _assertion(error))
        # A claim's code may raise anything, SystemExit and pytest's outcomes (BaseException) included.
        except BaseException as error:
            return Trial("error", tuple(seen), describe(error))
    if returned is not None:
        why = f"the property returned {returned!r:.80}, expected nothing: use assert or expect"
        return Trial("error", tuple(seen), why)
    return Trial("passed", tuple(seen))


def describe(error: BaseException) -> str:
    """Type, message and place of an exception, on one line."""
    text = " ".join(str(error).split())[:_LONGEST]
    place = "" if isinstance(error, SyntaxError) else _place(error)  # Its message names the place.
    return f"{type(error).__name__}{': ' + text if text else ''}{place}"


def _assertion(error: AssertionError) -> str:
    text = " ".join(str(error).split())[:_LONGEST]
    if text:
        return text
    frames = traceback.extract_tb(error.__traceback__)
    line = frames[-1].line if frames else None
    return f"assertion failed: {line or 'assert'}{_place(error)}"


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _raised_here(error: AssertionError) -> bool:
    """Whether an internal check of this package failed, rather than the property's own assertion."""
    frames = traceback.extract_tb(error.__traceback__)
    place = Path(frames[-1].filename).resolve()
    return (
        place.is_relative_to(_PACKAGE)
        and not place.is_relative_to(_PACKAGE / "claims")
        and place != _PACKAGE / "claim.py"
    )
