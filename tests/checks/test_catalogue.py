"""Targets: ids, controls, files; what each bad one is told; and that files are read as their authors mean."""

from __future__ import annotations

import sys

import pytest

from checks import Claim, Control
from checks.catalogue import TargetError, built_in, find, load_checks, load_claims, resolve
from checks.claims import CLAIMS
from checks.proofs import Proof

FILE = """
from hypothesis import strategies as st
from checks import claim, control

@claim("{id}", statement="x is below 5.", x=st.integers(0, 4))
def small(x):
    assert x < 5

control(small, drops="the bound", x=st.integers(0, 99))
"""


def write(tmp_path, text, name="claims.py"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def ids(checks):
    return [check.id for check in checks]


# --- Ids ----------------------------------------------------------------------------------------


def test_by_default_everything_is_verified_statements_first():
    checks = resolve([])
    assert ids(checks) == [row.id for check in built_in() for row in (check, *check.controls)]
    kinds = [isinstance(check, Proof) for check in built_in()]
    assert kinds == sorted(kinds, reverse=True)
    assert [check for check in built_in() if isinstance(check, Claim)] == list(CLAIMS)


def test_no_two_built_in_checks_have_the_same_id():
    known = ids(resolve([]))
    assert len(known) == len(set(known))


@pytest.mark.parametrize("check", built_in(), ids=lambda check: check.id)
def test_an_id_stands_for_its_claim_and_all_controls(check):
    assert ids(resolve([check.id])) == [check.id, *ids(check.controls)]
    assert ids(resolve([check.id]))[1:] != []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_control_can_be_asked_for_alone(claim):
    for control in claim.controls:
        assert resolve([control.id]) == [control]
        assert find(control.id) is control
        assert isinstance(control, Control)


def test_a_variant_of_a_statement_can_be_asked_for_alone():
    variant = next(check for check in built_in() if isinstance(check, Proof)).controls[0]
    assert ids(resolve([variant.id])) == [variant.id]


def test_the_order_of_the_targets_is_kept_and_repetition_ignored():
    assert ids(resolve(["thm3-local/drops-local-optimality", "lemma1", "lemma1"])) == [
        "thm3-local/drops-local-optimality",
        "lemma1",
        "lemma1/drops-the-step-ratio",
    ]
    statement = built_in()[0].id
    assert len(resolve([statement, statement])) == len(resolve([statement]))


def test_claims_can_be_passed_as_objects():
    claim = CLAIMS[0]
    assert resolve([claim]) == [claim, *claim.controls]
    assert resolve([claim.controls[0]]) == [claim.controls[0]]


@pytest.mark.parametrize(
    ("id", "near"),
    [
        ("lemma-1", "lemma1"),
        ("thm2-norm-diverge", "thm2-norm-diverges"),
        ("thm3-local/drops-local-optimal", "thm3-local/drops-local-optimality"),
        ("softmax-jacobain", "softmax-jacobian"),
    ],
)
def test_unknown_ids_are_told_what_is_near(id, near):
    with pytest.raises(TargetError, match=rf"\A{id}: unknown id; did you mean .*{near}"):
        resolve([id])


def test_an_id_like_no_other_is_told_where_to_look():
    with pytest.raises(TargetError, match=r"\Axyzzy: unknown id; `attcheck list` shows the ids"):
        resolve(["xyzzy"])


@pytest.mark.parametrize("target", [3, None, ["lemma1"]])
def test_a_target_of_another_kind_is_refused(target):
    with pytest.raises(TargetError, match="expected an id, a path or a claim"):
        resolve([target])


# --- Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [True, False])
def test_a_file_stands_for_its_claims_and_their_controls(as_text, tmp_path):
    path = write(tmp_path, FILE.format(id="small"))
    assert ids(resolve([str(path) if as_text else path])) == ["small", "small/drops-the-bound"]


def test_claims_come_in_the_order_of_their_definition(tmp_path):
    one = FILE.format(id="zeta").replace("small", "first")
    two = FILE.format(id="alpha").replace("small", "second")
    path = write(tmp_path, one + two)
    assert ids(load_claims(path)) == ["zeta", "alpha"]
    assert ids(load_checks(path)) == ["zeta", "zeta/drops-the-bound", "alpha", "alpha/drops-the-bound"]


def test_the_same_file_twice_is_read_once(tmp_path, monkeypatch):
    path = write(tmp_path, FILE.format(id="small"))
    monkeypatch.chdir(tmp_path)
    assert len(resolve([path, "claims.py", "./claims.py"])) == 2


def test_files_and_ids_can_be_mixed(tmp_path):
    path = write(tmp_path, FILE.format(id="small"))
    assert ids(resolve([path, "lemma1"]))[0::2] == ["small", "lemma1"]


def test_an_alias_is_not_a_second_claim(tmp_path):
    path = write(tmp_path, FILE.format(id="small") + "\nalso = small\n")
    assert ids(load_claims(path)) == ["small"]


def test_the_same_id_in_two_files_is_refused_and_both_are_named(tmp_path):
    one = write(tmp_path, FILE.format(id="small"), "one.py")
    two = write(tmp_path, FILE.format(id="small"), "two.py")
    with pytest.raises(TargetError, match=r"\Asmall: defined twice, in .*one\.py and .*two\.py"):
        resolve([one, two])


def test_the_same_id_twice_in_one_file_is_refused(tmp_path):
    text = FILE.format(id="small")
    path = write(
        tmp_path, text + text.replace("small(x)", "other(x)").replace("control(small", "control(other")
    )
    with pytest.raises(TargetError, match=r"\Asmall: defined twice"):
        resolve([path])


def test_an_id_of_the_catalogue_cannot_be_taken_by_a_file_that_runs_beside_it(tmp_path):
    path = write(tmp_path, FILE.format(id="lemma1"))
    assert ids(resolve([path])) == ["lemma1", "lemma1/drops-the-bound"]
    with pytest.raises(
        TargetError, match=r"\Alemma1: defined twice, in .*claims\.py and the built-in catalogue"
    ):
        resolve([path, "lemma1"])


def test_imported_claims_belong_to_where_they_come_from(tmp_path, monkeypatch):
    write(tmp_path, FILE.format(id="elsewhere"), "attcheck_test_elsewhere.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    imports = "from attcheck_test_elsewhere import small as other\nfrom checks.claims import lemma1\n"
    path = write(tmp_path, imports + FILE.format(id="own"))
    assert ids(load_claims(path)) == ["own"]
    only = write(tmp_path, imports, "only_imports.py")
    with pytest.raises(TargetError, match=r"only_imports\.py: defines no claims"):
        load_claims(only)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 3\n", r"claims\.py: defines no claims, expected at least one function decorated with @claim"),
        ("", r"claims\.py: defines no claims"),
        ("def f(:\n", r"claims\.py: SyntaxError: .*line 1"),
        ("raise KeyError('k')\n", r"claims\.py: KeyError: 'k' \(claims\.py, line 1\)"),
        ("import sys\nsys.exit(0)\n", r"claims\.py: SystemExit: 0 \(claims\.py, line 2\)"),
        ("import nowhere_to_be_found\n", r"claims\.py: ModuleNotFoundError: .*nowhere_to_be_found"),
        ("1 / 0\n", r"claims\.py: ZeroDivisionError: division by zero \(claims\.py, line 1\)"),
        (FILE.format(id="Not Kebab"), r"claims\.py: ClaimError: claim: got the id 'Not Kebab'"),
        ("x = 'caf\xe9'\n".encode("latin-1"), r"claims\.py: SyntaxError: .*utf-8"),
        (b"\x00\x01", r"claims\.py: SyntaxError: .*null bytes"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_on_one_line(text, message, tmp_path):
    path = write(tmp_path, text)
    for _ in range(2):
        with pytest.raises(TargetError, match=message) as caught:
            resolve([path])
        assert "\n" not in str(caught.value)


def test_an_interrupt_while_a_file_is_read_is_passed_on(tmp_path):
    path = write(tmp_path, "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        resolve([path])


def test_missing_files_and_folders_are_told_apart(tmp_path):
    with pytest.raises(TargetError, match=r"none\.py: no such file, expected a Python file with claims"):
        resolve([tmp_path / "none.py"])
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(TargetError, match=r"folder\.py: is not a file, expected a Python file"):
        resolve([str(tmp_path / "folder.py")])
    with pytest.raises(TargetError, match=r"is not a file, expected a Python file"):
        resolve([str(tmp_path)])


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = write(tmp_path, "claims", "notes.txt")
    with pytest.raises(TargetError, match=r"notes\.txt: expected a Python file \(name ending in \.py\)"):
        resolve([str(path)])


def test_names_with_blanks_and_letters_of_other_alphabets_are_fine(tmp_path):
    path = write(tmp_path, FILE.format(id="small"), "my claims on μ.py")
    assert ids(load_claims(path)) == ["small"]


def test_classes_of_a_claim_file_can_be_pickled(tmp_path):
    import pickle

    text = "from dataclasses import dataclass\n@dataclass\nclass Pair:\n    a: int\n"
    text += FILE.format(id="small") + "\nsmall.body.pair = Pair(3)\n"
    pair = load_claims(write(tmp_path, text))[0].body.pair
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_reading_a_file_leaves_nothing_beside_it(tmp_path, monkeypatch):
    # Stale bytecode stands for a file of the same size that was edited within the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    load_claims(write(tmp_path, FILE.format(id="small")))
    assert [path.name for path in tmp_path.iterdir()] == ["claims.py"]


def test_claims_that_share_a_name_or_stand_in_a_list_are_all_found(tmp_path):
    path = tmp_path / "claims.py"
    path.write_text(
        "from hypothesis import strategies as st\n"
        "from checks import claim\n"
        "made = []\n"
        "for k in range(2):\n"
        '    @claim(f"claim-{k}", statement="It holds.", x=st.integers())\n'
        "    def prop(x):\n"
        "        pass\n"
        "    made.append(prop)\n"
    )
    assert [claim.id for claim in load_claims(path)] == ["claim-0", "claim-1"]


def test_a_folder_with_the_name_of_an_id_does_not_hide_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lemma1").mkdir()
    assert resolve(["lemma1"])[0].id == "lemma1"


def test_a_module_beside_a_claim_file_can_be_imported(tmp_path):
    (tmp_path / "beside_the_claims.py").write_text("LIMIT = 3\n")
    path = tmp_path / "claims.py"
    path.write_text(
        "from hypothesis import strategies as st\n"
        "from checks import claim\n"
        "from beside_the_claims import LIMIT\n"
        '@claim("small", statement="x is small.", x=st.integers(0, LIMIT))\n'
        "def small(x):\n"
        "    assert x <= LIMIT\n"
    )
    assert [claim.id for claim in load_claims(path)] == ["small"]
