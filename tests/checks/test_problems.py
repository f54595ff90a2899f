from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given

from checks import EXPONENTIAL, LOGISTIC, JointProblem, SelectionProblem, cross_attention
from checks import strategies as attst

KEYS = [[[1, 0], [0, 1]]]
SCORES = [[1, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((KEYS[0], SCORES), r"keys: got shape \(2, 2\), expected an array of shape \(n, T, D\)"),
        ((KEYS, [[1, 0, 2]]), r"scores: got shape \(1, 3\), expected \(1, 2\) to match keys"),
        (([[[1, 0]]], [[1]]), r"keys: got T = 1 token per input .* nothing to select"),
        (([[[1, math.nan], [0, 1]]], SCORES), r"keys\[0, 0, 1\]: got nan, expected a finite"),
        ((KEYS, [[math.inf, 0]]), r"scores\[0, 0\]: got inf, expected a finite"),
        ((np.zeros((0, 2, 2)), np.zeros((0, 2))), r"keys: got shape \(0, 2, 2\), expected no axis"),
        (([[[1, 0], [0]]], SCORES), r"keys: got ragged nested lists"),
        ((KEYS, [["a", "b"]]), r"scores: got entries of type <U1"),
        ((KEYS, SCORES, "logistic"), r"loss: got 'logistic', expected LOGISTIC"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        SelectionProblem(*arguments)


@pytest.mark.parametrize(
    ("keys", "scores", "loss", "message"),
    [
        ([[[1e300], [0]]], [[1, 0]], LOGISTIC, r"keys\[0, 0, 0\]: got 1e\+300, expected 0 or a size from"),
        ([[[5e-324], [0]]], [[1, 0]], LOGISTIC, r"keys\[0, 0, 0\]: got 4.94066e-324, expected 0 or a size"),
        ([[[1], [0]]], [[1.7e308, 0]], LOGISTIC, r"scores\[0, 0\]: got 1.7e\+308, expected 0 or a size"),
        ([[[1], [0]]], [[0, -800]], EXPONENTIAL, "scores: got -800, expected the exponential loss of it"),
        (np.ma.array([[[1.0], [0.0]]], mask=[[[True], [False]]]), [[1, 0]], LOGISTIC, "got a masked array"),
    ],
)
def test_what_cannot_be_computed_with_is_refused(keys, scores, loss, message):
    with pytest.raises(ValueError, match=message):
        SelectionProblem(keys, scores, loss)


def test_problem_is_frozen_and_independent_of_its_arguments():
    keys = np.array(KEYS, dtype=float)
    problem = SelectionProblem(keys, SCORES)
    keys[0, 0, 0] = 7
    assert problem.keys[0, 0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.keys[0, 0, 0] = 7
    with pytest.raises(AttributeError):
        problem.scores = None


def test_query_of_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"p: got shape \(3,\), expected \(2,\)"):
        SelectionProblem(KEYS, SCORES).risk([1, 2, 3])


@given(problem=attst.selection_problems(lattice=None))
def test_json_restores_every_bit(problem):
    stored = json.loads(json.dumps(problem.to_dict()))
    again = SelectionProblem.from_dict(stored)
    np.testing.assert_array_equal(again.keys, problem.keys)
    np.testing.assert_array_equal(again.scores, problem.scores)
    assert again.loss is problem.loss


def test_lattice_entries_are_stored_as_fractions():
    problem = SelectionProblem([[[0.125, -2], [0.1, 0]]], [[1, -0.75]], EXPONENTIAL)
    assert problem.to_dict() == {
        "keys": [[["1/8", -2], [0.1, 0]]],
        "scores": [[1, "-3/4"]],
        "loss": "exponential",
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"keys": KEYS}, r"problem.scores: missing"),
        ({"keys": KEYS, "scores": SCORES, "lost": 1}, r"problem.lost: unknown field"),
        ({"keys": KEYS, "scores": SCORES, "loss": "hinge"}, r"problem.loss: got 'hinge'"),
        ({"keys": [[["1/0", 0], [0, 1]]], "scores": SCORES}, r"keys\[0\]\[0\]\[0\]: got '1/0'"),
        ({"keys": [[[None, 0], [0, 1]]], "scores": SCORES}, r"keys\[0\]\[0\]\[0\]: got None"),
        ([1, 2], r"problem: got list, expected an object"),
    ],
)
def test_malformed_json_is_named(data, message):
    with pytest.raises(ValueError, match=message):
        SelectionProblem.from_dict(data)


def test_joint_problem_at_a_head_has_label_times_readout_as_scores():
    joint = JointProblem([[[1, 2], [0, 1]], [[1, 0], [3, 1]]], [1, -1])
    problem = joint.at_head([1, 1])
    np.testing.assert_array_equal(problem.scores, [[3, 1], [-1, -4]])
    np.testing.assert_array_equal(problem.keys, joint.tokens)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[[1, 2], [0, 1]]], [2]), r"labels\[0\]: got 2, expected 1 or -1"),
        (([[[1, 2], [0, 1]]], [1, 1]), r"labels: got shape \(2,\), expected \(1,\)"),
        (([[[1, 2]]], [1]), r"tokens: got T = 1"),
        (([[[1, 2], [0, 1]]], [1], [[[1], [2], [3]]]), r"keys: got shape \(1, 3, 1\)"),
    ],
)
def test_bad_joint_problems_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        JointProblem(*arguments)


def test_cross_attention_is_the_same_model():
    rng = np.random.default_rng(0)
    tokens, queries = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2))
    head, weights, labels = rng.normal(size=2), rng.normal(size=(2, 2)), np.array([1, -1, 1])
    problem = cross_attention(tokens, queries, labels, head)
    assert problem.shape == (3, 4, 4)
    for i in range(3):
        logits = tokens[i] @ weights @ queries[i]
        attention = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(problem.attention(weights.ravel())[i], attention, rtol=1e-12)
    np.testing.assert_allclose(problem.scores, labels[:, None] * (tokens @ head))


def test_repr_can_be_pasted_back():
    problem = SelectionProblem([[[0.1, -2], [1 / 3, 0]]], [[1, 0]], EXPONENTIAL)
    again = eval(repr(problem), {"SelectionProblem": SelectionProblem, "EXPONENTIAL": EXPONENTIAL})
    np.testing.assert_array_equal(again.keys, problem.keys)
