"""Checks of user input: each error names the argument, what came and what was expected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def finite_array(value: Any, name: str, dims: tuple[str, ...]) -> FloatArray:
    """Return `value` as a read-only C-ordered float64 copy with one axis per entry of `dims`.

    `dims` names the axes for the error message, e.g. ``("n", "T", "D")``.

    Raises:
        ValueError: not numeric, ragged, of another number of axes, empty, or not finite.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name}: got a masked array, expected an array without masked entries")
    expected = f"an array of shape ({', '.join(dims)}{',' if len(dims) == 1 else ''})"
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: got ragged nested lists, expected {expected}") from error
    if raw.dtype.kind not in "iuf":
        raise ValueError(f"{name}: got entries of type {raw.dtype}, expected {expected} of reals")
    if raw.ndim != len(dims):
        raise ValueError(f"{name}: got shape {raw.shape}, expected {expected}")
    if raw.size == 0:
        raise ValueError(f"{name}: got shape {raw.shape}, expected no axis of length 0")
    array = np.array(raw, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        index = ", ".join(str(i) for i in where)
        raise ValueError(f"{name}[{index}]: got {array[where]}, expected a finite number")
    array.setflags(write=False)
    return array


# Within these bounds squares of sums do not overflow, nor reciprocals of differences.
_LEAST, _MOST = 1e-250, 1e100


def in_range(array: FloatArray, name: str, least: float = _LEAST) -> FloatArray:
    """Return `array` if every entry is 0 or of a size with which one can compute.

    Raises:
        ValueError: an entry is above 1e100 in absolute value, or below `least` and not 0.
    """
    size = np.abs(array)
    wrong = np.argwhere((size > _MOST) | ((size < least) & (size > 0)))
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        index = ", ".join(str(i) for i in where)
        expected = f"0 or a size from {least:g} to {_MOST:g}" if least else f"a size of at most {_MOST:g}"
        raise ValueError(f"{name}[{index}]: got {array[where]:g}, expected {expected}")
    return array


def unit(vector: FloatArray) -> FloatArray:
    """`vector / ‖vector‖` for any finite vector but 0, whose squares may leave the range of a float."""
    scaled = vector / np.abs(vector).max()
    result: FloatArray = scaled / np.linalg.norm(scaled)
    return result


def positive(value: Any, name: str) -> float:
    """Return `value` as a positive finite float.

    Raises:
        ValueError: it is not one.
    """
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: got {value!r}, expected a positive number") from error
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name}: got {value!r}, expected a positive finite number")
    if number > _MOST:
        raise ValueError(f"{name}: got {value!r}, expected at most {_MOST:g}")
    return number


def count(value: Any, name: str) -> int:
    """Return `value` as an int of at least 1.

    Raises:
        ValueError: it is not one.
    """
    number = whole(value, name)
    if number < 1:
        raise ValueError(f"{name}: got {value!r}, expected a whole number of at least 1")
    return number


def whole(value: Any, name: str) -> int:
    """Return `value` as an int.

    Raises:
        ValueError: it is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name}: got {value!r}, expected a whole number")
    return int(value)
