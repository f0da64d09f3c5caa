"""Documents say what the code says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import credalens
from credalens import wrap
from credalens.core.scores import SCORES, Score
from credalens.guard.binomial import conformal_rate_range
from tests.doc_blocks import python_blocks, run_block, stand_ins

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (
    "coming_from",
    "deciding",
    "evaluating",
    "few_classes",
    "first_result",
    "guard",
    "index",
    "mathematics",
    "recalibrating",
    "serving",
    "wrapping",
)


def row(score: Score) -> str:
    unit = "" if score.unit == "information" else f", in {score.unit}"
    members = "; needs the members" if score.needs_members else ""
    return f"| `{score.name}` | {score.label}{unit} | ${score.formula}$ | ${score.top}$ | {score.cost}{members} |"


def test_the_catalogue_of_scores_is_the_code():
    rows = re.findall(r"^\| `\w+` \|.*$", (DOCS / "scores.md").read_text(), flags=re.MULTILINE)
    assert rows == [row(score) for score in SCORES.values()]


def test_the_example_about_scores_runs():
    (block,) = python_blocks(DOCS / "scores.md")
    names: dict[str, object] = {}
    run_block(block, names)
    evaluation = names["evaluation"]
    assert evaluation.recommended.score == "total"
    assert np.isclose(evaluation.alarm.caught["SVHN"], evaluation.threshold.flags(names["wrap"](names["svhn"])).mean())


def texts() -> dict[str, object]:
    """A tiny classifier of Hugging Face's, with random weights, and a batch as its tokenizer makes it."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3
    )
    classifiers = [transformers.BertForSequenceClassification(config).eval() for _ in range(2)]
    encoded = {"input_ids": torch.randint(20, (4, 6)), "attention_mask": torch.ones(4, 6, dtype=torch.long)}
    return {"classifier_a": classifiers[0], "classifier_b": classifiers[1], "encoded": encoded}


def predictions() -> dict[str, object]:
    """Members that know the first data set and not the second."""
    rng = np.random.default_rng(0)
    known, unknown = rng.dirichlet([60, 2, 2], size=(5, 60)), rng.dirichlet([1, 1, 1], size=(5, 60))
    return {"id_probs": known, "ood_probs": unknown, "labels": np.zeros(60, int)}


def calibration() -> dict[str, object]:
    """Predictions to calibrate on, and how many of ten people chose each class."""
    rng = np.random.default_rng(0)
    known = wrap(rng.dirichlet([6, 2, 2], size=(5, 60)))
    return {
        "calibration": known,
        "prediction": known,
        "labels": np.zeros(60, int),
        "answers": rng.multinomial(10, known.mean),
    }


def labelled_logits() -> dict[str, object]:
    """Logits of members that are too sure, with labels, twice."""
    rng = np.random.default_rng(0)
    classes = rng.normal(size=(600, 3))
    labels = (classes + rng.gumbel(size=classes.shape)).argmax(axis=-1)
    logits = 2 * (classes + 0.3 * rng.normal(size=(5, *classes.shape)))
    return {
        "calibration_logits": logits[:, :300], "calibration_labels": labels[:300], "logits": logits[:, :9],
        "guard_logits": logits[:, 300:], "guard_labels": labels[300:],
        "X": classes, "y": labels,
    }  # fmt: skip


def two_classes() -> dict[str, object]:
    """Members that tell two classes apart, on inputs of two sites."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=1500)
    logits = 4 * (labels - 0.5) + rng.normal(size=1500) + 0.5 * rng.normal(size=(5, 1500))
    positive = 1 / (1 + np.exp(-2 * logits))
    probs, sites = np.stack([1 - positive, positive], axis=-1), np.where(rng.random(1500) < 0.4, "north", "south")
    return {
        "calibration_probs": probs[:, :1000], "calibration_labels": labels[:1000], "calibration_sites": sites[:1000],
        "later_probs": probs[:, 1000:], "later_labels": labels[1000:], "later_sites": sites[1000:],
        "new_probs": probs[:, :9],
    }  # fmt: skip


MORE_NAMES = {
    "guard": calibration,
    "wrapping": texts,
    "recalibrating": labelled_logits,
    "evaluating": predictions,
    "few_classes": two_classes,
    "coming_from": predictions,
}
NUMBERS = {"first_result": 6, "index": 2, "mathematics": 2, "coming_from": 1, "deciding": 4, "few_classes": 4}


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = stand_ins() | MORE_NAMES.get(page, dict)()
    checked = sum(run_block(block, names) for block in python_blocks(DOCS / f"{page}.md"))
    assert checked == NUMBERS.get(page, 0)


def test_the_rates_of_one_guard_are_those_of_the_formula():
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) % to ([\d.]+) % \|$", (DOCS / "deciding.md").read_text(), re.MULTILINE)
    assert len(rows) == 3
    for n, *shown in rows:
        assert [f"{100 * rate:.1f}" for rate in conformal_rate_range(0.05, int(n.replace(",", "")))] == shown


def test_every_page_with_code_is_run():
    assert {page.stem for page in DOCS.glob("*.md") if python_blocks(page)} == {*PAGES, "scores"}


def test_every_link_to_a_file_leads_somewhere():
    for page in (*DOCS.glob("*.md"), *DOCS.glob("project/*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            built = target.startswith(("gallery/", "results/")) or "://" in target
            assert built or (page.parent / target).exists(), f"{page.name}: {target}"


REFERENCE = {f"credalens.{part}" for part in (*credalens._PARTS, "engines")} | {"credalens"}


@pytest.mark.parametrize("module", sorted(REFERENCE))
def test_every_public_name_is_in_the_reference(module):
    pytest.importorskip("torch")
    page = (DOCS / "api" / f"{module.rpartition('.')[2]}.rst").read_text()
    assert f".. automodule:: {module}\n" in page
    public = importlib.import_module(module)
    written = {name for name in public.__all__ if callable(vars(public).get(name)) and vars(public)[name].__doc__}
    named = set(re.findall(rf":: {module}\.(\w+)$", page, flags=re.MULTILINE))
    assert written | named | {"__version__"} >= set(public.__all__)


def test_the_tables_of_speed_are_the_result_files():
    from benchmarks.headline import device_table, speed_table

    page, results = (DOCS / "speed.md").read_text(), DOCS.parent / "results"
    tables = {"speed": speed_table(results / "benchmark.json"), "gpu": device_table(results / "benchmark_gpu.json")}
    for name, table in tables.items():
        assert page.partition(f"<!-- {name} -->\n")[2].partition(f"\n<!-- /{name} -->")[0] == table
