from __future__ import annotations

import pytest

from checks.figures import FIGURES, draw


@pytest.mark.parametrize("name", FIGURES)
def test_figure_agrees_with_its_prediction_and_is_drawn(name, tmp_path):
    [result] = draw([name], tmp_path)
    assert result.id == name
    disagreeing = [reading for reading in result.readings if not reading.agrees]
    assert disagreeing == []
    assert result.picture.read_bytes().startswith(b"\x89PNG")
    assert result.picture.stat().st_size > 20_000


def test_unknown_figures_are_refused(tmp_path):
    with pytest.raises(KeyError, match="fig-nothing"):
        draw(["fig-nothing"], tmp_path)
