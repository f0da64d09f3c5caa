"""The results for a data set in a folder, a file for each batch, so that an interrupted run can continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.counted import count_text
from credalens.storage.lock import Lock
from credalens.storage.run_folder import RunFolder

Arrays = dict[str, NDArray]
INPUTS: Final = "inputs"  # the array that holds the digest of the batch's inputs
DEFAULTS: Final = {"max_nodes": 20_000, "tolerance": 1e-12, "digest": 1}  # settings that older manifests do not name
PHRASES: Final = {
    "weights": "the members' weights differ",
    "digest": "another version of credalens digested weights and inputs in another way",
}


@final
class ResultFolder:
    """Results as ``part-000000.npz``, ... of a run folder, whose manifest has the number of batches of a finished run."""

    def __init__(self, run: RunFolder, settings: Mapping[str, Any], lock: Lock, /) -> None:
        self._run, self._settings, self._lock = run, settings, lock

    def read(self, index: int, inputs: str, /) -> Arrays | None:
        """The results of batch ``index``, None if there are none; an error if they are those of other inputs."""
        path = _part_path(self._run, index)
        if not path.exists():
            return None
        arrays = _read_part(path)
        if str(arrays.pop(INPUTS, "")) != inputs:
            raise ValueError(
                f"{path} was made from other inputs than batch {index} has now. Resuming needs the same batches in the "
                "same order: turn off shuffling and random augmentation, or give a new folder."
            )
        return arrays

    def write(self, index: int, inputs: str, arrays: Arrays, /) -> None:
        """Write the results of batch ``index``, with the digest of its inputs."""
        self._lock.check()
        with self._run.writing(_part_path(self._run, index).name) as file:
            np.savez(file, allow_pickle=False, **arrays, **{INPUTS: np.array(inputs)})

    def finish(self, batches: int, /) -> None:
        """Note in the manifest that all batches are there."""
        if _part_path(self._run, batches).exists():
            raise ValueError(
                f"{self._run.path} contains results of more batches than the {batches} there are now; give a new folder."
            )
        self._run.write_manifest(self._settings, batches=batches)


@contextmanager
def result_folder(folder: Path, settings: Mapping[str, Any], /) -> Iterator[ResultFolder]:
    """The folder of a run with these settings; no other run may write into it for the time of the block."""
    run = _run_folder(folder)
    with run.begun(settings, defaults=DEFAULTS, phrases=PHRASES) as lock:
        yield ResultFolder(run, settings, lock)


def read_results(folder: Path, /, *, partial: bool) -> tuple[dict[str, Any], list[Arrays]]:
    """The settings and results in a folder; those of an unfinished run only with ``partial``."""
    run = _run_folder(folder)
    if not (folder / run.manifest).is_file():
        raise ValueError(f"{folder} holds no predictions: there is no {run.manifest} in it.")
    manifest = run.read_manifest()
    batches = manifest.get("batches")
    if batches is None:
        batches = len(list(folder.glob("part-*.npz")))
        if not partial:
            raise ValueError(
                f"{folder} holds an unfinished run, {count_text(batches, 'batch', 'batches')} so far; repeat the call of "
                "predict to finish it, or read what there is with partial=True."
            )
    return manifest["settings"], [_read_part(_part_path(run, index)) for index in range(batches)]


def _run_folder(folder: Path) -> RunFolder:
    return RunFolder(folder, manifest="predictions.json", remedy="Give a new folder.")


def _part_path(run: RunFolder, index: int) -> Path:
    return Path(str(run.path)) / f"part-{index:06d}.npz"


def _read_part(path: Path) -> Arrays:
    """The arrays of one part; pickled ones are refused."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zipfile, zlib and numpy raise different ones
        raise ValueError(f"{path} cannot be read ({error}); delete it and run again to make it anew.") from error
