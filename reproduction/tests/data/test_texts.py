"""Texts as features: CLINC150 from its file, weights of the training texts alone, sets made here."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from credalens_paper.data import has_texts, load_images, open_images, texts
from credalens_paper.data.texts import text_features


@pytest.fixture(autouse=True)
def _smaller_file(monkeypatch):
    monkeypatch.setattr(texts, "COUNTS", {"train": 300, "test": 150, "oos_test": 10})


def content(train=300, test=150, oos=10, intents=150):
    """A file with the intents of CLINC150 and fewer requests."""
    rows = {"train": train, "test": test}
    parts = {
        part: [[f"say w{k % intents}", f"i{k % intents:03d}"] for k in range(count)] for part, count in rows.items()
    }
    return {**parts, "oos_test": [["what is this", "oos"]] * oos}


def write(path, parts):
    path.parent.mkdir(exist_ok=True)
    raw = json.dumps(parts).encode()
    path.write_bytes(gzip.compress(raw, 1) if path.suffix == ".gz" else raw)


@pytest.mark.parametrize("file", ["clinc150.json.gz", "clinc/data_full.json"])
def test_intents_are_numbered_by_name_and_requests_outside_them_are_another_set(tmp_path, file):
    write(tmp_path / file, content())
    inside, outside = (load_images(name, tmp_path, size=16) for name in ("clinc150", "clinc150-oos"))
    assert inside.images.shape == (150, 16)
    assert (inside.labels == np.arange(150)).all()
    assert inside.class_names[:2] == ("i000", "i001")
    assert (len(outside), outside.class_names, outside.labels.max()) == (10, ("oos",), 0)


def test_another_file_is_refused_with_what_is_expected(tmp_path):
    write(tmp_path / "data_full.json", content(train=150))
    with pytest.raises(ValueError, match=r"'train': 150.*has {'train': 300.*not one of the smaller variants"):
        load_images("clinc150", tmp_path)
    (tmp_path / "data_full.json").write_text("{}")
    with pytest.raises(ValueError, match="is not the file of CLINC150 or is damaged"):
        load_images("clinc150", tmp_path)


def test_a_missing_file_says_what_to_download(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"CLINC150 .*Download data_full\.json"):
        load_images("clinc150", tmp_path)
    with pytest.raises(FileNotFoundError, match="CLINC150 OOS is read from a folder, and none was given"):
        load_images("clinc150-oos")
    with pytest.raises(ValueError, match="load it as a whole with load_images"):
        open_images("clinc150", tmp_path)


def test_features_have_length_one_and_depend_on_the_training_texts_alone():
    known = ["play a song", "what is my balance", "play music"]
    one, both = text_features(["play my song"], known, 64), text_features(["play my song", "zzz"], known, 64)
    np.testing.assert_array_equal(one[0], both[0])
    np.testing.assert_allclose(np.linalg.norm(both, axis=-1), 1, rtol=1e-6)
    assert not np.array_equal(one, text_features(["play my song"], known[1:], 64))


def test_sets_made_here_can_be_told_apart_by_a_linear_rule():
    train, test = (load_images("requests", split=split) for split in ("train", "test"))
    centres = np.stack([train.images[train.labels == k].mean(axis=0) for k in range(10)])
    right = (test.images @ centres.T).argmax(axis=-1) == test.labels
    assert right.mean() > 0.9
    babble = load_images("babble").images @ centres.T
    assert np.median(babble.max(axis=-1)) < np.median((test.images @ centres.T).max(axis=-1))
    assert has_texts("requests")
    assert not has_texts("digits")
