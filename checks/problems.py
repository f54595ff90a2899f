"""The objects every check starts from: keys and scores, or tokens, labels and a head.

[MM] is arXiv 2306.13596, [MD] is arXiv 2410.14581; shapes as in their setting: `n` inputs, `T`
tokens per input, `d` embedding dimensions, `D` dimensions of the trained attention parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .attention import PairwiseRisk, ScaledVector
from .losses import LOGISTIC, Loss, loss_named
from .validation import FloatArray, finite_array, in_range

# Denominators up to 2**12 cover every lattice of the strategies; other floats are written in full.
_FRACTION = re.compile(r"[+-]?\d{1,400}(/0*[1-9]\d{0,399})?", re.ASCII)
_READABLE_DENOMINATOR = 2**12


@dataclass(frozen=True, eq=False, repr=False)
class SelectionProblem:
    """Token selection by attention for a fixed head ([MM], the risk as a function of `p`).

    Attributes:
        keys: `(n, T, D)`; row `(i, t)` is `k_it`. At least two tokens per input.
        scores: `(n, T)` token scores `γ_it = Y_i vᵀx_it`.
        loss: the loss `ℓ`.

    The arrays are copied and frozen.

    Raises:
        ValueError: an argument has the wrong shape, is not finite, or is not a loss.
    """

    keys: FloatArray
    scores: FloatArray
    loss: Loss = LOGISTIC

    def __init__(self, keys: npt.ArrayLike, scores: npt.ArrayLike, loss: Loss = LOGISTIC) -> None:
        keys = in_range(finite_array(keys, "keys", ("n", "T", "D")), "keys")
        scores = in_range(finite_array(scores, "scores", ("n", "T")), "scores")
        if scores.shape != keys.shape[:2]:
            raise ValueError(
                f"scores: got shape {scores.shape}, expected {keys.shape[:2]} to match keys "
                f"of shape {keys.shape}"
            )
        if keys.shape[1] < 2:
            raise ValueError(
                f"keys: got T = 1 token per input (shape {keys.shape}), expected at least 2: "
                "with one token there is nothing to select"
            )
        if not isinstance(loss, Loss):
            raise ValueError(
                f"loss: got {loss!r}, expected LOGISTIC, EXPONENTIAL, CORRELATION or another Loss"
            )
        loss.check_range(float(scores.min()), float(scores.max()))
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "loss", loss)

    @property
    def shape(self) -> tuple[int, int, int]:
        """`(n, T, D)`."""
        n, tokens, dim = self.keys.shape
        return n, tokens, dim

    @cached_property
    def pairs(self) -> PairwiseRisk:
        """The risk as a sum over token pairs, from which every gradient here is computed."""
        return PairwiseRisk.of(self.keys, self.scores, self.loss)

    @cached_property
    def smoothness(self) -> float:
        """A Lipschitz constant of the gradient of the risk.

        `(1/n) Σ_i (M0 G_i² D_i²/16 + M1 G_i D_i²/(6√3))` with `G_i` the range of the scores, `D_i`
        the diameter of the keys of input `i`, and the constants `M0`, `M1` of the loss on the range
        of its scores (statement `smoothness-sharp`; never above the published constant).
        """
        total = 0.0
        for keys, scores in zip(self.keys, self.scores, strict=True):
            gaps = keys[:, None] - keys[None, :]
            diameter2 = float((gaps**2).sum(axis=2).max())
            spread = float(np.ptp(scores))
            m0, m1 = self.loss.constants(float(scores.min()), float(scores.max()))
            total += diameter2 * spread * (m0 * spread / 16 + m1 / (6 * math.sqrt(3)))
        return total / len(self.keys)

    def query(self, p: npt.ArrayLike, name: str = "p") -> FloatArray:
        """`p` as a read-only `(D,)` array.

        Raises:
            ValueError: `p` is not a finite vector of length `D`.
        """
        # However small, a query is as good as 0; too large a one overflows.
        vector = in_range(finite_array(p, name, ("D",)), name, least=0.0)
        if vector.shape != (self.shape[2],):
            raise ValueError(f"{name}: got shape {vector.shape}, expected ({self.shape[2]},)")
        return vector

    def risk(self, p: npt.ArrayLike) -> float:
        """Empirical risk `L(p) = (1/n) Σ_i ℓ(γ_iᵀ softmax(K_i p))` for `p` of shape `(D,)`."""
        log_attention = self.pairs.log_attention(self.query(p))
        return float(self.loss.value(self.pairs.margins(log_attention)).mean())

    def gradient(self, p: npt.ArrayLike) -> FloatArray:
        """`∇L(p)`, `(D,)`; see `descent` for the form that cannot underflow."""
        return -self.descent(p).dense()

    def descent(self, p: npt.ArrayLike) -> ScaledVector:
        """`−∇L(p)` as a `ScaledVector`: unit direction, log of the norm, cancellation ratio."""
        return self.pairs.descent(self.query(p))

    def attention(self, p: npt.ArrayLike) -> FloatArray:
        """Attention weights `softmax(K_i p)`, `(n, T)`."""
        result: FloatArray = np.exp(self.pairs.log_attention(self.query(p)))
        return result

    def __repr__(self) -> str:
        return (
            f"SelectionProblem(keys={_nested(self.keys)}, scores={_nested(self.scores)}, loss={self.loss!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields; `from_dict` restores every bit."""
        return {
            "keys": array_to_json(self.keys),
            "scores": array_to_json(self.scores),
            "loss": self.loss.name,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "problem") -> SelectionProblem:
        """Read the fields `keys`, `scores` and, if present, `loss`.

        Raises:
            ValueError: a field is missing, unknown or malformed; the message starts with `where`.
        """
        _check_fields(data, where, required=("keys", "scores"), optional=("loss",))
        try:
            return cls(
                array_from_json(data["keys"], "keys"),
                array_from_json(data["scores"], "scores"),
                loss_named(data.get("loss", LOGISTIC.name)),
            )
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from error


@dataclass(frozen=True, eq=False, repr=False)
class JointProblem:
    """Head and attention to be trained together ([MM], Theorems 5 and 6).

    Attributes:
        tokens: `(n, T, d)`; row `(i, t)` is `x_it`. At least two tokens per input.
        labels: `(n,)`, each `±1`.
        keys: `(n, T, D)`; the tokens themselves unless given.

    The arrays are copied and frozen.

    Raises:
        ValueError: an argument has the wrong shape or is not finite, or a label is not ±1.
    """

    tokens: FloatArray
    labels: FloatArray
    keys: FloatArray

    def __init__(
        self, tokens: npt.ArrayLike, labels: npt.ArrayLike, keys: npt.ArrayLike | None = None
    ) -> None:
        tokens = finite_array(tokens, "tokens", ("n", "T", "d"))
        if tokens.shape[1] < 2:
            raise ValueError(f"tokens: got T = 1 token per input (shape {tokens.shape}), expected at least 2")
        labels = _labels(labels, len(tokens))
        keys = tokens if keys is None else finite_array(keys, "keys", ("n", "T", "D"))
        if keys.shape[:2] != tokens.shape[:2]:
            raise ValueError(
                f"keys: got shape {keys.shape}, expected (n, T) = {tokens.shape[:2]} to match the tokens"
            )
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "keys", keys)

    @property
    def shape(self) -> tuple[int, int, int]:
        """`(n, T, d)`."""
        n, tokens, dim = self.tokens.shape
        return n, tokens, dim

    def at_head(self, v: npt.ArrayLike, loss: Loss = LOGISTIC) -> SelectionProblem:
        """The selection problem for a fixed head `v`, `(d,)`: scores `γ_it = Y_i vᵀ x_it`."""
        head = _vector(v, "v", self.tokens.shape[2])
        return SelectionProblem(self.keys, self.labels[:, None] * (self.tokens @ head), loss)

    def __repr__(self) -> str:
        keys = "" if self.keys is self.tokens else f", keys={_nested(self.keys)}"
        return f"JointProblem(tokens={_nested(self.tokens)}, labels={_nested(self.labels)}{keys})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields; `from_dict` restores every bit."""
        fields = {"tokens": array_to_json(self.tokens), "labels": array_to_json(self.labels)}
        if self.keys is not self.tokens:
            fields["keys"] = array_to_json(self.keys)
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "problem") -> JointProblem:
        """Read the fields `tokens`, `labels` and, if present, `keys`.

        Raises:
            ValueError: a field is missing, unknown or malformed; the message starts with `where`.
        """
        _check_fields(data, where, required=("tokens", "labels"), optional=("keys",))
        try:
            return cls(**{field: array_from_json(value, field) for field, value in data.items()})
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from error


def cross_attention(
    tokens: npt.ArrayLike,
    queries: npt.ArrayLike,
    labels: npt.ArrayLike,
    head: npt.ArrayLike,
    loss: Loss = LOGISTIC,
) -> SelectionProblem:
    """`f(X, z) = vᵀXᵀsoftmax(X W z)` as a function of `W`, [MD] (arXiv 2410.14581).

    It is the selection problem with keys `vec(x_it z_iᵀ)`, row-major, so that `p = W.ravel()` and
    `D = d²`.

    Args:
        tokens: `(n, T, d)`.
        queries: `(n, d)`, the vectors `z_i`.
        labels: `(n,)`, each `±1`.
        head: `(d,)`, the vector `v`.
        loss: the loss `ℓ`.

    Raises:
        ValueError: an argument has the wrong shape or is not finite, or a label is not ±1.
    """
    tokens = finite_array(tokens, "tokens", ("n", "T", "d"))
    queries = finite_array(queries, "queries", ("n", "d"))
    n, _, dim = tokens.shape
    if queries.shape != (n, dim):
        raise ValueError(
            f"queries: got shape {queries.shape}, expected (n, d) = {(n, dim)} to match the tokens"
        )
    scores = _labels(labels, n)[:, None] * (tokens @ _vector(head, "head", dim))
    keys = np.einsum("itj,ik->itjk", tokens, queries).reshape(n, -1, dim * dim)
    return SelectionProblem(keys, scores, loss)


def array_to_json(array: FloatArray) -> Any:
    """Nested lists; dyadic rationals of small denominator as integers or strings like ``"-3/8"``.

    Other floats stay JSON numbers, whose `repr` restores every bit.
    """
    if array.ndim:
        return [array_to_json(row) for row in array]
    exact = Fraction(float(array))
    if exact.denominator > _READABLE_DENOMINATOR or (exact == 0 and np.signbit(array)):
        return float(array)
    return exact.numerator if exact.denominator == 1 else str(exact)


def fraction(text: str) -> Fraction:
    """The rational that a file writes as ``"-3/8"``.

    Raises:
        ValueError: it is no fraction of integers of up to 400 digits (``"1e99999999"`` would be).
    """
    if not _FRACTION.fullmatch(text):
        raise ValueError(f"got {text!r:.60}, expected a fraction such as '3/8'")
    return Fraction(text)


def array_from_json(value: Any, where: str) -> Any:
    """Nested lists with fraction strings turned into floats.

    Raises:
        ValueError: an entry is neither a number nor a fraction; the message starts with `where`.
    """
    if isinstance(value, list):
        return [array_from_json(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, str):
        try:
            return float(fraction(value))
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"{where}: got {value!r:.60}, expected a number or a fraction such as '3/8'"
            ) from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: got {value!r}, expected a number or nested lists of numbers")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{where}: got an integer too large for a float") from error


def _vector(value: npt.ArrayLike, name: str, dim: int) -> FloatArray:
    vector = finite_array(value, name, ("d",))
    if vector.shape != (dim,):
        raise ValueError(f"{name}: got shape {vector.shape}, expected ({dim},)")
    return vector


def _labels(value: npt.ArrayLike, n: int) -> FloatArray:
    labels = finite_array(value, "labels", ("n",))
    if labels.shape != (n,):
        raise ValueError(f"labels: got shape {labels.shape}, expected ({n},)")
    for i, label in enumerate(labels):
        if abs(label) != 1:
            raise ValueError(f"labels[{i}]: got {label:g}, expected 1 or -1")
    return labels


def _check_fields(data: Any, where: str, *, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: got {type(data).__name__}, expected an object with {required}")
    for field in required:
        if field not in data:
            raise ValueError(f"{where}.{field}: missing, expected nested lists of numbers")
    for field in data:
        if field not in required + optional:
            raise ValueError(
                f"{where}.{field}: unknown field, expected only {', '.join(required + optional)}"
            )


def _nested(array: FloatArray) -> str:
    """Round-trip text of an array: integers without a point, other floats in `repr`."""
    if array.ndim:
        return f"[{', '.join(_nested(row) for row in array)}]"
    value = float(array)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
