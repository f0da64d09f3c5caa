"""The command line of the extra ``cli``, as a program: it scores and completes, and says what a report needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import credalens


def run(*arguments: object, folder: Path) -> str:
    """What the program of this environment prints; an error where it fails."""
    program = shutil.which("credalens", path=Path(sys.executable).parent) or "credalens"
    command = [program, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def refusal(*arguments: object, folder: Path) -> str:
    """What the program says of a command that it refuses."""
    try:
        run(*arguments, folder=folder)
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return ""


def smoke(folder: Path) -> None:
    """From predictions in a file to scores; a report needs another extra, which is said at once."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 50))
    np.savez(folder / "id.npz", probs=probs)
    assert run("--version", folder=folder).strip() == f"credalens {credalens.__version__}"
    run("score", "id.npz", "-o", "scores.parquet", folder=folder)
    assert (folder / "scores.parquet").is_file()
    assert "credalens[report]" in refusal(
        "evaluate", "--id", "id.npz", "--ood", "same=id.npz", "-o", "out", folder=folder
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        smoke(Path(name))
