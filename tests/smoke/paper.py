"""The second distribution: the same version, its numbers come along, its commands are found."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import credalens
from credalens_paper.experiments import paper_numbers

if __name__ == "__main__":
    assert version("credalens-paper") == credalens.__version__
    assert paper_numbers.__doc__
    for command in ("train", "reproduce"):
        program = [sys.executable, "-I", "-m", "credalens", command, "--help"]
        shown = subprocess.run(program, check=True, capture_output=True, text=True, encoding="utf-8").stdout
        assert "Examples" in shown  # and not the words of a command that cannot be loaded
