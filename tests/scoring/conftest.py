"""The table that most tests of folders score."""

from __future__ import annotations

import pytest

from credalens.storage import lock
from tests.scoring.folders import SIZES, VALUES
from tests.scoring.tables import write_table


@pytest.fixture(autouse=True)
def _settle_at_once(monkeypatch):
    monkeypatch.setattr(lock, "SETTLE", 0.01)


@pytest.fixture
def source(tmp_path):
    write_table(tmp_path / "in", VALUES, SIZES)
    return tmp_path / "in"
