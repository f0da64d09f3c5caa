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

import errno
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from credalens.storage.atomic import atomic_file

__all__ = ["Store", "file_name", "read_json", "write_json"]

DTYPES: Final = ("float32", "float16")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def file_name(label: str, /) -> str:
    """A label as the stem of a file.

    >>> file_name("ablation BNNsVGG16EU")
    'ablation_BNNsVGG16EU'
    """
    return label.replace(" ", "_")


@contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    """An atomic file whose folder is made, and a clear word when the disk is full."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            yield file
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"the disk is full: {path} was not written. Everything before it is kept; make room and run the same "
            f"command again",
        ) from error


def write_json(path: Path, content: Any, /) -> None:
    """Write JSON, indented so that two results can be compared line by line; NaN is refused."""
    with _writing(path) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_json(path: Path, /) -> Any:
    """The content of a JSON file, or an error that names the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); delete it to have it made again") from error


class Store:
    """The files of one reproduction.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(Path(folder)).predictions("model", "svhn", 1) is None
    True
    """

    def __init__(self, folder: str | Path, /, *, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise ValueError(f"predictions are stored as {' or '.join(DTYPES)}, got {dtype!r}")
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is a file; results need a folder")
        self.dtype = np.dtype(dtype)

    @property
    def models(self) -> Path:
        """Where the training loop keeps its models."""
        return self.folder / "models"

    @property
    def results(self) -> Path:
        """Where the result files are."""
        return self.folder / "results"

    def predictions(self, model: str, name: str, samples: int, /) -> NDArray[np.floating] | None:
        """The first `samples` stored predictions (samples, inputs, classes), mapped into memory; None if too few."""
        stored = self._stored(model, name)
        return None if stored is None or len(stored) < samples else stored[:samples]

    def fingerprint(self, model: str, name: str, /) -> str | None:
        """What tells these predictions from others of the same model and set; None where there are none."""
        path = self._prediction(model, name)
        about = path.with_suffix(".json")
        return str(read_json(about)["sha256"]) if path.is_file() and about.is_file() else None

    def save_predictions(
        self, model: str, name: str, predictions: NDArray[np.floating], /, *, dtype: str | None = None, **about: Any
    ) -> None:
        """Store predictions (samples, inputs, classes); what was there, if shorter, is its beginning and is replaced."""
        array = np.ascontiguousarray(predictions, dtype or self.dtype)
        if array.ndim != 3:
            raise ValueError(f"predictions must be (samples, inputs, classes), got shape {array.shape}")
        path = self._prediction(model, name)
        # The fingerprint of the first sample alone: it stays the same when more samples are added.
        digest = hashlib.sha256(array[0].tobytes()).hexdigest()
        self._save_array(path, array)
        write_json(path.with_suffix(".json"), {"sha256": digest, "shape": list(array.shape), **about})

    def summary(self, model: str, name: str, /) -> dict[str, NDArray[np.float64]] | None:
        """The stored sums over many samples, or None."""
        path = self._prediction(model, f"{name}.summary").with_suffix(".npz")
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            return {part: file[part] for part in file.files}

    def save_summary(self, model: str, name: str, parts: dict[str, NDArray[np.float64]], /) -> None:
        """Store sums over many samples."""
        with _writing(self._prediction(model, f"{name}.summary").with_suffix(".npz")) as file:
            np.savez(file, allow_pickle=False, **parts)

    def summary_fingerprint(self, model: str, name: str, /) -> str | None:
        """What tells these sums from others of the same model and set; None where there are none."""
        parts = self.summary(model, name)
        if parts is None:
            return None
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts.values())).hexdigest()

    def array(self, kind: str, name: str, /) -> NDArray[Any] | None:
        """Stored images or labels, mapped into memory; None where there are none."""
        return self._load(self.folder / kind / f"{name}.npy")

    def save_array(self, kind: str, name: str, array: NDArray[Any], /) -> None:
        """Store images or labels."""
        self._save_array(self.folder / kind / f"{name}.npy", array)

    def save_chunks(self, kind: str, name: str, shape: tuple[int, ...], chunks: Iterable[NDArray[np.uint8]], /) -> None:
        """Store an array of bytes that does not fit into memory, from consecutive parts of it."""
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        with _writing(self.folder / kind / f"{name}.npy") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)

    def evaluation(self, key: str, /) -> dict[str, Any]:
        """The numbers of one run, set by set; empty where nothing was evaluated yet."""
        path = self.folder / "evaluations" / f"{key}.json"
        return dict(read_json(path)) if path.is_file() else {}

    def save_evaluation(self, key: str, numbers: dict[str, Any], /) -> None:
        """Store the numbers of one run."""
        write_json(self.folder / "evaluations" / f"{key}.json", numbers)

    def save_result(self, label: str, result: dict[str, Any], /) -> Path:
        """Store the result of a table or figure."""
        path = self.results / f"{file_name(label)}.json"
        write_json(path, result)
        return path

    def figure(self, label: str, form: str, /) -> Path:
        """Where a figure is to be saved; its folder exists."""
        path = self.folder / "figures" / f"{file_name(label)}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _prediction(self, model: str, name: str) -> Path:
        return self.folder / "predictions" / model / f"{name}.npy"

    def _stored(self, model: str, name: str) -> NDArray[np.floating] | None:
        path = self._prediction(model, name)
        return self._load(path) if path.with_suffix(".json").is_file() else None

    def _load(self, path: Path) -> NDArray[Any] | None:
        if not path.is_file():
            return None
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error}); delete it to have it made again") from error

    def _save_array(self, path: Path, array: NDArray[Any]) -> None:
        with _writing(path) as file:
            np.save(file, array, allow_pickle=False)
