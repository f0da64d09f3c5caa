"""Data sets to evaluate: predictions of the same members over the same classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credalens.arrays import to_numpy
from credalens.storage import Predictions
from credalens.storage.source import Source


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
