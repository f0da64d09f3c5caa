"""Layouts in which data sets lie: those of their authors, folders of image files, Parquet of Hugging Face, packed mosaics.

CIFAR and SVHN are read as their authors publish them, which is how torchvision keeps them too; pickles are not run. A pickle is
a program: it may name any function and call it. The reader here knows three names, those by which NumPy arrays are written,
replaces them by stand-ins that only keep what they are given, and refuses every other.

A packed file `cifar10_train.npz`, perhaps in numbered shards `cifar10_train.0.npz`, ..., holds tiles of lossless WebP
mosaics: `blob` (the mosaics' bytes one after another), `offsets` (where each begins, and the end), `labels`,
`tile` = (rows, columns, height, width, channels) and, if known, `names` of the classes.
"""

from __future__ import annotations

import json
import pickle  # only its parser, with every global replaced or refused
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet, split_names
from credalens_paper.data.image_set import Encoded, ImageSource, decode_images


def open_cifar10(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`cifar-10-batches-py` with five training batches and a test batch."""
    folder = root / "cifar-10-batches-py" if (root / "cifar-10-batches-py").is_dir() else root
    names = ["test_batch"] if split == "test" else [f"data_batch_{k}" for k in range(1, 6)]
    if not any((folder / name).is_file() for name in names):
        return None
    if absent := [folder / name for name in names if not (folder / name).is_file()]:
        raise FileNotFoundError(f"{absent[0]} is missing beside its siblings; unpack the archive again")
    batches = [_read_batch(folder / name, "labels") for name in names]
    images, labels = (np.concatenate(part) for part in zip(*batches, strict=True))
    return ImageSource(data_set.name, images, labels, _class_names(folder / "batches.meta", "label_names", data_set))


def open_cifar100(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`cifar-100-python` with the files train, test and meta; the fine labels."""
    folder = root / "cifar-100-python" if (root / "cifar-100-python").is_dir() else root
    if not (folder / split).is_file():
        return None
    images, labels = _read_batch(folder / split, "fine_labels")
    return ImageSource(data_set.name, images, labels, _class_names(folder / "meta", "fine_label_names", data_set))


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


_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})
_FOLDERS: Final = ("", "data", "default", "plain_text", "cropped_digits", "cifar10", "cifar100")
_IMAGES: Final = ("image", "img")
_LABELS: Final = ("label", "fine_label", "labels")


def open_class_folders(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`<split>/<class>/*.png`, also with `images/` below the class; a set with one split may leave its name out."""
    parents = [root / name for name in split_names(split)]
    if data_set.splits == (split,):
        parents.append(root)
    for parent in (parent for parent in parents if parent.is_dir()):
        folders = sorted(folder for folder in parent.iterdir() if folder.is_dir())
        files = {folder.name: found for folder in folders if (found := _image_files(folder))}
        if files and len(files) != data_set.classes:
            raise ValueError(
                f"{parent} has {len(files)} folders with images, but {data_set.title} has {data_set.classes} classes; "
                f"is the copy complete, and is it this data set?"
            )
        if files:
            labels = np.repeat(np.arange(len(files)), [len(paths) for paths in files.values()])
            return _open_files(data_set, [path for paths in files.values() for path in paths], labels, tuple(files))
    return None


def _image_files(folder: Path) -> list[Path]:
    inside = folder / "images" if (folder / "images").is_dir() else folder
    return sorted(path for path in inside.iterdir() if path.suffix.lower() in _SUFFIXES)


def open_tiny_imagenet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`val/images/*.JPEG` with `val/val_annotations.txt`: file, class, box; classes in the order of their names."""
    listing, images, names = root / "val" / "val_annotations.txt", root / "val" / "images", root / "wnids.txt"
    if split != "test" or not listing.is_file() or not images.is_dir():
        return None
    lines = [line.split("\t") for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(line) < 2 for line in lines):
        raise ValueError(f"{listing} must have a file name, a tab and a class on every line")
    listed = set(names.read_text(encoding="utf-8").split()) if names.is_file() else set()
    class_names = sorted(listed or {line[1] for line in lines})
    unknown = [line for line in lines if line[1] not in class_names]
    if unknown or len(class_names) != data_set.classes:
        example = f"{unknown[0][1]} is not among them" if unknown else f"{data_set.title} has {data_set.classes}"
        raise ValueError(f"{listing} and wnids.txt give {len(class_names)} classes; {example}")
    labels = np.searchsorted(class_names, [line[1] for line in lines])
    return _open_files(data_set, [images / line[0] for line in lines], labels, tuple(class_names))


def _open_files(
    data_set: DataSet, paths: list[Path], labels: NDArray[np.intp], class_names: tuple[str, ...]
) -> ImageSource:
    def fetch(indices: NDArray[np.intp]) -> list[Path]:
        return [paths[index] for index in indices]

    return ImageSource(data_set.name, fetch, labels.astype(np.int64), class_names)


def open_parquet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`test-00000-of-00001.parquet` and its like, directly in the folder or in the usual folders below."""
    places = ((root / folder, name) for folder in _FOLDERS for name in split_names(split))
    found = (sorted([*folder.glob(f"{name}-*.parquet"), *folder.glob(f"{name}.parquet")]) for folder, name in places)
    paths = next((paths for paths in found if paths), None)
    if paths is None:
        return None
    from pyarrow.parquet import ParquetFile, read_schema

    schema = read_schema(paths[0])
    image, label = (next((name for name in names if name in schema.names), None) for names in (_IMAGES, _LABELS))
    if image is None or label is None:
        raise ValueError(f"{paths[0]} needs a column of {_IMAGES} and one of {_LABELS}; it has {schema.names}")
    labels = np.concatenate([ParquetFile(path).read([label])[label].to_numpy() for path in paths]).astype(np.int64)
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    class_names = tuple(features.get(label, {}).get("names", ())) or data_set.class_numbers
    if len(class_names) != data_set.classes:
        raise ValueError(f"{paths[0]} has {len(class_names)} classes, but {data_set.title} has {data_set.classes}")
    return ImageSource(data_set.name, _ImageColumn(paths, image), labels, class_names)


class _ImageColumn:
    """Encoded images by index over all files; only the row groups that hold them are read."""

    def __init__(self, paths: list[Path], column: str) -> None:
        from pyarrow.dataset import dataset

        self.column = column
        files = dataset([str(path) for path in paths]).get_fragments()
        self.groups = [group for file in files for group in file.split_by_row_group()]
        counts = [group.row_groups[0].num_rows for group in self.groups]
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def __call__(self, indices: NDArray[np.intp]) -> list[Encoded]:
        encoded: list[Encoded] = [b""] * len(indices)
        groups = np.searchsorted(self.starts, indices, side="right") - 1
        for number in np.unique(groups):
            positions, group = np.flatnonzero(groups == number), self.groups[number]
            column = group.to_table(columns=[self.column])[self.column]
            rows = column.take(indices[positions] - self.starts[number]).to_pylist()
            for position, row in zip(positions, rows, strict=True):
                encoded[position] = self._bytes(row, group.path)
        return encoded

    def _bytes(self, value: Any, path: str) -> bytes:
        encoded = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(encoded, bytes):
            raise ValueError(f"column {self.column!r} of {path} holds no encoded images but {type(encoded).__name__}")
        return encoded


def open_packed(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`tinyimagenet_val32.npz`: the name without dashes, a split and perhaps the size in pixels, of which the largest."""
    stem = rf"{data_set.name.replace('-', '')}_(?:{'|'.join(split_names(split))})"
    pattern = re.compile(rf"{stem}(?P<size>\d*)(?:\.(?P<shard>\d+))?\.npz")
    matches = [(match, path) for path in root.glob("*.npz") if (match := pattern.fullmatch(path.name))]
    largest = max((int(match["size"] or 0) for match, _ in matches), default=0)
    numbered = sorted((int(m["shard"] or 0), path) for m, path in matches if int(m["size"] or 0) == largest)
    if [number for number, _ in numbered] != list(range(len(numbered))):
        raise ValueError(f"{root} has {', '.join(path.name for _, path in numbered)}: a shard is missing or double")
    if not numbered:
        return None
    shards = [_read_packed(path) for _, path in numbered]
    images, labels = (np.concatenate(part) for part in zip(*(shard[:2] for shard in shards), strict=True))
    return ImageSource(data_set.name, images, labels, shards[0][2] or data_set.class_numbers)


def _read_packed(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...]]:
    with np.load(path, allow_pickle=False) as file:
        absent = {"blob", "offsets", "labels", "tile"} - set(file.files)
        if absent:
            raise ValueError(f"{path} is not a packed image set: it has no {', '.join(sorted(absent))}")
        blob, offsets, labels = file["blob"], file["offsets"], file["labels"].astype(np.int64)
        rows, columns, height, width, channels = map(int, file["tile"])
        names = tuple(map(str, file["names"])) if "names" in file.files else ()
    mosaics = decode_images([blob[start:stop].tobytes() for start, stop in pairwise(offsets)])
    if mosaics.shape[1:] != (rows * height, columns * width, channels):
        raise ValueError(f"{path} has mosaics of shape {mosaics.shape[1:]}, which its tile numbers do not explain")
    tiles = mosaics.reshape(-1, rows, height, columns, width, channels).swapaxes(2, 3)
    images = tiles.reshape(-1, height, width, channels)
    if len(images) < len(labels):
        raise ValueError(f"{path} has {len(labels)} labels for {len(images)} tiles")
    return images[: len(labels)], labels, names
