"""A scored file holds what wrap() gives for the whole array, whatever the formats and the chunks."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from credalens import evaluate, wrap, wrap_logits
from credalens.core import imprecision
from credalens.scoring import column_names, score_file
from credalens.storage import save_predictions, source
from credalens.storage.formats.parquet import from_fixed_lists
from tests.scoring.folders import names
from tests.strategies import batch_of

FORMATS = (".npy", ".npz", ".parquet", ".safetensors")


def load(path) -> dict[str, np.ndarray]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive if name != "settings"}
    table = pq.read_table(path).combine_chunks()
    columns = {name: from_fixed_lists(table[name].combine_chunks()) for name in table.column_names}
    return {name: x.reshape(len(table), -1) if len(x) > len(table) else x for name, x in columns.items()}


def expected(prediction, rule: str) -> dict[str, np.ndarray]:
    classical = prediction.classical
    names = ("probability", "lower", "upper", "total", "aleatoric", "epistemic", "aleatoric_bound")
    return {name: getattr(prediction, name) for name in names} | {
        "prediction": prediction.probability.argmax(-1),
        "set": prediction.predict_set(rule),
        "mean_total": classical.total,
        "mean_aleatoric": classical.aleatoric,
        "mean_epistemic": classical.epistemic,
    }


def assert_same(columns: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert set(columns) == set(other) == set(column_names())
    for name, column in columns.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", [".parquet", ".npz"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_column_is_what_wrap_gives(tmp_path, source, target, dtype):
    values = batch_of("mixed", 4, 50, 5).astype(dtype)
    save_predictions(tmp_path / f"in{source}", values)
    summary = score_file(tmp_path / f"in{source}", tmp_path / f"out{target}", chunk_rows=13)
    columns = load(tmp_path / f"out{target}")
    assert_same(columns, expected(wrap(values), "maximality"))
    assert columns["lower"].dtype == (np.float64 if dtype == "float64" else np.float32)
    assert columns["prediction"].dtype == np.int32
    assert columns["set"].dtype == bool
    assert (summary.rows, summary.members, summary.classes, summary.resumed_rows) == (50, 4, 5, 0)
    assert names(tmp_path) == [f"in{source}", f"out{target}"]


@pytest.mark.parametrize("chunk_rows", [1, 7, 50, 10**6, None])
def test_chunks_change_nothing(tmp_path, chunk_rows):
    values = batch_of("peaked", 3, 50, 4)
    save_predictions(tmp_path / "in.npy", values)
    score_file(tmp_path / "in.npy", tmp_path / "out.parquet", chunk_rows=chunk_rows, threads=1)
    assert_same(load(tmp_path / "out.parquet"), expected(wrap(values), "maximality"))


def test_options_reach_the_numbers(tmp_path):
    logits = np.log(batch_of("flat", 3, 20, 4))
    save_predictions(tmp_path / "in.npz", logits, logits=True)
    options = {"logits": True, "base": math.e, "rule": "gamma_maximin"}
    summary = score_file(tmp_path / "in.npz", tmp_path / "out.npz", chunk_rows=6, **options)
    prediction = wrap_logits(logits, base=math.e)
    assert_same(load(tmp_path / "out.npz"), expected(prediction, "gamma_maximin"))
    assert (summary.logits, summary.base, summary.rule) == (True, math.e, "gamma_maximin")


@pytest.mark.parametrize("target", [".parquet", ".npz"])
def test_scores_are_chosen_by_their_names(tmp_path, target):
    values = batch_of("mixed", 4, 20, 5)
    save_predictions(tmp_path / "in.npy", values)
    chosen = ["imprecision", "hartley", "set_size", "mean_pairwise_kl"]
    summary = score_file(tmp_path / "in.npy", tmp_path / f"out{target}", scores=chosen, chunk_rows=7)
    columns = load(tmp_path / f"out{target}")
    assert tuple(columns) == column_names(chosen)
    for name in chosen:
        np.testing.assert_array_equal(columns[name], wrap(values).score(name))
        assert summary.means[name] == pytest.approx(columns[name].mean())


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (["total", "entropie"], "a score must be one of 'total', .*; got 'entropie'"),
        (["total", "total"], "each once; got total, total"),
        ([], "at least one score, each once; got none"),
    ],
)
def test_other_scores_are_refused_by_name(tmp_path, scores, message):
    save_predictions(tmp_path / "in.npy", batch_of("mixed", 4, 20, 5))
    with pytest.raises(ValueError, match=message):
        score_file(tmp_path / "in.npy", tmp_path / "out.npz", scores=scores)
    assert names(tmp_path) == ["in.npy"]


@pytest.mark.parametrize("source", [".npz", ".parquet", ".safetensors"])
@pytest.mark.parametrize("target", [".parquet", ".npz"])
def test_true_labels_are_kept_beside_the_predicted_class(tmp_path, source, target):
    values, labels = batch_of("mixed", 4, 50, 5), np.arange(50) % 5
    save_predictions(tmp_path / f"in{source}", values, labels)
    score_file(tmp_path / f"in{source}", tmp_path / f"out{target}", chunk_rows=13)
    columns = load(tmp_path / f"out{target}")
    assert tuple(columns) == column_names(labels=True)
    np.testing.assert_array_equal(columns["label"], labels)
    np.testing.assert_array_equal(columns["prediction"], wrap(values).predict())


def test_a_label_that_is_no_class_is_named_by_its_row(tmp_path):
    labels = np.arange(50) % 5
    labels[37] = 5
    save_predictions(tmp_path / "in.npz", batch_of("mixed", 4, 50, 5), labels)
    with pytest.raises(ValueError, match=r"in\.npz: 1 of 10 labels .* 5 in row 37"):
        score_file(tmp_path / "in.npz", tmp_path / "out.npz", chunk_rows=10)
    assert names(tmp_path) == ["in.npz"]


def test_the_summary_is_the_mean_of_the_rows(tmp_path):
    values = batch_of("mixed", 4, 50, 5)
    save_predictions(tmp_path / "in.npy", values)
    summary = score_file(tmp_path / "in.npy", tmp_path / "out.npz", chunk_rows=9)
    prediction = wrap(values)
    assert summary.means["epistemic"] == pytest.approx(prediction.epistemic.mean(), abs=1e-12)
    assert summary.means["mean_total"] == pytest.approx(prediction.classical.total.mean(), abs=1e-12)
    sizes = prediction.predict_set("maximality").sum(-1)
    assert summary.mean_set_size == pytest.approx(sizes.mean())
    assert summary.determinacy == pytest.approx((sizes == 1).mean())
    assert json.loads(json.dumps(summary.as_dict()))["rows"] == 50


def test_the_output_says_how_it_was_made(tmp_path):
    save_predictions(tmp_path / "in.npy", batch_of("flat", 3, 20, 4).astype(np.float16))
    for name in ("out.parquet", "out.npz"):
        score_file(tmp_path / "in.npy", tmp_path / name, rule="e_admissibility", base=10)
    stored = json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"credalens"])
    assert (stored["rule"], stored["base"], stored["members"], stored["dtype"]) == ("e_admissibility", 10, 3, "float16")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["settings"])) == stored


def test_small_chunks_are_gathered_into_row_groups(tmp_path):
    save_predictions(tmp_path / "in.npy", batch_of("flat", 2, 30, 3))
    score_file(tmp_path / "in.npy", tmp_path / "out.parquet", chunk_rows=1)
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups == 1


def collector(heard: list[tuple]):
    return lambda *news: heard.append(news)


def test_progress_counts_all_rows(tmp_path):
    save_predictions(tmp_path / "in.npy", batch_of("flat", 2, 30, 3))
    for name in ("out.parquet", "out.npz"):
        heard: list[tuple] = []
        score_file(tmp_path / "in.npy", tmp_path / name, chunk_rows=8, progress=collector(heard))
        assert heard == [("scoring", n, 30) for n in (0, 8, 16, 24, 30)]


RESIDENT = """
import os, sys
from pathlib import Path
from credalens.scoring import score_file
from credalens.storage.formats import parquet

parquet.GROUP_ROWS = 8192  # both files have more rows than a row group of the output

def most(source):
    sizes = []
    look = lambda *_: sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    score_file(source, sys.argv[3], chunk_rows=4096, threads=1, progress=look)
    return max(sizes)

most(sys.argv[1])  # compiles what is not in the cache yet
before = most(sys.argv[1])
print(most(sys.argv[2]) - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    values = batch_of("one_hot", 40, 100, 10).astype(np.float32)
    small, large = tmp_path / f"small{suffix}", tmp_path / f"large{suffix}"
    save_predictions(small, values.repeat(150, axis=1))
    save_predictions(large, values.repeat(750, axis=1))
    command = [sys.executable, "-c", RESIDENT, small, large, tmp_path / "out.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 0.75 * values.nbytes * 600  # the allocator of pyarrow alone was seen to take 0.44


@pytest.mark.parametrize("chunk_rows", [None, 10])
def test_open_rows_of_all_chunks_are_warned_of_once(tmp_path, monkeypatch, chunk_rows):
    values = np.tile(np.random.default_rng(0).dirichlet(np.ones(14), (2, 45)), (2, 1, 1))
    save_predictions(tmp_path / "in.npy", values)
    monkeypatch.setattr(imprecision, "MAX_NODES", 3)
    with pytest.warns(RuntimeWarning, match=r"[2-4]\d of 45 rows are not certified") as alone:
        wrap(values).score("imprecision")
    with pytest.warns(RuntimeWarning, match="not certified") as caught:
        score_file(tmp_path / "in.npy", tmp_path / "out.npz", scores=["imprecision"], chunk_rows=chunk_rows)
    assert [str(entry.message) for entry in caught] == [str(alone[0].message)]
    assert caught[0].filename == __file__


def test_open_rows_that_an_evaluation_meets_are_warned_of_once_for_each_data_set(monkeypatch):
    values = np.tile(np.random.default_rng(0).dirichlet(np.ones(14), (2, 45)), (2, 1, 1))
    monkeypatch.setattr(imprecision, "MAX_NODES", 3)
    monkeypatch.setattr(source, "rows_at_a_time", lambda *_: 10)
    with pytest.warns(RuntimeWarning, match=r"[2-4]\d of 45 rows are not certified") as caught:
        evaluate(values, {"other": values[:, ::-1]}, labels=np.zeros(45, int))
    assert len([entry for entry in caught if "not certified" in str(entry.message)]) == 2
