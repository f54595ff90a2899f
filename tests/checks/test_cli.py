"""The command line as people and CI meet it: exit statuses, one line for bad input, JSON, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from checks import Cone, cli
from checks.catalogue import built_in
from checks.claims import CLAIMS
from checks.datasets import NARROW
from checks.proofs import Proof
from checks.store import Counterexample, encode, save

ATTCHECK = [sys.executable, "-c", "from checks.cli import main; main()"]
IMPORTS = """
import numpy as np
from hypothesis import strategies as st
from checks import Decision, JointProblem, SelectionProblem, claim, control, expect
"""
GOOD = """
@claim("good", statement="x is below 5.", x=st.integers(0, 4))
def good(x):
    assert x < 5

control(good, drops="the bound", x=st.integers(0, 99))
"""
FALSE = """
@claim("false", statement="x is below 3.", x=st.integers(0, 4))
def false(x):
    assert x < 3, "too large"
"""
TAME_CONTROL = """
control(good, drops="nothing", x=st.just(4))
"""
VACUOUS = """
@claim("vacuous", statement="Nothing.", x=st.nothing())
def vacuous(x):
    pass
"""
UNDECIDED = """
@claim("undecided", statement="Who knows.", x=st.integers(0, 9))
def undecided(x):
    expect(Decision("size", "undecided", why="it is too far away"))
"""
RAISING = """
@claim("raising", statement="It raises.", x=st.integers(0, 9))
def raising(x):
    return {}["key"]
"""


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty folder: (status, lines of stdout, of stderr)."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["attcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return left.value.code, [line.rstrip() for line in out.splitlines()], err.splitlines()

    return run


@pytest.fixture
def claims(tmp_path):
    """Write a claim file of these parts."""

    def claims(*parts, name="claims.py"):
        path = tmp_path / name
        path.write_text(IMPORTS + "".join(parts))
        return path

    return claims


def refused(result, *words):
    """Check that bad input got one line with these words, and status 2."""
    status, out, err = result
    assert (status, out) == (2, [])
    assert len(err) == 1
    assert err[0].startswith("attcheck: error: ")
    for word in words:
        assert str(word) in err[0]
    return True


def stored(tmp_path, **changes):
    arguments = {
        "problem": NARROW,
        "alpha": (0,),
        "cone": Cone(np.array([1, 0]), 1 / 8, 2),
        "start": np.array([2.875, 0.625]),
        "step_factor": 64,
    }
    fields = {
        "claim": "thm3-cone-invariance/drops-the-step-bound",
        "claim_file": None,
        "statement": "It holds.",
        "arguments": {name: encode(value) for name, value in arguments.items()},
        "decision": None,
        "why": "it was so",
        "seed": 0,
        "origin": "given",
    }
    return save(Counterexample(**(fields | changes)), tmp_path)


# --- verify: exit statuses ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([GOOD], 0),
        ([GOOD, FALSE], 1),
        ([GOOD, TAME_CONTROL], 1),
        ([GOOD, RAISING], 2),
        ([GOOD, VACUOUS], 3),
        ([GOOD, UNDECIDED], 3),
        ([VACUOUS, UNDECIDED, RAISING], 2),
        ([VACUOUS, UNDECIDED, RAISING, FALSE], 1),
    ],
    ids=["fine", "refuted", "control", "raising", "vacuous", "undecided", "raising first", "refuted first"],
)
def test_the_exit_status_says_what_happened(parts, status, run, claims):
    code, out, err = run("verify", claims(*parts), "--examples=20", "--jobs=1")
    assert (code, err) == (status, [])
    assert out[0].startswith("claim ")
    assert out[-1].endswith("all as expected" if status == 0 else "not as expected")


def test_a_refutation_is_shown_in_full_and_can_be_replayed(run, claims):
    status, out, _ = run("verify", claims(FALSE), "--jobs=1")
    replay = "attcheck replay .attcheck/counterexamples/false.json"
    assert status == 1
    assert out[2:] == [
        "",
        "false: refuted, expected supported",
        "  too large",
        "  x = 3",
        f"  {replay}",
        "",
        "1 refuted: 1 not as expected",
    ]
    status, out, err = run(*replay.split()[1:])
    assert (status, err) == (1, [])
    assert out == ["false: x is below 3.", "  x = 3", "then: too large", "now:  failed: too large"]


def test_a_statement_is_proved_and_its_variants_refuted(run):
    status, out, err = run("verify", "balancedness", "--jobs=1")
    assert (status, err) == (0, [])
    assert out[1].split()[:2] == ["balancedness", "proved"]
    assert out[-1].startswith("1 proved; 2 of 2 controls refuted")


def test_two_processes_end_like_one(run, claims):
    path = claims(GOOD, FALSE)
    one = run("verify", path, "--examples=20", "--jobs=1")
    two = run("verify", path, "--examples=20", "--jobs=2")
    assert (one[0], two[0]) == (1, 1)
    assert one[1][-6:] == two[1][-6:]


# --- verify: JSON -------------------------------------------------------------------------------


def test_json_has_a_row_for_each_check(run, claims, tmp_path):
    path = tmp_path / "results.json"
    status, _, _ = run("verify", claims(GOOD, FALSE), "--seed=5", "--examples=20", "--jobs=1", "--json", path)
    document = json.loads(path.read_text())
    assert status == 1
    assert set(document) == {"attcheck", "seed", "interrupted", "results"}
    assert (document["seed"], document["interrupted"]) == (5, False)
    good, control, false = document["results"]
    for row in (good, control, false):
        assert {"id", "status", "expected", "examples", "discarded", "undecided", "seconds"} <= set(row)
        assert {"worst", "counterexample", "why"} <= set(row)
    assert (good["id"], good["status"], good["expected"]) == ("good", "supported", "supported")
    assert (good["examples"], good["discarded"], good["undecided"]) == (5, 0, 0)
    assert (good["counterexample"], good["worst"]) == (None, None)
    assert (control["id"], control["status"], control["expected"]) == (
        "good/drops-the-bound",
        "refuted",
        "refuted",
    )
    assert json.loads(Path(false["counterexample"]).read_text())["arguments"] == {"x": 3}
    assert false["why"] == "too large"


def test_json_that_cannot_be_written_is_refused_before_anything_runs(run, claims, tmp_path):
    raising = claims("\nraise RuntimeError('it ran')\n")
    for bad in (tmp_path / "missing" / "results.json", tmp_path, raising / "results.json"):
        assert refused(run("verify", raising, "--json", bad), "--json", bad, "existing folder")


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--seed", "abc", "integer"),
        ("--seed", "1.5", "integer"),
        ("--examples", "0", "0"),
        ("--examples", "many", "integer"),
        ("--jobs", "0", "0"),
        ("--jobs", "-1", "-1"),
        ("--profile", "fast", "quick"),
    ],
)
def test_options_out_of_range_are_refused(option, value, expected, run):
    assert refused(run("verify", "lemma1", option, value), option, value, expected)


def test_a_store_that_is_a_file_is_refused(run, claims):
    path = claims(GOOD)
    assert refused(run("verify", path, "--store", path), "--store", path)


@pytest.mark.parametrize(
    "arguments",
    [["verify", "lemma-1"], ["show", "lemma-1"], ["derive", "lemma-1"]],
    ids=lambda arguments: arguments[0],
)
def test_unknown_ids_are_refused(arguments, run):
    assert refused(run(*arguments), "lemma-1: unknown id", "lemma1")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["prove"], "prove"),
        (["verify", "--fast"], "--fast"),
        (["show"], "ID"),
        (["show", "lemma1", "lemma1"], "lemma1"),
        (["replay"], "COUNTEREXAMPLE"),
        (["replay", "none.json"], "none.json"),
        (["verify", "none.py"], "none.py: no such file"),
        (["verify", "."], "expected a Python file"),
        (["derive", "lemma1"], "lemma1: is a numeric claim, expected a symbolic statement"),
        (["figures", "no-such-picture"], "no-such-picture"),
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_refused(arguments, word, run):
    assert refused(run(*arguments), word)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("", ["defines no claims"]),
        ("x = (", ["SyntaxError"]),
        ("x = {}['key']", ["KeyError: 'key'", "line"]),
        (
            "SelectionProblem([[1, 0]], [[1, 0]])",
            ["keys: got shape (1, 2), expected an array of shape (n, T, D)"],
        ),
        ("SelectionProblem([[[1], [0]]], [[1]])", ["scores: got shape (1, 1), expected (1, 2)"]),
        ("SelectionProblem([[[1], [np.nan]]], [[1, 0]])", ["keys[0, 1, 0]: got nan, expected a finite"]),
        ("SelectionProblem([[[1], [0]]], [[1, np.inf]])", ["scores[0, 1]: got inf, expected a finite"]),
        ("SelectionProblem([[[1]]], [[1]])", ["keys: got T = 1 token per input"]),
        ("SelectionProblem([], [])", ["keys: got shape (0,)"]),
        ("SelectionProblem(np.zeros((0, 2, 1)), np.zeros((0, 2)))", ["keys: got shape (0, 2, 1)"]),
        ("JointProblem([[[1], [0]]], [0.5])", ["labels[0]: got 0.5, expected 1 or -1"]),
        ('@claim("Bad", statement="x.", x=st.integers())\ndef bad(x): pass', ["got the id 'Bad'"]),
    ],
)
def test_claim_files_that_cannot_be_used_are_refused(part, words, run, claims):
    assert refused(run("verify", claims("\n", part, "\n")), "claims.py: ", *words)


@pytest.mark.parametrize(
    ("built", "words"),
    [
        ("SelectionProblem([[1, x]], [[1, 0]])", "keys: got shape (1, 2)"),
        ("SelectionProblem([[[1], [x * np.inf]]], [[1, 0]])", "expected a finite number"),
        ("SelectionProblem([[[x]]], [[1]])", "got T = 1 token per input"),
        ("SelectionProblem([], [x])", "keys: got shape (0,)"),
        ("JointProblem([[[1], [x]]], [2])", "labels[0]: got 2, expected 1 or -1"),
    ],
)
def test_properties_that_build_impossible_problems_are_errors(built, words, run, claims):
    path = claims(f'\n@claim("bad", statement="x.", x=st.just(1))\ndef bad(x):\n    {built}\n')
    status, out, _ = run("verify", path, "--jobs=1")
    assert status == 2
    assert "bad: error, expected supported" in out
    assert any(words in line for line in out)


PROBLEM = {"type": "SelectionProblem", "keys": [[[1], [0]]], "scores": [[1, 0]]}


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (
            PROBLEM | {"keys": [[1, 0]]},
            "problem.keys: got shape (1, 2), expected an array of shape (n, T, D)",
        ),
        (PROBLEM | {"scores": [[1, 0, 0]]}, "problem.scores: got shape (1, 3), expected (1, 2)"),
        (PROBLEM | {"keys": [[[1], [0, 0]]]}, "problem.keys: got ragged nested lists"),
        (PROBLEM | {"keys": [[[1], [np.nan]]]}, "problem.keys[0, 1, 0]: got nan, expected a finite number"),
        (PROBLEM | {"scores": [[1, -np.inf]]}, "problem.scores[0, 1]: got -inf, expected a finite number"),
        (PROBLEM | {"keys": [[[1]]], "scores": [[1]]}, "problem.keys: got T = 1 token per input"),
        (PROBLEM | {"keys": [], "scores": []}, "problem.keys: got shape (0,)"),
        (PROBLEM | {"loss": "hinge"}, "problem.loss: got 'hinge', expected one of logistic"),
        (PROBLEM | {"keys": [[["a"], [0]]]}, "problem.keys[0][0][0]: got 'a', expected a number"),
        (
            {"type": "JointProblem", "tokens": [[[1], [0]]], "labels": [0]},
            "problem.labels[0]: got 0, expected 1 or -1",
        ),
        ({"type": "Problem"}, "problem.type: got 'Problem', expected one of"),
    ],
)
def test_counterexamples_with_impossible_problems_are_refused(problem, words, run, tmp_path):
    path = stored(tmp_path)
    data = json.loads(path.read_text())
    data["arguments"]["problem"] = problem
    path.write_text(json.dumps(data))
    assert refused(run("replay", path), path, f"arguments.{words}")


# --- replay -------------------------------------------------------------------------------------


def test_replay_shows_the_arguments_and_what_became_of_them(run, tmp_path):
    status, out, err = run("replay", stored(tmp_path))
    assert (status, err) == (1, [])
    assert out[0] == "thm3-cone-invariance/drops-the-step-bound: It holds."
    assert "  start = array([2.875, 0.625])" in out
    assert out[-2] == "then: it was so"
    assert out[-1].startswith("now:  failed: stays_in_cone: iterate 1 lies outside the cone")


def test_replay_of_what_no_longer_fails_ends_with_0(run, tmp_path):
    path = stored(tmp_path)
    path.write_text(path.read_text().replace('"step_factor": 64', '"step_factor": 1'))
    status, out, _ = run("replay", path)
    assert (status, out[-1]) == (0, "now:  passed")


def test_replay_of_a_claim_that_raises_is_an_error(run, claims, tmp_path):
    path = stored(tmp_path, claim="raising", claim_file=str(claims(RAISING)), arguments={"x": 3})
    status, out, err = run("replay", path)
    assert status == 2
    assert out[-1].startswith("now:  error: KeyError: 'key' (claims.py, line ")
    assert len(err) == 1
    assert err[0].startswith("attcheck: error: raising: KeyError: 'key'")


def test_replay_finds_a_claim_file_that_moved(run, claims, tmp_path):
    path = stored(tmp_path, claim="false", claim_file=str(tmp_path / "old.py"), arguments={"x": 3})
    assert refused(run("replay", path), "old.py: no such file")
    assert run("replay", path, "--claims", claims(FALSE))[0] == 1
    assert refused(run("replay", path, "--claims", claims(GOOD, name="other.py")), "'false'", "good")
    assert refused(run("replay", path, "--claims", tmp_path / "none.py"), "none.py: no such file")


# --- list, show, derive, figures ----------------------------------------------------------------


def test_the_list_has_a_row_for_everything(run):
    status, out, _ = run("list")
    assert status == 0
    assert out[0].split() == ["id", "kind", "controls", "statement"]
    rows = {line.split()[0]: line.split()[1:3] for line in out[1:] if line and line[0] != " "}
    for check in built_in():
        kind = "statement" if isinstance(check, Proof) else "claim"
        assert rows[check.id] == [kind, str(len(check.controls))]
    assert len(rows) == len(built_in())
    assert max(map(cell_len, out)) <= 120


def test_the_list_as_json_names_the_controls(run):
    status, out, _ = run("list", "--json")
    rows = {row["id"]: row for row in json.loads("\n".join(out))}
    assert status == 0
    assert set(rows["lemma1"]) == {"id", "kind", "expected", "statement", "source", "controls"}
    assert rows["lemma1"]["source"] == "arXiv 2306.13596, Lemma 1"
    for claim in CLAIMS:
        assert rows[claim.id]["controls"] == [control.id for control in claim.controls]
    assert {row["expected"] for row in rows.values()} == {"supported", "proved"}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_show_tells_all_of_a_claim(claim, run):
    status, out, _ = run("show", claim.id)
    text = " ".join(" ".join(out).split())
    assert status == 0
    for part in (claim.id, claim.statement, claim.source, *claim.hypotheses, *claim.arguments):
        assert " ".join(part.split()) in text
    for control in claim.controls:
        assert control.id in text


def test_show_tells_of_controls_and_statements(run):
    status, out, _ = run("show", "thm2-norm-diverges/drops-assumption-b")
    assert status == 0
    assert out[-2:] == [
        "given      2 examples",
        "expected   refuted",
    ]
    statement = next(check for check in built_in() if isinstance(check, Proof))
    status, out, _ = run("show", statement.id)
    labels = {line[:10].strip() for line in out}
    assert status == 0
    assert {"id", "statement", "source", "LaTeX", "expected", "control"} <= labels
    status, out, _ = run("show", statement.controls[0].id)
    assert status == 0
    assert out[0].split() == ["id", statement.controls[0].id]
    assert out[-1].split() == ["expected", "refuted"]


def test_derive_prints_the_steps_and_says_whether_all_hold(run):
    statement = next(check for check in built_in() if isinstance(check, Proof))
    status, out, err = run("derive", statement.id)
    assert (status, err) == (0, [])
    assert len(out) > 3
    status, out, _ = run("derive", statement.controls[0].id)
    assert status == 1
    assert any("wrong" in line or "refuted" in line for line in out)


def test_figures_that_cannot_be_written_are_refused(run, claims):
    path = claims(GOOD)
    assert refused(run("figures", "fig-single-global", "--out", path), path)
    assert refused(run("figures", "fig-single-global", "--out", path / "sub"), path)


def test_help_and_version(run):
    status, out, _ = run("--version")
    assert status == 0
    assert out[0].startswith("attcheck")
    for arguments in (["--help"], ["-h"], ["verify", "--help"]):
        status, out, _ = run(*arguments)
        assert status == 0
        assert out[0].startswith("Usage: attcheck")


def test_without_a_command_the_help_is_shown(run):
    status, out, err = run()
    assert (status, out) == (2, [])
    assert "Commands:" in err


# --- As a process -------------------------------------------------------------------------------


def test_end_to_end(claims, tmp_path):
    path = claims(GOOD, FALSE)
    done = subprocess.run(
        [*ATTCHECK, "verify", str(path), "--json", "results.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == 3
    done = subprocess.run(
        [*ATTCHECK, "replay", ".attcheck/counterexamples/false.json"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"]], ids=" ".join)
def test_a_reader_that_leaves_is_no_error(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [*ATTCHECK, *arguments], stdout=gone, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_mathematics_is_no_error():
    done = subprocess.run(
        [*ATTCHECK, "list"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


SLOW = """
import pathlib, time
@claim("slow", statement="It takes its time.", x=st.integers())
def slow(x):
    pathlib.Path("slow").touch()
    time.sleep(0.02)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished(jobs, claims, tmp_path):
    path = claims(GOOD, SLOW)
    options = ["--examples=100000", f"--jobs={jobs}", "--json=results.json"]
    with subprocess.Popen(
        [*ATTCHECK, "verify", str(path), *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for _ in range(1_200):
            if (tmp_path / "slow").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads((tmp_path / "results.json").read_text())
    rows = [row["id"] for row in document["results"]]
    assert document["interrupted"] is True
    assert "slow" not in rows
    if jobs == 1:
        assert rows == ["good", "good/drops-the-bound"]
        assert "good   " in out
    assert f"attcheck: interrupted, {len(rows)} results kept" in err
    assert "Traceback" not in out + err
