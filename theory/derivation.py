"""A derivation: an expression, and steps that are each claimed to equal the one before.

Every step is examined three ways: by the normal form, which proves equality for all sizes; at explicit sizes,
as an identity of rational functions; and numerically with 50 digits. The last two know nothing of the first,
and run for proved steps as well: should they ever contradict it, that is an error of this package and is
raised as `TierMismatch` instead of being reported as a verdict.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, Float, Integer, Sum, SympifyError, sympify
from sympy.tensor.indexed import Indexed

from .algebra import TooLarge
from .calculus import bound_index, free_indices
from .examination import (
    Status,
    Tier,
    TierMismatch,
    Witness,
    described_sizes,
    evaluated_again,
    examine,
    examine_sign,
    explicit_sizes,
    size_names,
    weakest,
)
from .normal_form import normal_form
from .notation import DerivationError, Index


@dataclass(frozen=True)
class StepReport:
    """How one step was established, or where it fails."""

    index: int
    because: str
    status: Status
    tier: Tier
    expression: Expr
    witness: Witness | None = None
    source_line: int | None = None
    source_file: str | None = None
    nonnegative: bool = False
    """Whether the claim is that the expression is nowhere negative, not that it equals the one before."""

    @property
    def text(self) -> str:
        return str(self.expression)


@dataclass(frozen=True)
class DerivationReport:
    """The verdict on a derivation and on each of its steps."""

    name: str
    status: Status
    sizes: str
    steps: tuple[StepReport, ...]

    @property
    def wrong_step(self) -> StepReport | None:
        """The first refuted step, if any."""
        return next((step for step in self.steps if step.status == "refuted"), None)


@dataclass(frozen=True)
class _Step:
    expression: Expr
    because: str
    nonnegative: bool
    line: int | None
    file: str | None


@dataclass
class Derivation:
    """A chain of equal expressions.

    Attributes:
        name: identifier, in kebab case.
        start: the expression the chain starts from; ``partial(risk, p[a])`` is a derivative still to be done.
        title: what is derived, in a few words.
        statement: what is derived, as a formula in words.
        source: where it is from.

    Example:
        >>> from theory import Index, T, array, partial, total
        >>> t, a, x = Index("t", T), Index("a", T), array("x", T)
        >>> chain = Derivation("square-norm", start=partial(total(x[t] ** 2, t), x[a]))
        >>> chain.step(2 * x[a], because="only the term t = a depends on x_a").check().status
        'proved'
    """

    name: str
    start: Any = None
    title: str = ""
    statement: str = ""
    source: str = ""
    line: int = field(default=0, init=False, repr=False, compare=False)
    """Where it was made, in its file."""
    _steps: list[_Step] = field(default_factory=list, init=False, repr=False)
    _reports: dict[int, DerivationReport] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.line = sys._getframe(2).f_lineno  # the caller of the generated __init__
        if not isinstance(self.name, str) or not self.name:
            raise DerivationError(f"a derivation needs a name, got {self.name!r}")
        if self.start is not None:
            self.start = _checked(self.start, f"{self.name}: start")

    def step(self, expr: Any, because: str) -> Derivation:
        """Add the claim that the expression so far equals `expr`; without a start, the first sets it."""
        return self._add(expr, because, False)

    def nonnegative(self, because: str) -> Derivation:
        """Add the claim that the expression so far is nowhere negative.

        It is proved if the way it is written shows it: a sum of products of squares, exponentials, positive
        scalars and the like.
        """
        if self.start is None:
            raise DerivationError(f"{self.name}: nothing to be nonnegative, give a start")
        return self._add(self.result, because, True)

    def _add(self, expr: Any, because: str, nonnegative: bool) -> Derivation:
        frame = sys._getframe(2)
        label = f"{self.name}: step {len(self._steps) + 1}"
        if not isinstance(because, str) or not because.strip():
            raise DerivationError(f"{label}: say because of what the step holds, got {because!r}")
        expression = _checked(expr, label)
        if self.start is None:
            self.start = expression
            return self
        stray = set(free_indices(expression)) - set(free_indices(self.start))
        if stray:
            names = ", ".join(sorted(index.name for index in stray))
            known = ", ".join(index.name for index in free_indices(self.start)) or "none"
            raise DerivationError(
                f"{label}: free index {names} does not occur in the start (free there: {known})"
            )
        place = frame.f_lineno, frame.f_code.co_filename
        self._steps.append(_Step(expression, because, nonnegative, *place))
        self._reports.clear()
        return self

    @property
    def result(self) -> Expr:
        """The last expression."""
        return self._steps[-1].expression if self._steps else self.start

    def check(self, seed: int = 0) -> DerivationReport:
        """Examine every step; the same seed gives the same report.

        Raises:
            DerivationError: there is no step, or a step cannot be evaluated.
            TierMismatch: the prover contradicts evaluation, which is a fault of this package.
        """
        if not self._steps:
            raise DerivationError(f"{self.name}: nothing to check, add a step")
        if seed not in self._reports:
            self._reports[seed] = self._examined(seed)
        return self._reports[seed]

    def at(self, number: int, witness: Witness) -> Witness | None:
        """Evaluate step `number`, counted from 1, at the point of a witness.

        Returns:
            The witness that the step is wrong there, or None if it holds there.

        Raises:
            DerivationError: there is no such step, or the witness gives no point for it.
        """
        if not 1 <= number <= len(self._steps):
            raise DerivationError(f"{self.name}: step: got {number}, expected 1 to {len(self._steps)}")
        step = self._steps[number - 1]
        previous = self._steps[number - 2].expression if number > 1 else self.start
        try:
            return evaluated_again(previous, None if step.nonnegative else step.expression, witness)
        except DerivationError as error:
            raise DerivationError(f"{self.name}: step {number}: {error}") from None

    def _examined(self, seed: int) -> DerivationReport:
        previous, steps = self.start, []
        for number, step in enumerate(self._steps, 1):
            try:
                if step.nonnegative:
                    status, tier, witness = examine_sign(previous, seed)
                else:
                    status, tier, witness = examine(previous, step.expression, seed)
            except DerivationError as error:
                raise DerivationError(f"{self.name}: step {number}: {error}") from None
            except TierMismatch as error:
                raise TierMismatch(f"{self.name}: step {number}: {error}") from None
            steps.append(
                StepReport(
                    number,
                    step.because,
                    status,
                    tier,
                    step.expression,
                    witness,
                    step.line,
                    step.file,
                    step.nonnegative,
                )
            )
            previous = step.expression
        status = weakest(step.status for step in steps)
        return DerivationReport(self.name, status, self._sizes(status), tuple(steps))

    def _sizes(self, status: Status) -> str:
        names = size_names(self.start, *(step.expression for step in self._steps))
        if status == "proved":
            return described_sizes(names)
        return ", ".join(f"{name} = {value}" for name, value in explicit_sizes(names).items()) or "scalars"


# ---------------------------------------------------------------- reading what a person wrote


def _checked(value: Any, label: str) -> Expr:
    try:
        expression = sympify(value, strict=True)
    except SympifyError:
        raise DerivationError(f"{label}: expected a SymPy expression, got {type(value).__name__}") from None
    if not isinstance(expression, Expr) or getattr(expression, "is_Matrix", False):
        raise DerivationError(
            f"{label}: expected a scalar (write matrices entry by entry), got {type(value).__name__}"
        )
    floats = expression.atoms(Float)
    if floats:
        number = min(floats)
        raise DerivationError(f"{label}: write Rational(...) for the floating-point number {number}")
    _check_axes(expression, label)
    try:
        normal_form(expression)
    except TooLarge:
        pass  # Readable all the same; the numeric checks do not multiply out.
    except DerivationError as error:
        raise DerivationError(f"{label}: {error}") from None
    return expression


def _check_axes(expression: Expr, label: str) -> None:
    """Every index must run over the axis it is used on, and every sum over the index's full range."""
    for entry in expression.atoms(Indexed):
        shape = entry.base.shape
        if shape is None:
            raise DerivationError(f"{label}: declare {entry.base} with array(name, *shape)")
        for axis, (index, extent) in enumerate(zip(entry.indices, shape, strict=True), 1):
            if isinstance(index, Index) and index.size != extent:
                raise DerivationError(
                    f"{label}: {entry}: index {index} runs to {index.size}, "
                    f"axis {axis} of {entry.base} to {extent}"
                )
            if not isinstance(index, Index | Integer):
                raise DerivationError(f"{label}: {entry}: expected an Index or a number, got {index}")
    for node in expression.atoms(Sum):
        for limit in node.limits:
            try:
                bound_index(limit)
            except DerivationError as error:
                raise DerivationError(f"{label}: {error}") from None
