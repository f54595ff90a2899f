"""Closed forms for the two inputs of `datasets.two_gains`: who has the larger gradient, and where paths end.

The inputs have scores `(0, C)` and `(0, 1)`. Where both attend to their better token by `s`, their gradients
have norms in the ratio `C |ℓ'(Cs)| / |ℓ'(s)|`; paths end along (1, 0), at the offset where those balance.
"""

from __future__ import annotations

import math

import numpy.typing as npt
from scipy.optimize import brentq

from .datasets import two_gains
from .losses import CORRELATION, LOGISTIC, Loss
from .problems import SelectionProblem


def log_gradient_ratio(gain: float, loss: Loss, point: npt.ArrayLike) -> float:
    """Logarithm of the norm of the first input's gradient over the second's at `point`, `(2,)`; computed."""
    problem = two_gains(gain, loss)
    first, second = (
        SelectionProblem(keys[None], scores[None], loss).descent(point).log_norm
        for keys, scores in zip(problem.keys, problem.scores, strict=True)
    )
    return first - second


def predicted_log_ratio(gain: float, loss: Loss, attention: float) -> float:
    """`log[C |ℓ'(Cs)| / |ℓ'(s)|]`, written out for the two losses compared.

    Raises:
        ValueError: `loss` is neither the correlation nor the logistic loss.
    """
    if loss == CORRELATION:
        return math.log(gain)
    if loss is not LOGISTIC:
        raise ValueError(f"loss: got {loss!r}, expected CORRELATION or LOGISTIC")
    return math.log(gain) + _softplus(attention) - _softplus(gain * attention)


def predicted_offset(gain: float, loss: Loss) -> float:
    """Second coordinate of p in the limit, `½ log[C |ℓ'(C)| / |ℓ'(1)|]`."""
    return predicted_log_ratio(gain, loss, 1.0) / 2


def logistic_threshold(attention: float) -> float:
    """The gain above 1 at which the logistic gradients are equal: `C (1 + e^s) = 1 + e^{Cs}`.

    Args:
        attention: `s` of both inputs, from 1/2 to 1.
    """
    # Positive beside 1, where its slope is 1 − s σ(s) > 0; concave in C; negative by 6.
    return float(brentq(predicted_log_ratio, 1 + 1e-6, 6.0, args=(LOGISTIC, attention), xtol=1e-13))


def _softplus(x: float) -> float:
    """`log(1 + e^x)` for `x ≥ 0`."""
    return x + math.log1p(math.exp(-x))
