"""A claimed gradient against the code of the function, for a reviewer who has nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .derivatives import EPS, Derivative, Scalar, derivatives
from .problems import SelectionProblem
from .validation import FloatArray, positive

Gradient = npt.ArrayLike | Callable[[Any], npt.ArrayLike]
"""A gradient as an array, or as a function of the point."""
Outcome = Literal["right", "wrong", "undecided"]

_SHOWN = 4  # Entries in the text of a report.
_LARGEST_FACTOR = 1_000  # Number of inputs, dimensions: factors up to here are recognised.
_ONE_ENTRY_FACTOR = 10  # With one entry every claim is off by a factor; only these say anything.


@dataclass(frozen=True)
class Entry:
    """One entry of a claimed gradient.

    Attributes:
        index: where it is, one number per axis of the point.
        claimed: what is claimed.
        derivative: what it is.
        error: how far `derivative` may be off (an estimate).
        outcome: right, wrong or undecided.
        reason: why it is undecided.
    """

    index: tuple[int, ...]
    claimed: float
    derivative: float
    error: float
    outcome: Outcome
    reason: str = ""

    def __str__(self) -> str:
        where = f"entry [{', '.join(map(str, self.index))}]: " if self.index else ""
        known = f" ± {self.error:.1e}" if self.error else ""
        return f"{where}claimed {self.claimed:.9g}, derivative {self.derivative:.9g}{known}"


@dataclass(frozen=True)
class GradientReport:
    """What came of comparing a claimed gradient with the derivative.

    True in an ``assert`` only if the claim is right; ``str`` is a paragraph to read.

    Attributes:
        outcome: wrong if an entry is; else undecided if one is; else right.
        entries: every entry, in C order.
        method: how the derivative was found.
        slips: known slips that give just what is claimed.
        rtol: relative difference up to which an entry is right.
    """

    outcome: Outcome
    entries: tuple[Entry, ...]
    method: str
    slips: tuple[str, ...]
    rtol: float

    @property
    def ok(self) -> bool:
        """Whether the claim is right."""
        return self.outcome == "right"

    @property
    def off(self) -> tuple[Entry, ...]:
        """The entries that are wrong."""
        return tuple(entry for entry in self.entries if entry.outcome == "wrong")

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        total = len(self.entries)
        if self.outcome == "right":
            number = "the entry agrees" if total == 1 else f"all {total} entries agree"
            return f"right: {number} with the derivative ({self.method}) within a relative {self.rtol:g}."
        listed = self.off or tuple(entry for entry in self.entries if entry.outcome == "undecided")
        what = "wrong" if self.off else "not known well enough"
        number = "the entry is" if total == 1 else f"{len(listed)} of {total} entries {_are(len(listed))}"
        parts = [f"{self.outcome}: {number} {what} ({self.method})."]
        if self.slips:
            parts.append(f"The claim is what one gets with {'; or with '.join(self.slips)}.")
        for entry in listed[:_SHOWN]:
            text = f"{entry}; {entry.reason}." if entry.reason else f"{entry}."
            parts.append(text[0].upper() + text[1:])
        if len(listed) > _SHOWN:
            parts.append(f"And {len(listed) - _SHOWN} more.")
        return " ".join(parts)


def check_gradient(
    f: Callable[[Any], Any],
    grad: Gradient,
    at: npt.ArrayLike,
    *,
    slips: Mapping[str, Gradient] | None = None,
    rtol: float = 1e-6,
) -> GradientReport:
    """Compare a claimed gradient of `f` with its derivative at one point.

    Differences are relative, entry by entry: a claimed 0 for a derivative of 1e-13 is wrong. What the last
    bit of `at` changes is never held against a claim.

    Args:
        f: the function, of an array of the shape of `at`; best if it takes complex arrays, whose imaginary
            part then carries the derivative without rounding.
        grad: the claimed gradient, of the shape of `at`, or a function that returns it.
        at: the point: a number, a vector, a matrix or an array of more axes.
        slips: names of slips, each with the gradient that it leads to; see `attention_slips`.
        rtol: relative difference up to which an entry is right. Slips change entries by far more, and six
            digits are what one copies out of a paper.

    Raises:
        ValueError: an argument has the wrong shape or is not finite, or `f` does not return one real number.
    """
    point = _finite(at, "at")
    rtol = positive(rtol, "rtol")
    function = Scalar(f, point)
    claimed = _gradient(grad, point, "grad")
    known, method = derivatives(function)
    largest = max(abs(d.value) for d in known)
    entries = tuple(
        _judged(index, float(claim), derivative, rtol, largest)
        for index, claim, derivative in zip(np.ndindex(point.shape), claimed.flat, known, strict=True)
    )
    found = {entry.outcome for entry in entries}
    order: tuple[Outcome, ...] = ("wrong", "undecided", "right")
    outcome = next(o for o in order if o in found)
    names: tuple[str, ...] = ()
    alternatives = {
        name: _gradient(value, point, f"slips[{name!r}]") for name, value in (slips or {}).items()
    }
    if outcome == "wrong":
        true = np.array([d.value for d in known]).reshape(point.shape)
        slack = np.array([d.error + d.rounding for d in known]).reshape(point.shape)
        names = tuple(dict.fromkeys(_explanations(claimed, true, slack, alternatives, rtol)))
    return GradientReport(outcome, entries, method, names, rtol)


def _judged(
    index: tuple[int, ...], claimed: float, derivative: Derivative, rtol: float, largest: float
) -> Entry:
    value, error = derivative.value, derivative.error
    within = rtol * abs(value) + derivative.rounding
    if abs(value) <= derivative.rounding:
        within += (
            4 * EPS * largest
        )  # 0 up to rounding: the terms cancel, and the claim may sum them in another order.
    apart = abs(claimed - value)
    outcome: Outcome
    reason = ""
    if apart > within + error:
        outcome = "wrong"
    elif derivative.trouble:
        outcome, reason = "undecided", derivative.trouble
    elif error > within:
        outcome, reason = (
            "undecided",
            "differences do not settle it: write f for complex arrays, or raise rtol",
        )
    else:
        outcome = "right"
    return Entry(index, claimed, value, error, outcome, reason)


# ---------------------------------------------------------------- naming slips


def _explanations(
    claimed: FloatArray,
    true: FloatArray,
    slack: FloatArray,
    alternatives: Mapping[str, FloatArray],
    rtol: float,
) -> Iterator[str]:
    """Names of the slips that lead to the claim, and not to the derivative itself."""

    def close(left: FloatArray, right: FloatArray, room: FloatArray | float = 0.0) -> bool:
        # Alternatives are written plainly, and round by a few EPS of their largest entry.
        near = rtol * np.abs(right) + 64 * EPS * np.abs(right).max() + room
        return bool((np.abs(left - right) <= near).all())

    for name, other in alternatives.items():
        if close(claimed, other) and not close(other, true, slack):
            yield name
    off = np.abs(claimed - true) > rtol * np.abs(true) + slack
    if not claimed[off].any():
        yield "0 where the derivative is not 0"
        return
    bases = [("", true)]
    if true.ndim == 2 and true.shape[0] == true.shape[1] and not close(true.T, true, slack):
        bases.append(("the transpose", true.T))
    for name, base in bases:
        room = slack if base is true else slack.T
        factor, sure = _common_factor(claimed, base, room, rtol)
        several = int(np.count_nonzero(np.abs(base) > room)) > 1
        if factor and close(claimed, factor * base, abs(factor) * room):
            scale = _factor_name(factor, sure, several)
            if scale or (name and abs(factor - 1) <= sure):
                yield " and ".join(part for part in (name, scale) if part)
    for name, other in alternatives.items():
        factor, sure = _common_factor(claimed, other, np.zeros_like(other), rtol)
        if factor and close(claimed, factor * other) and not _proportional(other, true, slack, rtol):
            scale = _factor_name(factor, sure, False)
            if scale:
                yield f"{name} and {scale}"


def _common_factor(
    claimed: FloatArray, base: FloatArray, slack: FloatArray, rtol: float
) -> tuple[float, float]:
    """The factor at the largest entry of `base`, 0 if all are 0, and how well it is known, relatively."""
    where = np.unravel_index(np.abs(base).argmax(), base.shape)
    largest = float(base[where])
    if not largest:
        return 0.0, rtol
    return float(claimed[where]) / largest, max(rtol, float(slack[where]) / abs(largest))


def _proportional(left: FloatArray, right: FloatArray, slack: FloatArray, rtol: float) -> bool:
    """Whether `left` is a multiple of `right`, up to rounding: not a slip of its own then."""
    where = np.unravel_index(np.abs(right).argmax(), right.shape)
    if not right[where]:
        return True
    factor = left[where] / right[where]
    near = rtol * np.abs(left).max() + np.abs(factor) * slack
    return bool((np.abs(left - factor * right) <= near).all())


def _factor_name(factor: float, sure: float, several: bool) -> str:
    """A factor in words; empty for 1, and for one that means nothing because there is one entry only."""
    size = abs(factor)
    sign = "the opposite sign" if factor < 0 else ""
    if abs(size - 1) <= sure:
        return sign
    name = _known_factor(size, sure, _LARGEST_FACTOR if several else _ONE_ENTRY_FACTOR)
    if not name:
        if not several:
            return ""
        name = f"a factor of {size:.9g} in every entry"
    return " and ".join(part for part in (sign, name) if part)


def _known_factor(size: float, sure: float, largest: int) -> str:
    def is_near(number: float) -> bool:
        return abs(size - number) <= sure * number

    for value, inverse in ((size, False), (1 / size, True)):
        whole, square = round(value), round(value**2)
        if 2 <= whole <= largest and is_near(1 / whole if inverse else whole):
            if inverse:
                return f"a factor of 1/{whole} too many, such as 1/n for n = {whole}"
            return f"a factor of {whole} too many: a lost 1/{whole}, such as 1/n for n = {whole}"
        root = math.sqrt(square)
        if 2 <= square <= largest and is_near(1 / root if inverse else root):
            if inverse:
                return f"a factor of 1/√{square} too many, such as 1/√d for d = {square}"
            return f"a factor of √{square} too many: a lost 1/√{square}, such as 1/√d for d = {square}"
        for base in (2, 10):
            log = math.log(base)
            if is_near(1 / log if inverse else log):
                return f"a factor of {'1/' if inverse else ''}ln {base}: another base of the logarithm"
    return ""


def attention_slips(problem: SelectionProblem) -> Mapping[str, Callable[[npt.ArrayLike], FloatArray]]:
    """Known slips in the gradient of `problem.risk`, each as a function of the query `p`, `(D,)`.

    The gradient is `(1/n) Σ_i ℓ'(m_i) K_iᵀ (diag(s_i) − s_i s_iᵀ) γ_i` with `m_i = γ_iᵀ s_i`
    (arXiv 2306.13596).
    """
    keys, scores, loss = problem.keys, problem.scores, problem.loss
    Matrix = Callable[[FloatArray], FloatArray]

    def claimed(
        jacobian: Matrix = lambda s: np.diag(s) - np.outer(s, s),
        slope: Callable[[FloatArray, FloatArray], FloatArray] = lambda m, scores: loss.slope(m),
        vector: Callable[[FloatArray, FloatArray], FloatArray] = lambda s, scores: scores,
        over: int = len(keys),
    ) -> Callable[[npt.ArrayLike], FloatArray]:
        def gradient(p: npt.ArrayLike) -> FloatArray:
            attention = problem.attention(p)
            slopes = np.broadcast_to(slope((attention * scores).sum(axis=1), scores), len(keys))
            terms = [
                c * (k.T @ (jacobian(s) @ vector(s, g)))
                for c, k, s, g in zip(slopes, keys, attention, scores, strict=True)
            ]
            result: FloatArray = np.sum(terms, axis=0) / over
            return result

        return gradient

    return {
        "diag(s) for diag(s) − s sᵀ": claimed(np.diag),
        "−s sᵀ for diag(s) − s sᵀ": claimed(lambda s: -np.outer(s, s)),
        "diag(s) + s sᵀ for diag(s) − s sᵀ": claimed(lambda s: np.diag(s) + np.outer(s, s)),
        "diag(s(1 − s)) for diag(s) − s sᵀ": claimed(lambda s: np.diag(s * (1 - s))),
        "s_t² for s_t s_τ": claimed(lambda s: np.diag(s) - np.outer(s * s, np.ones_like(s))),
        "the weight of the first token for that of token τ": claimed(
            lambda s: np.diag(s) - s[0] * np.outer(s, np.ones_like(s))
        ),
        "the factor 1/n left out": claimed(over=1),
        "ℓ for ℓ'": claimed(slope=lambda m, scores: loss.value(m)),
        "ℓ' left out": claimed(slope=lambda m, scores: np.ones_like(m)),
        "ℓ' at −m_i": claimed(slope=lambda m, scores: loss.slope(-m)),
        "ℓ' at the plain mean of the scores": claimed(
            slope=lambda m, scores: loss.slope(scores.mean(axis=1))
        ),
        "ℓ' at the score of the first token": claimed(slope=lambda m, scores: loss.slope(scores[:, 0])),
        "the weights s for the scores γ": claimed(vector=lambda s, scores: s),
        "the plain scores for the attended ones: no Jacobian": claimed(lambda s: np.eye(len(s))),
        "equal weights 1/T for s": claimed(lambda s: np.eye(len(s)) / len(s) - 1 / len(s) ** 2),
    }


# ---------------------------------------------------------------- reading arguments


def _gradient(value: Gradient, point: FloatArray, name: str) -> FloatArray:
    array = _finite(value(point.copy()[()]) if callable(value) else value, name)
    if array.shape != point.shape:
        hint = ", of which it is the transpose" if array.shape == point.shape[::-1] else ""
        raise ValueError(f"{name}: got shape {array.shape}, expected that of at, {point.shape}{hint}")
    return array


def _finite(value: Any, name: str) -> FloatArray:
    """A float array of any shape, not empty."""
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: got ragged nested lists, expected an array of reals") from error
    if raw.dtype.kind not in "iuf":
        raise ValueError(f"{name}: got entries of type {raw.dtype}, expected an array of reals")
    if raw.size == 0:
        raise ValueError(f"{name}: got shape {raw.shape}, expected no axis of length 0")
    array: FloatArray = np.array(raw, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        where = f"{name}[{place}]" if place else name
        raise ValueError(f"{where}: got {array[tuple(bad[0])]}, expected a finite number")
    return array


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
