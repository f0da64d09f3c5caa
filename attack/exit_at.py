"""``python -m attack.exit_at NAME CALLS ARGUMENT ...``: the command line, which ends without a word at a call of ``os.NAME``.

As if it had been killed at that moment: nothing is cleaned up. It is the same moment in every run.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from credalens.cli import main

STEPS = ("unlink", "replace", "rmdir", "mkdir", "fsync")
KILLED = 9


def exit_at(name: str, calls: int) -> None:
    """Let ``os.NAME`` work so many times."""
    real, left = getattr(os, name), calls

    def step(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(KILLED)
        return real(*args, **options)

    setattr(os, name, step)


if __name__ == "__main__":
    exit_at(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
