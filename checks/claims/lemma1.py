"""[MM] (arXiv 2306.13596), Lemma 1: training `W` for a fixed query is training `p`.

Gradient descent on `W` for `vᵀXᵀsoftmax(XWu)` from `W(0) = p(0)uᵀ/‖u‖²` with step `η/‖u‖²` gives
`W(t) = p(t)uᵀ/‖u‖²` at every step of gradient descent on `p` for `vᵀXᵀsoftmax(Xp)` with step `η`.
`theory` proves it for every size (`lemma1-equivalence`); this is its numeric twin.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .. import JointProblem, claim, control, cross_attention, expect, gradient_descent
from .. import strategies as attst
from ..decisions import follows
from ..validation import FloatArray

_STEPS = 1_000


def _head(joint: JointProblem) -> st.SearchStrategy[FloatArray]:
    return attst.vectors(joint.shape[2])


def _start(joint: JointProblem) -> st.SearchStrategy[FloatArray]:
    return attst.vectors(joint.shape[2], radius=3)


@claim(
    "lemma1",
    statement="Gradient descent on W for a fixed query u and gradient descent on p stay equal: "
    "W(t) = p(t)uᵀ/‖u‖² for 1,000 steps.",
    source="arXiv 2306.13596, Lemma 1",
    hypotheses=("u ≠ 0", "W(0) = p(0)uᵀ/‖u‖²", "the step on W is η/‖u‖²"),
    joint=attst.joint_problems(n=(1, 3), tokens=(2, 4), dim=(2, 4)),
    head=_head,
    query=lambda joint: attst.nonzero(attst.vectors(joint.shape[2])),
    start=_start,
    step_ratio=st.just(1),
)
def lemma1(
    joint: JointProblem, head: FloatArray, query: FloatArray, start: FloatArray, step_ratio: int
) -> None:
    length2 = float(query @ query)
    n, _, dim = joint.shape
    attention = gradient_descent(joint.at_head(head), start, steps=_STEPS)
    assert attention.step is not None
    lifted = cross_attention(joint.tokens, np.tile(query, (n, 1)), joint.labels, head)
    weights = gradient_descent(
        lifted,
        np.outer(start, query).ravel() / length2,
        step=step_ratio * attention.step / length2,
        steps=_STEPS,
    )
    predicted = np.einsum("kj,m->kjm", attention.points, query).reshape(-1, dim * dim) / length2
    expect(follows(weights, predicted))


control(
    lemma1,
    drops="the step ratio",
    joint=attst.joint_problems(n=(1, 2), tokens=(2, 3), dim=(1, 2)),
    step_ratio=st.just(2),
)
