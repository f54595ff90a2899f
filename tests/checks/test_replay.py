"""Replaying counterexamples: still failing, corrected, moved, renamed, and files that do not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from checks import Cone, verify
from checks.catalogue import TargetError, built_in, find
from checks.datasets import NARROW
from checks.proofs import Proof
from checks.replay import replay
from checks.store import Counterexample, CounterexampleError, encode, load, save

FILE = """
from hypothesis import strategies as st
from checks import assume, claim, control

@claim("small", statement="x is below 5.", x=st.integers(0, 9))
def small(x):
    assert x < 5, f"{x} is too large"

control(small, drops="the bound", x=st.integers(0, 99))
"""
NARROW_LEAVES_ITS_CONE = {
    "problem": NARROW,
    "alpha": (0,),
    "cone": Cone(np.array([1, 0]), 1 / 8, 2),
    "start": np.array([2.875, 0.625]),
    "step_factor": 64,
}


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def counterexample(claims, tmp_path):
    """The file of the counterexample to `small`."""
    (refuted, _) = verify(claims, examples=30, store=tmp_path / "store")
    assert refuted.status == "refuted"
    return tmp_path / "store" / "small.json"


def written(tmp_path, **changes):
    fields = {
        "claim": "thm3-cone-invariance/drops-the-step-bound",
        "claim_file": None,
        "statement": "It holds.",
        "arguments": {name: encode(value) for name, value in NARROW_LEAVES_ITS_CONE.items()},
        "decision": None,
        "why": "it was so",
        "seed": 0,
        "origin": "given",
    }
    return save(Counterexample(**(fields | changes)), tmp_path)


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def in_a_fresh_process(path, *options):
    command = [sys.executable, "-c", "from checks.cli import main; main()", "replay", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_built_in_counterexample_still_fails(tmp_path):
    result = replay(written(tmp_path))
    assert result.trial.outcome == "failed"
    assert result.check is find("thm3-cone-invariance/drops-the-step-bound")
    assert result.arguments["alpha"] == (0,)
    assert "lies outside the cone" in result.trial.why


def test_arguments_of_another_size_are_replayed_as_they_stand(tmp_path):
    calm = {name: encode(value) for name, value in (NARROW_LEAVES_ITS_CONE | {"step_factor": 1}).items()}
    assert replay(written(tmp_path, arguments=calm)).trial.outcome == "passed"


def test_a_counterexample_of_a_file_finds_its_claim(counterexample, claims):
    result = replay(counterexample)
    assert (result.trial.outcome, result.arguments) == ("failed", {"x": 5})
    assert result.counterexample.claim_file == str(claims.resolve())
    assert result.trial.why == result.counterexample.why


def test_the_folder_one_stands_in_does_not_matter(counterexample, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert replay(counterexample).trial.outcome == "failed"


def test_a_corrected_claim_passes_in_a_fresh_process(counterexample, claims):
    failing = in_a_fresh_process(counterexample)
    assert (failing.returncode, failing.stderr) == (1, "")
    assert "now:  failed: 5 is too large" in failing.stdout
    # The same size and the same second, as after a quick edit.
    state = claims.stat()
    claims.write_text(FILE.replace("assert x < 5", "assert x < 9"))
    os.utime(claims, ns=(state.st_atime_ns, state.st_mtime_ns))
    passing = in_a_fresh_process(counterexample)
    assert (passing.returncode, passing.stderr) == (0, "")
    assert "now:  passed" in passing.stdout


def test_a_corrected_claim_passes_in_the_same_process(counterexample, claims):
    assert replay(counterexample).trial.outcome == "failed"
    claims.write_text(FILE.replace("x < 5", "x < 500"))
    assert replay(counterexample).trial.outcome == "passed"


def test_an_assumption_that_fails_now_discards_without_a_warning(counterexample, claims):
    claims.write_text(FILE.replace("assert x < 5", "assume(x > 900)\n    assert x < 5"))
    done = in_a_fresh_process(counterexample)
    assert (done.returncode, done.stderr) == (0, "")
    assert "now:  discarded: the arguments do not meet the hypotheses" in done.stdout


def test_a_claim_file_that_moved_can_be_named(counterexample, claims, tmp_path):
    moved = claims.rename(tmp_path / "moved.py")
    with pytest.raises(TargetError, match=r"claims\.py: no such file"):
        replay(counterexample)
    assert replay(counterexample, moved).trial.outcome == "failed"


def test_a_counterexample_of_a_control_finds_the_control(counterexample, tmp_path):
    assert replay(tmp_path / "store" / "small--drops-the-bound.json").check.id == "small/drops-the-bound"


def test_a_claim_that_its_file_no_longer_has_is_named_with_those_it_has(counterexample, claims):
    claims.write_text(FILE.replace('"small"', '"smaller"'))
    expected = (
        r"small\.json: claim: got 'small', expected one of those in .*claims\.py: smaller, smaller/drops-"
    )
    with pytest.raises(TargetError, match=expected):
        replay(counterexample)


def test_an_unknown_built_in_claim_is_told_what_is_near(tmp_path):
    with pytest.raises(TargetError, match="unknown id; did you mean thm3-local"):
        replay(written(tmp_path, claim="thm3-locl"))


def test_arguments_of_a_claim_are_no_point_for_a_symbolic_statement(tmp_path):
    statement = next(check for check in built_in() if isinstance(check, Proof))
    with pytest.raises(CounterexampleError, match=r"json: arguments\.derivation: got None, expected a str"):
        replay(written(tmp_path, claim=statement.id))


@pytest.mark.parametrize("arguments", [{}, {"y": 5}, {"x": 5, "y": 5}])
def test_arguments_of_another_claim_are_refused(arguments, counterexample):
    came = ", ".join(arguments)
    expected = rf"small\.json: arguments: got \({came}\), expected those of small: \(x\)"
    with pytest.raises(CounterexampleError, match=expected):
        replay(edit(counterexample, arguments=arguments))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"type": "array", "values": [[1], [1, 2]]}, r"arguments\.x"),
        ({"type": []}, r"arguments\.x\.type"),
        ({"type": "Fraction", "value": "1/0"}, r"arguments\.x"),
        ({"type": "SelectionProblem", "keys": [[[1]]], "scores": [[1]]}, r"arguments\.x\.keys: got T = 1"),
    ],
)
def test_malformed_arguments_are_named_with_their_file(stored, message, counterexample):
    with pytest.raises(CounterexampleError, match=rf"small\.json: {message}"):
        replay(edit(counterexample, arguments={"x": stored}))


def test_arguments_nested_as_deeply_as_json_allows_are_refused(counterexample):
    deep = json.loads("[" * 900 + "]" * 900)
    with pytest.raises(CounterexampleError, match=r"small\.json: arguments.*nested"):
        replay(edit(counterexample, arguments={"x": deep}))


def test_code_that_raises_is_an_error_not_a_failure(counterexample, claims):
    claims.write_text(FILE.replace("assert x < 5", "assert 1 / 0"))
    result = replay(counterexample)
    assert result.trial.outcome == "error"
    assert result.trial.why.startswith("ZeroDivisionError: division by zero (claims.py, line ")


def test_an_argument_of_the_wrong_kind_is_an_error_not_a_failure(counterexample):
    result = replay(edit(counterexample, arguments={"x": "five"}))
    assert result.trial.outcome == "error"
    assert result.trial.why.startswith("TypeError")


def test_replaying_leaves_the_file_alone(counterexample):
    before = counterexample.read_bytes()
    replay(counterexample)
    assert counterexample.read_bytes() == before
    assert load(counterexample).arguments == {"x": 5}
