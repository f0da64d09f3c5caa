"""What the tests of the report share."""

from __future__ import annotations

import pytest

from credalens.look import LIGHT
from credalens.report import figures


@pytest.fixture
def undrawn(monkeypatch):
    """Charts are empty pictures: drawing takes long, and is tested where it matters."""
    monkeypatch.setattr(figures, "to_svg", lambda chart, theme=LIGHT: "<svg></svg>")
    monkeypatch.setattr(figures, "to_png", lambda chart: b"\x89PNG")
