"""``python -m attack.start_together FOLDER NUMBER ARGUMENT ...``: the command line, ready before the signal to start.

Loads what a run needs, says ``ready-NUMBER`` in the folder, and begins when there is ``go``: two of them really overlap.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import credalens.scoring  # noqa: F401
from credalens import wrap
from credalens.cli import main


def wait_for(*paths: Path, seconds: float = 300.0) -> None:
    """Until all of them exist."""
    deadline = time.monotonic() + seconds
    while not all(path.exists() for path in paths):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {', '.join(map(str, paths))}")
        time.sleep(0.0005)


def ready(folder: Path, number: int) -> Path:
    """What process ``number`` makes when it has loaded everything."""
    return folder / f"ready-{number}"


if __name__ == "__main__":
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    wrap(np.full((2, 1, 3), 1 / 3)).predict_set()
    ready(folder, number).touch()
    wait_for(folder / "go")
    main(sys.argv[3:])
