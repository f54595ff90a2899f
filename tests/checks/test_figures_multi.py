"""The multiple-input and loss-comparison figures: what they measure, and that nothing in them overlaps."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from checks import LOGISTIC, SelectionProblem, gradient_descent
from checks.figures import loss, multi
from checks.figures.canvas import house_style
from checks.figures.loss import COMPARISON, GainRun, LossComparison
from checks.figures.multi import MULTI, MultiInput
from checks.trainers import Path


def by_name(readings, words):
    [found] = [reading for reading in readings if words in reading.name]
    return found


def test_readings_of_the_multiple_input_run_are_as_measured():
    readings = MULTI.readings
    assert all(reading.ok for reading in readings)
    normalised, descent = (reading.measured for reading in readings if "steps until" in reading.name)
    assert normalised == pytest.approx(31.96, abs=0.01)
    assert descent == pytest.approx(125.1, abs=0.1)
    assert by_name(readings, "per step").measured == pytest.approx(0.1, abs=1e-4)
    assert by_name(readings, "log t").predicted == pytest.approx(np.linalg.norm(MULTI.solution.vector))
    for reading in readings:
        assert reading.tolerance < 0.02 * np.linalg.norm(reading.predicted)


def test_predictions_do_not_come_from_the_runs():
    """Runs with other steps, on the same flow: the clocks still fit."""
    points = gradient_descent(MULTI.problem, [0, 0], 0.125, 8_000).points
    after = MULTI.predicted(MULTI.descent, np.array([10.0, 100.0, 1_000.0]))
    # An eighth of the published step is off by an eighth of its error, and the flow by 1e-2 logits.
    np.testing.assert_allclose(points[[80, 800, 8_000]], after, atol=1e-2 / MULTI.problem.pairs.logit_scale)


def test_a_descent_that_stalls_fails_its_readings():
    broken = dataclasses.replace(MULTI)
    trainer = broken.descent
    points = trainer.run.points.copy()
    points[50:] = points[50]
    run = Path(broken.problem, trainer.run.method, points, trainer.run.log_times, trainer.run.step, "horizon")
    broken.__dict__["descent"] = dataclasses.replace(trainer, run=run, halved=run)
    failing = [reading.name for reading in broken.readings if not reading.ok]
    assert failing == [
        "descent: norm after 1,000 steps, that of the flow",
        "descent: steps until all attend by 0.9 to their best token, the flow's",
    ]


def test_scores_that_favour_another_cluster_change_every_prediction():
    scores = np.full((3, 7), 0.5)
    scores[:, 1] = 1
    other = MultiInput("fig-other", SelectionProblem(np.roll(MULTI.problem.keys, 1, axis=1), scores))
    np.testing.assert_allclose(other.target, MULTI.target, atol=1e-12)  # renumbered tokens: the same problem
    moved = MultiInput("fig-moved", SelectionProblem(-MULTI.problem.keys, MULTI.problem.scores))
    np.testing.assert_allclose(moved.target, -MULTI.target, atol=1e-12)


def test_readings_of_the_loss_comparison():
    readings = COMPARISON.readings
    assert len(readings) == 3 + 22
    assert all(reading.ok for reading in readings)
    assert by_name(readings, "at attention 1/2").measured == pytest.approx(5.018, abs=5e-4)
    assert by_name(readings, "at attention 1,").measured == pytest.approx(1.597, abs=5e-4)
    assert by_name(readings, "logistic, C = 100:").measured == pytest.approx(-47.0408, abs=1e-4)
    assert by_name(readings, "correlation, C = 100:").measured == pytest.approx(math.log(100) / 2)
    assert max(reading.tolerance for reading in readings) <= 1e-8


def test_offsets_of_the_other_loss_fail():
    run = GainRun(3.0, LOGISTIC)
    run.__dict__["predicted_offset"] = math.log(3) / 2
    assert not run.offset_reading.ok
    # A run that stops early has not settled, which its prediction does not follow.
    early = GainRun(100.0, LOGISTIC)
    descent = early.descent
    early.__dict__["descent"] = Path(
        descent.problem,
        descent.method,
        descent.points[:800],
        descent.log_times[:800],
        descent.step,
        "horizon",
    )
    assert not early.offset_reading.ok


@pytest.mark.parametrize(
    ("module", "experiment"),
    [(multi, MULTI), (loss, COMPARISON), (loss, LossComparison("fig-few", (2.0, 30.0)))],
    ids=["multi", "loss", "few"],
)
def test_texts_and_legends_do_not_overlap(module, experiment):
    with house_style():
        figure = module.picture_of(experiment)
        figure.draw_without_rendering()
    boxes = [legend.get_window_extent() for legend in figure.legends]
    boxes += [axes.get_tightbbox() for axes in figure.axes]
    boxes.append(figure._suptitle.get_window_extent())
    for axes in figure.axes:
        labels = [text.get_window_extent() for text in axes.texts]
        assert_apart(labels)
        frame = axes.get_window_extent()
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in labels)
    assert_apart(boxes)
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def assert_apart(boxes):
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert not one.overlaps(other), (one, other)
