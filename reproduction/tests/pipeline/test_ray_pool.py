"""A reproduction on Ray: the tables of one machine, with the work done by others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from credalens_paper.experiments.presets import get_preset
from credalens_paper.pipeline.engines import RayPool, TorchEngine
from credalens_paper.pipeline.measure_entries import reproduce
from tests.engines.quiet import RAY_WARNINGS

pytest.importorskip("ray", reason="Ray is not installed: pip install 'credalens[ray]'")
pytestmark = RAY_WARNINGS

SMALL = replace(get_preset("smoke").only(["DE", "EDD", "resnet18"]), test_images=40)


def run(folder, pool, **options):
    lines = []
    engine = TorchEngine(device="cpu", pool=pool)
    outcome = reproduce(["OODMainTU"], preset=SMALL, out=folder, engine=engine, log=lines.append, **options)
    return outcome, lines


def test_the_same_table(tmp_path, machine):
    pool = RayPool(device="cpu")
    late, _ = run(tmp_path / "ray", pool, time_limit=1e-9)
    assert "time limit of 1e-09 s" in next(iter(late.unfinished.values()))
    local, _ = run(tmp_path / "local", None, threads=1)
    spread, lines = run(tmp_path / "ray", pool)
    assert spread.unfinished == {}
    assert spread.results[0].cells == local.results[0].cells
    assert spread.results[0].provenance.engine == {
        "device": "cpu", "precision": "float32", "side_by_side": 1, "engine": "ray", "machines": 2, "cpus": 1, "gpus": 0.0,
    }  # fmt: skip
    assert {line.split()[0] for line in lines} == {"training", "predicting", "evaluating"}
    _, again = run(tmp_path / "ray", pool)
    assert again == []
