"""The benchmark's arithmetic and its command, on a few rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests import oracles
from tests.strategies import batch_of
from typer.testing import CliRunner

from credalens.bench import measure
from credalens.bench.contenders import classical_numpy, slsqp
from credalens.bench.timing import best_seconds
from credalens.cli.app import app
from credalens.core.classical import classical_uncertainty


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


def test_jobs_take_turns():
    calls = []
    seconds = best_seconds({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=2)
    assert calls == ["a", "b"] * 3
    assert set(seconds) == {"a", "b"}


def test_the_command_prints_and_writes(monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "CLASSES", (3, 5))
    monkeypatch.setattr(measure, "SOLVER_ROWS", {3: 4, 5: 4})
    target = tmp_path / "new" / "bench.json"
    result = CliRunner().invoke(app, ["bench", "--out", str(target), "--quick"])
    assert result.exit_code == 0, result.output
    rows = json.loads(target.read_text())["decomposition"]
    assert [row["classes"] for row in rows] == [3]
    for row in rows:
        assert row["ours_over_classical"] == pytest.approx(row["ours_us"] / row["classical_us"])
        assert row["slsqp_over_ours"] == pytest.approx(row["slsqp_us"] / row["ours_us"])
        assert 0 <= row["slsqp_wrong_share"] <= 1
    assert "SLSQP" in result.output
