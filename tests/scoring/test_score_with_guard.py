"""A guard's decisions in scored files: those of `decide`, in any format and chunk, and part of the run's identity."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest

from credalens import wrap
from credalens.cli import main
from credalens.guard import ConformalSets, Guard
from credalens.scoring import column_names, score_file, score_folder
from credalens.storage import save_predictions
from credalens.storage.formats.parquet import from_fixed_lists
from tests.strategies import batch_of

CALIBRATION = wrap(batch_of("peaked", 4, 200, 5, seed=1))
LABELS = CALIBRATION.predict()
GUARD = Guard.fit(CALIBRATION, LABELS, max_error=0.05, sets=ConformalSets.fit(CALIBRATION, LABELS), largest_set=2)
VALUES = batch_of("mixed", 4, 50, 5, seed=2)


@pytest.fixture
def source(tmp_path):
    save_predictions(tmp_path / "in.npy", VALUES)
    return tmp_path / "in.npy"


@pytest.mark.parametrize("guard", [GUARD, Guard.fit(CALIBRATION, score="mean_pairwise_kl")], ids=["sets", "plain"])
@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_decisions_are_those_of_the_guard(tmp_path, source, guard, suffix):
    summary = score_file(source, tmp_path / f"out{suffix}", guard=guard, chunk_rows=13)
    decided = guard.decide(wrap(VALUES))
    if suffix == ".npz":
        columns = dict(np.load(tmp_path / "out.npz", allow_pickle=False))
        assert set(columns) == {*column_names(guard=guard), "settings"}
        sets = columns.get("guard_set")
    else:
        table = pq.read_table(tmp_path / "out.parquet")
        assert table.column_names == list(column_names(guard=guard))
        columns = {name: table[name].to_numpy() for name in ("decision", "p_value", "reason")}
        sets = from_fixed_lists(table["guard_set"]).reshape(50, 5) if guard.sets else None
    for name in ("decision", "reason"):
        assert columns[name].tolist() == getattr(decided, name).tolist()
    np.testing.assert_array_equal(columns["p_value"], decided.p_value)
    assert (sets is None) == (guard.sets is None)
    if sets is not None:
        np.testing.assert_array_equal(sets, decided.set)
    assert summary.decisions["accept"] == decided.accepted.mean()
    assert sum(summary.decisions.values()) == pytest.approx(1)


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_the_prediction_is_the_class_that_the_guard_decides_about(tmp_path, source, suffix):
    prediction = wrap(VALUES)
    guard = Guard.fit(CALIBRATION, LABELS, max_error=0.05, point="mean")
    assert (prediction.predict() != guard.decide(prediction).prediction).any()
    score_file(source, tmp_path / f"out{suffix}", guard=guard)
    if suffix == ".npz":
        with np.load(tmp_path / "out.npz", allow_pickle=False) as columns:
            written = columns["prediction"]
    else:
        written = pq.read_table(tmp_path / "out.parquet")["prediction"].to_numpy()
    np.testing.assert_array_equal(written, prediction.mean.argmax(-1))


def test_another_guard_is_another_run(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        save_predictions(tmp_path / "in" / f"{name}.parquet", VALUES)
    score_folder(tmp_path / "in", tmp_path / "out", guard=GUARD)
    assert score_folder(tmp_path / "in", tmp_path / "out", guard=GUARD).resumed_parts == 2
    for other in (Guard.fit(CALIBRATION), None):
        with pytest.raises(ValueError, match="guard"):
            score_folder(tmp_path / "in", tmp_path / "out", guard=other)
    manifest = json.loads((tmp_path / "out" / "_credalens.json").read_text())
    assert GUARD.digest in json.dumps(manifest)


def test_an_empty_part_has_no_decision(tmp_path):
    (tmp_path / "in").mkdir()
    save_predictions(tmp_path / "in" / "a.parquet", VALUES)
    pq.write_table(pq.read_table(tmp_path / "in" / "a.parquet").slice(0, 0), tmp_path / "in" / "b.parquet")
    summary = score_folder(tmp_path / "in", tmp_path / "out", guard=GUARD)
    assert summary.scores.decisions["accept"] == GUARD.decide(wrap(VALUES)).accepted.mean()


def test_a_guard_travels_to_other_machines():
    again = pickle.loads(pickle.dumps(GUARD))  # noqa: S301 - as Ray does
    assert again.digest == GUARD.digest
    np.testing.assert_array_equal(again.decide(wrap(VALUES)).decision, GUARD.decide(wrap(VALUES)).decision)


def test_a_guard_of_another_kind_is_refused_before_anything_is_written(tmp_path, source):
    with pytest.raises(ValueError, match=r"'mean_total' in base 2 and the prediction is in base 10"):
        score_file(source, tmp_path / "out.parquet", guard=GUARD, base=10)
    with pytest.raises(ValueError, match="fitted with 3 classes and the prediction has 5"):
        score_file(
            source, tmp_path / "out.parquet", guard=Guard.fit(wrap(batch_of("peaked", 4, 30, 3)), score="mean_total")
        )
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]


def test_the_command_takes_a_guard(capsys, tmp_path, source):
    GUARD.save(tmp_path / "guard.json")
    with pytest.raises(SystemExit) as left:
        main(["score", str(source), "-o", str(tmp_path / "out.parquet"), "--guard", str(tmp_path / "guard.json")])
    assert left.value.code == 0
    assert f"Guard: accept {GUARD.decide(wrap(VALUES)).accepted.mean():.1%}" in capsys.readouterr().out
    (tmp_path / "guard.json").write_text("{}")
    with pytest.raises(SystemExit) as left:
        main(["score", str(source), "-o", str(tmp_path / "out.parquet"), "--guard", str(tmp_path / "guard.json")])
    assert left.value.code == 2
    assert "is not a saved guard" in capsys.readouterr().err
