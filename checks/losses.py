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
    def log_rise(self, m: npt.ArrayLike, log_drop: npt.ArrayLike) -> FloatArray:
        """`log[ℓ(m − e^{log_drop}) − ℓ(m)]`, accurate where the difference itself underflows."""

    def check_range(self, lo: float, hi: float) -> None:
        """Refuse margins on which the loss is too large for a float.

        Raises:
            ValueError: its value at the lower end is.
        """
        with np.errstate(over="ignore"):
            if not np.isfinite(self.value(lo)):
                raise ValueError(f"scores: got {lo:g}, expected the {self.name} loss of it to be a float")

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

    def log_rise(self, m: npt.ArrayLike, log_drop: npt.ArrayLike) -> FloatArray:
        # ℓ(m − d) − ℓ(m) = log(1 + σ(−m)(e^d − 1)).
        inner = self.log_abs_slope(m) + _log_expm1(log_drop)
        # Below 1e-16 the logarithm of 1 + x is x to rounding, and x itself may underflow.
        result: FloatArray = np.where(inner > -37, np.log(np.logaddexp(0.0, np.maximum(inner, -37))), inner)
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

    def log_rise(self, m: npt.ArrayLike, log_drop: npt.ArrayLike) -> FloatArray:
        result: FloatArray = _log_expm1(log_drop) - np.asarray(m, dtype=float)
        return result

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

    def log_rise(self, m: npt.ArrayLike, log_drop: npt.ArrayLike) -> FloatArray:
        result: FloatArray = np.broadcast_arrays(np.asarray(log_drop, dtype=float), m)[0]
        return result

    def constants(self, lo: float, hi: float) -> tuple[float, float]:
        return 0.0, 1.0


def _log_expm1(log_x: npt.ArrayLike) -> FloatArray:
    """`log(e^x − 1)` for `x = e^{log_x}`, accurate for tiny and for large `x`."""
    log_x = np.asarray(log_x, dtype=float)
    x = np.exp(log_x)
    # (e^x − 1)/x is 1 + x/2 + …: exactly 1 below the smallest double, and safe to divide up to 1.
    small = np.where(x > 0, np.minimum(x, 1.0), 1.0)
    near_zero = log_x + np.where(x > 0, np.log(np.expm1(small) / small), 0.0)
    result: FloatArray = np.where(x > 1, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), near_zero)
    return result


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
