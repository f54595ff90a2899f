"""[MM] (arXiv 2306.13596), Theorem 2: under Assumption B the norm of gradient descent diverges."""

from __future__ import annotations

import numpy as np

from .. import SelectionProblem, claim, control, diverges, expect, gradient_descent
from .. import strategies as attst
from ..datasets import STATIONARY_ONE_INPUT, STATIONARY_TWO_INPUTS
from ..validation import FloatArray

# The steps show where descent goes at a finite norm; the decision continues from there by flow.
_STEPS = 1_000


@claim(
    "thm2-norm-diverges",
    statement="Under Assumption B with ATT-SVM(opt) feasible, gradient descent with step 1/L has "
    "‖p(t)‖ → ∞ from any start.",
    source="arXiv 2306.13596, Theorem 2",
    hypotheses=(
        "Assumption A: logistic loss",
        "Assumption B: equal non-optimal scores",
        "ATT-SVM(opt) feasible",
        "step at most 1/L",
    ),
    problem=attst.selection_problems(equal_nonoptimal=True, separable=True),
    start=attst.starts,
)
def norm_diverges(problem: SelectionProblem, start: FloatArray) -> None:
    expect(diverges(gradient_descent(problem, start, steps=_STEPS)))


# Attracting stationary points of separable problems are needles: random search does not meet them.
control(
    norm_diverges,
    drops="Assumption B",
    problem=attst.selection_problems(separable=True),
    examples=[
        {"problem": STATIONARY_ONE_INPUT, "start": np.zeros(1)},
        {"problem": STATIONARY_TWO_INPUTS, "start": np.zeros(2)},
    ],
)
control(
    norm_diverges,
    drops="feasibility",
    # Distinct keys: where all keys of an input coincide there is nothing to learn, and nothing to see.
    problem=attst.selection_problems(
        n=(2, 3), tokens=2, dim=(1, 2), equal_nonoptimal=True, general_position=True
    ),
)
