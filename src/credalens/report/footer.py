"""How an evaluation was made, in sentences: the head of the page, its foot, and what a threshold promises."""

from __future__ import annotations

import platform
from datetime import UTC, datetime

import numpy as np

from credalens.checks.options import count_text
from credalens.evaluation.outcome import ID_NAME, DataSets, Evaluation
from credalens.evaluation.words import percent, unit

MOST_NAMED = 4


def facts(data: DataSets, who: str = "", /) -> str:
    """What was evaluated: ``who``, or else so many members."""
    labels = "" if data.id.labelled else " (without labels)"
    ood = ", ".join(f"{one.rows:,} of {one.name}" for one in data.ood[:MOST_NAMED]) or "no data given"
    if len(data.ood) > MOST_NAMED:
        ood += f" and {count_text(len(data.ood) - MOST_NAMED, 'more data set')}"
    named = "" if data.id.name == ID_NAME else f" of {data.id.name}"
    return (
        f"{who or count_text(data.members, 'member')}, {data.classes} classes. In distribution: {data.id.rows:,} inputs"
        f"{named}{labels}. Out of distribution: {ood}."
    )


def now() -> str:
    """The date and the time for the foot of a page."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def footer(evaluation: Evaluation, /) -> list[str]:
    """Versions and settings, and the files that were read."""
    settings, data = evaluation.settings, evaluation.data
    intervals = (
        f"Intervals hold {percent(settings.level, 0)}: those of the AUROC by DeLong's variance, with two extreme samples added "
        f"to each kind, the others by {settings.replicates} bootstrap draws with seed {settings.seed}. "
    )
    made = (
        f"Made by credalens {evaluation.version}, Python {platform.python_version()}, NumPy {np.__version__} from "
        f"{'logits' if settings.logits else 'probabilities'}. Uncertainty is in {unit(settings.base)}; the ECE has "
        f"{count_text(settings.bins, 'bin')} of equal width. {intervals if evaluation.ood else ''}"
        "All numbers are in report.json next to this page."
    )
    return [made, *([read] if (read := files_read(data)) else [])]


def files_read(data: DataSets, model: str = "", /) -> str:
    """The files that were read, empty without any."""
    read = [f"{one.name}: {one.file}" for one in (data.id, *data.ood) if one.file]
    return f"Files{model and f' of {model}'}: {'; '.join(read)}." if read else ""


def promise(evaluation: Evaluation, /) -> str:
    """What a threshold promises."""
    text = (
        "Thresholds are set so that a new ID input is flagged with at most the wanted probability, whatever the "
        "distribution of its uncertainty, as long as the ID data were not used for training."
    )
    if all(alarm.threshold.guarantee == "new" for alarm in evaluation.thresholds):
        return text
    return f"{text} For the lowest rates there are too few ID inputs to promise that; there the rate is that of these inputs."
