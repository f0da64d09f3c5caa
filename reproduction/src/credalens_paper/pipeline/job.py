"""What every step of a reproduction works with: store, preset, images and labels, engine, deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.batches import usable_cores
from credalens_paper.corruptions import corrupt
from credalens_paper.data import (
    DATA_SETS,
    ImageSet,
    ImageSource,
    has_texts,
    load_corrupted,
    load_images,
    normalization,
    open_images,
)
from credalens_paper.data.catalog import CORRUPTED
from credalens_paper.experiments.ensembles import EvaluationSet
from credalens_paper.experiments.presets import Preset
from credalens_paper.results.store import Store
from credalens_paper.training.devices import TrainingData

if TYPE_CHECKING:
    from credalens_paper.pipeline.engines import TorchEngine

Pixels = NDArray[np.uint8]
MOST_BYTES: Final = 4 << 30
"""Sets larger than this are decoded once into a file that is mapped into memory."""
CHUNK: Final = 1000
MOST_THREADS: Final = 8  # sets corrupted at a time; each needs a few hundred megabytes while it is made


class TimeIsUp(Exception):  # noqa: N818  (not an error: the run stops where it can go on)
    """The time limit has passed; everything so far is stored."""


@dataclass(frozen=True)
class Deadline:
    """Checked between two units of work, so that a run ends with whole ones; by the time of day, which all machines share."""

    seconds: float | None = None
    begun: float = field(default_factory=lambda: time.time())

    def check(self) -> None:
        """Stop here if the time is up."""
        if self.seconds is not None and time.time() - self.begun > self.seconds:
            raise TimeIsUp(f"the time limit of {self.seconds:g} s has passed; run the same command again to go on")


@dataclass(frozen=True, eq=False)
class Job:
    """One reproduction: where it stores what it makes, how large it is, and what it makes it with.

    :ivar threads: of the measures; None for all cores.
    """

    store: Store
    preset: Preset
    data_folder: str | Path | None
    engine: TorchEngine
    threads: int | None = None
    deadline: Deadline = field(default_factory=Deadline)
    log: Callable[[str], None] = print

    @cached_property
    def images(self) -> Images:
        """Its images and labels."""
        return Images(self.store, self.preset, self.data_folder)


class Images:
    """Training and evaluation sets by the names of `credalens_paper.data`, at the size a network works at."""

    def __init__(self, store: Store, preset: Preset, folder: str | Path | None, /) -> None:
        self.store, self.preset, self.folder = store, preset, folder
        self._opened: dict[tuple[str, str, int | None], ImageSet | ImageSource | FileNotFoundError] = {}

    def reason(self, name: str, /, *, split: str = "test", pixels: int = 32) -> str | None:
        """Why a set is not available, and what to download; None where it is."""
        clean = name.removesuffix("-c")
        try:
            self._open(clean, split, _loaded_size(clean, pixels))
        except FileNotFoundError:
            entry = DATA_SETS[clean]
        else:
            return None
        if self.folder is None:
            return f"no data folder given for {entry.title}; download {entry.download} and pass its folder as --data-folder"
        return f"{entry.title} not found; download {entry.download} into the data folder"

    def was_available(self, name: str, /) -> bool:
        """Whether a set was there earlier, though no folder is given now: its labels are in the store."""
        return self.folder is None and self.store.array("labels", name.removesuffix("-c")) is not None

    def prepare(self, sets: Iterable[EvaluationSet], pixels: int, /) -> None:
        """Generate the corrupted images that are missing, several sets at a time."""
        corrupted = list({images.pixels: None for images in sets if images.corruption})
        if corrupted:
            self.test(EvaluationSet(corrupted[0].name.removesuffix("-c")), pixels)  # read once, before the threads
        with ThreadPoolExecutor(min(MOST_THREADS, usable_cores())) as pool:
            for _ in pool.map(lambda images: self.test(images, pixels), corrupted):
                pass

    def test(self, images: EvaluationSet, pixels: int, /) -> Pixels:
        """The pixels of an evaluation set, corrupted where it says so."""
        clean = images.name.removesuffix("-c")
        if not images.corruption:
            return self._pixels(clean, "test", pixels)[images.rows]
        if self.folder is not None and images.name in CORRUPTED and self.preset.test_images is None:
            try:  # the published images, where the data folder has them
                return load_corrupted(images.name, self.folder, images.corruption, images.severity).images[images.rows]
            except FileNotFoundError:
                pass
        key = f"{images.pixels.key}.{_loaded_size(clean, pixels) or 'native'}"
        if self.store.array("images", key) is None:
            corrupted = corrupt(self._pixels(clean, "test", pixels)[images.rows], images.corruption, images.severity)
            self.store.save_array("images", key, corrupted)
        return self._stored(key)

    def labels(self, name: str, /) -> NDArray[np.int64]:
        """The labels of a test set, kept in the store with its class names for when the set itself is not there."""
        clean = name.removesuffix("-c")
        stored = self.store.array("labels", clean)
        if stored is None:
            stored = self._open(clean, "test", _loaded_size(clean, self.preset.image_size or 32)).labels
            self.store.write_json(f"labels/{clean}.json", list(self.class_names(clean)))
            self.store.save_array("labels", clean, stored)
        return stored

    def training(self, name: str, pixels: int, /) -> TrainingData:
        """The training split with the statistics its networks are normalised by."""
        labels = self._open(name, "train", _loaded_size(name, pixels)).labels
        return TrainingData(self._pixels(name, "train", pixels), labels, *normalization(name))

    def class_names(self, name: str, /) -> tuple[str, ...]:
        """The names of the classes of a set, or their numbers where they are neither there nor stored."""
        try:
            return self._open(name, "test", _loaded_size(name, self.preset.image_size or 32)).class_names
        except FileNotFoundError:
            return tuple(self.store.read_json(f"labels/{name}.json") or map(str, range(DATA_SETS[name].classes)))

    def _pixels(self, name: str, split: str, pixels: int) -> Pixels:
        size = _loaded_size(name, pixels)
        source = self._open(name, split, size)
        if isinstance(source, ImageSet):
            return source.images
        key = f"{name}.{split}.{size or 'native'}"
        if self.store.array("images", key) is None:
            first = source.take([0]).images.shape[1:]
            chunks = (
                source.take(np.arange(len(source))[at : at + CHUNK]).images for at in range(0, len(source), CHUNK)
            )
            self.store.save_chunks("images", key, (len(source), *first), chunks)
        return self._stored(key)

    def _stored(self, key: str) -> Pixels:
        stored = self.store.array("images", key)
        if stored is None:
            raise FileNotFoundError(f"the images {key} vanished from {self.store.folder} while they were used")
        return stored

    def _open(self, name: str, split: str, size: int | None) -> ImageSet | ImageSource:
        """A set, looked for once; what is missing stays missing."""
        key = (name, split, size)
        if key not in self._opened:
            try:
                self._opened[key] = self._read(name, split, size)
            except FileNotFoundError as error:
                self._opened[key] = error
        opened = self._opened[key]
        if isinstance(opened, FileNotFoundError):
            raise opened
        return opened

    def _read(self, name: str, split: str, size: int | None) -> ImageSet | ImageSource:
        if name not in DATA_SETS or has_texts(name):
            images = load_images(name, self.folder, split=split, size=size)
        else:
            source = open_images(name, self.folder, split=split, size=size)
            if len(source) * (size or 64) ** 2 * 3 > MOST_BYTES:
                return source
            images = source.load()
        most = self.preset.train_images if split == "train" else self.preset.test_images
        return images if most is None or most >= len(images) else images.take(np.arange(most))


def _loaded_size(name: str, pixels: int) -> int | None:
    """The size to decode at; small photographs are enlarged on the device, so large networks get them as they are."""
    if name not in DATA_SETS or DATA_SETS[name].crop or has_texts(name):
        return pixels
    return 32 if pixels <= 32 else None
