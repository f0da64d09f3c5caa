"""Member predictions to evaluate, from memory or from a file, read by rows either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.bad_rows import naming_bad_row
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.storage import Predictions

Progress = Callable[[str, int, int], None]
VALUES_A_CHUNK = 1 << 22


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

    def take(self, rows: NDArray[np.intp], /) -> NDArray:
        """The predictions of these rows, in rising order."""
        taken = [chunk[:, _within(rows, start, chunk.shape[1])] for start, chunk in self.chunks()]
        return np.concatenate(taken, axis=1)

    def wrap(
        self, chunk: NDArray, /, *, start: int = 0, base: float = 2, threads: int | None = None
    ) -> CredalPrediction:
        """The credal prediction of rows that were read from here, the first of them row ``start``."""
        with naming_bad_row(self.file or self.name, start):
            return (wrap_logits if self.logits else wrap)(chunk, base=base, threads=threads)


def _within(rows: NDArray[np.intp], start: int, count: int) -> NDArray[np.intp]:
    return rows[(rows >= start) & (rows < start + count)] - start


def open_sources(id_name: str, members: Any, ood: Mapping[str, Any], /, *, logits: bool) -> tuple[Source, list[Source]]:
    """The ID source and the OOD sources, if any: predictions of the same members over the same classes."""
    if id_name in ood:
        raise ValueError(f"{id_name!r} names both the ID data and an OOD data set; rename one of them.")
    id_source = _source(id_name, members, logits)
    ood_sources = [_source(str(name), predictions, logits) for name, predictions in ood.items()]
    for source in ood_sources:
        _check_same(id_source, source, axis=0, what="members")
        _check_same(id_source, source, axis=2, what="classes")
    return id_source, ood_sources


def _source(name: str, predictions: Any, logits: bool) -> Source:
    source = Source(name, predictions if isinstance(predictions, Predictions) else to_numpy(predictions)[0], logits)
    if len(source.predictions.shape) != 3:
        raise ValueError(
            f"{name}: member predictions must have shape (members, rows, classes); got "
            f"{tuple(source.predictions.shape)}."
        )
    if source.rows < 2:
        raise ValueError(f"{name}: {source.rows} rows of predictions; an evaluation needs at least 2.")
    return source


def _check_same(id_source: Source, source: Source, *, axis: int, what: str) -> None:
    if id_source.shape[axis] != source.shape[axis]:
        raise ValueError(
            f"{source.name} has {source.shape[axis]} {what} and {id_source.name} has {id_source.shape[axis]}; "
            f"all data sets must be predicted by the same members over the same classes, (members, rows, classes)."
        )
