"""Bytes that differ from those that were written: refused where the format has checksums, else where it can be told."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest

from credalens.storage import open_predictions, read_labels, save_predictions
from tests.strategies import batch_of

VALUES, LABELS = batch_of("flat", 3, 600, 4).astype(np.float32), np.arange(600) % 4
MUTANTS = 150


def compressed(path):
    np.savez_compressed(path, probs=VALUES, labels=LABELS)


def saved(path):
    save_predictions(path, VALUES, LABELS)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three bytes changed; every other time among the last 1,500, where the directory or footer is."""
    damaged = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place = rng.integers(len(content)) if rng.random() < 0.5 else -rng.integers(1, 1500)
        damaged[place] = rng.integers(256)
    return bytes(damaged)


def content_of(path):
    try:
        return open_predictions(path).read(), read_labels(path)
    except ValueError:
        return None


@pytest.mark.parametrize(("write", "suffix"), [(saved, ".npz"), (compressed, ".npz"), (saved, ".parquet")])
def test_a_mutant_is_refused_or_reads_as_the_original(tmp_path, write, suffix):
    path, rng = tmp_path / f"m{suffix}", np.random.default_rng(0)
    write(path)
    original, refused = path.read_bytes(), 0
    for _ in range(MUTANTS):
        path.write_bytes(mutated(original, rng))
        content = content_of(path)
        refused += content is None
        if content is not None:
            np.testing.assert_array_equal(content[0].view(np.uint32), VALUES.view(np.uint32))
            np.testing.assert_array_equal(content[1], LABELS)
    assert refused > MUTANTS / 2


def test_a_part_of_a_damaged_npz_is_refused_too(tmp_path):
    """Whatever rows are asked for: the checksum is that of the whole array."""
    saved(tmp_path / "m.npz")
    content = bytearray((tmp_path / "m.npz").read_bytes())
    content[VALUES.nbytes // 2] ^= 1
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"m.npz: cannot be read.*checksum"):
        open_predictions(tmp_path / "m.npz").read(0, 1)
    np.testing.assert_array_equal(read_labels(tmp_path / "m.npz"), LABELS)


def test_a_npz_that_changes_between_two_reads_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    saved(path)
    predictions = open_predictions(path)
    predictions.read(0, 10)
    save_predictions(path, VALUES[::-1], LABELS)
    with pytest.raises(ValueError, match="checksum"):
        predictions.read(0, 10)
    np.testing.assert_array_equal(open_predictions(path).read(), VALUES[::-1])


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_the_length_is_what_the_header_says(tmp_path, suffix, change):
    path = tmp_path / f"m{suffix}"
    save_predictions(path, VALUES)
    content = path.read_bytes()
    path.write_bytes(content + b"\0" if change > 0 else content[:change])
    with pytest.raises(ValueError, match="cannot be read"):
        open_predictions(path)


def test_fewer_rows_in_the_header_of_a_npy(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": (3, 300, 4)})
    (tmp_path / "m.npy").write_bytes(buffer.getvalue() + VALUES.tobytes())
    with pytest.raises(ValueError, match=r"bytes cannot have shape \(3, 300, 4\)"):
        open_predictions(tmp_path / "m.npy")


ENTRY = {"dtype": "F32", "shape": [1, 2, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    "header",
    [
        [],
        "probs",
        3,
        None,
        {"probs": []},
        {"probs": None},
        {"probs": ENTRY | {"shape": [1.0, 2, 2]}},
        {"probs": ENTRY | {"shape": ["1", 2, 2]}},
        {"probs": ENTRY | {"shape": [-1, -2, 2]}},
        {"probs": ENTRY | {"shape": 4}},
        {"probs": ENTRY | {"dtype": []}},
        {"probs": ENTRY | {"data_offsets": [0, 16, 16]}},
        {"probs": ENTRY | {"data_offsets": [-16, 0]}},
        {"probs": ENTRY | {"data_offsets": [4, 20]}},
        {"probs": ENTRY, "labels": ENTRY},
        {"probs": ENTRY, "labels": {"dtype": "I8", "shape": [2], "data_offsets": [20, 22]}},
    ],
    ids=repr,
)
def test_a_safetensors_header_that_describes_no_file(tmp_path, header):
    text = json.dumps(header).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + np.full(4, 0.5, "<f4").tobytes())
    with pytest.raises(ValueError, match=r"m.safetensors: cannot be read"):
        open_predictions(tmp_path / "m.safetensors")
