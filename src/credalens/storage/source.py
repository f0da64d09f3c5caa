"""Member predictions under a name, from memory or from a file, read by rows either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import rounding
from credalens.checks.bad_rows import naming_bad_row
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.storage.reading import Predictions

Progress = Callable[[str, int, int], None]
VALUES_A_CHUNK = 1 << 22
FIRST_ROWS = 16


@dataclass(frozen=True, eq=False)
class Source:
    """The member predictions (members, rows, classes) of one data set under its name."""

    name: str
    predictions: NDArray | Predictions
    logits: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Members, rows and classes."""
        members, rows, classes = self.predictions.shape
        return members, rows, classes

    @property
    def rows(self) -> int:
        """How many inputs there are."""
        return self.shape[1]

    @property
    def rounding(self) -> float:
        """Of the members' probabilities, relatively."""
        return rounding(str(self.predictions.dtype), logits=self.logits)

    @property
    def file(self) -> str | None:
        """The file they are read from."""
        return str(self.predictions.path) if isinstance(self.predictions, Predictions) else None

    def chunks(self) -> Iterator[tuple[int, NDArray]]:
        """All predictions in order, as (first row, predictions); a file is never in memory as a whole."""
        members, rows, classes = self.shape
        size = max(1, VALUES_A_CHUNK // (members * classes))
        for start in range(0, rows, size):
            yield start, self._read(start, min(start + size, rows))

    def _read(self, start: int, stop: int) -> NDArray:
        if isinstance(self.predictions, Predictions):
            return self.predictions.read(start, stop)
        return self.predictions[:, start:stop]

    def first_rows(self) -> NDArray:
        """The first few rows."""
        return self._read(0, min(FIRST_ROWS, self.rows))

    def take(self, rows: NDArray[np.intp], /) -> NDArray:
        """The predictions of these rows, in rising order."""
        taken = [chunk[:, _within(rows, start, chunk.shape[1])] for start, chunk in self.chunks()]
        return np.concatenate(taken, axis=1)

    def wrap(
        self, chunk: NDArray, /, *, start: int = 0, base: float = 2, threads: int | None = None
    ) -> CredalPrediction:
        """The credal prediction of rows that were read from here, the first of them row ``start``."""
        with naming_bad_row(self.file or self.name, start):
            prediction = (wrap_logits if self.logits else wrap)(chunk, base=base, threads=threads)
        return replace(prediction, _rounding=max(prediction._rounding, self.rounding))  # a file may hold fewer digits


def _within(rows: NDArray[np.intp], start: int, count: int) -> NDArray[np.intp]:
    return rows[(rows >= start) & (rows < start + count)] - start
