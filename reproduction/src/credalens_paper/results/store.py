"""What the reproduction has made so far, on disk: predictions stored once, evaluations, results.

    <folder>/models/<model>/...               written by the training loop
    <folder>/diverged/<model>.json            why a training failed; without it the training is tried again
    <folder>/images/<set>.npy                 corrupted images, generated once, and sets too large for memory
    <folder>/labels/<set>.npy                 beside a .json with the names of the classes
    <folder>/predictions/<model>/<set>.npy    (samples, inputs, classes), beside a .json with its fingerprint
    <folder>/predictions/<model>/<set>.summary.npz    sums over many samples in their place
    <folder>/predictions/<model>/training.json        how the model was trained
    <folder>/evaluations/<ensemble>.json      numbers of one run, set by set
    <folder>/results/<label>.json             a table or figure with its provenance
    <folder>/figures/<label>.png

Every file appears whole or not at all, so a run can be killed at any moment and goes on where it was.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.storage.run_folder import RunFolder
from credalens_paper.experiments.index import file_name
from credalens_paper.json_records import to_json
from credalens_paper.results.records import Result

DTYPES: Final = ("float32", "float16")

PARSING: Final = threading.Lock()
"""NumPy reads a header with the parser of Python, which in 3.11 fails at random where several threads use it."""


class Store:
    """The files of one reproduction."""

    def __init__(self, folder: str | Path, /, *, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise ValueError(f"predictions are stored as {' or '.join(DTYPES)}, got {dtype!r}")
        self.folder, self.dtype = Path(folder), np.dtype(dtype)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file; results need a folder")
        self._files = RunFolder(self.folder)

    def locked(self) -> AbstractContextManager[None]:
        """Keep a second reproduction out of the folder for the time of the block."""
        return self._files.locked()

    @property
    def models(self) -> Path:
        """Where the training loop keeps its models."""
        return self.folder / "models"

    def read_json(self, name: str, /) -> Any:
        """The content of a JSON file; None where there is no such file."""
        return self._files.read_json(name) if (self.folder / name).is_file() else None

    def write_json(self, name: str, content: Any, /) -> None:
        """Write a JSON file."""
        self._files.write_json(name, content)

    def predictions(self, model: str, name: str, samples: int, /) -> NDArray[np.floating] | None:
        """The first `samples` stored predictions (samples, inputs, classes), mapped into memory; None if too few."""
        if not (self.folder / f"predictions/{model}/{name}.json").is_file():
            return None
        stored = self.array(f"predictions/{model}", name)
        return None if stored is None or len(stored) < samples else stored[:samples]

    def fingerprint(self, model: str, name: str, /) -> str | None:
        """What tells these predictions from others of the same model and set; None where there are none."""
        about = self.read_json(f"predictions/{model}/{name}.json")
        there = (self.folder / f"predictions/{model}/{name}.npy").is_file()
        return str(about["sha256"]) if there and about is not None else None

    def save_predictions(
        self, model: str, name: str, predictions: NDArray[np.floating], /, *, dtype: str | None = None, **about: Any
    ) -> None:
        """Store predictions (samples, inputs, classes); what was there, if shorter, is its beginning and is replaced."""
        array = np.ascontiguousarray(predictions, dtype or self.dtype)
        if array.ndim != 3:
            raise ValueError(f"predictions must be (samples, inputs, classes), got shape {array.shape}")
        # The fingerprint of the first sample alone: it stays the same when more samples are added.
        digest = hashlib.sha256(array[0].tobytes()).hexdigest()
        self.save_array(f"predictions/{model}", name, array)
        self.write_json(f"predictions/{model}/{name}.json", {"sha256": digest, "shape": list(array.shape), **about})

    def summary(self, model: str, name: str, /) -> dict[str, NDArray[np.float64]] | None:
        """The stored sums over many samples, or None."""
        path = self.folder / f"predictions/{model}/{name}.summary.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            return {part: file[part] for part in file.files}

    def save_summary(self, model: str, name: str, parts: dict[str, NDArray[np.float64]], /) -> None:
        """Store sums over many samples."""
        with self._files.writing(f"predictions/{model}/{name}.summary.npz") as file:
            np.savez(file, allow_pickle=False, **parts)

    def summary_fingerprint(self, model: str, name: str, /) -> str | None:
        """What tells these sums from others of the same model and set; None where there are none."""
        parts = self.summary(model, name)
        if parts is None:
            return None
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts.values())).hexdigest()

    def array(self, kind: str, name: str, /) -> NDArray[Any] | None:
        """A stored array of some kind, such as images or labels, mapped into memory; None where there is none."""
        path = self.folder / kind / f"{name}.npy"
        if not path.is_file():
            return None
        try:
            with PARSING:
                return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error}); delete it to have it made again") from error

    def save_array(self, kind: str, name: str, array: NDArray[Any], /) -> None:
        """Store an array."""
        with self._files.writing(f"{kind}/{name}.npy") as file:
            np.save(file, array, allow_pickle=False)

    def save_chunks(self, kind: str, name: str, shape: tuple[int, ...], chunks: Iterable[NDArray[np.uint8]], /) -> None:
        """Store an array of bytes that does not fit into memory, from consecutive parts of it."""
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        with self._files.writing(f"{kind}/{name}.npy") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)

    def save_result(self, result: Result, /) -> None:
        """Store the result of a table or figure."""
        self.write_json(f"results/{file_name(result.label)}.json", to_json(result))
