"""Data sets to evaluate: predictions of the same members over the same classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credalens.arrays import to_numpy
from credalens.checks.control_characters import escaped, escaped_names
from credalens.checks.counted import count_text
from credalens.checks.doubtful_input import are_distributions
from credalens.prediction import CredalPrediction
from credalens.storage import Predictions
from credalens.storage.source import Source


def open_sources(id_name: str, members: Any, ood: Mapping[str, Any], /, *, logits: bool) -> tuple[Source, list[Source]]:
    """The ID source and the OOD sources, if any: predictions of the same members over the same classes.

    Their names are made harmless here, for every page, file and terminal that will show them.
    """
    if not isinstance(ood, Mapping):
        raise TypeError(
            f"ood must map names to predictions, such as {{'noise': probs}}; got {type(ood).__name__}. Labels are passed as "
            "labels=."
        )
    id_name, ood = escaped(id_name), escaped_names(ood, "an OOD data set")
    if id_name in ood:
        raise ValueError(f"{id_name!r} names both the ID data and an OOD data set; rename one of them (--name, --ood).")
    id_source = _source(id_name, members, logits)
    ood_sources = [_source(name, predictions, logits) for name, predictions in ood.items()]
    for source in ood_sources:
        _check_same(id_source, source, axis=0, what="members")
        _check_same(id_source, source, axis=2, what="classes")
        _check_same_kind(id_source, source)
    return id_source, ood_sources


def _source(name: str, predictions: Any, logits: bool) -> Source:
    if isinstance(predictions, CredalPrediction):
        raise TypeError(
            f"{name}: expected the members' predictions (members, rows, classes); got a CredalPrediction. Pass what wrap was "
            "given."
        )
    source = Source(name, predictions if isinstance(predictions, Predictions) else to_numpy(predictions)[0], logits)
    if len(source.predictions.shape) != 3:
        raise ValueError(
            f"{name}: member predictions must have shape (members, rows, classes); got "
            f"{tuple(source.predictions.shape)}. Rows are samples of their own, which pixels of an image are not: intervals "
            "and promises would be far too sure. Evaluate one prediction of each image."
        )
    if source.rows < 2:
        raise ValueError(f"{name}: {count_text(source.rows, 'row')} of predictions; an evaluation needs at least 2.")
    return source


def _check_same(id_source: Source, source: Source, *, axis: int, what: str) -> None:
    if id_source.shape[axis] != source.shape[axis]:
        raise ValueError(
            f"{source.name} has {source.shape[axis]} {what} and {id_source.name} has {id_source.shape[axis]}; "
            f"all data sets must be predicted by the same members over the same classes, (members, rows, classes)."
        )


def _check_same_kind(id_source: Source, source: Source) -> None:
    """Refuse logits of one data set with probabilities of another, as far as the first rows tell them apart."""
    for one, other in ((id_source, source), (source, id_source)):
        if _are_probabilities(one) and _are_logits(other):
            raise ValueError(
                f"{other.file or other.name} holds logits, and {one.file or one.name} probabilities; all data sets must hold "
                "the same. Save the softmax of the logits over the classes."
            )


def _are_probabilities(source: Source) -> bool:
    return bool(are_distributions(source.first_rows()).all())


def _are_logits(source: Source) -> bool:
    rows = source.first_rows()
    return bool((rows < 0).any() and not are_distributions(rows).any())
