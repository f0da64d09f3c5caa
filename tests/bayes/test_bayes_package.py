"""The examples in the docstrings run, and without PyTorch the import says what to do."""

import doctest
import importlib
import subprocess
import sys

import pytest

MODULES = ["bayes", "bayes.conversion", "bayes.divergence", "bayes.dropout", "bayes.layers", "bayes.switches"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"credalens.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_import_without_torch_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import credalens.bayes"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: credalens.bayes needs PyTorch" in done.stderr
    assert "pip install 'credalens[torch]'" in done.stderr
