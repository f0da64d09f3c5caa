"""The results for a data set, batch by batch: in memory, or in a folder that survives an interruption."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.storage.run_folder import RunFolder

__all__ = ["Arrays", "BatchResults", "InFolder", "InMemory", "digest", "read_results"]

Arrays = dict[str, NDArray]
PART = "part-{:06d}.npz"


class BatchResults(Protocol):
    """Where the results of the batches go, in order, each with the digest of its inputs."""

    def has(self, index: int, inputs: str, /) -> bool:
        """Whether batch ``index`` is there already; an error if it came from other inputs."""

    def add(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Take the results of batch ``index``."""

    def finish(self, batches: int, /) -> list[Arrays]:
        """All results, now that there are as many batches."""


@final
class InMemory:
    """Results in a list."""

    def __init__(self) -> None:
        self._arrays: list[Arrays] = []

    def has(self, index: int, inputs: str, /) -> bool:
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
    """Results as ``part-000000.npz``, ... of a run folder, whose manifest counts the batches once all are there.

    ``defaults`` are settings that older manifests do not name, as they were then.
    """

    def __init__(
        self, folder: str | os.PathLike[str], settings: Mapping[str, Any], /, *, defaults: Mapping[str, Any]
    ) -> None:
        self._run, self._settings = _run_folder(Path(folder)), settings
        self._run.begin(settings, defaults=defaults, phrases={"weights": "the members' weights differ"})

    def has(self, index: int, inputs: str, /) -> bool:
        """Whether the part is on disk; an error if its inputs were others."""
        path = _part(self._run, index)
        if not path.exists():
            return False
        if str(_read(path, only="inputs")["inputs"]) != inputs:
            raise ValueError(
                f"{path} was made from other inputs than batch {index} has now. Resuming needs the same batches in the "
                "same order: turn off shuffling and random augmentation, or give a new folder."
            )
        return True

    def add(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Write one part."""
        with self._run.writing(PART.format(index)) as file:
            np.savez(file, allow_pickle=False, **arrays, inputs=np.array(inputs))

    def finish(self, batches: int, /) -> list[Arrays]:
        """Read all parts back, and note in the manifest that they are complete."""
        if _part(self._run, batches).exists():
            raise ValueError(
                f"{self._run.path} holds more than the {batches} batches there are now; give a new folder."
            )
        self._run.write_manifest(self._settings, batches=batches)
        return [_read(_part(self._run, index)) for index in range(batches)]


def read_results(folder: Path, /, *, partial: bool) -> tuple[dict[str, Any], list[Arrays]]:
    """The settings and results in a folder; those of an unfinished run, so far, only with ``partial``."""
    run = _run_folder(folder)
    if not (folder / run.manifest).is_file():
        raise ValueError(f"{folder} holds no predictions: there is no {run.manifest} in it.")
    manifest = run.read_manifest()
    batches = manifest.get("batches")
    if batches is None:
        batches = len(run.parts())
        if not partial:
            raise ValueError(
                f"{folder} holds an unfinished run, {batches} batches so far; repeat the call of predict to finish it, "
                "or read what there is with partial=True."
            )
    return manifest["settings"], [_read(_part(run, index)) for index in range(batches)]


def _run_folder(folder: Path) -> RunFolder:
    return RunFolder(folder, manifest="predictions.json", pattern="part-*.npz", remedy="Give a new folder.")


def _part(run: RunFolder, index: int) -> Path:
    return Path(str(run.path / PART.format(index)))


def _read(path: Path, /, *, only: str | None = None) -> Arrays:
    """The arrays of one part, or one of them; never unpickled."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in (archive.files if only is None else [only])}
    except Exception as error:  # zipfile, zlib and numpy each have their own
        raise ValueError(f"{path} cannot be read ({error}); delete it and run again, it will be made anew.") from error


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
