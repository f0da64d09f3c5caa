"""Tiny image sets in the layouts that data sets come in, for tests."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def some_images(count: int, height: int = 32, width: int | None = None, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, height, width or height, 3), dtype=np.uint8)


def png(image: np.ndarray) -> bytes:
    stored = io.BytesIO()
    Image.fromarray(image).save(stored, "PNG")
    return stored.getvalue()


def python2(value) -> bytes:
    """A value in the opcodes that Python 2 and NumPy 1 wrote: byte strings, old module names, protocol 2."""
    match value:
        case bool():
            return b"\x88" if value else b"\x89"
        case None:
            return b"N"
        case int():
            return b"J" + struct.pack("<i", value)
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case tuple():
            return b"(" + b"".join(map(python2, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
        case np.ndarray():
            code = b"cnumpy\ndtype\n" + python2((value.dtype.str[1:].encode(), 0, 1)) + b"R"
            order = value.dtype.str[:1].encode()
            dtype = code + python2((3, order, None, None, None, -1, -1, 0)) + b"b"
            empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2((0,)) + python2(b"b") + b"tR"
            state = b"(" + python2(1) + python2(value.shape) + dtype + python2(False) + python2(value.tobytes()) + b"t"
            return empty + state + b"b"
    raise TypeError(type(value))


def pickled2(content: dict) -> bytes:
    return b"\x80\x02" + python2(content) + b"."


def rows_of(images: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2).reshape(len(images), -1))


def write_cifar10(folder, write=pickled2):
    folder.mkdir(parents=True)
    images, labels = some_images(30), np.arange(30) % 10
    for k, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]):
        part = slice(5 * k, 5 * k + 5)
        content = {b"data": rows_of(images[part]), b"labels": labels[part].tolist(), b"batch_label": b"one"}
        (folder / name).write_bytes(write(content))
    names = [f"class {k}".encode() for k in range(10)]
    (folder / "batches.meta").write_bytes(write({b"label_names": names, b"num_vis": 3072}))
    return images, labels


def write_parquet(path, images, labels, *, image="image", label="label", names=None, struct=True, group=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = [{"bytes": png(one), "path": None} if struct else png(one) for one in images]
    table = pa.table({image: encoded, label: pa.array(np.asarray(labels), pa.int64())})
    if names:
        info = {"info": {"features": {label: {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(info)})
    pq.write_table(table, path, row_group_size=group)


def draw_images(folder, *, classes, count=1):
    """A folder for each class with so many images of noise."""
    rng = np.random.default_rng(classes)
    for label in range(classes):
        place = folder / f"class{label:04d}"
        place.mkdir(parents=True)
        for index in range(count):
            pixels = rng.integers(0, 255, (32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(place / f"{index}.png")
