"""Copies of ONNX files together with their external data."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from credalens.storage.formats.onnx import external_files, is_beside


def copy_onnx(source: str | os.PathLike[str], target: Path, /) -> None:
    """Copy an ONNX file, and the files of its external data to where it will look for them."""
    source = Path(source)
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)
    try:
        locations = sorted(external_files(source.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    for location in locations:
        copied = target.parent / location
        if not is_beside(location) or copied.exists():
            raise ValueError(
                f"{source}: its external data are in {location!r}. A model is saved with data in the folder of the ONNX file "
                f"or below it, in files that are not named {target.name!r}."
            )
        if not (source.parent / location).is_file():
            raise FileNotFoundError(
                2, f"No such file, the external data of {source.name}", str(source.parent / location)
            )
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, copied)
