"""The claims on where paths end and how fast: each given counterexample is one."""

from __future__ import annotations

import pytest

from checks import SelectionProblem
from checks.claims.loss_comparison import comparison
from checks.claims.ngd_norm_linear import norm_linear
from checks.claims.rate_direction import rate
from checks.claims.thm4_tightness import tightness
from checks.claims.trichotomy import trichotomy
from checks.selection import in_general_position
from checks.trial import run_trial

CLAIMS = (tightness, trichotomy, rate, norm_linear, comparison)


GIVEN = [(control, example) for claim in CLAIMS for control in claim.controls for example in control.examples]


@pytest.mark.parametrize(
    ("control", "example"), GIVEN, ids=[f"{control.id}-{k}" for k, (control, _) in enumerate(GIVEN)]
)
def test_every_given_counterexample_fails(control, example):
    """A search stops at the first; each of the others has to be one, too."""
    trial = run_trial(control.body, example)
    assert trial.outcome == "failed"


def test_given_counterexamples_meet_the_hypotheses_that_are_not_dropped():
    for control, example in GIVEN:
        problem = example.get("problem")
        if isinstance(problem, SelectionProblem) and control.claim in (tightness, trichotomy):
            dropped = control.drops in ("no ties", "no duplicate keys")
            assert in_general_position(problem) == (not dropped), control.id
