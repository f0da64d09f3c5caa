"""Every adapter needs its own extra and no other; without it the error names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

EXTRAS = (
    "torch",
    "sklearn",
    "rich",
    "typer",
    "pyarrow",
    "safetensors",
    "matplotlib",
    "pandas",
    "polars",
    "ray",
    "transformers",
)
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("block", ["import sys; sys.modules[{package!r}] = None", ABSENT])
@pytest.mark.parametrize(
    ("part", "package", "extra"),
    [
        ("torch", "torch", "torch"),
        ("bayes", "torch", "torch"),
        ("sklearn", "sklearn", "sklearn"),
        ("serve", "starlette", "serve"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(part, package, extra, block):
    result = run(f"{block.format(package=package, packages=[package])}\nimport credalens.{part}")
    assert result.returncode == 1
    message = f"credalens.{part} needs {package}, which is missing or too old: pip install 'credalens[{extra}]'"
    assert result.stderr.splitlines()[-1] == f"ImportError: {message}"


def test_another_missing_package_is_not_reworded():
    result = run(f"{ABSENT.format(packages=['joblib'])}\nimport credalens.sklearn")
    assert result.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'joblib'"


TORCH = """
import torch
from credalens.torch import CredalWrapper
print(CredalWrapper([torch.nn.Linear(4, 3)] * 2).predict(torch.ones(5, 4)))
"""
SKLEARN = """
import numpy as np
from credalens.sklearn import CredalClassifier
print(CredalClassifier(random_state=0).fit(np.eye(20), np.arange(20) % 3).credal_predict(np.eye(20)))
"""


@pytest.mark.parametrize(("package", "code"), [("torch", TORCH), ("sklearn", SKLEARN)])
def test_an_adapter_needs_no_other_extra(package, code):
    result = run(ABSENT.format(packages=[name for name in EXTRAS if name != package]) + code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("CredalPrediction(members=")
