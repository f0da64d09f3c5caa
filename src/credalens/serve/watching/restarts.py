"""Restarts of the drift alarm: asked for in one process, seen by all workers that share a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from credalens.serve.watching.collecting import FOLDER

NAME: Final = "drift-restarted"


class Restarts:
    """Whether somebody has asked for a restart since this process looked last."""

    def __init__(self) -> None:
        folder = os.environ.get(FOLDER)
        self._path = Path(folder, NAME) if folder else None
        self._asked = 0
        self._seen = self._stamp()

    def ask(self) -> None:
        """Ask all processes."""
        if self._path is None:
            self._asked += 1
        else:
            self._path.touch()

    def is_new(self) -> bool:
        """Whether there is one that this process has not seen; it has then."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def _stamp(self) -> int:
        if self._path is None:
            return self._asked
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
