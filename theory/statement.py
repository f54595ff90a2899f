"""A statement of the catalogue: what is claimed, what proves it, and false variants that must be refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from sympy import Expr

from .derivation import Derivation, DerivationReport
from .examination import Status, described_sizes, size_names, weakest

MM = "arXiv 2306.13596"
"""Max-Margin Token Selection in Attention Mechanism."""
MD = "arXiv 2410.14581"
"""Optimizing Attention with Mirror Descent: Generalized Max-Margin Token Selection."""


@dataclass(frozen=True)
class Variant:
    """A false variant of a statement: a slip that the checks must catch.

    Attributes:
        name: in kebab case.
        description: what the slip is.
        start: gives the expression that is derived.
        claimed: gives what it is wrongly said to equal; None if it is wrongly said to be nonnegative.
    """

    name: str
    description: str
    start: Callable[[], Expr]
    claimed: Callable[[], Expr] | None

    def derivation(self) -> Derivation:
        """The slip as a derivation of one step."""
        return self._chain

    @cached_property
    def _chain(self) -> Derivation:
        chain = Derivation(self.name, start=self.start(), title=self.description)
        if self.claimed is None:
            return chain.nonnegative(because=self.description)
        return chain.step(self.claimed(), because=self.description)


@dataclass(frozen=True)
class StatementReport:
    """How a statement stands.

    Attributes:
        id: of the statement.
        status: the weakest among its derivations.
        sizes: for which sizes that is so.
        derivations: one report for each derivation.
        variants: one report for each false variant; all of them refuted, if the checks are any good.
    """

    id: str
    status: Status
    sizes: str
    derivations: tuple[DerivationReport, ...]
    variants: tuple[DerivationReport, ...]

    @property
    def as_expected(self) -> bool:
        """Proved, and every false variant refuted."""
        return self.status == "proved" and all(report.status == "refuted" for report in self.variants)


@dataclass(frozen=True)
class Statement:
    """A statement that holds for every size, and how it is established.

    Attributes:
        id: in kebab case.
        title: a few words.
        source: where it is from.
        hypotheses: under which it holds, besides the setting.
        conclusion: what holds.
        latex: the conclusion as a formula.
        build: gives the derivations that prove it together.
        variants: false variants.
        argument: how the conclusion follows from the derivations, where they do not end in it.
        reading: whether it is our reading of the source, whose wording could differ.
    """

    id: str
    title: str
    source: str
    hypotheses: tuple[str, ...]
    conclusion: str
    latex: str
    build: Callable[[], tuple[Derivation, ...]]
    variants: tuple[Variant, ...]
    argument: str = ""
    reading: bool = False

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """The derivations that prove the statement together."""
        return self.build()

    def check(self, seed: int = 0) -> StatementReport:
        """Examine every derivation and every false variant; the same seed gives the same report."""
        reports = tuple(derivation.check(seed) for derivation in self.derivations)
        status = weakest(report.status for report in reports)
        expressions = [step.expression for report in reports for step in report.steps]
        names = size_names(*expressions, *(derivation.start for derivation in self.derivations))
        at_most = dict.fromkeys(report.sizes for report in reports if report.status == status)
        return StatementReport(
            id=self.id,
            status=status,
            sizes=described_sizes(names) if status == "proved" else "; ".join(at_most),
            derivations=reports,
            variants=tuple(variant.derivation().check(seed) for variant in self.variants),
        )
