"""The norm of normalised gradient descent grows linearly, that of gradient descent like `log t`.

[MM] (arXiv 2306.13596) shows the first in its experiments; the threshold is ours. Beside the ray of `p_mm(α)`
the weights of the support vectors `a_j`, of multipliers `λ_j`, pull an offset back: to first order the unit
gradient turns by `−H w` for an offset `w` from the point of balance, with

    H = P (Σ_j λ_j a_j a_jᵀ) P / ‖p_mm‖,    P the projection off p_mm.

Steps of length `η` multiply the offset by `1 − ηH`: it settles for `η < 2/h`, `h` the largest eigenvalue,
and every step then counts in full, `‖p(t)‖/t → η`. Above `2/h` the iterates jump from side to side: where
the response is linear, at the angle whose cosine is `2/(ηh)`, so that the norm gains about `2/h` per step
whatever `η` is (`datasets.STIFF`). Gradient descent with a constant step runs along the same curve with
`‖p(t)‖/log t → ‖p_mm(α)‖`, since its speed falls like `exp(−‖p‖/‖p_mm‖)`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .. import (
    MarginSolution,
    SelectionProblem,
    assume,
    att_svm,
    claim,
    control,
    expect,
    gradient_descent,
    normalized_gd,
)
from .. import strategies as attst
from ..asymptotics import Clock, norm_grows_like
from ..datasets import STIFF
from ..validation import FloatArray

# Enough for offsets to settle that shrink by a hundredth per step.
_STEPS = 1_000
# Where nothing lies beside the ray, every step is below the threshold; this one changes logits by up to 4.
_LARGEST_LOGITS = 4.0
# Tokens that are no support vectors weigh e^-12 of those that are, or less, where a path starts. A margin of
# 1.001 is as good as tight up to p = 1,000 p_mm, and until then a path obeys the threshold of another `h`.
_LEFT_BEHIND = 12.0


def critical_step(solution: MarginSolution) -> float:
    """The threshold `2/h` for paths along a solution with unique multipliers; infinite if `h = 0`."""
    axis = solution.direction
    rows, multipliers = solution.constraints.rows, solution.constraints.gather(solution.duals)
    across = rows - np.outer(rows @ axis, axis)
    pull = (across.T * multipliers) @ across * solution.margin
    strongest = float(np.linalg.eigvalsh(pull)[-1])
    # Rounding leaves 1e-16 of the entries in place of an exact zero.
    level = 1e-12 * float(multipliers @ (rows**2).sum(axis=1)) * solution.margin
    return 2 / strongest if strongest > level else np.inf


def _far_out(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[FloatArray]:
    """Starts about a multiple of `p_mm(alpha)` at which all but the support vectors are left behind."""
    solution = att_svm(problem, alpha)
    constraints = solution.constraints
    slack = (constraints.rows @ solution.vector - 1)[~np.array(solution.certificate.active)]
    least = _LEFT_BEHIND / float(slack.min()) if slack.size else 0.0
    return st.builds(
        lambda stretch, aside: max(stretch, least) * solution.vector + aside,
        st.integers(2, 8),
        attst.vectors(problem.shape[2], radius=1),
    )


@claim(
    "ngd-norm-linear",
    statement="Along a path that selects α, normalised gradient descent with a step η below 2/h has "
    "‖p(t)‖/t → η, and gradient descent with a constant step has ‖p(t)‖/log t → ‖p_mm(α)‖.",
    source="arXiv 2306.13596, experiments; the threshold is derived here",
    hypotheses=(
        "Assumption A: logistic loss",
        "α locally optimal, with unique multipliers that are positive at every support vector",
        "the path attends to α, and tokens that are no support vectors are left behind",
        "normalised step below 2/h; constant step 1/L",
    ),
    reading=True,
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    alpha=attst.regular_selections,
    start=_far_out,
    share=st.sampled_from([k / 32 for k in (16, 8, 24, 31)]),
    clocks=st.just(("steps", "log steps")),
)
def norm_linear(
    problem: SelectionProblem,
    alpha: tuple[int, ...],
    start: FloatArray,
    share: float,
    clocks: tuple[Clock, Clock],
) -> None:
    solution = att_svm(problem, alpha)
    step = share * min(critical_step(solution), _LARGEST_LOGITS / problem.pairs.logit_scale)
    normalised = normalized_gd(problem, start, step, _STEPS)
    constant = gradient_descent(problem, start, steps=200)
    for path, clock in zip((normalised, constant), clocks, strict=True):
        selected = tuple(path.problem.pairs.log_attention(path.points[-1]).argmax(axis=1).tolist())
        assume(selected == alpha)
        assert path.step is not None
        rate = path.step if clock == "steps" else float(np.linalg.norm(solution.vector))
        expect(norm_grows_like(path, rate, clock, solution.vector))


_SMALL = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True)

control(
    norm_linear,
    drops="the bound 2/h",
    problem=_SMALL,
    share=st.sampled_from([9 / 8, 2]),
    examples=[
        {
            "problem": STIFF,
            "alpha": (0,),
            "start": np.array([1.0, 0.0625]),
            "share": 9 / 8,
            "clocks": ("steps", "log steps"),
        }
    ],
)
control(norm_linear, drops="the clocks", problem=_SMALL, clocks=st.just(("log steps", "steps")))
