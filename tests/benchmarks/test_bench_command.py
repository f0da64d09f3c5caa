"""The benchmark's contenders and its command, on a few rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import calls, decide, decomposition, growth, hard, measure
from benchmarks.__main__ import app
from benchmarks.contenders import classical_numpy, slsqp
from credalens.core.classical import classical_uncertainty
from tests import oracles
from tests.strategies import batch_of


def test_the_classical_contender_is_the_classical_decomposition():
    batch = batch_of("peaked", 5, 50, 10)
    ours = classical_uncertainty(batch)
    for value, expected in zip(classical_numpy(batch), (ours.total, ours.aleatoric, ours.epistemic), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)
    with pytest.raises(ValueError, match="probability distributions"):
        classical_numpy(batch * 2)


def test_the_solver_stays_between_the_exact_entropies():
    for kind in ("peaked", "flat"):
        batch = batch_of(kind, 3, 5, 5)
        for low, high in zip(batch.min(0), batch.max(0), strict=True):
            highest, lowest = slsqp(low, high)
            assert highest <= oracles.upper_entropy(low, high)[0] + 1e-6
            assert lowest >= oracles.lower_entropy(low, high) - 1e-6


@pytest.fixture
def small(monkeypatch):
    """Every part of the benchmark on very little."""
    monkeypatch.setattr(decomposition, "CLASSES", (3, 5, 1000))
    monkeypatch.setattr(decomposition, "SOLVER_ROWS", {3: 4, 5: 4, 1000: 0})
    monkeypatch.setattr(calls, "ROWS", {4: 50})
    monkeypatch.setattr(decide, "ROWS", {4: 50})
    monkeypatch.setattr(measure, "measure_score", lambda: {"score_over_write": 2.0})
    monkeypatch.setattr(growth, "CLASSES", (3, 6))
    monkeypatch.setattr(growth, "ROWS", (50, 100))
    monkeypatch.setattr(growth, "COUNTS", (2, 4))
    monkeypatch.setattr(growth, "VALUES", 300)
    monkeypatch.setattr(hard, "FLAT_ROWS", {1e-3: 2})
    monkeypatch.setattr(hard, "HARTLEY_ROWS", {10: 2})
    monkeypatch.setattr(measure, "measure_memory", lambda: {"peak_over_outputs": 1.5})
    monkeypatch.setattr(measure, "measure_startup", lambda: {"import_seconds": 0.1})
    monkeypatch.setattr(measure, "measure_wrapper", lambda name: {"skipped": f"no {name}"})
    monkeypatch.setattr(measure.device, "measure_device", lambda classes: {"classes": classes, "skipped": "no GPU"})


def test_the_command_prints_and_writes(small, tmp_path):
    target = tmp_path / "new" / "bench.json"
    result = CliRunner().invoke(app, ["--out", str(target), "--quick"])
    assert result.exit_code == 0, result.output
    measured = json.loads(target.read_text())
    assert [row["classes"] for row in measured["decomposition"]] == [3, 5]
    assert "startup" not in measured
    goals = {goal["name"]: goal["reached"] for goal in measured["goals"]}
    assert goals["peak memory / outputs"] is False
    assert goals["GPU: ours / classical, C = 10"] is None
    for words in ("SLSQP", "members^", "not reached", "not measured", "skipped, no GPU"):
        assert words in result.output


def test_a_place_that_cannot_be_written_is_said_before_anything_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "measure_all", lambda **_: pytest.fail("measured"))
    (tmp_path / "file").touch()
    for out, reason in ((tmp_path, "it is a folder"), (tmp_path / "file" / "bench.json", "file is a file")):
        result = CliRunner().invoke(app, ["--out", str(out)])
        assert reason in str(result.exception)


def test_parts_are_announced_and_stored_under_their_names(small, monkeypatch):
    monkeypatch.setattr(decomposition, "measure_decomposition", lambda classes: {"classes": classes})
    heard = []
    measured = measure.measure_all(step=lambda what, done, of: heard.append((what, done, of)))
    assert [done for _, done, _ in heard] == list(range(len(heard)))
    assert heard[-1] == ("done", len(heard) - 1, len(heard) - 1)
    assert [row["classes"] for row in measured["decomposition"]] == [3, 5, 1000]
    assert measured["startup"] == {"import_seconds": 0.1}
    assert measured["wrapper"] == {"cpu": {"skipped": "no cpu"}, "cuda": {"skipped": "no cuda"}}
    assert [row["classes"] for row in measured["device"]] == [10, 100, 1000]


def test_some_parts_can_be_measured_alone(small, tmp_path):
    target = tmp_path / "bench.json"
    result = CliRunner().invoke(app, ["--part", "flat", "--part", "device", "--json", "--out", str(target)])
    assert result.exit_code == 0, result.output
    measured = json.loads(target.read_text())
    assert json.loads(result.stdout) == measured
    assert {"flat", "device"} <= measured.keys()
    assert not {"decomposition", "calls", "growth", "score", "wrapper"} & measured.keys()
    assert "no GPU" in result.output


def test_an_unknown_part_is_refused_with_the_known_ones(small):
    result = CliRunner().invoke(app, ["--part", "gpu"])
    assert result.exit_code != 0
    assert "device" in str(result.exception or result.output)
