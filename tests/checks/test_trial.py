"""One example: what counts as passed, failed, undecided, discarded, or an error in the claim's code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from checks import Decision, SelectionProblem, assume, expect
from checks.trial import Trial, describe, run_trial, severity


def decision(outcome, error=math.nan, bound=1.0):
    return Decision("size", outcome, error=error, tolerance={"bound": bound}, why="it is 3\nlong")


def trial_of(*outcomes_and_errors):
    """A property that expects these decisions in turn."""

    def body(x):
        for outcome, error in outcomes_and_errors:
            expect(decision(outcome, error))

    return run_trial(body, {"x": 0})


def raising(error):
    def body(x):
        raise error

    return run_trial(body, {"x": 0})


def test_a_property_that_returns_has_passed():
    assert run_trial(lambda x: None, {"x": 3}) == Trial("passed")


def test_an_assertion_is_a_failure_with_its_message_on_one_line():
    def body(x):
        assert x < 3, f"{x} is\n  too large"

    trial = run_trial(body, {"x": 4})
    # pytest appends what it compared.
    assert trial.outcome == "failed"
    assert trial.why.startswith("4 is too large")


def test_an_assertion_without_message_shows_its_line():
    def body(x):
        raise AssertionError

    trial = run_trial(body, {"x": 4})
    assert trial.outcome == "failed"
    assert trial.why.startswith("assertion failed: raise AssertionError (test_trial.py, line ")


def test_the_assertions_of_numpy_are_failures():
    def body(x):
        np.testing.assert_allclose(x, 1)

    assert run_trial(body, {"x": 2}).outcome == "failed"


def test_decisions_fail_leave_open_or_pass():
    assert trial_of(("yes", 0.1)).outcome == "passed"
    assert trial_of(("no", 3)).outcome == "failed"
    assert trial_of(("undecided", 3)).outcome == "undecided"
    assert trial_of(("yes", 0.1), ("no", 3)).why.split() == ["size:", "it", "is", "3", "long"]


def test_a_failed_assumption_discards():
    def body(x):
        assume(x > 3)

    assert run_trial(body, {"x": 3}).outcome == "discarded"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a\nb"),
        TypeError(),
        SystemExit(0),
        GeneratorExit(),
        RecursionError(),
        MemoryError(),
        StopIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_else_is_raised_is_an_error_and_named_on_one_line(error):
    trial = raising(error)
    assert trial.outcome == "error"
    assert trial.why.startswith(type(error).__name__)
    assert "test_trial.py, line" in trial.why
    assert "\n" not in trial.why


def test_skipping_does_not_count_as_passing():
    def body(x):
        pytest.skip("not today")

    assert run_trial(body, {"x": 0}).outcome == "error"


def test_an_interrupt_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        raising(KeyboardInterrupt())


def test_a_problem_that_cannot_be_built_is_an_error_that_names_the_argument():
    trial = run_trial(lambda x: SelectionProblem([[[1, x]]], [[1]]), {"x": 1})
    assert trial.outcome == "error"
    assert "ValueError: keys: got T = 1 token per input" in trial.why


def test_an_internal_assertion_of_the_package_is_an_error(monkeypatch):
    import checks.cones

    exec(compile("def broken(*_):\n    assert False\n", checks.cones.__file__, "exec"), scope := {})
    monkeypatch.setattr(checks.cones.Cone, "excess", scope["broken"])
    cone = checks.cones.Cone([1.0], 1, 1)
    trial = run_trial(lambda x: cone.excess(x), {"x": np.ones((1, 1))})
    assert trial.outcome == "error"


def test_the_worst_decision_is_the_failing_one():
    assert trial_of(("yes", 0.9), ("no", 3)).failing.outcome == "no"
    assert trial_of(("yes", 0.9), ("undecided", 0.1)).failing is None


def test_the_worst_of_passed_decisions_is_closest_to_its_tolerance():
    assert trial_of(("yes", 0.2), ("yes", 0.9), ("yes", 0.5)).closest.error == 0.9
    assert trial_of(("yes", math.inf), ("yes", 0.1)).closest.error == 0.1
    assert Trial("passed").closest is None


def test_severity_is_zero_where_nothing_was_measured():
    assert severity(None) == 0
    assert severity(decision("no")) == 0
    assert severity(decision("no", error=3.0, bound=0.0)) == 0
    assert severity(decision("no", error=3.0, bound=1.5)) == 2


def test_decisions_seen_before_an_error_are_kept():
    def body(x):
        expect(decision("yes", 0.5))
        raise ValueError

    assert [seen.error for seen in run_trial(body, {"x": 0}).decisions] == [0.5]


def test_a_description_has_type_message_and_place():
    with pytest.raises(KeyError) as caught:
        {}["no such\nthing"]
    assert describe(caught.value).startswith("KeyError: 'no such\\nthing' (test_trial.py, line ")
    assert describe(ValueError()) == "ValueError"
