"""What a run prints and writes: the table, surprises in full, the summary, and the JSON document."""

from __future__ import annotations

import io
import json
import math

import pytest
from rich.console import Console

from checks import Verdict
from checks.report import LiveProgress, print_verdicts, results_document
from checks.search import Budget
from checks.store import Counterexample, save
from checks.verdict import exit_status

SUPPORTED = Verdict("small", "supported", "supported", 100, 104, 4, 1, 1.26, why="99 of 100 examples passed")
REFUTED = Verdict(
    "small/drops-b", "refuted", "refuted", 1, 1, seconds=0.04, origin="found", why="size: it is 3"
)
PROVED = Verdict("chain", "proved", "proved", seconds=0.2, why="3 steps proved for every size")
SURPRISE = Verdict("large", "refuted", "supported", 3, 3, seconds=12, origin="found", why="size: it is [3]")


def printed(*verdicts):
    console = Console(file=io.StringIO(), width=120, highlight=False)
    print_verdicts(verdicts, console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_what_is_as_expected_takes_one_row_each():
    given = Verdict("small/drops-c", "refuted", "refuted", 1, 1, origin="given", why="size: it is 4")
    assert printed(PROVED, SUPPORTED, REFUTED, given) == [
        "claim      verdict    seconds  evidence",
        "chain      proved         0.2  3 steps proved for every size",
        "small      supported      1.3  100 examples, 4 discarded, 1 undecided",
        "  drops-b  refuted        0.0  found after 1 example: size: it is 3",
        "  drops-c  refuted        0.0  given: size: it is 4",
        "",
        "1 proved, 1 supported; 2 of 2 controls refuted: all as expected",
    ]


def test_surprises_follow_in_full():
    assert printed(PROVED, SURPRISE) == [
        "claim  verdict    seconds  evidence",
        "chain  proved         0.2  3 steps proved for every size",
        "large  refuted !     12.0  found after 3 examples: size: it is [3]",
        "",
        "large: refuted, expected supported",
        "  size: it is [3]",
        "",
        "1 proved, 1 refuted: 1 not as expected",
    ]


def test_a_control_that_is_not_refuted_is_as_loud():
    assert printed(Verdict("small/drops-b", "supported", "refuted", 9, 9, why="9 of 9 examples passed")) == [
        "claim      verdict      seconds  evidence",
        "  drops-b  supported !      0.0  9 examples",
        "",
        "small/drops-b: supported, expected refuted",
        "  9 of 9 examples passed",
        "",
        "0 of 1 controls refuted: 1 not as expected",
    ]


def test_a_counterexample_is_shown_as_one_would_type_it(tmp_path):
    arguments = {"x": 5, "start": {"type": "array", "values": ["3/8", -1]}}
    path = save(Counterexample("large", None, "It is.", arguments, None, "why", 0, "found"), tmp_path)
    lines = printed(Verdict("large", "refuted", "supported", 1, 1, counterexample=str(path), why="why"))
    assert lines[4:8] == [
        "  why",
        "  x = 5",
        "  start = array([ 0.375, -1.   ])",
        f"  attcheck replay {path}",
    ]


def test_a_counterexample_that_is_gone_does_not_break_the_report(tmp_path):
    path = str(tmp_path / "gone.json")
    lines = printed(Verdict("large", "refuted", "supported", 1, 1, counterexample=path, why="why"))
    assert lines[-1] == "1 refuted: 1 not as expected"


def test_long_evidence_is_cut_in_the_table_and_whole_below():
    why = "a long story " * 30
    lines = printed(Verdict("large", "error", "supported", why=why.strip()))
    assert len(lines[1]) <= 120
    assert lines[1].endswith("…")
    assert lines[4] == f"  {why.strip()}"


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[/]", "[link=y]", "a\\", ":warning:"])
def test_markup_in_what_a_claim_says_is_only_text(text):
    lines = printed(Verdict("large", "error", "supported", why=text))
    assert lines[1].endswith(text)
    assert f"  {text}" in lines


def test_nothing_is_said_to_be_nothing():
    assert printed()[-1] == "nothing was verified"


def test_exit_statuses_rank_refutations_before_errors_before_open_questions():
    def verdict(status, expected="supported"):
        return Verdict("small", status, expected)

    fine = [verdict("supported"), verdict("refuted", "refuted"), verdict("proved", "proved")]
    vacuous, undecided, error = verdict("vacuous"), verdict("undecided"), verdict("error")
    assert exit_status([]) == exit_status(fine) == 0
    assert exit_status([verdict("proved")]) == 0
    assert exit_status([*fine, vacuous]) == exit_status([undecided, *fine]) == 3
    assert exit_status([verdict("vacuous", "refuted")]) == exit_status([verdict("undecided", "refuted")]) == 3
    assert exit_status([vacuous, error]) == exit_status([verdict("error", "refuted")]) == 2
    assert exit_status([error, vacuous, verdict("refuted")]) == 1
    assert exit_status([error, verdict("supported", "refuted")]) == 1
    assert exit_status([verdict("supported", "proved")]) == exit_status([verdict("refuted", "proved")]) == 1


# --- JSON ---------------------------------------------------------------------------------------


def test_the_document_has_the_fields_of_the_contract():
    document = results_document([SUPPORTED, SURPRISE], seed=7)
    assert (document["seed"], document["interrupted"]) == (7, False)
    assert document["attcheck"][0].isdigit()
    row = document["results"][0]
    contract = {"id", "status", "expected", "examples", "discarded", "undecided", "seconds", "worst"}
    assert contract | {"counterexample", "why"} <= set(row)
    assert (row["id"], row["status"], row["examples"], row["discarded"], row["undecided"]) == (
        "small",
        "supported",
        100,
        4,
        1,
    )
    assert [row["as_expected"] for row in document["results"]] == [True, False]


def test_the_document_is_strict_json():
    worst = {"name": "size", "outcome": "no", "error": None, "tolerance": {}, "basis": "", "why": ""}
    verdict = Verdict("large", "refuted", "supported", worst=worst)
    text = json.dumps(results_document([verdict], 0, interrupted=True), allow_nan=False)
    assert json.loads(text)["results"][0]["worst"] == worst
    assert json.loads(text)["interrupted"] is True


def test_decisions_without_a_number_become_null():
    from checks import Decision
    from checks.search import decision_fields

    fields = decision_fields(Decision("size", "no", error=math.inf, tolerance={"a": math.nan, "b": 1.0}))
    json.dumps(fields, allow_nan=False)
    assert (fields["error"], fields["tolerance"]) == (None, {"a": None, "b": 1.0})


# --- Live ---------------------------------------------------------------------------------------


class _Check:
    def __init__(self, id):
        self.id = id


def test_verdicts_are_kept_in_the_order_of_the_checks():
    console = Console(file=io.StringIO())
    with LiveProgress(console) as progress:
        checks = [_Check("chain"), _Check("small"), _Check("small/drops-b")]
        progress.started(checks, Budget(examples=5, seed=0, store=None))
        progress.finished(REFUTED)
        progress.examined("chain", 3)
        progress.finished(PROVED)
        assert progress.in_order == [PROVED, REFUTED]
    # Nothing is drawn where nobody watches.
    assert console.file.getvalue() == ""


def test_a_bar_is_drawn_on_a_terminal_and_wiped():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with LiveProgress(console) as progress:
        progress.started([_Check("chain")], Budget(examples=5, seed=0, store=None))
        progress.examined("chain", 3)
        progress.finished(PROVED)
    assert "verifying" in console.file.getvalue()
