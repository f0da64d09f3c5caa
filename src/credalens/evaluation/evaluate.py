"""From member predictions to one result: everything the tables, the report and ``report.json`` say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens import __version__
from credalens.checks.labels import read_labels
from credalens.checks.options import check_base, check_count, check_fraction
from credalens.evaluation import Threshold
from credalens.evaluation.alarms import choose_threshold, thresholds
from credalens.evaluation.detection import detection, detection_curves, histograms
from credalens.evaluation.members_needed import members_needed
from credalens.evaluation.prediction_quality import calibration, selective, set_quality
from credalens.evaluation.samples import worst_samples
from credalens.evaluation.scores import Scored, score_source
from credalens.evaluation.sources import Progress, Source, open_sources
from credalens.evaluation.statistics.shared_bootstrap import Resampling
from credalens.evaluation.words import verdicts as words

__all__ = ["FORMAT", "Evaluation", "evaluate"]

FORMAT: Final = "credalens-report-1"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an evaluation found.

    :ivar result: everything that ``report.json`` holds, as plain values; fractions, not percentages.
    :ivar known: the scores of the ID data; :ivar others: of each OOD data set.
    :ivar threshold: for credal epistemic uncertainty at the wanted false-alarm rate.
    """

    result: dict[str, Any]
    known: Scored
    others: list[Scored]
    threshold: Threshold

    def headline(self) -> dict[str, Any]:
        """The result without what only a picture needs."""
        return {name: part for name, part in self.result.items() if name not in ("curves", "samples")}


def evaluate(
    id_members: Any,
    ood: Mapping[str, Any],
    /,
    *,
    labels: Any = None,
    logits: bool = False,
    base: float = 2,
    bins: int = 15,
    false_alarm_rate: float = 0.05,
    level: float = 0.95,
    replicates: int = 300,
    seed: int = 0,
    id_name: str = "in-distribution",
    class_names: Sequence[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare credal with averaged prediction on ID data and on OOD data sets, name -> member predictions.

    Predictions are arrays (members, rows, classes) or files from ``open_predictions``, which are read by rows.
    Accuracy, calibration, sets and selective prediction need ``labels``, the true classes of the ID rows; detection
    needs OOD data, and is left out where ``ood`` is empty.

    >>> rng = np.random.default_rng(0)
    >>> sharp, flat = rng.dirichlet([60, 2, 2], size=(5, 40)), rng.dirichlet([1, 1, 1], size=(5, 40))
    >>> found = evaluate(sharp, {"noise": flat}, labels=np.zeros(40, int))
    >>> found.result["ood"][0]["epistemic"]["credal"]["auroc"] > 0.9
    True
    """
    if labels is None and not ood:
        raise ValueError(
            "nothing to evaluate: give labels of the ID data, for accuracy and calibration (--labels FILE), OOD data sets, "
            "for detection (--ood NAME=FILE), or both."
        )
    known, others = open_sources(id_name, id_members, ood, logits=logits)
    truth = None if labels is None else read_labels(labels, "labels", np.broadcast_to(0, known.shape[1:]))
    settings = {
        "base": check_base(base),
        "logits": logits,
        "bins": check_count(bins, "bins"),
        "false_alarm_rate": check_fraction(false_alarm_rate, "false_alarm_rate"),
        "level": check_fraction(level, "level"),
        "replicates": check_count(replicates, "replicates", least=round(2 / (1 - level))),
        "seed": seed,
    }
    names = _class_names(class_names, known.shape[2])
    report = progress or (lambda what, done, of: None)
    scored = _score_all([known, *others], truth is not None, base, threads, report)
    result = {
        "format": FORMAT,
        "version": __version__,
        "settings": settings,
        "data": _describe(known, others, names, truth is not None),
        **_evaluate(scored[0], scored[1:], truth, settings, report),
        "members_needed": members_needed(
            known, others, truth, threads=threads, report=lambda done, of: report("members", done, of)
        ),
        "samples": worst_samples(scored[0], scored[1:], truth),
    }
    result["words"] = words.summary(result)
    chosen = choose_threshold(scored[0].scores["credal"]["epistemic"], false_alarm_rate, name="credal epistemic")
    return Evaluation(result, scored[0], scored[1:], chosen)


def _score_all(
    sources: list[Source], labelled: bool, base: float, threads: int | None, report: Progress
) -> list[Scored]:
    count = _counter("scoring", sum(source.rows for source in sources), report)
    return [
        score_source(source, keep=labelled and place == 0, base=base, threads=threads, report=count)
        for place, source in enumerate(sources)
    ]


def _counter(what: str, of: int, report: Progress) -> Callable[..., None]:
    """A function to call with how much more is done, one step by default; nothing is said where there is nothing to do."""
    done = 0
    if of:
        report(what, done, of)

    def step(more: int = 1) -> None:
        nonlocal done
        done += more
        report(what, done, of)

    return step


def _evaluate(
    known: Scored, others: list[Scored], labels: NDArray | None, settings: dict[str, Any], report: Progress
) -> dict[str, Any]:
    """Everything that follows from the scores."""
    how = Resampling(settings["level"], settings["replicates"], settings["seed"])
    step = _counter("intervals", len(others) * how.replicates, report)
    return {
        "ood": [detection(known, other, how, step=step) for other in others],
        "calibration": None if labels is None else calibration(known, labels, bins=settings["bins"]),
        "selective": None if labels is None else selective(known, labels),
        "sets": None if labels is None else set_quality(known, labels),
        "mean_set_size": {rule: float(sizes.mean()) for rule, sizes in known.set_size.items()},
        "thresholds": thresholds(known, others, settings["false_alarm_rate"]),
        "curves": {
            "detection": {other.name: detection_curves(known, other) for other in others},
            "histograms": histograms(known, others) if others else {},
        },
    }


def _describe(known: Source, others: list[Source], names: list[str], labelled: bool) -> dict[str, Any]:
    members, rows, classes = known.shape
    return {
        "members": members,
        "classes": classes,
        "class_names": names,
        "id": {"name": known.name, "file": known.file, "rows": rows, "labelled": labelled},
        "ood": [{"name": other.name, "file": other.file, "rows": other.rows} for other in others],
    }


def _class_names(names: Sequence[str] | None, classes: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(classes)]
    if isinstance(names, str) or len(names) != classes:
        raise ValueError(f"class_names must be {classes} names, one for each class; got {len(names)}.")
    return [str(name) for name in names]
