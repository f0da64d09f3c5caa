"""The predictions for a data set, batch by batch: in memory, or in a folder that survives an interruption."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.storage.atomic import PARTIAL, atomic_file

__all__ = ["MANIFEST", "Arrays", "InFolder", "InMemory", "Parts", "digest"]

Arrays = dict[str, NDArray]
MANIFEST = "predictions.json"


class Parts(Protocol):
    """Where the results of the batches go, in order, each with the digest of its inputs."""

    def holds(self, index: int, inputs: str, /) -> bool:
        """Whether batch ``index`` is there already; an error if it came from other inputs."""

    def add(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Take the results of batch ``index``."""

    def finish(self, batches: int, /) -> list[Arrays]:
        """All results, now that there are as many batches."""


@final
class InMemory:
    """Parts in a list."""

    def __init__(self) -> None:
        self._arrays: list[Arrays] = []

    def holds(self, index: int, inputs: str, /) -> bool:
        """Nothing is there before it was added."""
        return False

    def add(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Append."""
        self._arrays.append(arrays)

    def finish(self, batches: int, /) -> list[Arrays]:
        """Everything that was added."""
        return self._arrays


@final
class InFolder:
    """Parts as ``part-000000.npz``, ..., with a manifest of how they were made; a file is there whole or not at all.

    ``unsaid`` are settings that older manifests do not name, as they were then.
    """

    def __init__(
        self, folder: str | os.PathLike[str], settings: Mapping[str, Any], /, *, unsaid: Mapping[str, Any]
    ) -> None:
        self.folder, self.settings = Path(folder), dict(settings)
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(
                f"{self.folder} is a file; output= names a new or empty folder, or that of a stopped run."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        for left_over in self.folder.glob(f".*{PARTIAL}"):  # of a run that was killed while it wrote
            left_over.unlink()
        if (self.folder / MANIFEST).exists():
            self._check_settings({**unsaid, **read_manifest(self.folder)["settings"]})
        elif any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not empty and holds no {MANIFEST}; give a new or empty folder.")
        else:
            self._write_manifest(None)

    def holds(self, index: int, inputs: str, /) -> bool:
        """Whether the part is on disk; an error if its inputs were others."""
        path = part_path(self.folder, index)
        if not path.exists():
            return False
        if str(read_part(path, only="inputs")["inputs"]) != inputs:
            raise ValueError(
                f"{path} was made from other inputs than batch {index} has now. Resuming needs the same batches in the "
                "same order: turn off shuffling and random augmentation, or give a new folder."
            )
        return True

    def add(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Write one part."""
        with atomic_file(part_path(self.folder, index)) as file:
            np.savez(file, allow_pickle=False, **arrays, inputs=np.array(inputs))

    def finish(self, batches: int, /) -> list[Arrays]:
        """Read all parts back, and note in the manifest that they are complete."""
        if part_path(self.folder, batches).exists():
            raise ValueError(f"{self.folder} holds more than the {batches} batches there are now; give a new folder.")
        self._write_manifest(batches)
        return read_parts(self.folder, batches)

    def _check_settings(self, before: Mapping[str, Any]) -> None:
        changed = [key for key in sorted({*before, *self.settings}) if before.get(key) != self.settings.get(key)]
        if changed:
            details = ", ".join(f"{key} was {before.get(key)} and is {self.settings.get(key)}" for key in changed)
            raise ValueError(f"{self.folder} was begun with other settings: {details}. Give a new folder.")

    def _write_manifest(self, batches: int | None) -> None:
        with atomic_file(self.folder / MANIFEST) as file:
            file.write(json.dumps({"settings": self.settings, "batches": batches}, indent=1).encode())


def part_path(folder: Path, index: int, /) -> Path:
    """Where the results of batch ``index`` are."""
    return folder / f"part-{index:06d}.npz"


def read_manifest(folder: Path, /) -> dict[str, Any]:
    """How the parts of a folder were made, and how many there are once all are."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text())
        return {"settings": dict(manifest["settings"]), "batches": manifest["batches"]}
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no predictions: there is no {MANIFEST} in it.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); give a new folder.") from error


def read_part(path: Path, /, *, only: str | None = None) -> Arrays:
    """The arrays of one part, or one of them; never unpickled."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in (found.files if only is None else [only])}
    except Exception as error:  # zipfile, zlib and numpy each have their own
        raise ValueError(f"{path} cannot be read ({error}); delete it and run again, it will be made anew.") from error


def read_parts(folder: Path, batches: int, /) -> list[Arrays]:
    """The arrays of the first ``batches`` parts."""
    return [read_part(part_path(folder, index)) for index in range(batches)]


def digest(x: Any, /) -> str:
    """A short text that differs when any number, name or shape in nested inputs or weights differs."""
    state = hashlib.blake2b(digest_size=16)
    _feed(state, x)
    return state.hexdigest()


def _feed(state: Any, x: Any) -> None:
    if isinstance(x, Tensor):
        state.update(f"{tuple(x.shape)}{x.dtype}".encode())
        state.update(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    elif isinstance(x, np.ndarray):
        state.update(f"{x.shape}{x.dtype}".encode() + x.tobytes())
    elif isinstance(x, Mapping):
        for key, value in x.items():
            state.update(repr(key).encode())
            _feed(state, value)
    elif isinstance(x, list | tuple):
        for value in x:
            _feed(state, value)
    elif isinstance(x, str | bytes | int | float):
        state.update(repr(x).encode())
