"""The surface of credalens.evaluation: its names, its examples, and what importing it costs."""

import dataclasses
import doctest
import importlib
import subprocess
import sys

import pytest

from credalens import evaluation

MODULES = ("bootstrap", "calibration", "delong", "ood", "selective", "sets", "threshold")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failed, attempted = doctest.testmod(importlib.import_module(f"credalens.evaluation.{name}"))
    assert attempted > 0
    assert failed == 0


def test_every_public_name_is_re_exported():
    for name in MODULES:
        module = importlib.import_module(f"credalens.evaluation.{name}")
        public = {n for n in module.__all__ if n not in ("Metric", "Seed")}
        assert public <= set(evaluation.__all__)
    assert all(getattr(evaluation, name) is not None for name in evaluation.__all__)


def test_results_are_frozen():
    metrics = evaluation.ood_metrics([0.0], [1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        metrics.auroc = 0.0


def test_import_is_light():
    code = "import sys, credalens.evaluation; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "credalens.evaluation" in loaded
    assert not {"torch", "matplotlib", "pandas", "pyarrow", "sklearn"} & set(loaded)
