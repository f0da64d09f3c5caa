"""The results for a data set in a folder, a file for each batch, so that an interrupted run can continue.

A digest of nested values tells the inputs of one run from those of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.checks.options import count_text
from credalens.storage.run_folder import RunFolder

VERSION: Final = 2  # of the encoding: digests of different versions are never equal
SCALARS: Final[Mapping[type, Callable[[Any], bytes]]] = {
    type(None): lambda x: b"",
    bool: lambda x: b"1" if x else b"0",
    int: lambda x: hex(x).encode(),  # repr has a limit of digits
    float: lambda x: x.hex().encode(),
    complex: lambda x: f"{x.real.hex()} {x.imag.hex()}".encode(),
    str: lambda x: x.encode("utf-8", "surrogatepass"),
    bytes: lambda x: x,
}


class _Content(NamedTuple):
    """The bytes of a value itself, and the values in it, each with how an error names it."""

    buffers: tuple[Any, ...] = ()
    parts: tuple[tuple[str, Any], ...] = ()


def digest(x: Any, /, name: str = "the value", remedy: str = "") -> str:
    """A short text that differs where any type, number, text, name, shape or order in nested values differs.

    Reads tensors, arrays, numbers, texts, enumerations, lists, tuples, dataclasses with all their attributes, and mappings,
    which are their items in their order. How a tensor lies in memory, and on which device, does not count.

    >>> digest({"x": [1, 23]}) == digest({"x": [12, 3]})
    False
    """
    state = hashlib.blake2b(digest_size=16)

    def feed(x: Any, name: str) -> None:
        content, type_name = _content(x), f"{type(x).__module__}.{type(x).__qualname__}"
        if content is None:
            raise TypeError(
                f"{name}, of type {type_name}, cannot be digested, so a change in it would not be noticed. {remedy}".strip()
            )
        for buffer in (type_name.encode(), *content.buffers):
            state.update(_length(memoryview(buffer).nbytes))
            state.update(buffer)
        state.update(_length(len(content.parts)))
        for where, part in content.parts:
            feed(part, name + where)

    feed(x, name)
    return state.hexdigest()


def _length(count: int) -> bytes:
    return count.to_bytes(8, "little")


def _content(x: Any) -> _Content | None:
    """The content of ``x``; None where that is not known, as for subclasses of numbers and texts, which may hold more."""
    if type(x) in SCALARS:
        return _Content((SCALARS[type(x)](x),))
    if isinstance(x, Tensor):
        if x.layout != torch.strided or x.is_quantized or x.is_nested or x.is_meta:
            return None
        plain = x.detach().as_subclass(Tensor).cpu().resolve_conj().resolve_neg().contiguous()
        # reshape keeps a stride of zero, which cannot be viewed as bytes
        row = plain.as_strided((plain.numel(),), (1,))
        return _Content((f"{tuple(x.shape)} {x.dtype}".encode(), row.view(torch.uint8).numpy()), _attributes(x))
    if isinstance(x, np.generic) or type(x) in (np.ndarray, np.memmap):
        return None if x.dtype.hasobject else _Content((f"{x.shape} {x.dtype}".encode(), x.tobytes()))
    if isinstance(x, Enum):
        return _Content(parts=((".value", x.value),))
    if isinstance(x, Mapping):
        return _Content(parts=tuple(part for item in x.items() for part in _named(f"[{item[0]!r}]", *item)))
    if isinstance(x, list | tuple):
        items = tuple((f"[{n}]", value) for n, value in enumerate(x))
        return _Content((_length(len(items)),), items + _attributes(x))
    return _Content(parts=_attributes(x)) if is_dataclass(x) and not isinstance(x, type) else None


def _attributes(x: Any) -> tuple[tuple[str, Any], ...]:
    """The names and values of what is set on an object, in its dictionary and its slots."""
    state = object.__getstate__(x)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    merged = {**(attributes or {}), **(slots or {})}
    return tuple(part for name in sorted(merged) for part in _named(f".{name}", name, merged[name]))


def _named(where: str, name: Any, value: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return (f"{where} as a name", name), (where, value)


Arrays = dict[str, NDArray]
INPUTS: Final = "inputs"  # the array that holds the digest of the batch's inputs
# Settings that older manifests do not name.
DEFAULTS: Final = {"max_nodes": 20_000, "tolerance": 1e-12, "digest": 1, "temperatures": []}
PHRASES: Final = {
    "weights": "the members' weights differ",
    "digest": "another version of credalens digested weights and inputs in another way",
}


@final
class ResultFolder:
    """Results as ``part-000000.npz``, ... of a run folder, whose manifest has the number of batches of a finished run."""

    def __init__(self, run: RunFolder, settings: Mapping[str, Any], /) -> None:
        self._run, self._settings = run, settings

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
    with run.open_run(settings, defaults=DEFAULTS, phrases=PHRASES):
        yield ResultFolder(run, settings)


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
