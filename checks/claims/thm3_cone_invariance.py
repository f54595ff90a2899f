"""[MM] (arXiv 2306.13596), Theorem 3: descent never leaves the cone it started in."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .. import SelectionProblem, att_svm, claim, control, expect, gradient_descent, stays_in_cone
from .. import strategies as attst
from ..cones import Cone, LocalCone
from ..datasets import NARROW
from ..validation import FloatArray

_STEPS = 200


@claim(
    "thm3-cone-invariance",
    statement="For a locally-optimal α the iterates of gradient descent with step 1/L never leave the "
    "cone C_{μ,R}(p_mm(α)) in which they start, for μ ≤ μ0 and R ≥ R(μ) computed for the data set.",
    source="arXiv 2306.13596, Theorem 3",
    hypotheses=(
        "Assumption A: logistic loss",
        "α locally optimal",
        "μ ≤ μ0 and R ≥ R(μ), both computed for the data set",
        "step at most 1/L",
    ),
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    alpha=attst.locally_optimal_selections,
    cone=attst.local_cones,
    start=attst.points_in_cone,
    step_factor=st.just(1),
)
def cone_invariance(
    problem: SelectionProblem,
    alpha: tuple[int, ...],
    cone: Cone,
    start: FloatArray,
    step_factor: int,
) -> None:
    step = step_factor / problem.smoothness
    expect(stays_in_cone(gradient_descent(problem, start, step, _STEPS), cone))


def _widened(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[Cone]:
    """The largest certified aperture, but no lower bound on the norm."""
    return st.just(Cone(att_svm(problem, alpha).vector, LocalCone(problem, alpha).mu0, 0.125))


def _around(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[Cone]:
    """As thin and as far out as the certified cones of locally-optimal selections are."""
    return st.just(Cone(att_svm(problem, alpha).vector, 1 / 128, 64))


_SMALL = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True)

control(cone_invariance, drops="the radius", problem=_SMALL, cone=_widened)
control(
    cone_invariance,
    drops="local optimality",
    problem=attst.selection_problems(n=(1, 2), tokens=3, dim=2, separable=True),
    alpha=attst.nonoptimal_selections,
    cone=_around,
)
# Far from the origin no step is large; close to it a step of many times 1/L leaves a cone that the
# flow does not leave.
control(
    cone_invariance,
    drops="the step bound",
    examples=[
        {
            "problem": NARROW,
            "alpha": (0,),
            "cone": Cone(np.array([1, 0]), 1 / 8, 2),
            "start": np.array([2.875, 0.625]),
            "step_factor": 64,
        }
    ],
    step_factor=st.just(64),
)
