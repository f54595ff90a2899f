"""Derivatives of a function of which one has only code, each with an estimate of how well it is known.

Three ways, the best that a function allows:

- the complex step `Im f(x + ih)/h`, which subtracts nothing and so is accurate relative to the entry itself,
  for functions that take complex arrays (J. N. Lyness, C. B. Moler, SIAM J. Numer. Anal. 4 (1967), 202–210);
- differences at many digits, for the risk of a `SelectionProblem`;
- central differences at many steps, extrapolated (C. J. F. Ridders, Adv. Eng. Softw. 4 (1982), 75–76).

The last always runs: it exposes code that takes complex arrays without being analytic (`abs`, `norm`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from .problems import SelectionProblem
from .validation import FloatArray

EPS = float(np.finfo(float).eps)

_COMPLEX_STEP = 2.0**-67  # Truncation is its square, 5e-41; products with slopes of 1e-280 do not underflow.
_PERTURBATIONS = 5
_SAFETY = 4.0  # Estimates are maxima of a few samples; true errors exceed them by less than this.
_HALVINGS = 40  # From a quarter of the point's size down to 2e-13 of it, where little but noise is left.
_ORDERS = 7  # Columns of the extrapolation table: further ones amplify rounding without gaining accuracy.
_FINEST = 8  # Steps below 3e-11 of the point's size, where curvature is below the last bit.
_PROBES = 10  # Doublings of the largest step at which a function that is flat nearby is looked at.
_KINK_PAIRS = 3  # One pair of steps may look like a kink by chance.
_KINK_STEPS = 7  # Two decades: one-sided slopes of |w|^1.1 approach each other by 1.6, those of |w| by 1.
_SAME = 1e-6  # Two ways agree within this: both are far better where they converge.


@dataclass(frozen=True)
class Derivative:
    """One entry of a gradient.

    Attributes:
        value: the derivative.
        error: estimate of how far it may be from the true one.
        rounding: how much it moves when the point moves by the last bit: what no claim can get right.
        trouble: why it is not known at all, if so; `value` is then only sure to `error`.
    """

    value: float
    error: float
    rounding: float
    trouble: str = ""


class Scalar:
    """A function of arrays of one shape with one value, and what it does off its domain.

    Args:
        f: takes an array of the shape of `at` and returns a number.
        at: the point, of any shape, finite.

    Raises:
        ValueError: `f` does not return one finite real number at the point.
    """

    def __init__(self, f: Callable[[Any], Any], at: FloatArray) -> None:
        self.f = f
        self.shape = at.shape
        self.point = at.ravel()
        value = np.asarray(f(self._argument(self.point)))
        if value.shape != ():
            raise ValueError(f"f: got an array of shape {value.shape} at the point, expected one number")
        if value.dtype.kind not in "iuf":
            raise ValueError(f"f: got {value[()]} at the point, expected a real number")
        if not np.isfinite(value):
            raise ValueError(f"f: got {value[()]} at the point, expected a finite number")
        self.value = float(value)

    def _argument(self, flat: npt.NDArray[Any]) -> Any:
        # A copy, so that f may change its argument; a number where the point is a number.
        return flat.reshape(self.shape).copy()[()]

    def along(self, entry: int) -> Callable[[float], float]:
        """`h ↦ f(x + h e)`; NaN where `f` raises or has no real number."""

        def moved(h: float) -> float:
            point = self.point.copy()
            point[entry] += h
            try:
                with np.errstate(all="ignore"):
                    value = np.asarray(self.f(self._argument(point)))
            except (ArithmeticError, ValueError):
                return math.nan  # Off its domain: math.log(-1), a refusal.
            return float(value) if value.shape == () and value.dtype.kind in "iuf" else math.nan

        return moved

    def at_complex(self, flat: npt.NDArray[np.complex128]) -> complex | None:
        """The value at a complex point, or None where `f` takes none."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)  # An imaginary part thrown away.
                value = np.asarray(self.f(self._argument(flat)))
        # The reviewed code was written for real numbers and may raise anything at a complex one; the answer
        # to all of it is the same: take the derivative by real differences.
        except Exception:
            return None
        if value.shape != () or value.dtype.kind != "c" or not np.isfinite(value):
            return None
        return complex(value)


def derivatives(function: Scalar) -> tuple[list[Derivative], str]:
    """Every entry of the gradient, in C order, and the way that was taken."""
    x = function.point
    differences = [
        finite_difference(function.along(j), float(x[j]), function.value, _size(float(x[j])))
        for j in range(x.size)
    ]
    problem = _problem_of(function.f)
    if problem is not None:
        return _preferred(_sensitive(lambda p: risk_gradient(problem, p), x), differences, "many digits")
    if _complex_step(function, x) is None:
        return differences, "finite differences"
    return _preferred(
        _sensitive(lambda point: _complex_step(function, point), x), differences, "complex step"
    )


def _preferred(
    precise: list[Derivative] | None, differences: list[Derivative], way: str
) -> tuple[list[Derivative], str]:
    """The precise ones, unless differences show that they are not derivatives."""
    if precise is None:
        return differences, "finite differences"
    merged = []
    for sharp, coarse in zip(precise, differences, strict=True):
        if coarse.trouble and (sharp.value == 0 or coarse.error == math.inf):
            merged.append(coarse)  # A kink; or flat, where 0 may be what abs() makes of a complex number.
            continue
        apart = abs(sharp.value - coarse.value)
        if apart > _SAFETY * (coarse.error + sharp.error) + _SAME * abs(sharp.value):
            return differences, f"finite differences, which contradict the {way}: f is not analytic"
        merged.append(sharp)
    return merged, way


def _problem_of(f: Callable[[Any], Any]) -> SelectionProblem | None:
    """The problem whose risk `f` is."""
    owner = getattr(f, "__self__", None)
    named = getattr(f, "__func__", None) is SelectionProblem.risk
    return owner if named and isinstance(owner, SelectionProblem) else None


def _size(x: float) -> float:
    return abs(x) if x else 1.0


# ---------------------------------------------------------------- without subtraction


def _sensitive(gradient: Callable[[FloatArray], FloatArray | None], x: FloatArray) -> list[Derivative] | None:
    """A gradient at `x`, with how much its entries move when the last bits of `x` do."""
    values = gradient(x)
    if values is None:
        return None
    random = np.random.default_rng(0)
    sizes = np.where(x == 0, 1.0, np.abs(x))
    moved = np.zeros_like(values)
    for _ in range(_PERTURBATIONS):
        other = gradient(x + EPS * sizes * random.choice([-2, -1, 1, 2], size=x.shape))
        if other is None:
            return None
        moved = np.maximum(moved, np.abs(other - values))
    rounding = _SAFETY * moved
    return [Derivative(float(v), float(r), float(r)) for v, r in zip(values, rounding, strict=True)]


def _complex_step(function: Scalar, x: FloatArray) -> FloatArray | None:
    """`Im f(x + ih)/h` for every entry, or None where `f` takes no complex arrays or is another function."""
    gradient = np.empty_like(x)
    for j in range(x.size):
        point = x.astype(complex)
        point[j] += 1j * _COMPLEX_STEP
        value = function.at_complex(point)
        # Re f may round differently (log of numbers near 1, by eps of 1); differences check the derivative.
        near = 1e-6 * abs(function.value) + 1e3 * EPS
        if value is None or abs(value.real - function.value) > near:
            return None
        gradient[j] = value.imag / _COMPLEX_STEP
    return gradient


def risk_gradient(problem: SelectionProblem, p: FloatArray) -> FloatArray:
    """`∇L(p)`, `(D,)`, from differences of the attended scores at many digits.

    It shares no formula with `SelectionProblem.gradient`.
    """
    spread = float(np.ptp(problem.keys @ p, axis=1).max())
    # Weights of exp(−spread) and steps of 1e-20 leave 30 correct digits of every difference.
    with mpmath.workdps(60 + int(spread / math.log(10))):
        step = mpmath.mpf(10) ** -20
        point = [mpmath.mpf(entry) for entry in p.tolist()]
        gradient = [mpmath.mpf(0)] * len(point)
        for keys, scores in zip(problem.keys.tolist(), problem.scores.tolist(), strict=True):
            logits = [mpmath.fdot(key, point) for key in keys]
            slope = mpmath.mpf(float(problem.loss.slope(float(_attended(logits, scores)))))
            for j in range(len(point)):
                up, down = (
                    _attended([a + h * key[j] for a, key in zip(logits, keys, strict=True)], scores)
                    for h in (step, -step)
                )
                gradient[j] += slope * (up - down) / (2 * step)
        return np.array([float(entry / len(problem.keys)) for entry in gradient])


def _attended(logits: list[Any], scores: list[float]) -> Any:
    """`γᵀ softmax(logits)` of one input."""
    largest = max(logits)
    weights = [mpmath.exp(logit - largest) for logit in logits]
    return mpmath.fdot(weights, scores) / mpmath.fsum(weights)


# ---------------------------------------------------------------- differences


def finite_difference(moved: Callable[[float], float], x: float, value: float, size: float) -> Derivative:
    """The derivative at 0 of `moved`, with `value = moved(0)`, from central differences at many steps.

    Args:
        moved: the function of the displacement; NaN off its domain.
        x: the entry that is displaced.
        value: the function without displacement.
        size: the displacement of which the last bit of the entry is `EPS`.
    """
    first = 2.0 ** math.floor(math.log2(max(abs(x), 1.0) / 4))
    steps = [first / 2**k for k in range(_HALVINGS + 1)]
    ends = [(moved(h), moved(-h)) for h in steps]
    start = next(
        (k + 1 for k in reversed(range(len(ends))) if not all(map(math.isfinite, ends[k]))),
        0,
    )
    steps, ends = steps[start:], ends[start:]
    while ends and ends[-1] == (value, value):  # Too small a step to be seen.
        steps, ends = steps[:-1], ends[:-1]
    if start > _HALVINGS:
        return Derivative(0.0, math.inf, 0.0, "f has no value on one side of the point")
    if len(steps) < 2:
        return _flat(moved, value, first)
    kink = _kink(steps, ends, value)
    if kink:
        return Derivative(0.0, math.inf, 0.0, kink)
    if all(up == down for up, down in ends):  # Even to the last bit, which is all there is to see.
        return Derivative(0.0, 0.0, EPS * max(abs(value), abs(ends[0][0])) / steps[0])
    noise = _noise(ends, value)
    estimate, error, h, (up, down) = min(_extrapolated(steps, ends, noise), key=lambda row: row[1])
    curvature = (up + down - 2 * value) / h**2
    return Derivative(estimate, _SAFETY * error, _SAFETY * EPS * size * abs(curvature))


def _extrapolated(
    steps: list[float], ends: list[tuple[float, float]], noise: float
) -> Iterator[tuple[float, float, float, tuple[float, float]]]:
    """Estimates, each with the size of its error and the smallest step it uses."""
    plain = [(up - down) / (2 * h) for h, (up, down) in zip(steps, ends, strict=True)]
    rounding = [
        max(EPS * abs(up), EPS * abs(down), noise) / h for h, (up, down) in zip(steps, ends, strict=True)
    ]
    # How far a plain difference may be from the derivative: halving a step removes ¾ of what is cut off.
    room = [
        _SAFETY * r + abs(here - wider)
        for r, here, wider in zip(rounding[1:], plain[1:], plain, strict=False)
    ]
    row: list[float] = []
    for k, (h, first) in enumerate(zip(steps, plain, strict=True)):
        previous, row = row, [first]
        for order in range(1, min(len(previous), _ORDERS) + 1):
            last, above = row[-1], previous[order - 1]
            better = last + (last - above) / (4**order - 1)
            row.append(better)
            # Wide steps over fast changes may agree with each other by chance, but not with all smaller ones.
            missed = max(
                (abs(better - plain[j]) - room[j - 1] for j in range(k + 1, len(plain))), default=0.0
            )
            error = max(abs(better - last), abs(better - above), missed)
            yield better, error + rounding[k], h, ends[k]


def _noise(ends: list[tuple[float, float]], value: float) -> float:
    """How uneven the values of `f` are, which may be far above their own last bit (log of numbers near 1).

    Over the smallest steps a smooth function has no curvature to be seen, and the least change is that of the
    last step or the grain of the values. Unnoticed, a coarse grain makes estimates at several steps agree
    with each other by chance.
    """
    finest = ends[-_FINEST:]
    bends = [abs(up + down - 2 * value) for up, down in finest]
    grains = [abs(end - value) for pair in finest for end in pair if end != value]
    return max(*bends, min(grains))


def _flat(moved: Callable[[float], float], value: float, first: float) -> Derivative:
    """A function that does not change nearby: constant, or too flat for its last bit."""
    far = [moved(sign * first * 2.0**k) for k in range(1, _PROBES + 1) for sign in (1, -1)]
    other = [abs(v) for v in far if math.isfinite(v) and v != value]
    if not other:
        return Derivative(0.0, 0.0, 0.0)
    return Derivative(
        0.0,
        EPS * max(*other, abs(value)) / first,
        0.0,
        f"f does not change by its last bit within {first:g} of the point, though it does further away",
    )


def _kink(steps: list[float], ends: list[tuple[float, float]], value: float) -> str:
    """What is wrong where the slopes from the two sides do not approach each other; empty if they do."""
    rises = [(up - value) / h for h, (up, _) in zip(steps, ends, strict=True)]
    falls = [(value - down) / h for h, (_, down) in zip(steps, ends, strict=True)]
    gaps = [abs(rise - fall) for rise, fall in zip(rises, falls, strict=True)]
    noise = [
        32 * EPS * max(abs(up), abs(down), abs(value)) / h for h, (up, down) in zip(steps, ends, strict=True)
    ]
    clear = [k for k in range(len(gaps)) if gaps[k] > noise[k]]
    pairs = [(k - _KINK_STEPS, k) for k in clear if k - _KINK_STEPS in clear][-_KINK_PAIRS:]
    if len(pairs) < _KINK_PAIRS or not all(0.9 < gaps[far] / gaps[near] < 1.2 for far, near in pairs):
        return ""
    k = pairs[-1][1]
    return f"f has a kink: its slope is {falls[k]:.6g} on one side and {rises[k]:.6g} on the other"
