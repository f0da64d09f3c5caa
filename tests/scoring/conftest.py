"""The table that most tests of folders score."""

from __future__ import annotations

import pytest

from tests.scoring.folders import SIZES, VALUES
from tests.scoring.tables import write_table


@pytest.fixture
def source(tmp_path):
    write_table(tmp_path / "in", VALUES, SIZES)
    return tmp_path / "in"
