"""What the tests of several rooms share."""

from __future__ import annotations

import pytest


@pytest.fixture
def undrawn(monkeypatch):
    """Charts are empty pictures: drawing takes long, and is tested where it matters."""
    from credalens.report import figures

    monkeypatch.setattr(figures, "to_svg", lambda chart, theme=None: "<svg></svg>")
    monkeypatch.setattr(figures, "to_png", lambda chart: b"\x89PNG")
