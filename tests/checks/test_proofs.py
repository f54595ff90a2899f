"""Symbolic statements as rows of a report, and the points that refute their false variants."""

from __future__ import annotations

import json

import pytest

import theory
from checks.catalogue import built_in, find
from checks.proofs import FalseVariant, Proof, examine_proof, run_witness
from checks.replay import replay
from checks.store import CounterexampleError, decoded_arguments, load

VARIANTS = [control for check in built_in() if isinstance(check, Proof) for control in check.controls]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_every_false_variant_is_refuted_at_a_point_that_a_file_keeps(variant, tmp_path):
    verdict = examine_proof(variant, 0, tmp_path)
    assert (verdict.status, verdict.as_expected) == ("refuted", True)
    result = replay(tmp_path / f"{variant.id.replace('/', '--')}.json")
    assert result.trial.outcome == "failed"
    assert result.trial.why in verdict.why


def test_without_a_store_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = examine_proof(find("softmax-jacobian/drops-sign"), 0, None)
    assert verdict.counterexample is None
    assert list(tmp_path.iterdir()) == []


def test_a_statement_that_is_false_is_not_as_expected(tmp_path):
    false = find("softmax-jacobian/drops-sign")
    assert isinstance(false, FalseVariant)
    claimed = theory.Statement(
        id="wrong",
        title="",
        source="",
        hypotheses=(),
        conclusion="",
        latex="",
        build=lambda: (false.variant.derivation(),),
        variants=(),
    )
    verdict = examine_proof(Proof(claimed), 0, tmp_path)
    assert (verdict.status, verdict.expected, verdict.as_expected) == ("refuted", "proved", False)


@pytest.fixture
def arguments(tmp_path):
    verdict = examine_proof(find("softmax-jacobian/drops-sign"), 0, tmp_path)
    return decoded_arguments(load(tmp_path / verdict.counterexample).arguments)


def test_a_step_holds_where_it_is_right(arguments):
    proof = find("softmax-jacobian")
    arguments["derivation"] = proof.derivations[0].name
    assert run_witness(proof, arguments).outcome == "passed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"derivation": "none"}, "derivation: got 'none', expected one of sign"),
        ({"derivation": 3}, "derivation: got 3, expected a str"),
        ({"step": 2}, "step: got 2, expected 1 to 1"),
        ({"step": None}, "step: got None, expected a int"),
        ({"witness": {}}, r"witness: got the fields \(\)"),
        ({"sizes": {}}, "the point gives no value of T"),
        ({"indices": {"t": 1}}, "the point gives no value of tau"),
        ({"values": {}}, r"the point gives no value of z\[1\]"),
        ({"values": {"z[1]": "a", "z[2]": "0"}}, "the point gives no values of both sides"),
        ({"values": []}, r"witness\.values: got \[\], expected an object"),
        ({"stand_in": "x"}, "stand_in: got 'x', expected one of"),
        ({"indices": {"t": 9, "tau": 1}}, "the point gives no value of"),
        ({"sizes": {"T": "many"}}, "the point gives no values of both sides"),
    ],
)
def test_a_file_that_gives_no_point_is_refused(arguments, change, message):
    arguments["witness"] |= {name: value for name, value in change.items() if name in arguments["witness"]}
    arguments |= {name: value for name, value in change.items() if name in arguments}
    with pytest.raises(ValueError, match=message):
        run_witness(find("softmax-jacobian/drops-sign"), arguments)


def test_the_file_is_named(tmp_path):
    verdict = examine_proof(find("softmax-jacobian/drops-sign"), 0, tmp_path)
    path = tmp_path / verdict.counterexample
    data = json.loads(path.read_text(encoding="utf-8"))
    data["arguments"]["step"] = 7
    path.write_text(json.dumps(data))
    with pytest.raises(CounterexampleError, match=r"drops-sign\.json: .*step: got 7, expected 1 to 1"):
        replay(path)
