"""Every statement is proved, and every false variant of it is refuted at a tiny point."""

from __future__ import annotations

import re

import pytest

from theory import catalogue

STATEMENTS = {statement.id: statement for statement in catalogue()}
IDS = [
    "softmax-jacobian",
    "softmax-covariance",
    "gradient-p",
    "gradient-v",
    "gradient-W-rank-one",
    "lemma1-equivalence",
    "balancedness",
    "loss-assumption-A",
    "descent-direction",
    "smoothness",
    "smoothness-sharp",
    "hessian-p",
    "att-svm-kkt",
    "gradient-W-cross",
    "mirror-step",
    "gradient-nonlinear-head",
]


def test_the_order_of_the_catalogue():
    assert [statement.id for statement in catalogue()] == IDS
    assert [statement.id for statement in catalogue() if statement.reading] == ["smoothness"]


@pytest.mark.parametrize("id", STATEMENTS)
def test_a_statement_is_proved(id):
    statement = STATEMENTS[id]
    for derivation in statement.derivations:
        report = derivation.check()
        assert report.status == "proved", [(step.index, step.status, step.witness) for step in report.steps]


@pytest.mark.parametrize(("id", "name"), [(s.id, v.name) for s in catalogue() for v in s.variants])
def test_a_false_variant_is_refuted_at_a_tiny_point(id, name):
    (variant,) = [variant for variant in STATEMENTS[id].variants if variant.name == name]
    report = variant.derivation().check()
    assert report.status == "refuted"
    witness = report.wrong_step.witness
    # Unequal non-optimal scores need a third token.
    assert all(size <= (3 if name == "assumption-B" else 2) for size in witness.sizes.values())
    assert all(len(value) <= 4 for value in witness.values.values())


@pytest.mark.parametrize("id", STATEMENTS)
def test_a_statement_is_complete(id):
    statement = STATEMENTS[id]
    kebab = r"[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*"
    assert re.fullmatch(kebab, statement.id)
    assert len(statement.variants) >= 2
    assert len({variant.name for variant in statement.variants}) == len(statement.variants)
    assert all(re.fullmatch(kebab, variant.name) for variant in statement.variants)
    for text in (statement.title, statement.source, statement.conclusion, statement.latex):
        assert text.strip() == text != ""
    names = [derivation.name for derivation in statement.derivations]
    assert len(set(names)) == len(names)


def test_a_report_says_how_a_statement_stands():
    report = STATEMENTS["lemma1-equivalence"].check()
    assert report.as_expected
    assert report.sizes == "all n, T, d"
    assert [part.name for part in report.derivations] == ["lemma1-base", "lemma1-step", "lemma1-rank"]
    assert STATEMENTS["lemma1-equivalence"].check() == report
