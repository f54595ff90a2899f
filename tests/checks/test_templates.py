"""`attcheck new` and `attcheck review`: files that run as they stand, and wrong lines found."""

from __future__ import annotations

import pytest

from checks import ClaimError, verify
from checks.cli import main
from checks.templates import claim_template


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["attcheck", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_claim_runs_as_it_stands(folder, monkeypatch):
    assert run(monkeypatch, "new", "my-claim") == 0
    verdicts = verify(folder / "my_claim.py", examples=5)
    assert [(verdict.id, verdict.status) for verdict in verdicts] == [
        ("my-claim", "supported"),
        ("my-claim/drops-separability", "refuted"),
    ]


def test_a_new_derivation_is_proved(folder, monkeypatch, capsys):
    assert run(monkeypatch, "new", "my-gradient", "--derivation") == 0
    assert run(monkeypatch, "review", "my_gradient.py") == 0
    assert "my-gradient: proved for all T" in capsys.readouterr().out


def test_nothing_is_overwritten(folder, monkeypatch, capsys):
    (folder / "my_claim.py").write_text("mine")
    assert run(monkeypatch, "new", "my-claim") == 2
    assert capsys.readouterr().err == "attcheck: error: my_claim.py: File exists, nothing was written\n"
    assert (folder / "my_claim.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["3x", "A-b", "a b", "", "a/b", "class"])
def test_names_from_which_no_function_can_be_made_are_refused(name):
    with pytest.raises(ClaimError, match="expected kebab case that starts with a letter"):
        claim_template(name)


@pytest.mark.parametrize("name", ["control", "expect", "attst", "diverges"])
def test_names_that_the_file_uses_itself_are_refused(name):
    with pytest.raises(ClaimError, match=f"{name}: is a name that a claim file uses itself"):
        claim_template(name)


def reviewed(folder, monkeypatch, claimed):
    text = claim_template_of_derivation(claimed)
    (folder / "steps.py").write_text(text)
    return run(monkeypatch, "review", "steps.py")


def claim_template_of_derivation(claimed):
    return f"""
from sympy import Rational, exp, sin
from theory import Derivation, Index, array, partial, total
from theory.notation import T
t, k = Index("t", T), Index("k", T)
z = array("z", T)
slope = Derivation("slope", start=partial(total(z[k] ** 3, k), z[t]))
slope.step({claimed}, because="power rule")
"""


def test_a_wrong_step_is_refuted_at_its_line_by_numbers_one_can_check(folder, monkeypatch, capsys):
    assert reviewed(folder, monkeypatch, "3 * z[t] ** 2") == 0
    assert reviewed(folder, monkeypatch, "2 * z[t] ** 2") == 1
    out = capsys.readouterr().out
    assert "(line 8)" in out
    assert "3 before, 2 after" in out.replace(".0", "")


def test_bad_files_get_one_line(folder, monkeypatch, capsys):
    (folder / "broken.py").write_text("x = (")
    (folder / "empty.py").write_text("")
    for name in ("none.py", "broken.py", "empty.py"):
        assert run(monkeypatch, "review", name) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"attcheck: error: {name}")
        assert error.count("\n") == 1
