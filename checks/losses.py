"""Stable numerics of the losses `ℓ` of [MM] (arXiv 2306.13596), Assumption A.

Every loss is strictly decreasing. The optimisation paths of separable problems drive `ℓ'` to values
far below the smallest double, so the slope is also offered as the logarithm of its size.
`theory.losses` derives the same expressions and constants symbolically; a test ties the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .validation import FloatArray


@dataclass(frozen=True)
class Loss(ABC):
    """A strictly decreasing loss of the margin `m = Y f(X)`; functions act entrywise."""

    name: str

    @abstractmethod
    def value(self, m: npt.ArrayLike) -> FloatArray:
        """`ℓ(m)`."""

    @abstractmethod
    def log_abs_slope(self, m: npt.ArrayLike) -> FloatArray:
        """`log |ℓ'(m)|`, accurate where `ℓ'` itself underflows."""

    @abstractmethod
    def log_slope_rate(self, m: npt.ArrayLike) -> FloatArray:
        """`d log|ℓ'(m)| / dm = ℓ''(m) / ℓ'(m)`."""

    @abstractmethod
    def constants(self, lo: float, hi: float) -> tuple[float, float]:
        """`(M0, M1)` of Assumption A on the margins `[lo, hi]`: `sup |ℓ''|` and `sup |ℓ'|`."""

    def slope(self, m: npt.ArrayLike) -> FloatArray:
        """`ℓ'(m)`, negative; underflows to 0 for very large margins of the logistic loss."""
        return -np.exp(self.log_abs_slope(m))

    def curvature(self, m: npt.ArrayLike) -> FloatArray:
        """`ℓ''(m)`."""
        return self.slope(m) * self.log_slope_rate(m)

    def __repr__(self) -> str:
        return self.name.upper()


class _Logistic(Loss):
    def value(self, m: npt.ArrayLike) -> FloatArray:
        result: FloatArray = np.logaddexp(0.0, -np.asarray(m, dtype=float))
        return result

    def log_abs_slope(self, m: npt.ArrayLike) -> FloatArray:
        result: FloatArray = -np.logaddexp(0.0, np.asarray(m, dtype=float))
        return result

    def log_slope_rate(self, m: npt.ArrayLike) -> FloatArray:
        # −σ(m), through the stable logarithm of σ.
        result: FloatArray = -np.exp(-np.logaddexp(0.0, -np.asarray(m, dtype=float)))
        return result

    def constants(self, lo: float, hi: float) -> tuple[float, float]:
        # ℓ'' peaks at 0 and falls on both sides; |ℓ'| decreases.
        peak = min(max(lo, 0.0), hi)
        return float(self.curvature(peak)), float(-self.slope(lo))


class _Exponential(Loss):
    def value(self, m: npt.ArrayLike) -> FloatArray:
        result: FloatArray = np.exp(-np.asarray(m, dtype=float))
        return result

    def log_abs_slope(self, m: npt.ArrayLike) -> FloatArray:
        return -np.asarray(m, dtype=float)

    def log_slope_rate(self, m: npt.ArrayLike) -> FloatArray:
        return np.full(np.shape(m), -1.0)

    def constants(self, lo: float, hi: float) -> tuple[float, float]:
        bound = float(self.value(lo))
        return bound, bound


class _Correlation(Loss):
    def value(self, m: npt.ArrayLike) -> FloatArray:
        return -np.asarray(m, dtype=float)

    def log_abs_slope(self, m: npt.ArrayLike) -> FloatArray:
        return np.zeros(np.shape(m))

    def log_slope_rate(self, m: npt.ArrayLike) -> FloatArray:
        return np.zeros(np.shape(m))

    def constants(self, lo: float, hi: float) -> tuple[float, float]:
        return 0.0, 1.0


LOGISTIC: Loss = _Logistic("logistic")
EXPONENTIAL: Loss = _Exponential("exponential")
CORRELATION: Loss = _Correlation("correlation")

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (LOGISTIC, EXPONENTIAL, CORRELATION)}


def loss_named(name: Any, where: str = "loss") -> Loss:
    """The loss called `name`.

    Raises:
        ValueError: no loss has that name.
    """
    if not isinstance(name, str) or name not in LOSSES:
        raise ValueError(f"{where}: got {name!r}, expected one of {', '.join(LOSSES)}")
    return LOSSES[name]
