"""Where a command will write, looked at before it begins its work."""

from __future__ import annotations

import os
from pathlib import Path


def check_folder(path: Path, /) -> Path:
    """A folder to write into: it is there, or can be made below one that is."""
    near = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {path}: {near} is a file; name a folder.")
    if not os.access(near, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write into {path}: there is no permission to write in {near}; name another folder."
        )
    return path


def check_file(path: Path, /, *, make_folder: bool = False) -> Path:
    """A file to write or replace; its folder must be there, unless it will be made."""
    from credalens.storage.atomic import check_target

    if path.parent.is_dir() or not make_folder:
        check_target(path)
    check_folder(path.parent)
    return path
