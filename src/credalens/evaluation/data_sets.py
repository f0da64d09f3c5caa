"""Data sets to evaluate: predictions of the same members over the same classes, scored, and pictures of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.doubtful_members import are_distributions, warn_of_members
from credalens.checks.options import count_text, escaped, escaped_names
from credalens.core.hartley import EXACT_CLASSES
from credalens.core.options import collecting_open_rows, warn_of_all
from credalens.core.recalibration import Recalibration
from credalens.core.scores import SCORES
from credalens.evaluation.results import ByMethod
from credalens.guard.signature import read_score
from credalens.prediction import CredalPrediction
from credalens.storage import Predictions
from credalens.storage.source import Source, wrap_chunk


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
        for axis, what in ((0, "members"), (2, "classes")):
            if id_source.shape[axis] != source.shape[axis]:
                raise ValueError(
                    f"{source.name} has {source.shape[axis]} {what} and {id_source.name} has {id_source.shape[axis]}; "
                    f"all data sets must be predicted by the same members over the same classes, (members, rows, classes)."
                )
        for one, other in ((id_source, source), (source, id_source)):  # as far as the first rows tell them apart
            rows = other.first_rows()
            are_logits = (rows < 0).any() and not are_distributions(rows).any()
            if are_logits and are_distributions(one.first_rows()).all():
                raise ValueError(
                    f"{other.file or other.name} holds logits, and {one.file or one.name} probabilities; all data sets must "
                    "hold the same. Save the softmax of the logits over the classes."
                )
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


RULES: Final = ("interval_dominance", "maximality", "e_admissibility")


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One data set, scored.

    :ivar scores: score of the catalogue -> its values, (rows,).
    :ivar dispute: share of probability on which the members do not agree, 1 - sum(lower), (rows,).
    :ivar set_size: rule -> number of classes left possible, (rows,).
    :ivar points: intersection and averaged probability, (rows, classes); None without labels.
    :ivar predicted: the class that each of them names, (rows,); None without labels.
    :ivar sets: rule -> classes left possible, (rows, classes); empty without labels.
    """

    source: Source
    scores: dict[str, NDArray]
    dispute: NDArray
    set_size: dict[str, NDArray]
    points: ByMethod[NDArray] | None
    predicted: ByMethod[NDArray] | None
    sets: dict[str, NDArray]

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.source.name

    def of(self, method: str, measure: str, /) -> NDArray:
        """One uncertainty of every input, (rows,)."""
        return self.scores[score_name(method, measure)]

    def mean_set_size(self) -> dict[str, float]:
        """Rule -> mean number of classes that it leaves possible."""
        return {rule: float(sizes.mean()) for rule, sizes in self.set_size.items()}


def score_name(method: str, measure: str, /) -> str:
    """Name of an uncertainty of one method in the catalogue.

    >>> score_name("credal", "total"), score_name("averaged", "total")
    ('total', 'mean_total')
    """
    return measure if method == "credal" else f"mean_{measure}"


def score_source(
    source: Source,
    /,
    *,
    labelled: bool,
    in_distribution: bool,
    base: float,
    recalibration: Recalibration | None = None,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> ScoredSet:
    """Score all rows, chunk by chunk; point predictions and sets only of data with labels.

    All scores of the catalogue, but the Hartley measure, milliseconds per row beyond its exact range, only where it is quick.
    Warns of members that are nearly one-hot or the same, if the data are in distribution, and once of all rows that are open.
    """
    names = [name for name in SCORES if name != "hartley" or source.shape[2] <= EXACT_CLASSES]
    parts = []
    with collecting_open_rows() as open_rows:
        for chunk in source.chunks():
            prediction = wrap_chunk(source, chunk, base=base, recalibration=recalibration, threads=threads)
            if chunk.start == 0 and in_distribution and prediction.n_members > 1:  # the words tell of one alone
                warn_of_members(prediction)
            sets = {rule: prediction.predict_set(rule) for rule in RULES}
            points = ByMethod(prediction.probability, prediction.mean)
            scores = {name: read_score(prediction, name) for name in names}
            dispute = np.maximum(1 - prediction.lower.sum(axis=-1), 0)
            sizes = {rule: chosen.sum(axis=-1) for rule, chosen in sets.items()}
            predicted = ByMethod(prediction.predict(), prediction.mean.argmax(axis=-1)) if labelled else None
            of_labels = (points, predicted, sets) if labelled else (None, None, {})
            parts.append((scores, dispute, sizes, *of_labels))
            report(len(chunk))
    warn_of_all(open_rows, source.rows, stacklevel=4)
    return ScoredSet(source, *map(_joined, zip(*parts, strict=True)))


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays of all chunks one after the other, also those by name or by method."""
    if isinstance(parts[0], dict):
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}
    if isinstance(parts[0], ByMethod):
        return ByMethod.make(lambda method: _joined([part.of(method) for part in parts]))
    return None if parts[0] is None else np.concatenate(parts)


CHANNELS = (1, 3, 4)


def check_images(images: Any, rows: Mapping[str, int], id_name: str, /) -> dict[str, NDArray[np.uint8]]:
    """Data set -> its images as bytes; ``images`` is such a mapping, or the images of the ID data alone."""
    if images is None:
        return {}
    named = escaped_names(images, "images") if isinstance(images, Mapping) else {id_name: images}
    unknown = sorted(set(named) - set(rows))
    if unknown:
        names = ", ".join(map(repr, rows))
        raise ValueError(
            f"images were given for {unknown[0]!r}, which is not a data set; there are {names} (--images)."
        )
    return {name: read_images(array, rows[name], name) for name, array in named.items()}


def read_images(images: Any, rows: int, name: str, /) -> NDArray[np.uint8]:
    """Images of all rows of a data set as bytes, (rows, height, width) or (rows, height, width, channels).

    Bytes, or floats from 0 to 1; grey, with the channels last, or with the channels first.
    """
    array, _ = to_numpy(images)
    if array.ndim == 4 and array.shape[-1] not in CHANNELS and array.shape[1] in CHANNELS:
        array = np.moveaxis(array, 1, -1)
    shaped = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] in CHANNELS)
    if not shaped or len(array) != rows:
        raise ValueError(
            f"images of {name!r} must have shape ({rows}, height, width), ({rows}, height, width, channels) or ({rows}, "
            f"channels, height, width), one for each input and 1, 3 or 4 channels; got shape {array.shape} (--images)."
        )
    array = array[..., 0] if array.ndim == 4 and array.shape[-1] == 1 else array
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f" or not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        span = f" from {array.min():g} to {array.max():g}" if array.dtype.kind in "fiu" else ""
        raise ValueError(
            f"images of {name!r} must be uint8, or floats from 0 to 1; got {array.dtype}{span} (--images)."
        )
    return np.round(255 * array.astype(np.float64)).astype(np.uint8)
