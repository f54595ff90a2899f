"""[MM] (arXiv 2306.13596), Theorem 3: near an LMM direction, descent ends in it."""

from __future__ import annotations

from hypothesis import strategies as st

from .. import (
    SelectionProblem,
    att_svm,
    claim,
    control,
    converges_in_direction,
    diverges,
    expect,
    gradient_descent,
)
from .. import strategies as attst
from ..claim import ArgumentSource
from ..cones import Cone
from ..validation import FloatArray

# Inside a certified cone double precision stands still after a few steps; the decision goes on by flow.
_STEPS = 200


def _axis_cones(mu: float, radius: float) -> ArgumentSource:
    def cones(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[Cone]:
        return st.just(Cone(att_svm(problem, alpha).vector, mu, radius))

    return cones


@claim(
    "thm3-local",
    statement="For a locally-optimal selection α, gradient descent with step 1/L from any start in the "
    "computed cone C_{μ,R}(p_mm(α)) has ‖p(t)‖ → ∞ and p(t)/‖p(t)‖ → p_mm(α)/‖p_mm(α)‖.",
    source="arXiv 2306.13596, Theorem 3",
    hypotheses=(
        "Assumption A: logistic loss",
        "α locally optimal",
        "start in C_{μ,R}(p_mm(α)) with μ ≤ μ0 and R = R(μ) computed for the data set",
        "step at most 1/L",
    ),
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    alpha=attst.locally_optimal_selections,
    cone=attst.local_cones,
    start=attst.points_in_cone,
)
def local(problem: SelectionProblem, alpha: tuple[int, ...], cone: Cone, start: FloatArray) -> None:
    path = gradient_descent(problem, start, steps=_STEPS)
    expect(diverges(path))
    expect(converges_in_direction(path, att_svm(problem, alpha).vector))


_SMALL = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True)

control(
    local,
    drops="local optimality",
    problem=attst.selection_problems(n=(1, 2), tokens=3, dim=2, separable=True),
    alpha=attst.nonoptimal_selections,
    # As thin and as far out as the certified cones of locally-optimal selections are.
    cone=_axis_cones(1 / 128, 64),
)
control(local, drops="the bound on μ", problem=_SMALL, cone=_axis_cones(3 / 4, 64))
