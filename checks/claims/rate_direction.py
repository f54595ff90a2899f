"""How fast the direction converges: like `1/‖p‖`, and increments faster.

Near an LMM limit whose support vectors all have positive multipliers `p(t) = s(t) p̂ + w(t)`, and `w`
converges to the point at which the weights of the support vectors are in the proportion of the multipliers.
Hence `‖p‖·‖p/‖p‖ − p̂‖ → ‖w‖` stays bounded, while the direction of an increment differs from `p̂` only by the
change of `w`: as for logistic regression on separable data (Soudry, Hoffer, Nacson, Gunasekar and Srebro,
JMLR 19, 2018), with `1/‖p‖` where that speaks of `1/log t`. The weight of a support vector with multiplier
zero has to vanish beside the others, and `w` grows like `log ‖p‖` (`datasets.ZERO_MULTIPLIER`).
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .. import (
    SelectionProblem,
    assume,
    att_svm,
    claim,
    control,
    converges_in_direction,
    expect,
    gradient_flow,
)
from .. import strategies as attst
from ..asymptotics import error_falls_like, increments_converge_faster
from ..datasets import ZERO_MULTIPLIER
from ..validation import FloatArray


def _beyond(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[FloatArray]:
    """Starts at a few times `p_mm(alpha)`, from most of which the flow tends to its direction."""
    axis = att_svm(problem, alpha).vector
    return st.builds(
        lambda stretch, aside: stretch * axis + aside,
        st.integers(2, 8),
        attst.vectors(problem.shape[2], radius=1),
    )


@claim(
    "rate-direction",
    statement="At an LMM limit all of whose support vectors have positive multipliers "
    "‖p(t)‖·‖p(t)/‖p(t)‖ − p̂‖ stays bounded along gradient flow, and increments Δp/‖Δp‖ converge to p̂ faster "
    "than p/‖p‖ does.",
    source="derived here, as for logistic regression on separable data",
    hypotheses=(
        "Assumption A: logistic loss",
        "the path tends to p_mm(α), α locally optimal",
        "every support vector of p_mm(α) has a positive multiplier",
    ),
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4), separable=True),
    alpha=attst.regular_selections,
    start=_beyond,
    power=st.just(1),
)
def rate(problem: SelectionProblem, alpha: tuple[int, ...], start: FloatArray, power: int) -> None:
    target = att_svm(problem, alpha).vector
    path = gradient_flow(problem, start, to_norm=1e4 + 2 * float(np.linalg.norm(start)))
    assume(converges_in_direction(path, target).outcome != "no")
    expect(error_falls_like(path, target, power))
    expect(increments_converge_faster(path, target))


_SMALL = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=2, separable=True)

control(rate, drops="the power 1", problem=_SMALL, power=st.just(2))
control(
    rate,
    drops="positive multipliers",
    problem=_SMALL,
    alpha=attst.locally_optimal_selections,
    examples=[{"problem": ZERO_MULTIPLIER, "alpha": (0,), "start": np.zeros(2), "power": 1}],
)
