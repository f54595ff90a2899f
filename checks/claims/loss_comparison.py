"""[MM] (arXiv 2306.13596), experiments: how the loss shares the gradient between two inputs.

Two inputs of two tokens, with scores `(0, C)` and `(0, 1)` (`datasets.two_gains`). Where both attend to
their better token by `s`, the norms of their gradients are in the ratio

    C |ℓ'(Cs)| / |ℓ'(s)|,

which is `C` for `ℓ(x) = −x`, but `C σ(−Cs)/σ(−s)` for the logistic loss: below 1 for `C > 5.018` at
`s = 1/2`, where training starts, and for `C > 1.597` as `s → 1`, where it ends. So the order of the two
gradients depends on the loss. The limit does not: every path tends to (1, 0), the GMM direction. What the
loss decides there is the offset from the ray, `½ log[C |ℓ'(C)| / |ℓ'(1)|]`, at which the two inputs balance.
"""

from __future__ import annotations

import math

from hypothesis import strategies as st

from .. import (
    CORRELATION,
    LOGISTIC,
    claim,
    control,
    converges_in_direction,
    expect,
    gradient_flow,
)
from .. import strategies as attst
from ..asymptotics import equals, offset_tends_to
from ..datasets import two_gains
from ..decisions import Decision, Outcome
from ..gains import log_gradient_ratio, logistic_threshold, predicted_log_ratio, predicted_offset
from ..validation import FloatArray

_EPS = 2.0**-52


def _first_is_larger(log_ratio: float, claimed: bool, rounding: float, why: str) -> Decision:
    against = -log_ratio if claimed else log_ratio
    outcome: Outcome = "undecided" if abs(against) <= rounding else "no" if against > 0 else "yes"
    larger = "first" if log_ratio > 0 else "second"
    sentence = (
        f"{why} the {larger} input has the larger gradient, by a factor of {math.exp(abs(log_ratio)):.4g}"
    )
    return Decision(
        "larger_gradient", outcome, max(against, 0.0), {"rounding": rounding}, "evaluation", sentence
    )


@claim(
    "loss-comparison",
    statement="For two inputs with scores (0, C) and (0, 1) the first has the larger gradient under ℓ(x) = "
    "−x, and under the logistic loss only below a threshold of C (5.018 at attention 1/2, 1.597 as it tends "
    "to 1); both losses end in the GMM direction (1, 0), at an offset of ½ log[C ℓ'(C)/ℓ'(1)].",
    source="arXiv 2306.13596, experiments; thresholds and offset are derived here",
    hypotheses=(
        "keys (0, 0), (1, 1) and (0, 0), (1, −1)",
        "C > 1",
        "gradients are compared where both inputs attend equally, by 1/2 or more, to their better token",
    ),
    reading=True,
    gain=st.integers(9, 800).map(lambda k: k / 8),
    advance=st.integers(0, 64).map(lambda k: k / 8),
    start=attst.vectors(2, radius=3),
    order=st.just("by loss"),
)
def comparison(gain: float, advance: float, start: FloatArray, order: str) -> None:
    attention = 1 / (1 + math.exp(-advance))
    for loss in (CORRELATION, LOGISTIC):
        problem = two_gains(gain, loss)
        measured = log_gradient_ratio(gain, loss, [advance, 0])
        # Logarithms up to the size of C s + advance, each right to a few eps.
        rounding = 32 * _EPS * (1 + gain + advance)
        where = f"loss {loss.name}, C = {gain:g}, attention {attention:.4g}:"
        claimed = loss == CORRELATION or order == "by gain" or gain < logistic_threshold(attention)
        expect(_first_is_larger(measured, claimed, rounding, where))
        predicted = predicted_log_ratio(gain, loss, attention)
        expect(equals("log_gradient_ratio", measured, predicted, {"rounding": rounding}, where))
        path = gradient_flow(problem, start)
        expect(converges_in_direction(path, [1, 0]))
        expect(offset_tends_to(path, [1, 0], [0, predicted_offset(gain, loss)]))


control(comparison, drops="the loss in the order", order=st.just("by gain"))
