"""Where a file or a folder will be written, looked at before the work begins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def check_folder(path: str | os.PathLike[str], /, *, option: str = "") -> Path:
    """A folder to write into, which ``option`` of a command named: it is there, or can be made below one that is."""
    path, said = Path(path), f" ({option})" if option else ""
    near = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {path}: {near} is a file; name a folder{said}.")
    if not os.access(near, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write into {path}: there is no permission to write in {near}; name another folder{said}."
        )
    return path


def check_file(path: str | os.PathLike[str], /, *, make_folder: bool = False) -> Path:
    """A file to write or replace; its folder must be there, unless it will be made."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it.")
    if not path.parent.is_dir() and not make_folder:
        remedy = "it is a file, name a folder" if path.parent.exists() else "create it first"
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}; {remedy}.")
    check_folder(path.parent)
    return path


def check_no_input(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[str | os.PathLike[str] | None],
    /,
    *,
    doing: str = "read",
) -> None:
    """Refuse to replace a file that is read, under whatever name: before anything is read, and for side files too."""
    there = [Path(path) for path in outputs if Path(path).exists()]
    if not there:
        return
    for source in (Path(path) for path in inputs if path is not None):
        same = next((path for path in there if source.exists() and path.samefile(source)), None)
        if same is not None:
            raise ValueError(
                f"cannot write {same}: it is the file that is being {doing}, {source}; choose another name."
            )
