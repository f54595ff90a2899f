"""Running checks: the same results with one process or two, progress, interrupts, and workers that die."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks import verify
from checks.catalogue import TargetError, load_claims
from checks.runner import PROFILES, Progress, available_cores

FILE = """
from hypothesis import strategies as st
from checks import Decision, claim, control, expect, strategies as attst

@claim("small", statement="x is below 5.", x=st.integers(0, 4))
def small(x):
    assert x < 5

control(small, drops="the bound", x=st.integers(0, 99))

LATTICE = attst.selection_problems(n=1, tokens=2, dim=1)
FLOATS = attst.selection_problems(n=2, tokens=2, dim=2, lattice=None)

@claim("thin", statement="The keys are thin.", problem=LATTICE, start=attst.starts)
def thin(problem, start):
    assert abs(problem.keys @ start).max() < 2.5, "a large logit"

@claim("short", statement="Keys are short.", problem=FLOATS)
def short(problem):
    longest = float(abs(problem.keys).max())
    outcome = "yes" if longest < 1.5 else "no"
    expect(Decision("short", outcome, error=longest, tolerance={"bound": 1.5}, why="a long key"))

@claim("spread", statement="The largest remainder tells draws apart.", x=st.floats(0, 1e9))
def spread(x):
    expect(Decision("spread", "yes", error=x * 0.618 % 1, tolerance={"bound": 1}))
"""
ATTCHECK = [sys.executable, "-c", "from checks.cli import main; main()"]
IDS = ["small", "small/drops-the-bound", "thin", "short", "spread"]


class Recorder(Progress):
    """Everything a run reports, in order."""

    def __init__(self, interrupt_after=None):
        self.events, self.verdicts, self.interrupt_after = [], [], interrupt_after

    def started(self, checks, budget):
        self.events.append(("started", [check.id for check in checks], budget.examples))

    def examined(self, id, examples):
        self.events.append(("examined", id, examples))

    def finished(self, verdict):
        self.events.append(("finished", verdict.id))
        self.verdicts.append(verdict)
        if len(self.verdicts) == self.interrupt_after:
            raise KeyboardInterrupt


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE)
    return path


def files(folder):
    return {path.name: path.read_text() for path in Path(folder).iterdir()}


# --- Results ------------------------------------------------------------------------------------


def test_one_process_and_two_give_the_same_verdicts_and_files(claims, tmp_path):
    results = []
    targets = [
        str(claims),
        "lemma1/drops-the-step-ratio",
        "thm3-cone-invariance/drops-the-step-bound",
        "softmax-jacobian",
    ]
    for jobs in ("1", "2"):
        # Fresh processes, as on the command line: what else is loaded has a say in what Hypothesis draws.
        store, rows = tmp_path / f"store-{jobs}", tmp_path / f"{jobs}.json"
        options = ["--examples=200", "--jobs", jobs, "--store", str(store), "--json", str(rows)]
        done = subprocess.run(
            [*ATTCHECK, "verify", *targets, *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        verdicts = json.loads(rows.read_text())["results"]
        for verdict in verdicts:
            del verdict["seconds"]
            if verdict["counterexample"]:
                verdict["counterexample"] = Path(verdict["counterexample"]).relative_to(store).name
        results.append((verdicts, files(store)))
    assert results[0] == results[1]
    assert len(results[0][1]) >= 4


def test_verdicts_come_in_the_order_of_the_targets(claims, tmp_path):
    verdicts = verify("lemma1/drops-the-step-ratio", claims, examples=5, store=tmp_path / "store")
    assert [verdict.id for verdict in verdicts] == ["lemma1/drops-the-step-ratio", *IDS]


def test_the_seed_decides_what_is_drawn(claims, tmp_path):
    texts = []
    for k, seed in enumerate((0, 0, 1)):
        verify(claims, examples=30, seed=seed, store=tmp_path / str(k))
        texts.append(
            {
                name: text.replace(str(tmp_path / str(k)), "")
                for name, text in files(tmp_path / str(k)).items()
            }
        )
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_without_a_store_nothing_is_written(claims, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdicts = verify(claims, examples=30, store=None)
    assert {verdict.counterexample for verdict in verdicts} == {None}
    assert [path.name for path in tmp_path.iterdir()] == ["claims.py"]


def test_the_default_store_is_in_the_current_folder(claims, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = verify(claims, examples=5)[1]
    assert verdict.counterexample == ".attcheck/counterexamples/small--drops-the-bound.json"
    assert (tmp_path / verdict.counterexample).is_file()


@pytest.mark.parametrize("profile", ["quick", "ci"])
def test_a_profile_is_a_number_of_examples(profile, tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE.replace("st.integers(0, 4)", "st.integers(0, 10**9).map(lambda x: 4)"))
    (claim,) = (claim for claim in load_claims(path) if claim.id == "small")
    verdict, control = verify(claim, profile=profile, store=None)
    assert (verdict.status, verdict.examples) == ("supported", PROFILES[profile])
    assert control.status == "refuted"


def test_claims_passed_as_objects_run_in_this_process(claims):
    small = load_claims(claims)[0]
    for jobs in (1, 2):
        assert [verdict.status for verdict in verify(small, jobs=jobs, store=None)] == [
            "supported",
            "refuted",
        ]


def test_symbolic_statements_are_proved_beside_claims(tmp_path):
    verdicts = verify("softmax-jacobian", store=tmp_path)
    assert {verdict.status for verdict in verdicts if "/" not in verdict.id} == {"proved"}
    assert {verdict.status for verdict in verdicts if "/" in verdict.id} == {"refuted"}
    assert all(verdict.as_expected for verdict in verdicts)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {f"{verdict.id.replace('/', '--')}.json" for verdict in verdicts if "/" in verdict.id}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "fast"}, r"\Aprofile: got 'fast', expected one of quick, ci, thorough"),
        ({"examples": 0}, r"\Aexamples: got 0, expected a whole number of at least 1"),
        ({"examples": 2.5}, r"\Aexamples: got 2\.5, expected a whole number"),
        ({"examples": True}, r"\Aexamples: got True"),
        ({"seed": 1.5}, r"\Aseed: got 1\.5, expected a whole number"),
        ({"seed": None}, r"\Aseed: got None"),
        ({"jobs": 0}, r"\Ajobs: got 0, expected a whole number of at least 1"),
        ({"jobs": "2"}, r"\Ajobs: got '2'"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_runs(arguments, message):
    recorder = Recorder()
    with pytest.raises(ValueError, match=message):
        verify("lemma1", progress=recorder, **arguments)
    assert recorder.events == []


def test_a_target_that_cannot_be_used_is_refused_before_anything_runs(tmp_path):
    recorder = Recorder()
    for jobs in (1, 2):
        with pytest.raises(TargetError, match="unknown id"):
            verify("lemma1", "lemma2", progress=recorder, jobs=jobs)
    assert recorder.events == []


def test_there_is_a_core_to_run_on():
    assert available_cores() >= 1


# --- Progress -----------------------------------------------------------------------------------


def test_progress_is_told_of_everything_in_order(claims):
    recorder = Recorder()
    verify(claims, examples=5, store=None, progress=recorder)
    assert recorder.events[0] == ("started", IDS, 5)
    assert [event[1] for event in recorder.events if event[0] == "finished"] == IDS
    counts = [event[2] for event in recorder.events if event[:2] == ("examined", "small")]
    assert counts == list(range(1, 6))
    last = {id: k for k, (kind, id, *_) in enumerate(recorder.events) if kind == "examined"}
    for id in IDS:
        assert last[id] < recorder.events.index(("finished", id))


def test_progress_of_several_processes_reaches_this_one(claims):
    recorder = Recorder()
    verdicts = verify(claims, examples=5, store=None, jobs=2, progress=recorder)
    assert recorder.events[0] == ("started", IDS, 5)
    assert {event[1] for event in recorder.events if event[0] == "examined"} == set(IDS)
    assert sorted(verdict.id for verdict in recorder.verdicts) == sorted(IDS)
    assert [verdict.id for verdict in verdicts] == IDS


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_what_is_finished_and_ends_the_workers(jobs, claims):
    recorder = Recorder(interrupt_after=1)
    with pytest.raises(KeyboardInterrupt):
        verify(claims, examples=5, store=None, jobs=jobs, progress=recorder)
    assert len(recorder.verdicts) == 1
    for child in multiprocessing.active_children():
        child.join(timeout=30)
        # The pool waits for its workers too: who comes second never learns the exit status, and
        # `is_alive` would go on saying so. The system knows.
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)


def test_an_interrupt_within_a_property_is_passed_on(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE.replace("assert x < 5", "raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        verify(path, store=None)


# --- Broken workers -----------------------------------------------------------------------------


def test_a_worker_that_dies_gives_an_error_and_does_not_hang(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE.replace("assert x < 5", "import os; os._exit(3)"))
    recorder = Recorder()
    verdicts = verify(path, examples=5, store=None, jobs=2, progress=recorder)
    assert [verdict.id for verdict in verdicts] == IDS
    dead = verdicts[0]
    assert (dead.status, dead.expected, dead.as_expected) == ("error", "supported", False)
    assert "process" in dead.why
    assert len(recorder.verdicts) == len(IDS)


def test_a_worker_that_cannot_start_gives_errors_and_does_not_hang(tmp_path):
    path = tmp_path / "claims.py"
    # Readable here, but not in another process.
    guard = "import multiprocessing\nassert multiprocessing.parent_process() is None\n"
    path.write_text(guard + FILE)
    verdicts = verify(path, examples=5, store=None, jobs=2)
    assert [verdict.status for verdict in verdicts] == ["error"] * len(IDS)


def test_a_property_that_changes_the_global_state_of_numpy_does_not_change_the_next(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(FILE)
    before = verify(path, examples=20, store=None)
    disturbing = tmp_path / "disturbing.py"
    disturbing.write_text(
        "import random\nimport numpy as np\n"
        + FILE.replace("assert x < 5", "random.seed(x); np.random.seed(x)")
        .replace('"small"', '"first"')
        .replace('"thin"', '"second"')
        .replace('"short"', '"third"')
        .replace('"spread"', '"fourth"')
    )
    after = verify(disturbing, path, examples=20, store=None)[len(IDS) :]
    strip = lambda verdicts: [dataclasses.replace(verdict, seconds=0.0) for verdict in verdicts]  # noqa: E731
    assert strip(before) == strip(after)
