from __future__ import annotations

import sys

import pytest

from theory import Derivation, DerivationError, DerivationFileError, derivation_template, load_derivations

HEAD = """\
from theory import Derivation, Index, array, total
from theory.notation import T

t, tau = Index("t", T), Index("tau", T)
x = array("x", T)
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="review.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_derivations_come_in_order_and_once(write):
    path = write(
        HEAD
        + 'second = Derivation("b", start=x[t])\nfirst = Derivation("a", start=x[t])\n'
        + "alias = second\nsecond.step(x[t], because='same')\n"
    )
    found = load_derivations(path)
    assert [derivation.name for derivation in found] == ["b", "a"]
    assert all(isinstance(derivation, Derivation) for derivation in found)
    assert load_derivations(str(path))[0].check().status == "proved"


def test_the_line_of_a_wrong_step_is_known(write):
    path = write(
        HEAD
        + 'chain = Derivation("sum", start=total(x[t], t))\n'
        + 'chain.step(x[1], because="only one term")\n'
    )
    (derivation,) = load_derivations(path)
    wrong = derivation.check().wrong_step
    assert (wrong.source_file, wrong.source_line) == (str(path), 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (1\n", ", line 1: not Python: '(' was never closed"),
        (
            "import nowhere_to_be_found\n",
            ", line 1: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("\n\nraise RuntimeError('two\\nlines')\n", ", line 3: RuntimeError: two lines"),
        ("def f():\n    raise KeyError\n\nf()\n", ", line 2: KeyError"),
        ("import sys\nsys.exit(3)\n", ", line 2: ends the program (exit status 3)"),
        ("x = 1\n", ": defines no derivations, expected Derivation objects at module level"),
        (
            HEAD + "Derivation('a', start=x[t])\n",
            ": defines no derivations, expected Derivation objects at module level",
        ),
        (
            HEAD + "a = Derivation('same', start=x[t])\nb = Derivation('same', start=x[t])\n",
            ", line 7: 'same' is also the name of the derivation on line 6, rename one",
        ),
        (
            HEAD + "\na = Derivation('a', start=0.5 * x[t])\n",
            ", line 7: a: start: write Rational(...) for the floating-point number 0.500000000000000",
        ),
        (
            HEAD + "a = Derivation('a', start=x[t])\na.step(x[tau], because='wrong name')\n",
            ", line 7: a: step 1: free index tau does not occur in the start (free there: t)",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(write, text, message):
    path = write(text)
    with pytest.raises(DerivationFileError) as caught:
        load_derivations(path)
    assert str(caught.value) == f"{path}{message}"
    assert isinstance(caught.value, DerivationError)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DerivationFileError, match=r"none\.py: no such file, expected a Python file"):
        load_derivations(tmp_path / "none.py")
    with pytest.raises(DerivationFileError, match=r": is a directory, expected a Python file"):
        load_derivations(tmp_path)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "binary.py"
    path.write_bytes(b"\x00\xff")
    with pytest.raises(DerivationFileError, match=r"binary\.py.*: not Python: "):
        load_derivations(path)


def test_a_file_may_define_dataclasses(write):
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        + HEAD
        + "@dataclass\nclass Sizes:\n    tokens: int\n\nchain = Derivation('a', start=x[t])\n"
    )
    (derivation,) = load_derivations(write(text))
    assert derivation.name == "a"
    assert not [name for name in sys.modules if name.startswith("attcheck_derivations")]


def test_an_interrupt_goes_through(write):
    with pytest.raises(KeyboardInterrupt):
        load_derivations(write("raise KeyboardInterrupt\n"))


def test_the_template_runs_as_it_stands(write):
    (derivation,) = load_derivations(write(derivation_template("my-gradient")))
    assert derivation.name == "my-gradient"
    assert derivation.check().status == "proved"


@pytest.mark.parametrize("name", ["", "a b", '"', "x'y", "-", "a--b"])
def test_names_for_the_template(name):
    with pytest.raises(DerivationFileError, match="expected a name in kebab case"):
        derivation_template(name)
