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
