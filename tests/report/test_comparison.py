"""Several models on one page: paired intervals, the same inputs, names that stay text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from credalens.evaluation import compare_models, evaluate
from credalens.report.comparison import differences_table, models_table, render_comparison, sentence
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
    gains = {
        "accuracy": large.judged.correct.astype(float) - small.judged.correct,
        "nll": large.judged.surprise - small.judged.surprise,
    }
    for metric, of_rows in gains.items():
        paired = getattr(difference, metric)
        assert paired.difference == pytest.approx(of_rows.mean())
        normal = 1.959964 * of_rows.std(ddof=1) / ROWS**0.5
        assert (paired.high - paired.low) / 2 == pytest.approx(normal, rel=1e-6 if metric == "nll" else 0.05)
    for one, expected in ((large, difference.auroc["o"].a), (small, difference.auroc["o"].b)):
        scores = [one.values[name][one.recommended.score] for name in ("in-distribution", "o")]
        assert expected == pytest.approx(roc_auc_score(np.repeat([0, 1], [ROWS, 60]), np.concatenate(scores)))


def test_a_model_is_as_good_as_itself():
    one = model(3, labels=LABELS)
    compared = compare_models({"a": one, "b": one})
    (difference,) = compared.differences
    said = "b cannot be told apart from a by accuracy, ECE, NLL and AUROC, o. Both have 3 members."
    assert sentence(compared, difference) == said
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


def test_the_paired_interval_of_the_ece_is_that_of_resampled_rows(compared):
    """Beside the obvious way: whole rows drawn anew, and the ECE of both models computed from them."""
    (difference,), rng = compared.differences, np.random.default_rng(0)
    small, large = (one.judged for one in compared.evaluations.values())
    draws = [ece(large, rows) - ece(small, rows) for rows in (rng.integers(ROWS, size=ROWS) for _ in range(60))]
    assert difference.ece.difference == pytest.approx(ece(large, slice(None)) - ece(small, slice(None)))
    assert (difference.ece.low, difference.ece.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def ece(judged, rows):
    sure, correct = judged.confidence[rows], judged.correct[rows]
    binned = [np.clip(np.floor(15 * sure), 0, 14) == k for k in range(15)]
    return sum(abs(correct[inside].sum() - sure[inside].sum()) for inside in binned) / len(sure)


def test_less_is_better_for_ece_and_nll():
    sharp, labels = np.eye(3)[LABELS] * 0.9 + 0.1 / 3, LABELS
    blunt = sharp * 0.4 + 0.6 / 3
    one, other = (evaluate(p[None], {}, labels=labels, replicates=60) for p in (blunt, sharp))
    compared = compare_models({"blunt": one, "sharp": other})
    (difference,) = compared.differences
    assert difference.nll.high < 0
    assert sentence(compared, difference).startswith("sharp is better than blunt in ECE (−")
    rows = differences_table(compared).rows
    assert [row[-1].text for row in rows] == ["■ undecided", "▲ better", "▲ better"]


def test_models_with_other_labels_are_refused():
    labels = LABELS.copy()
    labels[[7, 30]] = (labels[[7, 30]] + 1) % 3
    models = {"a": model(2, labels=LABELS), "b": model(2, labels=labels)}
    with pytest.raises(ValueError, match=r"2 of 120 labels differ.* row 7 .*\(--model\)"):
        compare_models(models)


def test_without_labels_there_is_no_accuracy():
    (difference,) = compare_models({"a": model(2), "b": model(3)}).differences
    assert [name for name, _ in difference.items()] == ["AUROC, o"]


@pytest.mark.parametrize("others", [{}, {"b": {"rows": 80}}, {"b": {"labels": LABELS}}])
def test_models_of_other_inputs_are_refused(others):
    models = {"a": model(2)} | {name: model(2, **options) for name, options in others.items()}
    with pytest.raises(ValueError, match=r"(two models or more|the same inputs).*\(--model\)"):
        compare_models(models)
