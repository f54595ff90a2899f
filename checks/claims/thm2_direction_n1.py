"""[MM] (arXiv 2306.13596), Theorem 2 for one input: the direction is globally max-margin."""

from __future__ import annotations

from .. import (
    SelectionProblem,
    att_svm,
    claim,
    control,
    converges_in_direction,
    expect,
    gradient_descent,
    optimal_tokens,
)
from .. import strategies as attst
from ..validation import FloatArray

# The steps show where descent goes at a finite norm; the decision continues from there by flow.
_STEPS = 1_000


@claim(
    "thm2-direction-n1",
    statement="With one input, Assumption B and ATT-SVM(opt) feasible, gradient descent with step "
    "1/L has p(t)/‖p(t)‖ → p_mm*/‖p_mm*‖ from any start.",
    source="arXiv 2306.13596, Theorem 2",
    hypotheses=(
        "n = 1",
        "Assumption A: logistic loss",
        "Assumption B: equal non-optimal scores",
        "ATT-SVM(opt) feasible",
        "step at most 1/L",
    ),
    problem=attst.selection_problems(n=1, equal_nonoptimal=True, separable=True),
    start=attst.starts,
)
def direction_n1(problem: SelectionProblem, start: FloatArray) -> None:
    target = att_svm(problem, optimal_tokens(problem)).vector
    expect(converges_in_direction(gradient_descent(problem, start, steps=_STEPS), target))


control(
    direction_n1,
    drops="n = 1",
    problem=attst.selection_problems(n=2, tokens=(2, 3), dim=2, equal_nonoptimal=True, separable=True),
)
control(
    direction_n1,
    drops="Assumption B",
    problem=attst.selection_problems(n=1, tokens=(2, 4), dim=(2, 3), separable=True),
)
