"""Counterexample files: every bit kept, readable, and bad files named in one line."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from checks import CORRELATION, EXPONENTIAL, LOGISTIC, Cone, JointProblem, SelectionProblem
from checks import strategies as attst
from checks.store import (
    Counterexample,
    CounterexampleError,
    NotStorableError,
    argument_lines,
    decode,
    decoded_arguments,
    encode,
    load,
    readable_json,
    save,
    write_atomically,
)

EXAMPLE = Counterexample(
    claim="small/drops-b",
    claim_file=None,
    statement="Without B: x is small.",
    arguments={"x": 3, "start": {"type": "array", "values": ["3/8", -1, 0.1]}},
    decision={"name": "diverges", "outcome": "no"},
    why="diverges: it tends to a point",
    seed=7,
    origin="found",
)


def through_json(value):
    """What comes back when `value` is written to a file and read."""
    return decode(json.loads(json.dumps(encode(value))))


def bits(value):
    """A key that differs wherever two values differ in type or in a bit."""
    if isinstance(value, float):
        return ("float", np.float64(value).tobytes() if not math.isnan(value) else b"nan")
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return (type(value), [bits(item) for item in value])
    if isinstance(value, dict):
        return ("dict", {key: bits(item) for key, item in value.items()})
    if isinstance(value, SelectionProblem):
        return ("selection", bits(value.keys), bits(value.scores), value.loss)
    if isinstance(value, JointProblem):
        return ("joint", bits(value.tokens), bits(value.labels), bits(value.keys), value.keys is value.tokens)
    if isinstance(value, Cone):
        return ("cone", bits(value.axis), bits(value.mu), bits(value.radius))
    return (type(value), value)


def arrays(dtype, elements=None):
    shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=3)
    return hnp.arrays(dtype, shapes, elements=elements)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.floats(),
    st.fractions(),
    arrays(np.float64, FINITE),
    arrays(np.float32, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    arrays(np.int64),
    arrays(np.uint8),
    arrays(np.bool_),
)
VALUES = st.recursive(
    LEAVES,
    lambda items: st.one_of(
        st.lists(items, max_size=3),
        st.lists(items, max_size=3).map(tuple),
        st.dictionaries(st.text(), items, max_size=3),
    ),
    max_leaves=6,
)
LOSSES = st.sampled_from([LOGISTIC, EXPONENTIAL, CORRELATION])
LATTICES = st.sampled_from([8, 3, 1024, None])


# --- Values -------------------------------------------------------------------------------------


@given(VALUES)
def test_values_come_back_bit_for_bit(value):
    assert bits(through_json(value)) == bits(value)


@pytest.mark.parametrize(
    "value", [-0.0, 5e-324, -2.5e-310, math.inf, -math.inf, math.nan, 0.1, 1 / 3, 1e308, 2.0**-13]
)
def test_difficult_floats_come_back_alone_and_in_arrays(value):
    assert bits(through_json(value)) == bits(value)
    if math.isfinite(value):
        array = np.array([[value, 1.0]])
        assert bits(through_json(array)) == bits(array)


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.float64(-0.0), -0.0),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.int32(-3), -3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.float64(math.inf), math.inf),
    ],
)
def test_numpy_scalars_come_back_as_python_numbers(scalar, plain):
    assert bits(through_json(scalar)) == bits(plain)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (1, 2, 0), ()])
def test_the_shape_of_an_array_is_kept(shape):
    array = np.ones(shape)
    assert through_json(array).shape == shape


def test_a_dictionary_may_have_a_key_called_type():
    value = {"type": "array", "values": {"type": [1]}}
    assert through_json(value) == value


@given(problem=LATTICES.flatmap(lambda lattice: attst.selection_problems(lattice=lattice)), loss=LOSSES)
def test_selection_problems_come_back_with_every_loss(problem, loss):
    problem = SelectionProblem(problem.keys, problem.scores, loss)
    assert bits(through_json(problem)) == bits(problem)


@given(joint=LATTICES.flatmap(lambda lattice: attst.joint_problems(lattice=lattice)), own=st.booleans())
def test_joint_problems_come_back_with_and_without_keys(joint, own):
    if own:
        joint = JointProblem(joint.tokens, joint.labels, -0.1 * joint.tokens)
    assert bits(through_json(joint)) == bits(joint)


@given(
    axis=attst.nonzero(attst.vectors(4)),
    mu=st.floats(1e-300, 2),
    radius=st.floats(0, 1e300),
)
def test_cones_come_back(axis, mu, radius):
    cone = Cone(axis, mu, radius)
    assert bits(through_json(cone)) == bits(cone)


def test_a_cone_whose_axis_is_made_of_readable_fractions_comes_back():
    cone = Cone([1, 1, -1, 1], 0.5, 1)
    assert encode(cone)["axis"] == ["1/2", "1/2", "-1/2", "1/2"]
    assert bits(through_json(cone)) == bits(cone)


def test_lattice_values_appear_as_fractions():
    problem = SelectionProblem([[[0.375, -1], [0.1, 2]]], [[0.5, -0.125]])
    stored = encode(problem)
    assert stored["keys"] == [[["3/8", -1], [0.1, 2]]]
    assert stored["scores"] == [["1/2", "-1/8"]]
    assert encode(np.array([0.875, 1 / 3])) == {"type": "array", "values": ["7/8", 1 / 3]}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (1j, "x"),
        ({3: 1}, "x"),
        ({1, 2}, "x"),
        (object(), "x"),
        ([0, {"a": (1, b"")}], "x[1].a[1]"),
        (np.array([1j]), "x"),
        (np.array([1.0, math.nan]), "x"),
        (np.array([object()]), "x"),
        (np.ones((0, 3)), "x"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), "x"),
        (np.timedelta64(1, "ns"), "x"),
        (np.longdouble(1), "x"),
        (np.ones(1, np.longdouble), "x"),
        (LOGISTIC, "x"),
    ],
)
def test_values_that_files_do_not_know_are_named(value, where):
    with pytest.raises(NotStorableError) as caught:
        json.dumps(encode(value, "x"))
    assert str(caught.value).startswith(f"{where}: a")
    assert "cannot be written" in str(caught.value)


def test_subclasses_are_not_stored_as_what_they_derive_from():
    class Special(SelectionProblem):
        pass

    with pytest.raises(NotStorableError, match="x: a Special"):
        encode(Special([[[1], [0]]], [[1, 0]]), "x")


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({}, "x.type: got None, expected one of float"),
        ({"type": "complex", "value": 1}, "x.type: got 'complex', expected one of"),
        ({"type": []}, "x.type: got"),
        ({"type": {}}, "x.type: got"),
        ({"type": "float"}, "x.value: missing"),
        ({"type": "float", "value": "abc"}, "x"),
        ({"type": "float", "value": None}, "x"),
        ({"type": "Fraction", "value": "half"}, "x"),
        ({"type": "Fraction", "value": "1/0"}, "x"),
        ({"type": "Fraction", "value": []}, "x"),
        ({"type": "array"}, "x.values: missing"),
        ({"type": "array", "values": [[1], [1, 2]]}, "x"),
        ({"type": "array", "values": [1, math.nan]}, "x"),
        ({"type": "array", "values": [[math.inf]]}, "x"),
        ({"type": "array", "values": ["1/0"]}, "x.values[0]: got '1/0', expected a number or a fraction"),
        ({"type": "array", "values": ["2^3"]}, "x.values[0]"),
        ({"type": "array", "values": [True]}, "x.values[0]: got True, expected a number"),
        ({"type": "array", "values": [[None]]}, "x.values[0][0]: got None"),
        ({"type": "array", "values": [10**400]}, "x.values[0]: got an integer too large"),
        ({"type": "array", "dtype": "int8", "values": [300]}, "x"),
        ({"type": "array", "dtype": "int8", "values": ["one"]}, "x"),
        ({"type": "array", "dtype": "number", "values": [1]}, "x"),
        ({"type": "array", "dtype": "object", "values": [{}]}, "x"),
        ({"type": "array", "dtype": "float32", "values": [math.nan]}, "x"),
        ({"type": "tuple"}, "x.items: missing"),
        ({"type": "tuple", "items": 3}, "x"),
        ({"type": "tuple", "items": "ab"}, "x"),
        ({"type": "tuple", "items": [1, {"type": 3}]}, "x.items[1].type: got 3"),
        ({"type": "dict", "items": [1]}, "x"),
        ([0, {"type": "dict", "items": {"a": {}}}], "x[1].a.type: got None"),
        ({"type": "SelectionProblem", "scores": [[1, 0]]}, "x.keys: missing"),
        ({"type": "SelectionProblem", "keys": [[[1], [0]]]}, "x.scores: missing"),
        ({"type": "SelectionProblem", "keys": [[[1], [0]]], "scores": [[1, 0]], "loss": "hinge"}, "x.loss"),
        (
            {"type": "SelectionProblem", "keys": [[[1], [0]]], "scores": [[1, 0]], "w": 1},
            "x.w: unknown field",
        ),
        ({"type": "SelectionProblem", "keys": [[[1], [0]]], "scores": [[1, 0, 0]]}, "x.scores: got shape"),
        ({"type": "SelectionProblem", "keys": [[1, 0]], "scores": [[1, 0]]}, "x.keys: got shape (1, 2)"),
        ({"type": "SelectionProblem", "keys": [[[1]]], "scores": [[1]]}, "x.keys: got T = 1 token"),
        ({"type": "SelectionProblem", "keys": [], "scores": []}, "x.keys: got shape (0,)"),
        ({"type": "SelectionProblem", "keys": [[[1], [math.nan]]], "scores": [[1, 0]]}, "x.keys[0, 1, 0]"),
        ({"type": "SelectionProblem", "keys": [[[1], [0]]], "scores": [[math.inf, 0]]}, "x.scores[0, 0]"),
        ({"type": "SelectionProblem", "keys": "none", "scores": [[1, 0]]}, "x.keys"),
        ({"type": "JointProblem", "tokens": [[[1], [0]]]}, "x.labels: missing"),
        ({"type": "JointProblem", "labels": [1]}, "x.tokens: missing"),
        (
            {"type": "JointProblem", "tokens": [[[1], [0]]], "labels": [2]},
            "x.labels[0]: got 2, expected 1 or",
        ),
        ({"type": "JointProblem", "tokens": [[[1]]], "labels": [1]}, "x.tokens: got T = 1"),
        ({"type": "JointProblem", "tokens": [[[1], [0]]], "labels": [1, 1]}, "x.labels: got shape (2,)"),
        (
            {"type": "JointProblem", "tokens": [[[1], [0]]], "labels": [1], "keys": [[[1]]]},
            "x.keys: got shape",
        ),
        ({"type": "Cone", "mu": 1, "radius": 1}, "x.axis: missing"),
        ({"type": "Cone", "axis": [0, 0], "mu": 1, "radius": 1}, "x.axis: got the zero vector"),
        ({"type": "Cone", "axis": [1, 0], "mu": 3, "radius": 1}, "x.mu: got 3"),
        ({"type": "Cone", "axis": [1, 0], "mu": [1], "radius": 1}, "x.mu"),
        ({"type": "Cone", "axis": [1, 0], "mu": 1, "radius": -1}, "x.radius: got -1"),
        ({"type": "Cone", "axis": [1, 0], "mu": 1, "radius": [1]}, "x"),
        ({"type": "Cone", "axis": 1, "mu": 1, "radius": 1}, "x.axis: got shape ()"),
    ],
)
def test_malformed_encodings_are_refused_with_their_place(stored, message):
    with pytest.raises(ValueError, match=r"\A") as caught:
        decode(stored, "x")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_cone_from_a_file_written_by_hand_has_a_unit_axis():
    cone = decode({"type": "Cone", "axis": [3, 4], "mu": "1/2", "radius": "3/8"})
    np.testing.assert_allclose(cone.axis, [0.6, 0.8], rtol=1e-15)
    assert (cone.mu, cone.radius) == (0.5, 0.375)


def test_values_nested_too_deeply_are_refused():
    stored = []
    for _ in range(2_000):
        stored = [stored]
    with pytest.raises(ValueError, match=r"arguments.*nested"):
        decoded_arguments({"x": stored})


# --- Files --------------------------------------------------------------------------------------


def test_a_file_comes_back_whole(tmp_path):
    path = save(EXAMPLE, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "small--drops-b.json"
    assert load(path) == EXAMPLE
    assert save(EXAMPLE, tmp_path, severe=True).name == "small--drops-b.severe.json"


def test_a_file_says_with_what_it_was_made(tmp_path):
    data = json.loads(save(EXAMPLE, tmp_path).read_text(encoding="utf-8"))
    assert set(data["versions"]) == {"python", "attcheck", "numpy", "scipy", "hypothesis"}


def test_arguments_are_shown_as_one_would_type_them():
    assert decoded_arguments(EXAMPLE.arguments)["x"] == 3
    problem = SelectionProblem([[[0.375, -1], [0, 2]]], [[0.5, 0]])
    lines = argument_lines({"x": 3, "problem": encode(problem)})
    assert lines == [
        "x = 3",
        "problem = SelectionProblem(keys=[[[0.375, -1], [0, 2]]], scores=[[0.5, 0]], loss=LOGISTIC)",
    ]
    with pytest.raises(ValueError, match=r"arguments\.problem\.type: got None"):
        argument_lines({"problem": {}})


@given(st.recursive(st.one_of(st.none(), st.floats(allow_nan=False), st.text(max_size=60)), st.lists))
def test_readable_json_is_json(value):
    assert json.loads(readable_json({"a": value})) == {"a": value}


def test_readable_json_puts_short_rows_on_one_line():
    keys = [[[f"{k}/8"] * 4 for k in range(3)] for _ in range(4)]
    lines = readable_json({"keys": keys, "seed": 0}).splitlines()
    assert (
        '    [["0/8", "0/8", "0/8", "0/8"], ["1/8", "1/8", "1/8", "1/8"], ["2/8", "2/8", "2/8", "2/8"]],'
        in lines
    )
    assert max(map(len, lines)) <= 100


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CounterexampleError, match=r"none\.json: No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(CounterexampleError, match=r": Is a directory"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"seed": ' + b"9" * 10_000 + b"}", b"NULL"],
    ids=["empty", "cut off", "not UTF-8", "too deep", "too long a number", "a word"],
)
def test_what_is_not_json_is_refused(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(CounterexampleError, match=r"bad\.json: not JSON .* expected a counterexample file"):
        load(path)


@pytest.mark.parametrize("data", [[], [1, 2], 3, "text", None])
def test_json_of_another_kind_is_refused(data, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CounterexampleError, match=r"bad\.json: got \w+, expected a counterexample object"):
        load(path)


def stored_fields(tmp_path):
    data = json.loads(save(EXAMPLE, tmp_path).read_text(encoding="utf-8"))
    del data["versions"]  # For a reader; nothing depends on them.
    return data


FIELDS = ["claim", "claim_file", "statement", "arguments", "decision", "why", "seed", "origin"]


@pytest.mark.parametrize("name", FIELDS)
def test_every_missing_field_is_named(name, tmp_path):
    data = stored_fields(tmp_path)
    assert sorted(data) == sorted(FIELDS)
    del data[name]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CounterexampleError, match=rf"bad\.json: {name}: missing, expected ") as caught:
        load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("wrong", [1.5, True, [1]])
def test_every_field_of_a_wrong_type_is_named(name, wrong, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(stored_fields(tmp_path) | {name: wrong}))
    with pytest.raises(CounterexampleError, match=rf"bad\.json: {name}: got .*, expected ") as caught:
        load(path)
    assert "\n" not in str(caught.value)


# --- Writing ------------------------------------------------------------------------------------


def test_writing_makes_folders_and_replaces_files(tmp_path):
    path = tmp_path / "a" / "b" / "file.json"
    write_atomically(path, "first")
    write_atomically(path, "μ")
    assert path.read_text(encoding="utf-8") == "μ"
    assert os.listdir(path.parent) == ["file.json"]


def test_a_file_can_be_read_by_whom_the_umask_allows(tmp_path):
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "file.json", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(error, tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    path.write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(type(error)):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_text_that_is_not_unicode_can_be_written(tmp_path):
    # A lone surrogate, as Hypothesis can draw it.
    path = save(
        Counterexample(**(vars(EXAMPLE) | {"arguments": {"x": "\ud800"}, "why": "x was \ud800"})), tmp_path
    )
    assert load(path).arguments == {"x": "\ud800"}
