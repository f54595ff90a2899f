"""What must not change, or change in a known way, when a problem is written down differently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import (
    CORRELATION,
    EXPONENTIAL,
    LOGISTIC,
    JointProblem,
    SelectionProblem,
    att_svm,
    converges_in_direction,
    cross_attention,
    diverges,
    gradient_descent,
    gradient_flow,
    is_locally_optimal,
    lmm_directions,
    optimal_tokens,
    stationary,
    svm_neighbours,
)
from checks import strategies as attst

# Distances in units of the quantities compared; the longest sums have a few hundred terms of size 1.
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
# Vectors from the margin oracle are as good as the conditioning of their support vectors.
MARGIN = {"rtol": 1e-7, "atol": 1e-7}

LOSSES = st.sampled_from([LOGISTIC, EXPONENTIAL, CORRELATION])
SHAPES = {"n": (1, 3), "tokens": (2, 4), "dim": (1, 4)}


@st.composite
def situations(draw, **how):
    """A problem, a point of its parameter space, and a source of what is to be done to it."""
    problem = draw(attst.selection_problems(**SHAPES, **how))
    problem = SelectionProblem(problem.keys, problem.scores, draw(LOSSES))
    return problem, draw(attst.starts(problem)), np.random.default_rng(draw(st.integers(0, 999)))


ANY = situations()
SEPARABLE = situations(separable=True, general_position=True)


def changed(problem, keys=None, scores=None):
    return SelectionProblem(
        problem.keys if keys is None else keys, problem.scores if scores is None else scores, problem.loss
    )


def orthogonal(dim, rng):
    q, r = np.linalg.qr(rng.standard_normal((dim, dim)))
    return q * np.sign(np.diag(r))


def directions(problem):
    """The LMM directions by their selection, with the exact set of neighbours."""
    return {
        found.alpha: (found.solution.vector, found.neighbours, found.is_global)
        for found in lmm_directions(problem)
    }


def same_directions(problem, other, vector=lambda v: v, alpha=lambda a: a, tokens=lambda near: near):
    """Check that `other` has the LMM directions of `problem` after the changes given."""
    expected, came = directions(problem), directions(other)
    assert set(came) == {alpha(a) for a in expected}
    for a, (solution, near, is_global) in expected.items():
        changed_solution, changed_near, changed_global = came[alpha(a)]
        scale = np.linalg.norm(vector(solution))
        np.testing.assert_allclose(changed_solution / scale, vector(solution) / scale, **MARGIN)
        assert changed_near == tokens(near)
        assert changed_global == is_global


# --- Order of inputs ----------------------------------------------------------------------------


@given(ANY)
def test_the_order_of_inputs_does_not_matter_to_risk_and_gradient(situation):
    problem, p, rng = situation
    order = rng.permutation(problem.shape[0])
    other = changed(problem, problem.keys[order], problem.scores[order])
    np.testing.assert_allclose(other.risk(p), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(p), problem.gradient(p), **CLOSE)
    np.testing.assert_allclose(other.attention(p), problem.attention(p)[order], **CLOSE)
    np.testing.assert_allclose(other.smoothness, problem.smoothness, **CLOSE)


@given(SEPARABLE)
def test_the_order_of_inputs_only_reorders_selections(situation):
    problem, _, rng = situation
    order = rng.permutation(problem.shape[0])
    other = changed(problem, problem.keys[order], problem.scores[order])

    def reorder(row):
        return tuple(row[i] for i in order)

    assert optimal_tokens(other) == reorder(optimal_tokens(problem))
    same_directions(problem, other, alpha=reorder, tokens=reorder)


# --- Order of tokens ----------------------------------------------------------------------------


def with_tokens_permuted(problem, rng):
    n, tokens, _ = problem.shape
    order = np.array([rng.permutation(tokens) for _ in range(n)])
    keys = np.take_along_axis(problem.keys, order[:, :, None], axis=1)
    return changed(problem, keys, np.take_along_axis(problem.scores, order, axis=1)), order


@given(ANY)
def test_the_order_of_tokens_does_not_matter_to_risk_and_gradient(situation):
    problem, p, rng = situation
    other, order = with_tokens_permuted(problem, rng)
    np.testing.assert_allclose(other.risk(p), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(p), problem.gradient(p), **CLOSE)
    attention = np.take_along_axis(problem.attention(p), order, axis=1)
    np.testing.assert_allclose(other.attention(p), attention, **CLOSE)


@given(SEPARABLE)
def test_the_order_of_tokens_only_renames_selections(situation):
    problem, _, rng = situation
    other, order = with_tokens_permuted(problem, rng)
    new = np.argsort(order, axis=1)  # The place to which each token went.

    def rename(alpha):
        return tuple(int(new[i, t]) for i, t in enumerate(alpha))

    assert optimal_tokens(other) == rename(optimal_tokens(problem))
    same_directions(
        problem,
        other,
        alpha=rename,
        tokens=lambda near: tuple(frozenset(int(new[i, t]) for t in row) for i, row in enumerate(near)),
    )


# --- Rotations ----------------------------------------------------------------------------------


@given(ANY)
def test_rotating_keys_and_point_rotates_the_gradient(situation):
    problem, p, rng = situation
    rotation = orthogonal(problem.shape[2], rng)
    other = changed(problem, problem.keys @ rotation.T)
    np.testing.assert_allclose(other.risk(rotation @ p), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(rotation @ p), rotation @ problem.gradient(p), **CLOSE)
    np.testing.assert_allclose(other.smoothness, problem.smoothness, **CLOSE)


@given(SEPARABLE)
def test_rotating_keys_rotates_the_margin_solution(situation):
    problem, _, rng = situation
    rotation = orthogonal(problem.shape[2], rng)
    other = changed(problem, problem.keys @ rotation.T)
    alpha = optimal_tokens(problem)
    before, after = att_svm(problem, alpha), att_svm(other, alpha)
    np.testing.assert_allclose(after.direction, rotation @ before.direction, **MARGIN)
    np.testing.assert_allclose(after.margin, before.margin, **MARGIN)


@given(SEPARABLE, st.permutations(range(4)), st.lists(st.sampled_from([1, -1]), min_size=4, max_size=4))
def test_renaming_and_reflecting_axes_keeps_the_lmm_directions_exactly(situation, axes, signs):
    # The rotations that keep a lattice, and so every tight margin, exactly.
    problem, _, _ = situation
    dim = problem.shape[2]
    order = [axis for axis in axes if axis < dim]
    flip = np.array(signs[:dim])
    other = changed(problem, problem.keys[:, :, order] * flip)
    same_directions(problem, other, vector=lambda v: v[order] * flip)


# --- Scale and shift ----------------------------------------------------------------------------


@given(ANY, st.sampled_from([1 / 64, 0.3, 3, 1000]))
def test_scaling_keys_is_scaling_the_point_inversely(situation, c):
    problem, p, _ = situation
    other = changed(problem, c * problem.keys)
    np.testing.assert_allclose(other.risk(p / c), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(p / c), c * problem.gradient(p), rtol=1e-10, atol=1e-12 * c)
    np.testing.assert_allclose(other.smoothness, c**2 * problem.smoothness, **CLOSE)


@given(SEPARABLE, st.sampled_from([2.0**-20, 1 / 4, 2.0, 2.0**20]))
def test_scaling_keys_scales_margin_solutions_inversely(situation, c):
    problem, _, _ = situation
    same_directions(problem, changed(problem, c * problem.keys), vector=lambda v: v / c)


@given(ANY)
def test_shifting_the_keys_of_an_input_changes_nothing(situation):
    problem, p, rng = situation
    n, _, dim = problem.shape
    shift = rng.integers(-24, 25, size=(n, 1, dim)) / 8
    other = changed(problem, problem.keys + shift)
    np.testing.assert_allclose(other.risk(p), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(p), problem.gradient(p), **CLOSE)
    np.testing.assert_allclose(other.attention(p), problem.attention(p), **CLOSE)
    assert other.smoothness == problem.smoothness


@given(SEPARABLE)
def test_shifting_the_keys_of_an_input_keeps_the_lmm_directions(situation):
    problem, _, rng = situation
    n, _, dim = problem.shape
    shift = rng.integers(-24, 25, size=(n, 1, dim)) / 8
    same_directions(problem, changed(problem, problem.keys + shift))


@given(SEPARABLE)
def test_only_the_order_of_the_scores_matters_to_selections(situation):
    problem, _, _ = situation
    other = changed(problem, scores=np.exp(problem.scores) - 3)
    same_directions(problem, other)


@given(SEPARABLE)
def test_a_copy_of_every_input_changes_nothing(situation):
    problem, p, _ = situation
    other = changed(problem, np.repeat(problem.keys, 2, axis=0), np.repeat(problem.scores, 2, axis=0))
    np.testing.assert_allclose(other.risk(p), problem.risk(p), **CLOSE)
    np.testing.assert_allclose(other.gradient(p), problem.gradient(p), **CLOSE)
    alpha = optimal_tokens(problem)
    twice = att_svm(other, tuple(np.repeat(alpha, 2).tolist()))
    np.testing.assert_allclose(twice.direction, att_svm(problem, alpha).direction, **MARGIN)


@given(SEPARABLE)
def test_a_dimension_in_which_nothing_differs_is_not_used(situation):
    problem, p, _ = situation
    n, tokens, dim = problem.shape
    wide = np.concatenate([problem.keys, np.full((n, tokens, 1), 0.5)], axis=2)
    other = changed(problem, wide)
    gradient = other.gradient(np.append(p, 3))
    np.testing.assert_allclose(gradient, np.append(problem.gradient(p), 0), **CLOSE)
    assert gradient[dim] == 0
    same_directions(problem, other, vector=lambda v: np.append(v, 0))


# --- Cross-attention ----------------------------------------------------------------------------


@st.composite
def joint_situations(draw):
    joint = draw(attst.joint_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3)))
    dim = joint.shape[2]
    head = draw(attst.nonzero(attst.vectors(dim)))
    query = draw(attst.nonzero(attst.vectors(dim)))
    return joint, head, query, draw(attst.vectors(dim, radius=3))


def crossed(joint, head, query):
    return cross_attention(joint.tokens, np.tile(query, (joint.shape[0], 1)), joint.labels, head)


@given(joint_situations())
def test_one_query_for_all_inputs_gives_the_risk_of_the_attention_vector(situation):
    joint, head, query, p = situation
    plain, lifted = joint.at_head(head), crossed(joint, head, query)
    weights = np.outer(p, query) / (query @ query)
    np.testing.assert_allclose(lifted.risk(weights.ravel()), plain.risk(p), **CLOSE)
    np.testing.assert_allclose(lifted.attention(weights.ravel()), plain.attention(p), **CLOSE)
    gradient = np.outer(plain.gradient(p), query)
    scale = max(1.0, float(query @ query))
    np.testing.assert_allclose(
        lifted.gradient(weights.ravel()), gradient.ravel(), rtol=1e-10, atol=1e-12 * scale
    )


@given(joint_situations())
def test_one_query_for_all_inputs_gives_margin_solutions_of_rank_one(situation):
    joint, head, query, _ = situation
    plain, lifted = joint.at_head(head), crossed(joint, head, query)
    same_directions(plain, lifted, vector=lambda v: np.outer(v, query).ravel() / (query @ query))


@given(joint_situations(), st.integers(0, 999))
def test_cross_attention_is_linear_in_each_query(situation, seed):
    joint, head, _, _ = situation
    n, _, dim = joint.shape
    rng = np.random.default_rng(seed)
    queries, weights = rng.integers(-8, 9, size=(n, dim)) / 8, rng.integers(-8, 9, size=(dim, dim)) / 8
    lifted = cross_attention(joint.tokens, queries, joint.labels, head)
    logits = np.einsum("itj,jk,ik->it", joint.tokens, weights, queries)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(lifted.attention(weights.ravel()), expected, **CLOSE)


@given(joint_situations())
def test_turning_a_label_and_its_tokens_gives_the_same_scores(situation):
    joint, head, _, p = situation
    turned = JointProblem(-joint.tokens, -joint.labels, joint.tokens)
    np.testing.assert_array_equal(turned.at_head(head).scores, joint.at_head(head).scores)
    assert turned.at_head(head).risk(p) == joint.at_head(head).risk(p)


# --- Paths and decisions ------------------------------------------------------------------------


@given(ANY, st.sampled_from([1 / 4, 2.0, 16.0]))
def test_descent_on_scaled_keys_is_scaled_descent(situation, c):
    # Powers of two: every rounding is the same.
    problem, p, _ = situation
    step = 0.1
    path = gradient_descent(problem, p, step=step, steps=20)
    other = gradient_descent(changed(problem, c * problem.keys), p / c, step=step / c**2, steps=20)
    np.testing.assert_allclose(other.points * c, path.points, rtol=1e-13, atol=1e-13)


@given(ANY)
def test_descent_on_rotated_keys_is_rotated_descent(situation):
    problem, p, rng = situation
    rotation = orthogonal(problem.shape[2], rng)
    path = gradient_descent(problem, p, step=0.1, steps=20)
    other = gradient_descent(changed(problem, problem.keys @ rotation.T), rotation @ p, step=0.1, steps=20)
    np.testing.assert_allclose(other.points, path.points @ rotation.T, rtol=1e-9, atol=1e-9)


def outcomes(problem, start, target):
    path = gradient_flow(problem, start)
    return [
        diverges(path).outcome,
        stationary(path).outcome,
        converges_in_direction(path, target).outcome,
    ]


SMALL = attst.selection_problems(
    n=(1, 2), tokens=(2, 3), dim=2, separable=True, equal_nonoptimal=True, general_position=False
)


@settings(max_examples=8)
@given(SMALL, st.integers(0, 999))
def test_decisions_about_limits_do_not_depend_on_how_a_problem_is_written(problem, seed):
    rng = np.random.default_rng(seed)
    n, _, dim = problem.shape
    start = rng.integers(-8, 9, size=dim) / 8
    alpha = optimal_tokens(problem)
    target = att_svm(problem, alpha).vector
    expected = outcomes(problem, start, target)
    assert expected[0] == "yes"
    rotation = orthogonal(dim, rng)
    shifted = changed(problem, problem.keys + rng.integers(-8, 9, size=(n, 1, dim)) / 8)
    renamed, _ = with_tokens_permuted(problem, rng)
    assert (
        outcomes(changed(problem, problem.keys @ rotation.T), rotation @ start, rotation @ target) == expected
    )
    assert outcomes(changed(problem, 4 * problem.keys), start / 4, target) == expected
    assert outcomes(shifted, start, target) == expected
    assert outcomes(renamed, start, target) == expected


@given(SEPARABLE)
def test_local_optimality_and_neighbours_belong_to_the_listed_directions(situation):
    problem, _, _ = situation
    for found in lmm_directions(problem):
        assert is_locally_optimal(problem, found.alpha)
        assert svm_neighbours(problem, found.alpha) == found.neighbours


@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_a_limit_point_scales_inversely_with_the_keys(c):
    # The optimal token lies inside the hull of the others: the flow ends in 0.
    problem = SelectionProblem([[[-1], [0], [1]]], [[0, 1, 0]])
    for keys in (problem.keys, c * problem.keys):
        longest = float(keys.max())
        path = gradient_flow(changed(problem, keys), [2 / longest], to_norm=1e4 / longest)
        assert stationary(path).outcome == "yes"
        assert diverges(path).outcome == "no"
