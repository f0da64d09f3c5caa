"""Data sets to evaluate: predictions of the same members over the same classes, as a few numbers for each input."""

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
from credalens.core.open_rows import collecting_open_rows, warn_of_all
from credalens.core.scores import SCORES
from credalens.evaluation.results import ByMeasure, ByMethod
from credalens.guard.signature import read_score
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


RULES: Final = ("interval_dominance", "maximality", "e_admissibility")
Uncertainty = ByMethod[ByMeasure[NDArray]]
"""All uncertainties of a data set, (rows,) each."""


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

    @property
    def uncertainty(self) -> Uncertainty:
        """Total, aleatoric and epistemic uncertainty of every input, by both methods."""
        return ByMethod.make(lambda method: ByMeasure.make(lambda measure: self.of(method, measure)))

    def of(self, method: str, measure: str, /) -> NDArray:
        """One uncertainty of every input, (rows,)."""
        return self.scores[score_name(method, measure)]

    def mean_set_size(self) -> dict[str, float]:
        """How many classes each rule leaves possible on average."""
        return {rule: float(sizes.mean()) for rule, sizes in self.set_size.items()}


def score_name(method: str, measure: str, /) -> str:
    """What the catalogue calls an uncertainty of one method.

    >>> score_name("credal", "total"), score_name("classical", "total")
    ('total', 'mean_total')
    """
    return measure if method == "credal" else f"mean_{measure}"


def score_names(classes: int, /) -> tuple[str, ...]:
    """The scores of the catalogue; the Hartley measure, milliseconds per row beyond its exact range, only where it is quick."""
    return tuple(name for name in SCORES if name != "hartley" or classes <= EXACT_CLASSES)


def score_source(
    source: Source,
    /,
    *,
    names: Sequence[str],
    labelled: bool,
    in_distribution: bool,
    base: float,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> ScoredSet:
    """Score all rows, chunk by chunk; point predictions and sets only of data with labels.

    Warns of members that are nearly one-hot or the same, if the data are in distribution, and once of all rows that are open.
    """
    parts, rows = [], 0
    with collecting_open_rows() as open_rows:
        for start, chunk in source.chunks():
            prediction = source.wrap(chunk, start=start, base=base, threads=threads)
            if start == 0 and in_distribution and prediction.n_members > 1:  # of one alone the summary in words tells
                warn_of_members(prediction)
            parts.append(_columns(prediction, names, labelled))
            rows += chunk.shape[1]
            report(chunk.shape[1])
    warn_of_all(open_rows, rows, stacklevel=4)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return ScoredSet(
        source,
        {name: columns[name] for name in names},
        columns["dispute"],
        {rule: columns[f"size {rule}"] for rule in RULES},
        ByMethod.make(lambda method: columns[f"point {method}"]) if labelled else None,
        ByMethod.make(lambda method: columns[f"class {method}"]) if labelled else None,
        {rule: columns[f"set {rule}"] for rule in RULES if labelled},
    )


def _columns(prediction: CredalPrediction, names: Sequence[str], labelled: bool) -> dict[str, NDArray]:
    columns = {name: read_score(prediction, name) for name in names}
    columns["dispute"] = np.maximum(1 - prediction.lower.sum(axis=-1), 0)
    sets = {rule: prediction.predict_set(rule) for rule in RULES}
    columns |= {f"size {rule}": chosen.sum(axis=-1) for rule, chosen in sets.items()}
    if labelled:
        columns |= {f"set {rule}": chosen for rule, chosen in sets.items()}
        columns |= {"point credal": prediction.probability, "point classical": prediction.mean}
        columns |= {"class credal": prediction.predict(), "class classical": prediction.mean.argmax(axis=-1)}
    return columns
