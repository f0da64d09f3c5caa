"""A small table of three members in three parts, and what its scored folder must hold, for tests."""

from __future__ import annotations

import numpy as np

from credalens.scoring import column_names
from credalens.scoring.settings import score_columns
from tests.scoring.tables import read_columns
from tests.strategies import batch_of

VALUES = batch_of("mixed", 3, 60, 4)
SIZES = (25, 20, 15)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def parts(folder) -> list:
    return sorted(folder.glob("part-*.parquet"))


def assert_scored(folder, prediction, *, rule="maximality") -> None:
    found, expected = read_columns(parts(folder)), score_columns(prediction, rule)
    assert set(column_names()) <= set(found)
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


def truncate(path) -> None:
    path.write_bytes(path.read_bytes()[:-30])
