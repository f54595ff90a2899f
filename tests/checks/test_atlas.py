"""The atlas of a data set: what it finds on sets whose limits are known, and the command that prints it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys

import numpy as np
import pytest

from checks import SelectionProblem, cli, datasets
from checks.atlas import UNDECIDED, Survey, atlas, default_radius, location_error
from checks.datasets import (
    INFEASIBLE,
    SEPARATRIX,
    SINGLE_LOCAL,
    SINGLE_STARTS,
    STATIONARY_ONE_INPUT,
    STATIONARY_TWO_INPUTS,
    TIED_MARGINS,
    TWO_LIMITS,
    VALLEY,
    ZERO_MULTIPLIER,
)
from checks.figures import portrait
from checks.figures.portrait import Basins, draw_portrait, portrait_of
from checks.selection import EnumerationLimitError
from checks.store import readable_json

STARTS = 16
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def charts():
    """Atlases of named data sets, each made once."""
    made = {}

    def chart(name):
        if name not in made:
            made[name] = atlas(getattr(datasets, name), STARTS)
        return made[name]

    return chart


@pytest.fixture
def coarse(monkeypatch):
    """Pictures of few flows."""
    monkeypatch.setattr(portrait, "_BLOCKS", (4, 8))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty folder: (status, stdout, lines of stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["attcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return left.value.code, out, err.splitlines()

    return run


def accounted_for(chart):
    places = (*chart.directions, *chart.rests, *chart.elsewhere)
    return sum(place.starts for place in places) + chart.undecided


def test_published_single_input(charts):
    chart = charts("SINGLE_LOCAL")
    best, local = chart.directions
    assert (best.selection, best.is_global) == ((0,), True)
    assert (local.selection, local.is_global) == ((1,), False)
    np.testing.assert_allclose(best.direction, np.array([-0.1, 1]) / math.sqrt(1.01), rtol=0, atol=1e-15)
    assert local.direction == (1.0, 0.0)
    assert best.margin == pytest.approx(math.sqrt(1.01))
    assert local.margin == pytest.approx(1)
    assert (best.support, local.support) == (((2,),), ((2,),))
    assert best.is_certified
    assert local.is_certified
    assert not best.is_degenerate
    assert chart.faults == ()
    # Both basins are wide, the global one is wider, and nothing else attracts.
    assert best.starts > local.starts > 0
    assert best.starts + local.starts == STARTS
    assert (chart.rests, chart.elsewhere, chart.undecided) == ((), (), 0)


def test_the_published_starts_end_as_published():
    survey = Survey(SINGLE_LOCAL)
    endings = [survey.follow(np.array(start, dtype=float), 2.0)[0] for start in SINGLE_STARTS]
    assert endings == [("direction", 0)] * 4 + [("direction", 1)] * 2


def test_two_limits_under_equal_scores(charts):
    chart = charts("TWO_LIMITS")
    assert [way.selection for way in chart.directions] == [(0, 0), (0, 1)]
    np.testing.assert_allclose(chart.directions[0].direction, np.array([1, 3]) / math.sqrt(10), atol=1e-15)
    assert all(way.starts > 0 for way in chart.directions)
    assert accounted_for(chart) == STARTS
    survey = Survey(TWO_LIMITS)
    followed = [survey.follow(np.array([x, 0.0]), 4.0)[0] for x in (0, 1, 2, 3, 4)]
    assert followed == [("direction", 0)] * 2 + [("direction", 1)] * 3


def test_stationary_points_of_one_input(charts):
    chart = charts("STATIONARY_ONE_INPUT")
    assert chart.shape == (1, 4, 1)
    assert [way.direction for way in chart.directions] == [(1.0,)]
    sink, source = chart.rests
    assert sink.attracting
    assert sink.point == (pytest.approx(-0.2626, abs=5e-5),)
    assert sink.starts > 0
    # On a line something must part the two basins.
    assert not source.attracting
    assert source.point[0] > sink.point[0]
    assert source.starts == 0
    for rest in chart.rests:
        assert rest.residual < 1e-14
        assert rest.error < 1e-12
        slope = STATIONARY_ONE_INPUT.gradient(np.array(rest.point))
        assert abs(slope[0]) < 1e-15
    survey = Survey(STATIONARY_ONE_INPUT)
    for side, ending in ((-1e-3, ("rest", 0)), (1e-3, ("direction", 0))):
        start = np.array([source.point[0] + side])
        assert survey.follow(start, 4.0)[0] == ending
    assert accounted_for(chart) == STARTS


def test_a_stationary_point_of_the_plane_attracts(charts):
    chart = charts("STATIONARY_TWO_INPUTS")
    attracting = [rest for rest in chart.rests if rest.attracting]
    assert len(attracting) == 1
    np.testing.assert_allclose(attracting[0].point, (-2.2596, -0.5570), atol=5e-5)
    assert attracting[0].starts > 0
    assert accounted_for(chart) == STARTS
    assert Survey(STATIONARY_TWO_INPUTS).follow(np.zeros(2), 1.0)[0] == ("rest", 0)


def test_without_directions_every_start_comes_to_rest():
    chart = atlas(INFEASIBLE, 5)
    assert chart.directions == ()
    assert [(rest.attracting, rest.starts) for rest in chart.rests] == [(True, 5)]
    assert abs(chart.rests[0].point[0]) < 1e-14


def test_limits_that_are_not_locally_max_margin():
    chart = atlas(TIED_MARGINS, 5)
    assert chart.directions == ()
    assert [(other.direction, other.starts) for other in chart.elsewhere] == [((1.0,), 5)]


def test_a_valley_holds_no_stationary_point():
    # Far out the gradient along the valley is below the rounding of the gradient across.
    chart = atlas(VALLEY, 2)
    assert chart.rests == ()
    assert chart.undecided == 2
    assert "cancels to rounding" in chart.why_undecided


def test_the_border_of_two_basins_is_undecided():
    # Flow from beside the axis has to leave it, but the integrator does not see that.
    ending, _ = Survey(SEPARATRIX).follow(np.array([2.0, 0.0]), 4.0)
    assert ending == UNDECIDED


@pytest.mark.parametrize("height", [-2.0, -0.5, 0.5, 2.0])
def test_no_start_is_said_to_cross_an_axis_of_symmetry(height):
    # From x = −6.5 the flow contracts on the axis below the integrator's error before it leaves it again.
    survey = Survey(SEPARATRIX)
    up, down = (("direction", k) for k in (0, 1))
    if survey.selections[0].solution.direction[1] < 0:
        up, down = down, up
    assert survey.follow(np.array([-6.5, height]), 7.0)[0] in (UNDECIDED, up if height > 0 else down)
    assert survey.follow(np.array([2.0, height]), 7.0)[0] == (up if height > 0 else down)


def test_degenerate_directions_and_faults_are_named():
    chart = atlas(ZERO_MULTIPLIER, 1)
    assert [way.is_degenerate for way in chart.directions] == [True]
    assert chart.directions[0].support == ((1, 2),)
    assert chart.faults == ("scores[0]: tokens 1 and 2 tie",)
    assert not chart.in_general_position


def test_points_are_given_within_the_span_of_the_key_differences():
    flat = SelectionProblem(
        [[[1.125, 0.0], [1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]], STATIONARY_ONE_INPUT.scores
    )
    chart = atlas(flat, 8)
    assert chart.dimensions == 1
    assert [rest.point[1] for rest in chart.rests] == [0.0] * len(chart.rests)
    assert chart.rests[0].point[0] == pytest.approx(-0.2626, abs=5e-5)


def test_a_constant_risk_is_undecided():
    chart = atlas(SelectionProblem([[[1], [0]]], [[1, 1]]), 3)
    assert (chart.directions, chart.rests, chart.undecided) == ((), (), 3)
    assert chart.dimensions == 0


def test_the_error_of_a_stationary_point_bounds_the_change_by_rounding():
    pairs = STATIONARY_ONE_INPUT.pairs
    at = np.array(atlas(STATIONARY_ONE_INPUT, 4).rests[0].point)
    assert 0 < location_error(pairs, at) < 1e-12
    # The gradient has opposite signs at twice the error on either side.
    aside = 2 * location_error(pairs, at)
    signs = [np.sign(STATIONARY_ONE_INPUT.gradient(at + side)[0]) for side in (-aside, aside)]
    assert signs == [-1, 1]


def test_the_radius_is_ten_logits_of_the_longest_key_difference():
    assert default_radius(INFEASIBLE) == 10
    assert default_radius(SelectionProblem(INFEASIBLE.keys * 4, INFEASIBLE.scores)) == 2.5


def test_the_seed_decides(charts):
    assert atlas(SINGLE_LOCAL, STARTS) == charts("SINGLE_LOCAL")
    other = atlas(STATIONARY_ONE_INPUT, STARTS, seed=1)
    assert other != charts("STATIONARY_ONE_INPUT")
    assert other.directions[0].starts != 0


def test_arguments_are_checked():
    for arguments, message in (
        ({"starts": 0}, "starts: got 0"),
        ({"seed": -1}, "seed: got -1"),
        ({"radius": 0.0}, "radius: got 0.0"),
    ):
        with pytest.raises(ValueError, match=f"^{message}, expected"):
            atlas(INFEASIBLE, **arguments)


def test_too_many_selections_are_said_to_be_too_many():
    random = np.random.default_rng(0)
    problem = SelectionProblem(random.normal(size=(4, 3, 12)), random.normal(size=(4, 3)))
    with pytest.raises(EnumerationLimitError, match=r"too many selections .* n = 4, T = 3, D = 12"):
        Survey(problem, most_solves=20)


def test_an_atlas_is_json(charts):
    chart = charts("TWO_LIMITS")
    data = json.loads(readable_json(chart.to_dict()))
    assert data["in_general_position"] is True
    assert data["directions"][1]["selection"] == [0, 1]
    assert set(data) == {field.name for field in dataclasses.fields(chart)} | {"in_general_position"}


@pytest.mark.usefixtures("coarse")
def test_basins_follow_the_published_starts():
    basins = Basins(Survey(SINGLE_LOCAL), 2.0, most_steps=1)
    assert basins.blocks == 4
    assert basins.axis[[0, 2, 4]].tolist() == [-2, -1, 0]
    ends = [basins.endings[label] for label in basins.labels[::2, 4]]
    assert ends == [("direction", 1)] * 2 + [("direction", 0)] * 3  # x = 0 and y = −2, −1, 0, 1, 2


@pytest.mark.usefixtures("coarse")
def test_refined_basins_agree_with_flows_followed_one_by_one():
    survey = Survey(TWO_LIMITS)
    basins = Basins(survey, 4.0)
    assert basins.blocks == 8
    assert basins.flows < 9**2
    assert (basins.labels >= 0).all()
    for i, j in np.random.default_rng(0).integers(0, 9, size=(12, 2)):
        followed, _ = survey.follow(np.array([basins.axis[j], basins.axis[i]]), 6.0)
        assert basins.endings[basins.labels[i, j]] == followed


@pytest.mark.usefixtures("coarse")
def test_a_portrait_names_what_it_shows(charts):
    figure = portrait_of(STATIONARY_TWO_INPUTS, charts("STATIONARY_TWO_INPUTS"), most_steps=1)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert any(text.startswith("ends in the GMM direction of tokens 1, 2:") for text in texts)
    assert any(text.startswith("ends at (−2.26, −0.557):") for text in texts)
    assert "attracting stationary point" in texts
    assert len(texts) == len(set(texts))


def test_portraits_are_for_the_plane(charts, tmp_path):
    with pytest.raises(ValueError, match="got D = 1, expected D = 2"):
        draw_portrait(STATIONARY_ONE_INPUT, charts("STATIONARY_ONE_INPUT"), tmp_path / "p.png")


def test_the_command_prints_a_table(run, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(STATIONARY_ONE_INPUT.to_dict()))
    status, out, err = run("atlas", "p.json", "--starts", 8)
    assert (status, err) == (0, [])
    lines = out.splitlines()
    assert lines[0] == "n = 1, T = 4, D = 1, logistic loss"
    assert re.match(r"GMM direction +0 +\(1\) +\d \(\d+%\)  margin 0.125; neighbours \{1\}; proved", lines[2])
    assert re.match(r"stationary point +\(-0.2626\) +\d \(\d+%\)  attracting; gradient cancels to", lines[3])
    assert "In general position: no input has tied scores or duplicate keys." in lines
    assert lines[-1] == "Gradient flow from 8 starts, uniform in the ball of radius 4.706 (seed 0)."


def test_json_and_archive_give_the_same_atlas(run, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(STATIONARY_ONE_INPUT.to_dict()))
    np.savez(tmp_path / "p.npz", keys=STATIONARY_ONE_INPUT.keys, scores=STATIONARY_ONE_INPUT.scores)
    results = [run("atlas", name, "--starts", 6, "--seed", 3, "--json") for name in ("p.json", "p.npz")]
    assert results[0] == results[1]
    status, out, err = results[0]
    assert (status, err) == (0, [])
    data = json.loads(out)
    assert (data["starts"], data["seed"]) == (6, 3)
    assert data == json.loads(readable_json(atlas(STATIONARY_ONE_INPUT, 6, 3).to_dict()))


def test_the_command_draws(run, tmp_path, monkeypatch):
    monkeypatch.setattr(portrait, "_BLOCKS", (2,))
    (tmp_path / "p.json").write_text(json.dumps(SINGLE_LOCAL.to_dict()))
    status, out, err = run("atlas", "p.json", "--starts", 4, "--png", "p.png")
    assert (status, err) == (0, [])
    assert "LMM direction" in out
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json", "p.png"]


def test_bad_input_gets_one_line(run, tmp_path):
    (tmp_path / "line.json").write_text(json.dumps(STATIONARY_ONE_INPUT.to_dict()))
    (tmp_path / "bad.json").write_text('{"keys": 1, "scores": 2}')
    (tmp_path / "plane.json").write_text(json.dumps(SINGLE_LOCAL.to_dict()))
    (tmp_path / "huge.json").write_text('{"keys": [[[1e308], [-1e308]]], "scores": [[1, 0]]}')
    for arguments, message in (
        (["missing.json"], "missing.json: No such file or directory, expected a problem file"),
        (["bad.json"], "bad.json: keys: got shape (), expected an array of shape (n, T, D)"),
        (["line.json", "--png", "p.png"], "--png: got a problem with D = 1, expected D = 2 for a picture"),
        (["plane.json", "--png", "no/p.png"], "--png: got no/p.png, expected a file in an existing folder"),
    ):
        assert run("atlas", *arguments) == (2, "", [f"attcheck: error: {message}"])
    status, out, err = run("atlas", "huge.json")
    assert (status, out, len(err)) == (2, "", 1)
    assert err[0].startswith("attcheck: error: huge.json: ")
    assert run("atlas", "line.json", "--starts", 0)[0] == 2
