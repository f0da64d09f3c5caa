"""Every example runs, and says something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_example_runs(script, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDALENS_DATA", raising=False)
    runpy.run_path(str(script), run_name="__main__")
    figures = plt.get_fignums()
    plt.close("all")
    printed = capsys.readouterr().out
    assert figures
    assert len(printed.splitlines()) >= 3
    assert "epistemic" in printed.lower()


def test_the_gallery_has_a_place_for_each():
    ordering = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "_ext" / "gallery_order.py"))
    assert set(ordering["ORDER"]) == {path.stem for path in EXAMPLES}
