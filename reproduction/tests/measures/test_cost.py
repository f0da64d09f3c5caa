"""Costs are measured, repeat by repeat, and sizes are those of the networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from credalens import classical_uncertainty
from credalens_paper.backbones import build_backbone
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.paper_entries import TABLES
from credalens_paper.experiments.presets import get_preset
from credalens_paper.measures import cost
from credalens_paper.measures.cost import classical_numpy, cpu_threads, measure_costs

SMOKE = get_preset("smoke")


def measure(cells):
    return measure_costs(cells, SMOKE, check=lambda: None)


def test_the_timed_baseline_computes_the_classical_decomposition():
    members = np.random.default_rng(0).dirichlet(np.ones(4), 5)
    expected = classical_uncertainty(members)
    found = classical_numpy(members)
    assert found == pytest.approx([float(expected.total), float(expected.aleatoric), float(expected.epistemic)])


def test_every_way_to_compute_the_measures_is_timed_as_often_as_the_preset_says():
    cells = [CellKey(metric="time_ms", variant=v, C=3) for v in ("classical", "credal", "SLSQP", "credal, batched")]
    for values in measure(cells).values():
        assert len(values) == SMOKE.repeats
        assert min(values) > 0


def test_the_size_of_an_ensemble_is_that_of_its_networks():
    cells = [cell for cell in TABLES["DEsamples"].cells if cell.metric == "model_size_mb"]
    small, large = (values[0] for values in measure(cells).values())
    network = build_backbone("resnet50", classes=10, width=SMOKE.width, image_size=8)
    size = sum(t.numel() * t.element_size() for t in (*network.parameters(), *network.buffers())) / 1e6
    assert small == pytest.approx(size * SMOKE.substitute("N", 5))
    assert large == pytest.approx(size * SMOKE.substitute("N", 25))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_its_cells_say_so():
    cells = [cell for cell in TABLES["InferenceBNNsamples"].cells if cell.N == 10]
    found = measure(cells)
    for cell, values in found.items():
        if cell.metric == "gpu_ms":
            assert values == "no CUDA device on this machine"
        else:
            assert len(values) == SMOKE.repeats


def test_a_deadline_is_asked_before_every_cell():
    asked = []
    cells = [CellKey(metric="time_ms", variant="classical", C=C) for C in (3, 10)]
    measure_costs(cells, SMOKE, check=lambda: asked.append(1))
    assert len(asked) == 2


def test_what_takes_long_is_repeated_less_often_but_not_only_once(monkeypatch):
    """With no time at all even the first call counts."""
    monkeypatch.setattr(cost, "MOST_SECONDS", 0.0)
    cells = [CellKey(metric="time_ms", variant="classical", C=3)]
    (values,) = measure_costs(cells, SMOKE.changed(repeats=20), check=lambda: None).values()
    assert len(values) == cost.LEAST_REPEATS


def test_times_of_networks_name_torchs_threads_and_those_of_the_measures_one():
    assert cpu_threads(TABLES["DEsamples"].cells) == torch.get_num_threads()
    assert cpu_threads(TABLES["CPUcost"].cells) == 1
