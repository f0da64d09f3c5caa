"""An evaluation in a notebook: its sentences, and the table of all scores."""

from __future__ import annotations

from credalens.evaluation.outcome import Evaluation
from credalens.report import tables
from credalens.report.page import templates


def to_notebook(evaluation: Evaluation, /) -> str:
    """A fragment of HTML without scripts and styles of its own."""
    words = evaluation.words
    lines = (words.headline, words.prediction, words.rejection, words.threshold, words.members, *words.remarks)
    shown = [tables.scores_table(evaluation)] if evaluation.ood else []
    if evaluation.calibration:
        shown.append(tables.calibration_table(evaluation.calibration, evaluation.data.id.name))
    return templates().get_template("notebook.html").render(lines=[line for line in lines if line], tables=shown)
