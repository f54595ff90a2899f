"""Problem files: what is read, and one line for everything that cannot be."""

from __future__ import annotations

import json
import pickle
import re
import zipfile

import numpy as np
import pytest

from checks.datasets import STATIONARY_TWO_INPUTS, TWO_LIMITS
from checks.losses import EXPONENTIAL, LOGISTIC
from checks.problem_files import ProblemFileError, load_problem
from checks.problems import JointProblem

KEYS = [[[1, 0], [0, 0]], [["-2", 1], [0, "0/3"]]]
SCORES = [[1, 0], [1, 0]]
TOKENS = [[[1, 0], [0, 0.5]], [[-2, 1], [0, 0]]]
SELECTION = {"keys": KEYS, "scores": SCORES}
JOINT = {"tokens": TOKENS, "labels": [1, -1], "head": ["1/2", 1]}


def written(tmp_path, content, name="problem.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def refusal(path):
    """The error, which is one line that starts with the file."""
    with pytest.raises(ProblemFileError) as caught:
        load_problem(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_keys_and_scores_with_fractions(tmp_path):
    problem = load_problem(written(tmp_path, SELECTION))
    np.testing.assert_array_equal(problem.keys, TWO_LIMITS.keys)
    np.testing.assert_array_equal(problem.scores, TWO_LIMITS.scores)
    assert problem.loss is LOGISTIC
    assert load_problem(written(tmp_path, SELECTION | {"loss": "exponential"})).loss is EXPONENTIAL


def test_files_hold_what_problems_write(tmp_path):
    problem = load_problem(written(tmp_path, STATIONARY_TWO_INPUTS.to_dict()))
    assert problem.to_dict() == STATIONARY_TWO_INPUTS.to_dict()


@pytest.mark.parametrize("keys", [None, [[[1], [2]], [[3], [5]]]], ids=["tokens", "own keys"])
def test_tokens_labels_and_head(tmp_path, keys):
    fields = JOINT if keys is None else JOINT | {"keys": keys}
    expected = JointProblem(TOKENS, [1, -1], keys).at_head([0.5, 1])
    assert load_problem(written(tmp_path, fields)).to_dict() == expected.to_dict()
    arrays = {name: np.array(value, dtype=float) for name, value in (fields | {"head": [0.5, 1]}).items()}
    np.savez(tmp_path / "joint.npz", **arrays)
    assert load_problem(tmp_path / "joint.npz").to_dict() == expected.to_dict()


def test_archives_hold_the_name_of_the_loss(tmp_path):
    np.savez(tmp_path / "p.npz", keys=TWO_LIMITS.keys, scores=TWO_LIMITS.scores, loss="exponential")
    problem = load_problem(tmp_path / "p.npz")
    assert problem.loss is EXPONENTIAL
    np.testing.assert_array_equal(problem.keys, TWO_LIMITS.keys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"not JSON \(.*\), expected keys and scores, or tokens, labels and head"),
        ("[" * 100_000, r"not JSON \(.*\), expected keys and scores.*"),
        ("[1]", r"got list, expected an object with keys and scores, or tokens, labels and head"),
        ("{}", r"keys: missing beside no fields, expected keys and scores, or .*"),
        ('{"keys": [], "keys": []}', r"keys: got the field twice, expected it once"),
        ({"keys": KEYS}, r"scores: missing beside keys, expected keys and scores, or .*"),
        (SELECTION | {"weights": 1}, r"weights: unknown field, expected only keys, scores, tokens, .*"),
        (SELECTION | {"head": [1]}, r"scores: got them beside head, expected .*, not both"),
        (SELECTION | JOINT, r"scores: got them beside tokens, labels, head, expected .*, not both"),
        ({"tokens": TOKENS, "head": [1, 1]}, r"labels: missing beside tokens, head, expected .*"),
        (SELECTION | {"keys": [[1, 0]]}, r"keys: got shape \(1, 2\), expected an array of shape \(n, T, D\)"),
        (SELECTION | {"keys": [[[1], [0, 2]]]}, r"keys: got ragged nested lists, expected .*"),
        (SELECTION | {"keys": 3}, r"keys: got shape \(\), expected .*"),
        (SELECTION | {"scores": [[1, 0]]}, r"scores: got shape \(1, 2\), expected \(2, 2\) to match keys .*"),
        ('{"keys": [[[1], [NaN]]], "scores": [[1, 0]]}', r"keys\[0, 1, 0\]: got nan, expected a finite .*"),
        (
            SELECTION | {"scores": [[1, "x"]]},
            r"scores\[0\]\[1\]: got 'x', expected a number or a fraction .*",
        ),
        (SELECTION | {"scores": [[1, None]]}, r"scores\[0\]\[1\]: got None, expected a number .*"),
        ({"keys": [[[1]]], "scores": [[1]]}, r"keys: got T = 1 token per input .*, expected at least 2.*"),
        (SELECTION | {"loss": "hinge"}, r"loss: got 'hinge', expected one of .*logistic.*"),
        (SELECTION | {"loss": [1]}, r"loss: got \[1\], expected one of .*"),
        (JOINT | {"labels": [1, 0]}, r"labels\[1\]: got 0, expected 1 or -1"),
        (JOINT | {"labels": [1]}, r"labels: got shape \(1,\), expected \(2,\)"),
        (JOINT | {"head": [1]}, r"head: got shape \(1,\), expected \(2,\) to match the tokens"),
        (JOINT | {"tokens": [[[1, 2]]]}, r"tokens: got T = 1 token per input .*, expected at least 2"),
        (JOINT | {"keys": [[[1], [2]]]}, r"keys: got shape \(1, 2, 1\), expected \(n, T\) = \(2, 2\) .*"),
    ],
)
def test_malformed_json_gets_one_line(tmp_path, content, message):
    assert re.fullmatch(message, refusal(written(tmp_path, content)))


@pytest.mark.parametrize("name", ["missing.json", "missing.npz"])
def test_missing_file(tmp_path, name):
    assert refusal(tmp_path / name) == "No such file or directory, expected a problem file"


def test_a_folder_and_bytes_that_are_no_text(tmp_path):
    assert "directory" in refusal(tmp_path)
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00")
    assert refusal(tmp_path / "p.json").startswith("not JSON (")


def test_an_archive_that_is_none(tmp_path):
    path = written(tmp_path, "{}", "problem.npz")
    assert refusal(path).startswith(
        "not a zip archive, expected an archive of numpy.savez with keys and scores"
    )


class Executed(Exception):  # noqa: N818
    """Raised if a file is unpickled."""


class Trap:
    def __reduce__(self):
        return _raise, ()


def _raise():
    raise Executed


def test_nothing_in_an_archive_is_executed(tmp_path):
    np.savez(tmp_path / "objects.npz", keys=np.array([Trap()], dtype=object), scores=[[1.0, 0.0]])
    message = refusal(tmp_path / "objects.npz")
    assert re.fullmatch(
        r"keys: cannot be read \(.*allow_pickle=False\), expected an array of numbers", message
    )
    with zipfile.ZipFile(tmp_path / "pickle.npz", "w") as archive:
        archive.writestr("keys", pickle.dumps(Trap()))
    assert refusal(tmp_path / "pickle.npz") == "keys: not an array of NumPy, expected an array of numbers"
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Trap()))
    assert refusal(tmp_path / "bare.npz").startswith("not a zip archive")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"keys": np.zeros((1, 2, 1))}, r"scores: missing beside keys, expected .*"),
        ({"weights": np.zeros(1)}, r"weights: unknown field, expected only .*"),
        (
            {"keys": np.zeros((1, 2, 1)), "scores": [["a", "b"]]},
            r"scores: got entries of type <U1, expected .*",
        ),
        ({"keys": np.zeros((1, 2, 1)), "scores": [[1j, 2]]}, r"scores: got entries of type complex128, .*"),
        ({"keys": np.zeros((1, 2, 1)), "scores": [[np.nan, 2]]}, r"scores\[0, 0\]: got nan, expected .*"),
        ({"keys": np.zeros((1, 2, 1)), "scores": [[1, 2]], "loss": 3}, r"loss: got array\(3\), expected .*"),
    ],
)
def test_malformed_arrays_get_one_line(tmp_path, arrays, message):
    np.savez(tmp_path / "p.npz", **arrays)
    assert re.fullmatch(message, refusal(tmp_path / "p.npz"))


def test_a_damaged_archive(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, keys=TWO_LIMITS.keys, scores=TWO_LIMITS.scores)
    whole = path.read_bytes()
    at = whole.index(b"NUMPY") + 150  # among the numbers of the first array
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert re.fullmatch(r"keys: cannot be read \(Bad CRC-32.*\), expected an array of numbers", refusal(path))
