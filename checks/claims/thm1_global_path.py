"""[MM] (arXiv 2306.13596), Theorem 1: the regularisation path tends to the global max-margin direction.

For a loss as in Assumption A, unique optimal tokens and ATT-SVM(opt) feasible, the minimisers
`p̄(R) = argmin_{‖p‖ ≤ R} L(p)` satisfy `p̄(R)/R → p_mm*/‖p_mm*‖`. The error is `O(1/R)` if every support vector
has a positive multiplier, and `O(log R/R)` otherwise; that part is ours, proved in
``notes/certificates.md``.
"""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from .. import (
    Infeasible,
    SelectionProblem,
    att_svm,
    claim,
    control,
    expect,
    minimisers_tend_to,
    optimal_tokens,
    regularization_path,
)
from .. import strategies as attst
from ..selection import feasible_selections

# In units of ‖p_mm‖, so that the selected tokens lead by this many logits.
_RADII = (1e2, 1e3, 1e4)


def _optimal(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    return st.just(optimal_tokens(problem))


@claim(
    "thm1-global-path",
    statement="With unique optimal tokens and ATT-SVM(opt) feasible, the minimisers p̄(R) of the risk over "
    "‖p‖ ≤ R have p̄(R)/R → p_mm*/‖p_mm*‖, with an error O(1/R), or O(log R/R) if a support vector has "
    "multiplier 0.",
    source="arXiv 2306.13596, Theorem 1",
    hypotheses=("Assumption A: logistic loss", "unique optimal tokens", "ATT-SVM(opt) feasible"),
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    alpha=_optimal,
    direction=st.just("max-margin"),
)
def global_path(problem: SelectionProblem, alpha: tuple[int, ...], direction: str) -> None:
    solution = att_svm(problem, alpha)
    target = solution.vector
    if direction == "mean difference":
        selected = problem.keys[np.arange(len(alpha)), list(alpha)]
        target = (selected[:, None] - problem.keys).mean(axis=(0, 1))
    radii, minimisers = regularization_path(problem, np.array(_RADII) / solution.margin)
    expect(minimisers_tend_to(problem, radii, minimisers, target, slow=solution.is_degenerate))


def _other(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Selections that can be separated but are not the optimal one."""
    optimal = optimal_tokens(problem)
    others = [alpha for alpha, _ in feasible_selections(problem.keys) if alpha != optimal]
    return st.sampled_from(others) if others else st.nothing()


def _tied(problem: SelectionProblem) -> SelectionProblem:
    """The same problem after the token behind the optimal one has caught up with it in the first input."""
    scores = problem.scores.copy()
    best = int(scores[0].argmax())
    scores[0, (best + 1) % scores.shape[1]] = scores[0, best]
    return SelectionProblem(problem.keys, scores, problem.loss)


def _tied_optimum(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Choices of one optimal token per input that can be separated."""
    best = problem.scores == problem.scores.max(axis=1, keepdims=True)
    choices = []
    for alpha in itertools.product(*(np.flatnonzero(row).tolist() for row in best)):
        try:
            att_svm(problem, alpha)
        except Infeasible:
            continue
        choices.append(alpha)
    return st.sampled_from(choices)


_SMALL = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True)

control(global_path, drops="optimality", problem=_SMALL, alpha=_other)
control(global_path, drops="the max-margin direction", problem=_SMALL, direction=st.just("mean difference"))
# Three tokens, so that something is left to be learnt about the input with the tie.
control(
    global_path,
    drops="uniqueness",
    problem=attst.selection_problems(n=(1, 2), tokens=3, dim=2, separable=True).map(_tied),
    alpha=_tied_optimum,
)
