"""The built-in claims: each supported, each control refuted by something small that can be replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checks import Claim, JointProblem, SelectionProblem, verify
from checks.claims import CLAIMS
from checks.replay import replay
from checks.search import Budget, examine
from checks.store import load

CONTROLS = [control for claim in CLAIMS for control in claim.controls]
# That a search repeats is tested on these, which are quick.
SEARCHED = {
    "lemma1/drops-the-step-ratio",
    "thm2-norm-diverges/drops-feasibility",
    "thm3-local/drops-local-optimality",
    "loss-comparison/drops-the-loss-in-the-order",
}


def by_id(checks):
    return pytest.mark.parametrize("check", checks, ids=lambda check: check.id)


def examined(check, store):
    return examine(check, Budget(examples=10, seed=0, store=store))


def entries(problem):
    """The arrays of a data set, all of which come from a lattice."""
    if isinstance(problem, SelectionProblem):
        return [problem.keys, problem.scores]
    return [problem.tokens, problem.labels, problem.keys]


@by_id(CLAIMS)
def test_every_claim_is_supported(check, tmp_path):
    verdict = examined(check, tmp_path)
    assert (verdict.status, verdict.examples, verdict.undecided) == ("supported", 10, 0), verdict.why
    assert verdict.worst is not None
    assert verdict.worst["outcome"] == "yes"
    assert list(tmp_path.iterdir()) == []


@by_id(CONTROLS)
def test_every_control_is_refuted_by_something_small(check, tmp_path):
    verdict = examined(check, tmp_path)
    assert verdict.status == "refuted", verdict.why
    assert verdict.as_expected
    assert verdict.origin == ("given" if check.examples else "found")
    path = Path(verdict.counterexample)
    again = replay(path)
    assert again.check is check
    assert again.trial.outcome == "failed"
    assert again.trial.why == load(path).why == verdict.why
    problems = [v for v in again.arguments.values() if isinstance(v, SelectionProblem | JointProblem)]
    # Starts and cones need not lie on the lattice: statements about almost every start draw them beside it.
    for problem in problems:
        n, tokens, dim = problem.shape
        assert n <= 3
        assert tokens <= 4
        assert dim <= 3
        for array in entries(problem):
            assert (array * 8 == np.round(array * 8)).all()
    severe = path.with_suffix(".severe.json")
    if severe.exists():
        assert replay(severe).trial.outcome == "failed"


@by_id([control for control in CONTROLS if control.id in SEARCHED])
def test_the_same_seed_gives_the_same_counterexample(check, tmp_path):
    texts = []
    for run in ("first", "second"):
        examined(check, tmp_path / run)
        texts.append({path.name: path.read_text() for path in (tmp_path / run).iterdir()})
    assert texts[0] == texts[1]
    assert texts[0] != {}


def test_searched_controls_exist():
    assert {control.id for control in CONTROLS} >= SEARCHED


@by_id(CLAIMS)
def test_every_claim_says_what_it_is_about(check):
    assert isinstance(check, Claim)
    assert "arXiv 2306.13596" in check.source or check.source.startswith("derived here")
    assert check.hypotheses != ()
    assert check.controls != []
    assert check.file is None
    # The properties are plain functions: a reader can call one.
    assert callable(check.body)


def test_a_claim_can_be_verified_by_its_id(tmp_path):
    (verdict,) = verify("thm3-cone-invariance/drops-the-step-bound", store=tmp_path)
    assert (verdict.status, verdict.drawn) == ("refuted", 1)
