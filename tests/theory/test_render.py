from __future__ import annotations

import doctest
import importlib
from dataclasses import replace
from pathlib import Path

import pytest

import theory
from theory import Derivation, Index, array, derivation_markdown, derivation_text, total
from theory.notation import T, named
from theory.render import write_notes

t, tau = Index("t", T), Index("tau", T)
x = array("x", T)
NOTES = Path(__file__).parents[2] / "notes"


def wrong_chain():
    chain = Derivation("square", start=total(x[t], t) ** 2, title="Square of a sum", statement="(Σx)²")
    chain.step(total(x[t] * x[tau], t, tau), because="multiply out")
    return chain.step(total(x[t] ** 2, t), because="only the diagonal")


def test_text_of_a_wrong_derivation():
    chain = wrong_chain()
    assert derivation_text(chain, chain.check()).splitlines() == [
        "square: refuted",
        "    Sum(x[t], (t, 1, T))**2",
        "  1. = Sum(x[t]*x[tau], (tau, 1, T), (t, 1, T))",
        "     because multiply out",
        "     proved by the normal form, for all sizes",
        "  2. = Sum(x[t]**2, (t, 1, T))",
        "     because only the diagonal",
        "     refuted at T = 2, x[1] = 1, x[2] = 1: 4.0 before, 2.0 after (the value is wrong) (line 23)",
    ]


def test_markdown_of_a_derivation():
    weighted = named("s", x[t] ** 2, t)
    chain = Derivation("named", start=total(weighted, t), title="A name").step(
        total(x[tau] ** 2, tau), because="definition"
    )
    assert derivation_markdown(chain.nonnegative(because="squares")) == (
        "## A name\n\n"
        "`named`: proved for all T.\n\n"
        "$$\n\\sum_{t} s_{t}\n$$\n\n"
        "1. definition; proved by the normal form, for all sizes\n\n"
        "$$\n= \\sum_{\\tau} {x}_{\\tau}^{2}\n$$\n\n"
        "2. squares; proved by the way it is written\n\n"
        "$$\n\\geq 0\n$$\n\n"
        "where\n\n"
        "$$\n\\begin{aligned}\ns_{t} &= {x}_{t}^{2}\n\\end{aligned}\n$$\n"
    )


def test_a_reading_is_marked():
    statement = theory.catalogue()[0]
    report = statement.check()
    assert "(reading)" not in theory.render.statement_markdown(statement, report)
    marked = theory.render.statement_markdown(replace(statement, reading=True), report)
    assert f"- Source: {statement.source} (reading)" in marked


def test_the_notes_are_current(tmp_path):
    written = [path.relative_to(tmp_path) for path in write_notes(tmp_path)]
    stale = [
        str(path)
        for path in written
        if not (NOTES / path).exists() or (NOTES / path).read_bytes() != (tmp_path / path).read_bytes()
    ]
    assert stale == [], "not what the theory package says; run: attcheck derive --notes notes"
    assert sorted(path.name for path in (NOTES / "derivations").iterdir()) == sorted(
        path.name for path in written if path.parent.name == "derivations"
    )


@pytest.mark.parametrize("name", ["notation", "derivation"])
def test_the_examples_in_the_docstrings(name):
    failures, tried = doctest.testmod(importlib.import_module(f"theory.{name}"))
    assert tried > 0
    assert failures == 0
