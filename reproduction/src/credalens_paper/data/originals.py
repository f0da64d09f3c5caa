"""CIFAR and SVHN as their authors publish them, which is how torchvision keeps them too; pickles are not run.

A pickle is a program: it may name any function and call it. The reader below knows three names, those by which NumPy
arrays are written, replaces them by stand-ins that only keep what they are given, and refuses every other.
"""

from __future__ import annotations

import pickle  # only its parser, with every global replaced or refused
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet
from credalens_paper.data.image_set import ImageSource


def open_cifar10(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`cifar-10-batches-py` with five training batches and a test batch."""
    folder = root / "cifar-10-batches-py" if (root / "cifar-10-batches-py").is_dir() else root
    names = ["test_batch"] if split == "test" else [f"data_batch_{k}" for k in range(1, 6)]
    if not any((folder / name).is_file() for name in names):
        return None
    batches = [_read_batch(_check_exists(folder / name), "labels") for name in names]
    images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    return ImageSource(data_set.name, images, labels, _class_names(folder / "batches.meta", "label_names", data_set))


def open_cifar100(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`cifar-100-python` with the files train, test and meta; the fine labels."""
    folder = root / "cifar-100-python" if (root / "cifar-100-python").is_dir() else root
    if not (folder / split).is_file():
        return None
    images, labels = _read_batch(folder / split, "fine_labels")
    return ImageSource(data_set.name, images, labels, _class_names(folder / "meta", "fine_label_names", data_set))


def _check_exists(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing beside its siblings; unpack the archive again")
    return path


def _read_batch(path: Path, key: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = read_pickle(path)
    rows, labels = content.get("data"), content.get(key)
    if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != 3072:
        raise ValueError(f"{path} has no 'data' of uint8 rows of 3072 values, but {_describe(rows)}")
    if not isinstance(labels, list) or len(labels) != len(rows):
        raise ValueError(f"{path} has no list {key!r} of {len(rows)} labels, but {_describe(labels)}")
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.array(labels, dtype=np.int64)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return f"{len(value)} values" if isinstance(value, list) else type(value).__name__


def _class_names(path: Path, key: str, data_set: DataSet) -> tuple[str, ...]:
    if not path.is_file():
        return data_set.class_numbers
    names = read_pickle(path).get(key, [])
    return tuple(name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names)


def open_svhn(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`train_32x32.mat` and `test_32x32.mat`; the digit 0 is stored as 10."""
    from scipy.io import loadmat

    path = root / f"{split}_32x32.mat"
    if not path.is_file():
        return None
    try:
        content = loadmat(path, variable_names=["X", "y"])
        images, labels = content["X"].transpose(3, 0, 1, 2), content["y"].reshape(-1).astype(np.int64)
    except Exception as error:
        raise ValueError(f"{path} is not the SVHN file of cropped digits or is damaged ({error!r})") from error
    return ImageSource(data_set.name, images, labels % 10, data_set.class_numbers)


class _Stub:
    """Keeps the arguments of a call in the pickle; cannot be changed from inside the pickle."""

    __slots__ = ("arguments", "state")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Stub):
    """Stands for numpy.ndarray and for the function that makes an empty one."""

    def array(self) -> NDArray[Any]:
        _, shape, dtype, fortran, raw = self.state
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
            raise TypeError("an array of objects")
        return np.frombuffer(raw, dtype.plain()).reshape(shape, order="F" if fortran else "C")


class _DType(_Stub):
    """Stands for numpy.dtype."""

    def plain(self) -> np.dtype[Any]:
        code, order = _text(self.arguments[0]), _text(self.state[1])
        if code[:1] not in tuple("biuf"):
            raise TypeError(f"an array of dtype {code!r}")
        return np.dtype(code).newbyteorder(order)  # type: ignore[arg-type]


class _Latin1(bytes):
    """Stands for the codec by which Python 3 writes bytes into an old pickle."""

    def __new__(cls, text: str = "", encoding: str = "latin1") -> _Latin1:
        return super().__new__(cls, text.encode("latin1"))

    def __setstate__(self, state: Any) -> NoReturn:
        raise TypeError("bytes have no state")


_STAND_INS: Final = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("_codecs", "encode"): _Latin1,
}


class _RefusedError(ValueError):
    pass


class _PlainUnpickler(pickle.Unpickler):
    """Builds dictionaries, lists, numbers, strings and arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise _RefusedError(f"it asks for {module}.{name}, which plain arrays do not need")
        return _STAND_INS[module, name]


def read_pickle(path: Path, /) -> dict[str, Any]:
    """The dictionary of a CIFAR pickle: arrays, lists and numbers under text keys. No code of the file runs."""
    with path.open("rb") as file:
        try:
            content = _PlainUnpickler(file, encoding="bytes").load()
            arrays = {key: value.array() for key, value in content.items() if isinstance(value, _Array)}
            return {_text(key): value for key, value in (content | arrays).items()}
        except _RefusedError as refusal:
            raise ValueError(
                f"{path} was not read: {refusal}. The original CIFAR files hold arrays only; download the file again "
                f"from its official page"
            ) from None
        except Exception as error:
            raise ValueError(f"{path} is not a CIFAR pickle or is damaged ({error}); download it again") from error


def _text(key: Any) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
