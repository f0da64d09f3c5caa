"""What the package offers, and what it says without PyTorch."""

import subprocess
import sys

import credalens.torch


def test_public_names():
    assert sorted(credalens.torch.__all__) == ["CredalWrapper", "credal_prediction", "load_prediction"]
    assert all(hasattr(credalens.torch, name) for name in credalens.torch.__all__)


def test_import_without_torch_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import credalens.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: credalens.torch needs PyTorch" in done.stderr
    assert "pip install 'credalens[torch]'" in done.stderr
