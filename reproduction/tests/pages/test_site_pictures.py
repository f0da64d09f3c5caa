"""Pictures of the site are those that `docs/draw_images.py` draws from the code and the result files as they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import matplotlib
import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_images", DOCS / "draw_images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["simplex", "entropies", "decisions", "hull", "guards"])
def test_a_picture_is_as_it_would_be_drawn_now(drawing, monkeypatch, tmp_path, name):
    kept = (DOCS / "images" / f"{name}.svg").read_text()
    if f"Matplotlib v{matplotlib.__version__}," not in kept:
        pytest.skip("another version of Matplotlib draws other paths.")
    monkeypatch.setattr(drawing, "IMAGES", tmp_path)
    getattr(drawing, f"draw_{name}")()
    assert (tmp_path / f"{name}.svg").read_text() == kept
