"""Slips that people make, each in a derivation file of its own, found at the line where they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from theory import Derivation, derivation_template, derivation_text, load_derivations

MOST_NUMBERS = 6  # Other than 0, in a point that a person is to check.
FILES = sorted((Path(__file__).parent / "slips").glob("*.py"))


def line_of_the_slip(path):
    marked = [
        number for number, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# slip")
    ]
    assert len(marked) == 1, f"{path.name}: mark one line with # slip, found {marked}"
    return marked[0]


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def slip(request):
    """A file with a slip, and its derivation."""
    (derivation,) = load_derivations(request.param)
    return request.param, derivation


def test_there_are_many():
    assert len(FILES) >= 18


def test_the_slip_is_refuted_at_its_line_and_no_other_step_is(slip):
    path, derivation = slip
    report = derivation.check()
    wrong = report.wrong_step
    assert report.status == "refuted"
    assert wrong.source_line == line_of_the_slip(path)
    assert [step.status for step in report.steps] == [
        "refuted" if step is wrong else "proved" for step in report.steps
    ]
    assert wrong.index > 1, "the slip comes after a right step"


def test_the_witness_can_be_checked_by_hand(slip):
    _, derivation = slip
    wrong = derivation.check().wrong_step
    witness = wrong.witness
    assert all(size <= 2 for size in witness.sizes.values())
    assert all(re.fullmatch(r"-?\d(\.\d)?", text) for text in witness.values.values()), witness.text
    assert sum(text != "0" for text in witness.values.values()) <= MOST_NUMBERS, witness.text
    assert derivation.at(wrong.index, witness) == witness, "evaluated again, it is the same"


def test_another_seed_finds_the_same_line(slip):
    path, derivation = slip
    assert derivation.check(seed=1).wrong_step.source_line == line_of_the_slip(path)


def test_the_corrected_step_is_proved(slip):
    path, derivation = slip
    report = derivation.check()
    corrected = Derivation(derivation.name, start=derivation.start)
    for step in report.steps[: report.wrong_step.index - 1]:
        corrected.step(step.expression, because=step.because)
    corrected.step(runpy.run_path(str(path))["corrected"], because="corrected")
    assert corrected.check().status == "proved"


def test_the_notes_show_what_is_printed(tmp_path):
    page = (Path(__file__).parents[2] / "notes" / "reviewing-a-derivation.md").read_text(encoding="utf-8")
    code = re.search(r"<!-- derivation -->\n```python\n(.*?)```", page, re.S)[1]
    path = tmp_path / "my_gradient.py"
    path.write_text(code, encoding="utf-8")
    (derivation,) = load_derivations(path)
    assert derivation_text(derivation, derivation.check()) in page
    path.write_text(code.replace("- mean_key,", "- total(gamma[t] * s(t), t) * mean_key,"), encoding="utf-8")
    (derivation,) = load_derivations(path)
    assert derivation_text(derivation, derivation.check()).splitlines()[0] in page
    path.write_text(derivation_template("my-gradient"), encoding="utf-8")
    (derivation,) = load_derivations(path)
    assert derivation_text(derivation, derivation.check()) in page
