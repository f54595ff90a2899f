"""Every named data set shows what its docstring says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from checks import (
    CORRELATION,
    LOGISTIC,
    Cone,
    Infeasible,
    SelectionProblem,
    att_svm,
    datasets,
    gradient_descent,
    gradient_flow,
    lmm_directions,
    normalized_gd,
    optimal_tokens,
)
from checks.asymptotics import norm_grows_like
from checks.datasets import (
    DUPLICATE_KEYS,
    INFEASIBLE,
    MULTI_INPUT,
    NARROW,
    SEPARATRIX,
    STATIONARY_ONE_INPUT,
    STATIONARY_TWO_INPUTS,
    STIFF,
    TIED_MARGINS,
    TIED_NEIGHBOURS,
    TIED_UNDER_B,
    TWO_LIMITS,
    VALLEY,
    ZERO_MULTIPLIER,
    two_gains,
)
from checks.generic import keys_in_general_position
from checks.selection import in_general_position

WITNESSES = {
    name: value
    for name, value in vars(datasets).items()
    if isinstance(value, SelectionProblem) and not name.startswith(("SINGLE", "MULTI"))
}


def limit(problem, start):
    return gradient_flow(problem, start, 1e6).direction


@pytest.mark.parametrize("name", WITNESSES)
def test_witnesses_are_on_the_lattice(name):
    for array in (WITNESSES[name].keys, WITNESSES[name].scores):
        np.testing.assert_array_equal(array * 8, np.round(array * 8))


def under_b(problem):
    return all(sorted(set(row))[:-1] == [min(row)] for row in problem.scores.tolist()) and all(
        (row == row.max()).sum() == 1 for row in problem.scores
    )


def test_assumption_b_holds_where_it_is_said_to():
    assert {name for name, problem in WITNESSES.items() if under_b(problem)} == {
        "TWO_LIMITS",
        "NARROW",
        "INFEASIBLE",
        "TIED_UNDER_B",
        "ZERO_MULTIPLIER",
        "STIFF",
        "TIED_MARGINS",
    }


def test_general_position_fails_only_where_it_is_said_to():
    assert {name for name, problem in WITNESSES.items() if not in_general_position(problem)} == {
        "NARROW",
        "INFEASIBLE",
        "TIED_NEIGHBOURS",
        "TIED_UNDER_B",
        "DUPLICATE_KEYS",
        "ZERO_MULTIPLIER",
        "STIFF",
    }
    coincidences = {name for name, problem in WITNESSES.items() if not keys_in_general_position(problem)}
    assert coincidences == {"TIED_UNDER_B", "DUPLICATE_KEYS", "VALLEY", "TIED_MARGINS", "SEPARATRIX"}


@pytest.mark.parametrize(
    ("start", "end"),
    [((4, 0), (1, 0)), ((3, 0), (1, 0)), ((2, 0), (1, 0)), ((1, 0), (1, 3)), ((0, 0), (1, 3))],
)
def test_two_limits(start, end):
    run = gradient_descent(TWO_LIMITS, start, step=0.1, steps=200)
    direction = gradient_flow(TWO_LIMITS, run.points[-1], 1e6).direction
    np.testing.assert_allclose(direction, np.array(end) / np.linalg.norm(end), atol=1e-8)


def test_two_limits_has_two_lmm_directions_in_one_wide_cone():
    assert [s.alpha for s in lmm_directions(TWO_LIMITS)] == [(0, 0), (0, 1)]
    wide = Cone([1, 3], 0.7, 0)
    assert wide.excess(np.array([1.0, 0])) < 0
    assert wide.excess(np.array([4.0, 0])) < 0


def test_two_limits_leaves_thin_cones_near_the_origin():
    run = gradient_descent(TWO_LIMITS, [0.5, 0], step=0.5, steps=30)
    cosines = run.points[:, 0] / run.norms
    assert cosines[0] == 1
    assert cosines.min() < 0.4


def test_narrow_is_left_by_a_step_of_a_hundred_but_not_by_the_flow():
    start = [2.925, 0.667]
    [_, after] = gradient_descent(NARROW, start, step=100, steps=1).points
    np.testing.assert_allclose(after, [7.41, -7.14], atol=0.02)
    cone = Cone([1, 0], 1 / 32, 2)
    assert cone.excess(np.array(start)) < 0 < cone.excess(after)
    assert (cone.excess(gradient_flow(NARROW, start).points) < 0).all()


@pytest.mark.parametrize("start", [-5.0, -1.0, 0.0, 0.5, 1.0])
def test_one_input_stays_finite(start):
    run = gradient_descent(STATIONARY_ONE_INPUT, [start], step=0.1, steps=40_000)
    assert run.points[-1] == pytest.approx(-0.2626, abs=1e-4)


def test_one_input_diverges_from_the_other_side():
    att_svm(STATIONARY_ONE_INPUT, optimal_tokens(STATIONARY_ONE_INPUT))
    assert limit(STATIONARY_ONE_INPUT, [3.0]) == 1


def test_two_inputs_stay_finite():
    att_svm(STATIONARY_TWO_INPUTS, optimal_tokens(STATIONARY_TWO_INPUTS))
    point = gradient_flow(STATIONARY_TWO_INPUTS, [0, 0]).stationary_point
    assert point.attracting
    np.testing.assert_allclose(point.point, [-2.2596, -0.5570], atol=1e-4)


@pytest.mark.parametrize("start", [-3.0, 0.5, 2.0])
def test_infeasible_tends_to_the_origin(start):
    with pytest.raises(Infeasible):
        att_svm(INFEASIBLE, (0,))
    np.testing.assert_allclose(gradient_descent(INFEASIBLE, [start]).points[-1], 0, atol=1e-8)


@pytest.mark.parametrize("side", [1, -1])
def test_tied_neighbours_do_not_separate(side):
    end = np.array([1, side / 4])
    np.testing.assert_allclose(limit(TIED_NEIGHBOURS, [0, side / 2]), end / np.linalg.norm(end), atol=1e-8)
    assert lmm_directions(TIED_NEIGHBOURS) == []
    np.testing.assert_allclose(att_svm(TIED_NEIGHBOURS, (0 if side > 0 else 1,)).vector, [0.5, 2 * side])


def test_nearly_tied_neighbours_separate_after_a_hundred():
    nearly = SelectionProblem(TIED_NEIGHBOURS.keys, [[1, 0.999999, 0]])
    gmm = att_svm(nearly, (0,)).direction
    cosines = [
        float(path.points[-1] @ gmm) / path.norms[-1]
        for path in (gradient_flow(nearly, [0, 0.5], norm) for norm in (10, 100, 1e4))
    ]
    assert cosines[0] < 0.4
    assert 0.9 < cosines[1] < 0.995
    assert cosines[2] > 1 - 1e-6


@pytest.mark.parametrize("start", [(4, 0), (4, 0.5)])
def test_tied_under_b_attends_to_two_tokens(start):
    flow = gradient_flow(TIED_UNDER_B, start, 1e6)
    np.testing.assert_allclose(flow.direction, [1, 0], atol=1e-6)
    second = TIED_UNDER_B.attention(flow.points[-1])[1]
    assert second[0] == 0
    assert second[1:].min() > 0.4
    assert [s.alpha for s in lmm_directions(TIED_UNDER_B)] == [(0, 0)]
    np.testing.assert_allclose(att_svm(TIED_UNDER_B, (0, 0)).vector, [1, 4])


@pytest.mark.parametrize("start", [-4.0, 0.0, 3.0])
def test_duplicate_keys_and_tied_margins_diverge_without_an_lmm_direction(start):
    for problem in (DUPLICATE_KEYS, TIED_MARGINS):
        assert limit(problem, [start]) == 1
        assert lmm_directions(problem) == []


def test_zero_multiplier_costs_a_logarithm():
    [selection] = lmm_directions(ZERO_MULTIPLIER)
    assert selection.solution.is_degenerate
    for norm in (1e3, 1e5):
        flow = gradient_flow(ZERO_MULTIPLIER, [0, 0], norm)
        assert flow.points[-1, 1] == pytest.approx(math.log(flow.norms[-1]), abs=0.01)
        assert flow.points[-1, 0] > 0.99 * norm


@pytest.mark.parametrize(("step", "gained"), [(0.004, 0.004), (0.006, 0.005), (0.02, 0.00506)])
def test_stiff_gains_no_more_than_the_critical_step(step, gained):
    run = normalized_gd(STIFF, [1, 0.03], step, 2_000)
    assert (run.norms[-1] - run.norms[1_000]) / 1_000 == pytest.approx(gained, rel=1e-3)
    assert norm_grows_like(run, step, "steps", [1, 0]).outcome == ("yes" if step < 0.005 else "no")


def test_valley_diverges_like_log_t_with_its_first_coordinate_balanced():
    assert lmm_directions(VALLEY) == []
    run = gradient_descent(VALLEY, [1, 2], steps=10_000)
    [early, late] = run.points[[5_000, 10_000]]
    # dy/dt falls like e^-y: y gains log 2 when the time doubles.
    assert late[1] - early[1] == pytest.approx(math.log(2), abs=2e-3)
    assert late[0] == pytest.approx(0.6004, abs=5e-4)
    # Among the first three tokens alone, x is at a minimum there.
    face = SelectionProblem(VALLEY.keys[:, :3, :1], VALLEY.scores[:, :3])
    assert gradient_flow(face, [0.0]).stationary_point.point == pytest.approx(0.600415, abs=1e-6)
    assert VALLEY.attention([0.600415, 40])[0, :3].min() > 0.1


def test_separatrix_stays_on_its_axis_and_is_left_on_either_side():
    run = gradient_descent(SEPARATRIX, [2, 0], steps=2_000)
    assert np.abs(run.points[:, 1]).max() < 1e-15
    assert (np.diff(run.norms) > 0).all()
    assert [s.alpha for s in lmm_directions(SEPARATRIX)] == [(0, 2), (2, 0)]
    for side in (1, -1):
        end = np.array([1, 2 * side]) / math.sqrt(5)
        np.testing.assert_allclose(limit(SEPARATRIX, [2, side / 64]), end, atol=1e-8)


@pytest.mark.parametrize("loss", [CORRELATION, LOGISTIC])
@pytest.mark.parametrize("gain", [1.5, 100.0])
def test_two_gains_end_in_the_gmm_direction(gain, loss):
    problem = two_gains(gain, loss)
    assert problem.loss is loss
    np.testing.assert_allclose(att_svm(problem, optimal_tokens(problem)).direction, [1, 0], atol=1e-15)
    np.testing.assert_allclose(limit(problem, [-1, 2]), [1, 0], atol=1e-8)


def test_multi_input_is_as_published():
    assert MULTI_INPUT.shape == (3, 7, 2)
    centres = [[1, 0]] + [[-1, 1]] * 3 + [[-0.5, -0.5]] * 3
    noise = MULTI_INPUT.keys - np.array(centres)
    # 42 draws of standard deviation 0.2: its estimate is within 0.07 of that (three of its own).
    assert noise.std() == pytest.approx(0.2, abs=0.07)
    assert np.abs(noise).max() < 0.8
    assert [s.alpha for s in lmm_directions(MULTI_INPUT)] == [(0, 0, 0)]
    np.testing.assert_array_equal(MULTI_INPUT.scores, [[1] + [0.5] * 6] * 3)
