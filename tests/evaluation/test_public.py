"""The surface of credalens.evaluation: its names, its examples, and what importing it costs."""

import dataclasses
import importlib
import inspect
import subprocess
import sys

import pytest

from credalens import evaluation

MODULES = ("evaluate", "ood", "labelled", "intervals")
NOT_EXPORTED = {
    "confidence_bins", "resample", "thin", "holm", "compare_means", "compare_shares", "compare_wins",
    "encode", "flagged", "quantile", "twice_below", "two_sided", "wins",
}  # fmt: skip


def public_functions(module):
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__
    }


def test_every_public_function_is_re_exported():
    for name in MODULES:
        module = importlib.import_module(f"credalens.evaluation.{name}")
        assert public_functions(module) - NOT_EXPORTED <= set(evaluation.__all__)
    assert all(getattr(evaluation, name) is not None for name in evaluation.__all__)


def test_results_are_frozen():
    metrics = evaluation.ood_metrics([0.0], [1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        metrics.auroc = 0.0


@pytest.mark.processes
def test_import_is_light():
    code = "import sys, credalens.evaluation; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "credalens.evaluation" in loaded
    assert not {"torch", "matplotlib", "numba", "pandas", "pyarrow", "scipy", "sklearn"} & set(loaded)
