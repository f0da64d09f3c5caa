"""Every example runs as a user would run it, and says something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    result = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) >= 3
    assert "epistemic" in result.stdout.lower()


def test_there_is_one_for_each_way_in():
    assert {path.stem for path in EXAMPLES} >= {
        "torch_ensemble", "mc_dropout", "bayesian_network", "random_forest", "gradient_boosting", "saved_predictions",
        "members_one_at_a_time",
    }  # fmt: skip
