"""Several models on one page: paired intervals, the same inputs, names that stay text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from credalens.evaluation import compare_models, evaluate
from credalens.report.comparison import models_table, render_comparison, sentence
from tests.strategies import batch_of

ROWS = 120
LABELS = np.arange(ROWS) % 3
EVIL = "<script>alert(1)</script>"


def model(members, seed=1, rows=ROWS, **options):
    known, other = batch_of("peaked", members, rows, 3, seed=seed), batch_of("flat", members, 60, 3, seed=seed + 1)
    return evaluate(known, {"o": other}, replicates=60, **options)


@pytest.fixture(scope="module")
def compared():
    return compare_models({"small": model(2, labels=LABELS), EVIL: model(6, seed=5, labels=LABELS)})


def test_differences_are_paired_and_of_the_recommended_scores(compared):
    (difference,) = compared.differences
    small, large = compared.evaluations.values()
    assert (compared.baseline, difference.model) == ("small", EVIL)
    gains = large.correct.astype(float) - small.correct
    assert difference.accuracy.difference == pytest.approx(gains.mean())
    half = (difference.accuracy.high - difference.accuracy.low) / 2
    assert half == pytest.approx(1.959964 * gains.std(ddof=1) / ROWS**0.5, rel=1e-6)
    for one, expected in ((large, difference.auroc["o"].a), (small, difference.auroc["o"].b)):
        scores = [one.values[name][one.recommended.score] for name in ("in-distribution", "o")]
        assert expected == pytest.approx(roc_auc_score(np.repeat([0, 1], [ROWS, 60]), np.concatenate(scores)))


def test_a_model_is_as_good_as_itself():
    one = model(3, labels=LABELS)
    (difference,) = compare_models({"a": one, "b": one}).differences
    assert sentence(difference, "a") == "b cannot be told apart from a by accuracy and AUROC, o."
    assert all((gain.difference, gain.p_value) == (0, 1) for _, gain in difference.items())


def test_the_page_shows_all_models_and_names_stay_text(compared, undrawn):
    page = render_comparison(compared)
    assert "&lt;script&gt;alert(1)" in page
    assert EVIL not in page
    table = models_table(compared)
    assert [row[1].value for row in table.rows] == [2, 6]
    assert "AUROC o (%)" in [column.title for column in table.columns]


def test_the_folder_holds_the_comparison_and_every_report(compared, undrawn, tmp_path):
    folder = compared.report(tmp_path / "out", title="Which?")
    assert "<h1>Which?</h1>" in (folder / "report.html").read_text(encoding="utf-8")
    stored = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert list(stored["models"]) == ["small", EVIL]
    assert {path.parent.name for path in folder.glob("*/report.html")} == {"small", "script-alert-1-script"}


def test_without_labels_there_is_no_accuracy():
    (difference,) = compare_models({"a": model(2), "b": model(3)}).differences
    assert [name for name, _ in difference.items()] == ["AUROC, o"]


@pytest.mark.parametrize("others", [{}, {"b": {"rows": 80}}, {"b": {"labels": LABELS}}])
def test_models_of_other_inputs_are_refused(others):
    models = {"a": model(2)} | {name: model(2, **options) for name, options in others.items()}
    with pytest.raises(ValueError, match=r"(two models or more|the same inputs).*\(--model\)"):
        compare_models(models)
