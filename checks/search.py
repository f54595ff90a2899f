"""The search for a counterexample: explicit examples first, then Hypothesis.

Hypothesis draws and shrinks; what was drawn, discarded and undecided is counted here, because a filter
or a guard can throw away nearly every draw without a word. A verdict of "supported" says how many
examples met the hypotheses.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException, StopTest, UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from .claim import Claim, Control, Property, needed
from .decisions import Decision
from .engine import cut_short, own_draws_only
from .store import Counterexample, NotStorableError, decoded_arguments, encode, path_of, save
from .trial import Trial, describe, run_trial, severity
from .verdict import Verdict

# A control ends at its first counterexample, so a generous search costs only where it is needed.
CONTROL_EXAMPLES = 1_000
# Evaluations spent on shrinking: counted, not timed, so that a run repeats. Most shrinks of the built-in
# controls end by themselves within this; at 10,000 descent steps each it is half a minute.
SHRINK_EVALUATIONS = 150
# Beyond these shares what was tested is a residue of the hypotheses: nine in ten draws discarded, or, where
# the search gave up before it had half of what was asked for, more discarded than met.
_VACUOUS_SHARE = 0.9
# A tenth undecided is a convention; of 300 examples or more the built-in claims left none undecided.
UNDECIDED_SHARE = 0.1


@dataclass(frozen=True)
class Budget:
    """What a search may spend.

    Attributes:
        examples: examples that meet the hypotheses, for each claim.
        seed: everything drawn follows from it and the id of the claim.
        store: folder for counterexamples, or `None` to keep none.
    """

    examples: int
    seed: int
    store: Path | None


class _Found(Exception):  # noqa: N818  (a signal to Hypothesis)
    """A failing example; one type raised in one place, so that Hypothesis sees one failure to shrink."""


class _Abort(BaseException):
    """The claim's own code failed: leave Hypothesis at once."""


class _Enough(BaseException):
    """The budget for shrinking is used up: leave Hypothesis at once."""


@dataclass
class _Failure:
    """A failing example: its arguments, as encoded for a file if they can be, and as text."""

    arguments: Mapping[str, Any]
    encoded: dict[str, Any] | None
    text: str
    trial: Trial

    @property
    def size(self) -> tuple[int, str]:
        """What is shorter to write down is simpler."""
        return len(self.text), self.text


@dataclass
class _Search:
    """Counts and finds of one claim or control."""

    check: Claim | Control
    examined: Callable[[str, int], None]
    evaluated: int = 0
    drawn: int = 0
    cut_short: int = 0
    undecided: int = 0
    silent: int = 0
    spoken: int = 0
    smallest: _Failure | None = None
    severest: _Failure | None = None
    closest: Decision | None = None
    undecided_why: str = ""
    error: str = ""
    given: bool = False
    evaluations_left: int | None = None

    @property
    def examples(self) -> int:
        """Examples that met the hypotheses."""
        # A guard (`if not separable: return`) skips the checks without a word. In a property that
        # expects something, examples that reach no `expect` were discarded by the property itself.
        return self.spoken if self.spoken or _expects(self.check.body) else self.silent

    @property
    def discarded(self) -> int:
        return self.drawn - self.examples

    def evaluate(self, arguments: Mapping[str, Any]) -> Trial:
        """Run the property once and count the outcome."""
        # Encoded before the property can change an array in place.
        try:
            encoded = {name: encode(value, name) for name, value in arguments.items()}
            text = json.dumps(encoded)
        except NotStorableError:
            encoded, text = None, repr(arguments)
        if self.evaluations_left is not None:
            if self.evaluations_left == 0:
                raise _Enough
            self.evaluations_left -= 1
        trial = run_trial(self.check.body, arguments)
        self.evaluated += 1
        self.examined(self.check.id, self.evaluated)
        if self.evaluations_left is None:
            self._count(trial)
        if trial.outcome == "failed":
            self._record_failure(_Failure(arguments, encoded, text, trial))
        return trial

    def _count(self, trial: Trial) -> None:
        """Take a trial into the evidence; variants of a failure, tried while shrinking, are none."""
        if trial.outcome == "error":
            self.error = trial.why
            return
        if trial.outcome == "discarded":
            return
        self.spoken += bool(trial.decisions)
        self.silent += not trial.decisions
        if trial.outcome == "undecided":
            self.undecided += 1
            self.undecided_why = self.undecided_why or trial.why
        if trial.outcome == "passed" and severity(trial.closest) >= severity(self.closest):
            self.closest = trial.closest

    def _record_failure(self, failure: _Failure) -> None:
        if self.smallest is None or failure.size < self.smallest.size:
            self.smallest = failure
        if self.severest is None or severity(failure.trial.failing) > severity(self.severest.trial.failing):
            self.severest = failure
        if self.evaluations_left is None:
            self.evaluations_left = SHRINK_EVALUATIONS


def examine(
    check: Claim | Control, budget: Budget, examined: Callable[[str, int], None] = lambda id, examples: None
) -> Verdict:
    """Test a claim or control on its explicit examples, then on drawn ones.

    Args:
        check: the claim or control.
        budget: what may be spent.
        examined: called with the id and the number of examples evaluated so far, after each.
    """
    started = time.perf_counter()
    search = _Search(check, examined)
    wanted = budget.examples
    if isinstance(check, Control):
        wanted = max(wanted, CONTROL_EXAMPLES)
    for example in check.examples:
        search.drawn += 1
        search.evaluate(example)
        if search.error or search.smallest:
            search.given = True
            break
    else:
        _draw(search, wanted, _seed_of(check.id, budget.seed))
    if search.smallest and not search.error:
        _confirm(search)
    return _verdict(search, budget, wanted, time.perf_counter() - started)


def arguments_of(check: Claim | Control, on_draw: Callable[[int], None]) -> SearchStrategy[dict[str, Any]]:
    """A strategy for all arguments of a claim, drawn in order.

    Args:
        check: the claim or control.
        on_draw: called with 1 when a draw begins, and with −1 when one does not count.
    """

    @st.composite
    def arguments(draw: Callable[..., Any]) -> dict[str, Any]:
        on_draw(1)
        values: dict[str, Any] = {}
        for name, source in check.arguments.items():
            try:
                strategy = source
                if not isinstance(strategy, SearchStrategy):
                    strategy = strategy(**{key: values[key] for key in needed(strategy, list(values))})
                if not isinstance(strategy, SearchStrategy):
                    raise TypeError(f"{name}: its function returned {strategy!r}, expected a strategy")
                values[name] = draw(strategy)
            except StopTest:
                # Hypothesis cuts some of its draws short for reasons of its own; those met no hypothesis
                # and failed none.
                if cut_short():
                    on_draw(-1)
                raise
            except (UnsatisfiedAssumption, KeyboardInterrupt):
                raise
            # Strategies are the claim's code too, and may raise anything, SystemExit included.
            except BaseException as error:
                raise _Abort(f"drawing {name}: {describe(error)}") from error
        return values

    return arguments()


def _expects(body: Property) -> bool:
    """Whether a property mentions `expect`."""
    code = getattr(inspect.unwrap(body), "__code__", None)
    return code is not None and "expect" in code.co_names


def _draw(search: _Search, wanted: int, seed_value: int) -> None:
    def count(change: int) -> None:
        # Draws made while shrinking say nothing about the strategies.
        if search.evaluations_left is None:
            search.drawn += change
            search.cut_short += change < 0

    @seed(seed_value)
    @settings(
        max_examples=wanted,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.target, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
        backend="hypothesis",
    )
    @given(arguments_of(search.check, count))
    def evaluate(arguments: dict[str, Any]) -> None:
        trial = search.evaluate(arguments)
        if search.error:
            raise _Abort
        # A variant of a failure on which the property breaks down is no simpler failure.
        if trial.outcome in ("discarded", "error"):
            raise UnsatisfiedAssumption
        if trial.outcome == "failed":
            raise _Found

    try:
        with own_draws_only():
            evaluate()
    except _Abort as abort:
        search.error = search.error or str(abort)
    except (_Found, _Enough):
        pass
    except HypothesisException as error:
        # Unsatisfied (nothing met the hypotheses) and Flaky (a property that is not a function of its
        # arguments) show in the counts and in the confirmation; nothing else is expected here.
        if search.smallest is None and search.examples:
            search.error = describe(error)


def _confirm(search: _Search) -> None:
    """Run the failing example once more, as a file would hand it over."""
    failure = search.smallest
    assert failure is not None
    arguments = failure.arguments if failure.encoded is None else decoded_arguments(failure.encoded)
    again = run_trial(search.check.body, arguments)
    if again.outcome != "failed":
        search.error = (
            f"the property is not a function of its arguments: they failed once ({failure.trial.why}) "
            f"and then {again.outcome}"
        )


def _seed_of(id: str, seed_value: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed_value}:{id}".encode()).digest()[:8], "big")


def _verdict(search: _Search, budget: Budget, wanted: int, seconds: float) -> Verdict:
    check = search.check
    common: dict[str, Any] = {
        "id": check.id,
        "expected": check.expected,
        "examples": search.examples,
        "drawn": search.drawn,
        "discarded": search.discarded,
        "undecided": search.undecided,
        "seconds": seconds,
    }
    if search.error:
        return Verdict(status="error", why=search.error, **common)
    if search.smallest:
        return _refutation(search, budget, common)
    closest = None if search.closest is None else decision_fields(search.closest)
    met, discarded = search.examples, search.discarded
    if met == 0 or discarded > _VACUOUS_SHARE * search.drawn or (2 * met < wanted and discarded > met):
        why = f"only {met} of {search.drawn} drawn examples met the hypotheses ({wanted} were asked for)"
        return Verdict(status="vacuous", worst=closest, why=why, **common)
    if search.cut_short > met:
        why = (
            f"{search.cut_short} draws were cut short as too large, beside {met} that were not: "
            "what was tested is not what was asked for; draw smaller problems"
        )
        return Verdict(status="vacuous", worst=closest, why=why, **common)
    if search.undecided > UNDECIDED_SHARE * met:
        why = f"{search.undecided} of {met} examples could not be decided, e.g. {search.undecided_why}"
        return Verdict(status="undecided", worst=closest, why=why, **common)
    why = f"{met - search.undecided} of {met} examples passed, none failed"
    return Verdict(status="supported", worst=closest, why=why, **common)


def _refutation(search: _Search, budget: Budget, common: dict[str, Any]) -> Verdict:
    assert search.smallest is not None
    assert search.severest is not None
    why = search.smallest.trial.why
    path = None
    if budget.store is not None:
        with suppress(OSError):  # Of an earlier run; nothing is lost if it stays.
            path_of(search.check.id, budget.store, severe=True).unlink(missing_ok=True)
    for failure, severe in ((search.severest, True), (search.smallest, False)):
        if budget.store is None or (severe and failure.encoded == search.smallest.encoded):
            continue
        if failure.encoded is None:
            if not severe:
                why += "; the counterexample was not saved: files do not know the types of its arguments"
            continue
        try:
            path = save(_counterexample(search, failure, budget.seed), budget.store, severe)
        except OSError as error:
            why += f"; the counterexample was not saved: {error}"
            break
    worst = search.severest.trial.failing
    return Verdict(
        status="refuted",
        worst=None if worst is None else decision_fields(worst),
        counterexample=None if path is None else str(path),
        origin="given" if search.given else "found",
        why=why,
        **common,
    )


def _counterexample(search: _Search, failure: _Failure, seed_value: int) -> Counterexample:
    check = search.check
    decision = failure.trial.failing
    assert failure.encoded is not None
    return Counterexample(
        claim=check.id,
        claim_file=check.file,
        statement=check.statement,
        arguments=failure.encoded,
        decision=None if decision is None else decision_fields(decision),
        why=failure.trial.why,
        seed=seed_value,
        origin="given" if search.given else "found",
    )


def decision_fields(decision: Decision) -> dict[str, Any]:
    """The fields of a decision in JSON terms; a number that is not finite becomes `None`."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: plain(item) for name, item in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {field.name: plain(getattr(decision, field.name)) for field in fields(decision)}
