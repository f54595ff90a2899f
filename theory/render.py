"""Derivations and statements as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sympy import Expr, Pow, preorder_traversal
from sympy.printing.latex import LatexPrinter

from .derivation import Derivation, DerivationReport, StepReport
from .notation import Applied, Named
from .statement import Statement, StatementReport
from .statements import catalogue


class _Printer(LatexPrinter):  # type: ignore[misc]
    """SymPy's printer, with short sums: every sum runs over the full range of its index."""

    def _needs_mul_brackets(self, expr: Expr, first: bool = False, last: bool = False) -> bool:
        if isinstance(expr, Named | Applied | Pow):
            return False
        return bool(super()._needs_mul_brackets(expr, first, last))

    def _print_Sum(self, expression: Expr) -> str:
        indices = ", ".join(self._print(limit[0]) for limit in reversed(expression.limits))
        body = self._print(expression.function)
        return rf"\sum_{{{indices}}} " + (rf"\left({body}\right)" if expression.function.is_Add else body)


def expression_latex(expression: Expr) -> str:
    """An expression in LaTeX."""
    return str(_Printer().doprint(expression))


_ESTABLISHED = {
    "normal form": "by the normal form, for all sizes",
    "sign certificate": "by the way it is written",
    "explicit sizes": "as an identity of rational functions at explicit sizes",
    "evaluation": "at random points",
}


def derivation_text(derivation: Derivation, report: DerivationReport) -> str:
    """A checked derivation for a terminal: start, then each step, how it stands, and where it fails."""
    sizes = f" for {report.sizes}" if report.status != "refuted" else ""
    lines = [f"{derivation.name}: {report.status}{sizes}", f"    {derivation.start}"]
    for step in report.steps:
        place = f" (line {step.source_line})" if step.status == "refuted" else ""
        claim = "is nowhere negative" if step.nonnegative else f"= {step.text}"
        lines.append(f"  {step.index}. {claim}")
        lines.append(f"     because {step.because}")
        lines.append(f"     {_standing(step)}{place}")
    return "\n".join(lines)


def derivation_markdown(derivation: Derivation, seed: int = 0) -> str:
    """A derivation as a section of a page: the start, then each step with its reason and how it stands."""
    report = derivation.check(seed)
    lines = [f"### {derivation.title or derivation.name}", ""]
    lines += [part for text in (derivation.statement, derivation.source) if text for part in (text, "")]
    lines += [
        f"`{derivation.name}`: {report.status} for {report.sizes}.",
        "",
        _display(expression_latex(derivation.start)),
        "",
    ]
    for step in report.steps:
        formula = r"\geq 0" if step.nonnegative else f"= {expression_latex(step.expression)}"
        lines += [f"{step.index}. {step.because}; {_standing(step)}", "", _display(formula), ""]
    names = dict(_names([derivation.start, *(step.expression for step in report.steps)]))
    if names:
        rows = " \\\\\n".join(f"{name} &= {definition}" for name, definition in names.items())
        lines += ["where", "", _display(f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"), ""]
    return "\n".join(lines).rstrip() + "\n"


def _names(expressions: list[Expr]) -> Iterator[tuple[str, str]]:
    """Names in the order in which they turn up, each with what it stands for, as it is first met."""
    seen: set[Any] = set()
    for expression in expressions:
        for node in preorder_traversal(expression):
            if isinstance(node, Named) and node.args[0] not in seen:
                seen.add(node.args[0])
                yield expression_latex(node), expression_latex(node.definition)


def derivations_markdown() -> str:
    """Every derivation of the catalogue as a page."""
    parts = [
        "# Derivations\n",
        "Every step says why it holds and how that was established. Sums run over the whole range of an\n"
        "index: $i$ over the $n$ inputs, $t, \\tau, \\kappa, \\sigma$ over the $T$ tokens, the others over\n"
        "the $d$ dimensions. This page is generated from the `theory` package.\n",
    ]
    for statement in catalogue():
        parts.append(f"## {statement.title}\n")
        parts += [derivation_markdown(derivation) for derivation in statement.derivations]
        if statement.argument:
            parts.append(f"{statement.argument}\n")
    return "\n".join(parts)


def statements_markdown() -> str:
    """The catalogue as a page: what is claimed, from where, and how it is established."""
    parts = [
        "# Statements\n",
        "What the `theory` package proves, for every size unless said. A false variant is a slip that the\n"
        "same checks refute at a point. The word (reading) marks a statement whose wording in the source\n"
        "could differ from ours. This page is generated from the `theory` package.\n",
    ]
    parts += [statement_markdown(statement, statement.check()) for statement in catalogue()]
    return "\n".join(parts)


def statement_markdown(statement: Statement, report: StatementReport) -> str:
    """One statement as a section of the page."""
    source = f"{statement.source} (reading)" if statement.reading else statement.source
    hypotheses = "; ".join(statement.hypotheses) or "none"
    tiers = dict.fromkeys(step.tier for part in report.derivations for step in part.steps)
    how = " and ".join(_ESTABLISHED[tier] for tier in tiers)
    names = ", ".join(f"`{derivation.name}`" for derivation in statement.derivations)
    lines = [
        f"## `{statement.id}`: {statement.title}",
        "",
        f"- Source: {source}",
        f"- Hypotheses: {hypotheses}",
        f"- Conclusion: {statement.conclusion}",
        f"- Established: {report.status} {how}; sizes: {report.sizes}; derivations: {names}",
    ]
    if statement.argument:
        lines.append(f"- Argument: {statement.argument}")
    lines += [
        "",
        _display(statement.latex),
        "",
        "| false variant | what is wrong | outcome |",
        "|---|---|---|",
    ]
    for variant, outcome in zip(statement.variants, report.variants, strict=True):
        wrong = outcome.wrong_step
        sizes = "" if wrong is None or wrong.witness is None else _sizes(wrong.witness.sizes)
        lines.append(f"| `{variant.name}` | {variant.description} | {outcome.status}{sizes} |")
    return "\n".join(lines) + "\n"


def _sizes(sizes: dict[str, int]) -> str:
    return f" at {', '.join(f'{name} = {value}' for name, value in sizes.items())}" if sizes else ""


def _standing(step: StepReport) -> str:
    if step.witness is not None:
        return f"{step.status} {step.witness.text}"
    return f"{step.status} {_ESTABLISHED[step.tier]}"


def _display(formula: str) -> str:
    return f"$$\n{formula}\n$$"


def write_notes(folder: str | Path) -> None:
    """Write `statements.md` and `derivations.md` into a folder."""
    for name, page in (("statements", statements_markdown()), ("derivations", derivations_markdown())):
        (Path(folder) / f"{name}.md").write_text(page, encoding="utf-8")
