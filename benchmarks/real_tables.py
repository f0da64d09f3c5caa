"""Real tables with few classes: those that come with scikit-learn, and those of a folder where there is one."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

__all__ = ["BUNDLED", "IN_FOLDER", "Table", "read_table"]

FEWEST: Final = 20
"""Rows that a class must have; rows of rarer ones are left out."""
MISSING: Final = "?"


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers, and categories as their codes, with the class of each row.

    ``source`` are the rows that several tables share, which are about other classes of them.
    """

    name: str
    source: str
    X: NDArray[np.float64]
    is_category: NDArray[np.bool_]
    y: NDArray[np.int64]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.y.max()) + 1

    def without_rare_classes(self) -> Table:
        """Rows of classes that have ``FEWEST`` of them."""
        kept = np.bincount(self.y)[self.y] >= FEWEST
        return replace(self, X=self.X[kept], y=np.unique(self.y[kept], return_inverse=True)[1])

    def at_most(self, rows: int, /) -> Table:
        """So many rows, each class by its share; always the same ones."""
        if len(self.y) <= rows:
            return self
        kept, _ = train_test_split(np.arange(len(self.y)), train_size=rows, stratify=self.y, random_state=0)
        return replace(self, X=self.X[kept], y=self.y[kept])


Labels = NDArray[np.int64]
Bundled = tuple[Callable, Callable[[NDArray], Labels]]


def _as_they_are(y: NDArray) -> Labels:
    return np.unique(y, return_inverse=True)[1]


def _parts(count: int) -> Callable[[NDArray], Labels]:
    """Numbers cut into as many parts of about the same size."""

    def cut(y: NDArray) -> Labels:
        values = y.astype(np.float64)
        edges = np.unique(np.quantile(values, np.arange(1, count) / count))
        return np.searchsorted(edges, values, side="right")

    return cut


def _grades(lowest: int, highest: int) -> Callable[[NDArray], Labels]:
    """Whole numbers, those outside joined with the ends."""
    return lambda y: np.clip(y.astype(np.int64), lowest, highest) - lowest


BUNDLED: Final[dict[str, Bundled]] = {
    "breast cancer": (load_breast_cancer, _as_they_are),
    "diabetes, halves": (load_diabetes, _parts(2)),
    "digits, even or odd": (load_digits, lambda y: y % 2),
    "iris": (load_iris, _as_they_are),
    "wine": (load_wine, _as_they_are),
    "digits, five pairs": (load_digits, lambda y: y // 2),
    "digits": (load_digits, _as_they_are),
}


@dataclass(frozen=True)
class FolderTable:
    """The files of a table, which of its columns is the class, and how this is grouped."""

    files: tuple[str, ...]
    label: int = -1
    grouped: Callable[[NDArray], Labels] = _as_they_are
    rows: int = 8000


ADULT: Final = ("adult-train", "adult-test")
IN_FOLDER: Final = {
    "adult": FolderTable(ADULT),
    "german": FolderTable(("german",)),
    "phoneme": FolderTable(("phoneme",)),
    "banknote": FolderTable(("banknote",)),
    "wine quality, two": FolderTable(("winequality-white",), grouped=_grades(5, 6)),
    "wheat seeds": FolderTable(("wheat-seeds",)),
    "abalone, thirds": FolderTable(("abalone",), grouped=_parts(3)),
    "abalone, sex": FolderTable(("abalone",), label=0),
    "wine quality, five": FolderTable(("winequality-white",), grouped=_grades(4, 8)),
    "adult, race": FolderTable(ADULT, label=8, rows=4000),
    "wine quality, six": FolderTable(("winequality-white",), grouped=_grades(3, 8)),
    "abalone, eighths": FolderTable(("abalone",), grouped=_parts(8)),
    "adult, relationship": FolderTable(ADULT, label=7, rows=4000),
    "adult, occupation": FolderTable(ADULT, label=6, rows=4000),
    "german, purpose": FolderTable(("german",), label=3),
}
"""Tables of two classes first, then three to five, then six and more."""


def read_table(name: str, folder: Path | None = None, /) -> Table:
    """A bundled table, or one of the folder."""
    if name in BUNDLED:
        load, grouped = BUNDLED[name]
        X, y = load(return_X_y=True)
        source = name.partition(",")[0]
        return Table(name, source, X, np.zeros(X.shape[1], bool), grouped(y))
    if folder is None:
        raise ValueError(f"the table {name!r} is read from a folder, which --data names.")
    wanted = IN_FOLDER[name]
    rows = [row for file in wanted.files for row in _rows(folder / f"{file}.csv.gz") if row[wanted.label] != MISSING]
    columns = [np.array(values) for values in zip(*rows, strict=True)]
    y = wanted.grouped(columns.pop(wanted.label))
    read = [_numbers(column) for column in columns]
    is_category = np.array([category for _, category in read])
    X = np.stack([values for values, _ in read], axis=1)
    table = Table(name, name.partition(",")[0], X, is_category, y)
    return table.without_rare_classes().at_most(wanted.rows)


@lru_cache(maxsize=4)
def _rows(path: Path) -> Sequence[list[str]]:
    """The rows of a file without a header."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [[value.strip().rstrip(".") for value in row] for row in csv.reader(lines) if row]


def _numbers(column: NDArray) -> tuple[NDArray[np.float64], bool]:
    """The column as numbers, and whether these are codes of categories; a missing value is a category."""
    try:
        return column.astype(np.float64), False
    except ValueError:
        return np.unique(column, return_inverse=True)[1].astype(np.float64), True
