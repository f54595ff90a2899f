"""Declaring claims and controls: what fits together, and what each mistake is told."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from checks import Claim, ClaimError, Decision, claim, control, diverges, expect
from checks.claim import Refuted, Undecided, kebab, recorded_decisions

YES = Decision("diverges", "yes", error=0.1, tolerance={"growth": 1.0})
NO = Decision("diverges", "no", why="it tends to a point")
OPEN = Decision("diverges", "undecided", why="the flow ran out of steps")


def declare(id="small", **changes):
    parts = {"statement": "x is small.", "x": st.integers()} | changes

    @claim(id, **parts)
    def small(x):
        """What the property says."""
        assert x < 3

    return small


def test_a_claim_can_be_called_like_its_property():
    small = declare()
    small(2)
    with pytest.raises(AssertionError):
        small(x=3)
    assert isinstance(small, Claim)
    assert small.__doc__ == "What the property says."


def test_expect_passes_fails_or_leaves_open():
    with recorded_decisions() as seen:
        expect(YES)
        with pytest.raises(Refuted, match="diverges: it tends to a point"):
            expect(NO)
        with pytest.raises(Undecided, match="ran out of steps"):
            expect(OPEN)
    assert seen == [YES, NO, OPEN]


def test_a_refutation_is_an_assertion_error_for_plain_pytest():
    assert issubclass(Refuted, AssertionError)
    assert not issubclass(Undecided, AssertionError)


def test_expect_refuses_what_is_not_a_decision():
    with pytest.raises(TypeError, match=r"got True, expected a decision .* use assert"):
        expect(True)


@pytest.mark.parametrize("id", ["Small", "small claim", "", "small-", "-small", 3, "a_b"])
def test_ids_are_kebab_case(id):
    with pytest.raises(ClaimError, match="expected kebab case"):
        declare(id)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statement": " "}, "small: statement: got ' ', expected a sentence"),
        ({"hypotheses": "n = 1"}, "small: hypotheses: got one string"),
        ({"y": st.integers()}, r"takes \(x\), expected exactly the arguments given strategies: \(x, y\)"),
        ({"x": 3}, "small: x: got 3, expected a Hypothesis strategy"),
        ({"x": lambda other: st.just(other)}, "parameter 'other' is not among the earlier arguments"),
        ({"examples": [{"y": 1}]}, r"examples\[0\]: got \(y\), expected a value for each of \(x\)"),
        ({"examples": [3]}, r"examples\[0\]: got \(3\)"),
    ],
)
def test_parts_that_do_not_fit_are_named(changes, message):
    with pytest.raises(ClaimError, match=message):
        declare(**changes)


def test_a_claim_needs_arguments():
    with pytest.raises(ClaimError, match="at least one strategy"):

        @claim("nothing", statement="Nothing.")
        def nothing():
            pass


def test_functions_get_only_the_earlier_arguments_that_they_name():
    @claim(
        "pairs",
        statement="A pair.",
        a=st.just(2),
        b=lambda a, width=3: st.just(a * width),
        c=lambda b, **rest: st.just(b),
    )
    def pairs(a, b, c):
        pass

    assert list(pairs.arguments) == ["a", "b", "c"]


def test_controls_are_attached_and_named_after_what_they_drop():
    small = declare()
    made = control(small, drops="Assumption B", x=st.just(4))
    assert small.controls == [made]
    assert made.id == "small/drops-assumption-b"
    assert made.statement == "x is small. (dropped: Assumption B)"
    assert (small.expected, made.expected) == ("supported", "refuted")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drops": "B", "y": st.just(4)}, "small/drops-b: got a strategy for 'y', expected only"),
        ({"drops": "…"}, "drops: got '…', expected a name"),
        ({"drops": "B", "x": 4}, "small/drops-b: x: got 4, expected a Hypothesis strategy"),
        ({"drops": "B", "examples": [{}]}, r"small/drops-b: examples\[0\]"),
    ],
)
def test_controls_that_do_not_fit_are_refused_and_not_attached(arguments, message):
    small = declare()
    with pytest.raises(ClaimError, match=message):
        control(small, **arguments)
    assert small.controls == []


def test_a_control_cannot_be_declared_twice_or_without_a_claim():
    small = declare()
    control(small, drops="n = 1", x=st.just(4))
    with pytest.raises(ClaimError, match="small/drops-n-1: declared twice"):
        control(small, drops="n=1", x=st.just(5))
    with pytest.raises(ClaimError, match="expected a claim"):
        control(lambda x: None, drops="B")


def test_kebab_case_keeps_letters_of_every_alphabet():
    assert kebab("The bound on μ (n = 2)") == "the-bound-on-μ-n-2"


def test_a_property_that_would_never_run_is_refused():
    def generates(x):
        yield x

    async def waits(x):
        pass

    for body in (generates, waits):
        with pytest.raises(ClaimError, match="never runs when it is called"):
            claim("never", statement="It runs.", x=st.integers())(body)


def test_a_decision_that_is_dropped_is_refused():
    def forgets(x):
        diverges(x)

    with pytest.raises(ClaimError, match=r"the decision of diverges\(…\) is dropped, expected expect\("):
        claim("forgets", statement="It expects.", x=st.integers())(forgets)


def test_a_decision_is_no_condition():
    with pytest.raises(TypeError, match=r"three outcomes, no condition: use expect"):
        assert NO
