"""Documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from credalens.core.scores import SCORES, Score

DOCS = Path(__file__).parents[1] / "docs"


def row(score: Score) -> str:
    unit = "" if score.unit == "information" else f", in {score.unit}"
    members = "; needs the members" if score.needs_members else ""
    return f"| `{score.name}` | {score.label}{unit} | ${score.formula}$ | ${score.top}$ | {score.cost}{members} |"


def test_the_catalogue_of_scores_is_the_code():
    rows = re.findall(r"^\| `\w+` \|.*$", (DOCS / "scores.md").read_text(), flags=re.MULTILINE)
    assert rows == [row(score) for score in SCORES.values()]


def test_the_example_about_scores_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "scores.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 - our own page
    evaluation = names["evaluation"]
    assert evaluation.recommended.score == "total"
    assert np.isclose(
        evaluation.alarm.caught["SVHN"], evaluation.threshold.flags(names["wrap"](names["real"].svhn)).mean()
    )
