"""Texts as features: CLINC150, and hashed n-grams weighed by how rare they are among the training texts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from credalens_paper.data.catalog import DataSet, check_split, find_data_set
from credalens_paper.data.image_set import Features, ImageSet

FILES: Final = ("clinc150.json.gz", "data_full.json")
FEATURES: Final = 1024
PARTS: Final = {("clinc150", "train"): "train", ("clinc150", "test"): "test", ("clinc150-oos", "test"): "oos_test"}
COUNTS: Final = {"train": 15_000, "test": 4_500, "oos_test": 1_000}
N_GRAMS: Final = ({"analyzer": "word", "ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 4)})
"""Half of the features are of words and pairs of them, half of two to four letters within a word."""


def load_texts(name: str, folder: str | Path | None, /, *, split: str = "test", size: int | None = None) -> ImageSet:
    """A part of CLINC150 as features; they are weighed by its training texts, whichever part is loaded."""
    data_set = find_data_set(name)
    part = PARTS[name, check_split(data_set, split)]
    content = _read(_find(folder, data_set))
    intents = sorted({intent for _, intent in content["train"]})
    texts, known = ([text for text, _ in content[key]] for key in (part, "train"))
    class_names = tuple(intents) if data_set.classes > 1 else ("oos",)
    labels = np.array([class_names.index(intent) for _, intent in content[part]], np.int64)
    return ImageSet(name, text_features(texts, known, size or FEATURES), labels, class_names)


def text_features(texts: Sequence[str], known: Sequence[str], size: int, /) -> Features:
    """Signed counts of n-grams hashed into `size` places, times the logarithm of their rarity in `known`, of length one."""
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    hashes = [HashingVectorizer(**kind, n_features=size // 2, norm=None) for kind in N_GRAMS]
    counted, reference = (hstack([one.transform(part) for one in hashes], "csr") for part in (texts, known))
    return np.asarray(TfidfTransformer().fit(reference).transform(counted).toarray(), np.float32)


def _find(folder: str | Path | None, data_set: DataSet) -> Path:
    roots = () if folder is None else (*(Path(folder) / name for name in data_set.folders), Path(folder))
    path = next((root / name for root in roots for name in FILES if (root / name).is_file()), None)
    if path is None:
        where = "a folder, and none was given" if folder is None else f"{folder}, where it is not"
        raise FileNotFoundError(
            f"{data_set.title} is read from {where}. Download {data_set.download} and put it there, as it is or as {FILES[0]}"
        )
    return path


def _read(path: Path) -> dict[str, list[list[str]]]:
    """The parts of the file, each a list of [text, intent]."""
    raw = path.read_bytes()
    try:
        content: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        counts = {part: sum(isinstance(text, str) for text, _ in content[part]) for part in COUNTS}
        intents = len({intent for _, intent in content["train"]})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the file of CLINC150 or is damaged ({error!r}); download it again") from error
    if counts != COUNTS or intents != find_data_set("clinc150").classes:
        raise ValueError(
            f"{path} has {counts} texts and {intents} intents; the full CLINC150 has {COUNTS} and "
            f"{find_data_set('clinc150').classes}. Is it data_full.json, not one of the smaller variants?"
        )
    return content
