"""Files that are whole or not there: tensors with a JSON note in one safetensors file, and JSON for reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from credalens.storage.atomic import PARTIAL, atomic_file

Note = dict[str, Any]


def write_tensors(path: Path, tensors: dict[str, Tensor], note: Note, /) -> None:
    """Write tensors and a JSON note as one safetensors file; an older one stays until the new one is complete."""
    copies = {name: _on_host(tensor) for name, tensor in tensors.items()}
    write_bytes(path, save(copies, metadata={"note": json.dumps(note)}))


def read_tensors(path: Path, /) -> tuple[dict[str, Tensor], Note]:
    """The tensors (on the CPU) and the note, of a file that nobody replaces meanwhile."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
            return tensors, _note(file, path)
    except SafetensorError as error:
        raise _unreadable(path, error) from error


def read_note(path: Path, /) -> Note:
    """The note alone, without reading the tensors; a training may replace the file meanwhile."""
    try:
        with safe_open(path, framework="np") as file:  # for torch it would be opened twice, and may be two files
            return _note(file, path)
    except SafetensorError as error:
        raise _unreadable(path, error) from error


def _note(file: Any, path: Path) -> Note:
    note = (file.metadata() or {}).get("note")
    if note is None:
        raise ValueError(f"{path} was not written by credalens: it carries no note on its training.")
    return dict(json.loads(note))


def write_json(path: Path, content: Any, /) -> None:
    """Write indented JSON."""
    write_bytes(path, (json.dumps(content, indent=2) + "\n").encode())


def write_bytes(path: Path, content: bytes, /) -> None:
    """Write a whole file or none, and say what to do when there is no room for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}; could not write {len(content) / 1e6:.1f} MB. An older file of that name is untouched. "
            "Make room or choose another folder, then run the same again: it goes on from the last checkpoint",
            str(path),
        ) from error


def remove_scratch(folder: Path, /) -> None:
    """Remove what a killed process left half written."""
    for partial in folder.glob(f".*{PARTIAL}"):
        partial.unlink(missing_ok=True)


def differences(stored: Note, asked: Note, /, *, prefix: str = "") -> list[str]:
    """Where two notes differ, as lines 'name: stored ..., asked for ...'.

    >>> differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}})
    ['a.c: stored 2, asked for 3']
    """
    lines = []
    for name in sorted(stored.keys() | asked.keys()):
        one, other = stored.get(name), asked.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            lines += differences(one, other, prefix=f"{prefix}{name}.")
        elif one != other:
            lines.append(f"{prefix}{name}: stored {one!r}, asked for {other!r}")
    return lines


def check_same(stored: Note, asked: Note, path: Path, /) -> None:
    """Refuse a file of another configuration."""
    if lines := differences(stored, asked):
        raise ValueError(
            f"{path} belongs to another configuration ({'; '.join(lines)}). Ask for the stored one, train into "
            f"another folder, or delete {path.parent} to begin again."
        )


def _on_host(tensor: Tensor) -> Tensor:
    # A copy always: safetensors refuses tensors that share memory, as tied weights do.
    return tensor.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} cannot be read ({error}). Delete it, and the training begins again from the start.")
