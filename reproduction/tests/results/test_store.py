"""The store keeps what was made, whole or not at all, and tells predictions apart."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from credalens_paper.experiments.presets import get_preset
from credalens_paper.json_records import to_json
from credalens_paper.results import store as store_module
from credalens_paper.results.records import FigureResult, Provenance, read_result
from credalens_paper.results.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs")


def predictions(samples=2, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(3), (samples, 4))


def test_predictions_come_back_as_they_were_stored_and_fewer_samples_are_their_beginning(store):
    made = predictions(3).astype(np.float32)
    store.save_predictions("model", "svhn", made)
    for samples in (1, 2, 3):
        np.testing.assert_array_equal(store.predictions("model", "svhn", samples), made[:samples])
    assert store.predictions("model", "svhn", 4) is None
    assert store.predictions("model", "other", 1) is None
    assert store.predictions("other", "svhn", 1) is None


def test_stored_predictions_are_mapped_and_not_writable(store):
    store.save_predictions("model", "svhn", predictions())
    with pytest.raises(ValueError, match="read-only"):
        store.predictions("model", "svhn", 1)[0, 0, 0] = 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_predictions_are_stored_in_the_chosen_precision(tmp_path, dtype):
    store = Store(tmp_path, dtype=dtype)
    store.save_predictions("model", "svhn", predictions())
    assert store.predictions("model", "svhn", 1).dtype == dtype
    store.save_predictions("student", "svhn", 1e6 * predictions(1), dtype="float32")
    assert np.isfinite(store.predictions("student", "svhn", 1)).all()


def test_other_precisions_and_shapes_are_refused(tmp_path, store):
    with pytest.raises(ValueError, match="stored as float32 or float16, got 'int8'"):
        Store(tmp_path, dtype="int8")
    with pytest.raises(ValueError, match=r"\(samples, inputs, classes\), got shape \(4, 3\)"):
        store.save_predictions("model", "svhn", predictions()[0])


def test_a_fingerprint_survives_more_samples_and_changes_with_other_predictions(store):
    made = predictions(4)
    assert store.fingerprint("model", "svhn") is None
    store.save_predictions("model", "svhn", made[:2])
    first = store.fingerprint("model", "svhn")
    store.save_predictions("model", "svhn", made)
    assert store.fingerprint("model", "svhn") == first
    store.save_predictions("model", "svhn", predictions(4, seed=1))
    assert store.fingerprint("model", "svhn") != first


def test_predictions_without_their_fingerprint_do_not_count(store):
    """The fingerprint is written last: without it the array may be of a run that was killed."""
    store.save_predictions("model", "svhn", predictions())
    (store.folder / "predictions" / "model" / "svhn.json").unlink()
    assert store.predictions("model", "svhn", 1) is None


def test_damaged_files_are_named(store):
    store.save_predictions("model", "svhn", predictions())
    (store.folder / "predictions" / "model" / "svhn.npy").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"svhn\.npy is damaged .* delete it to have it made again"):
        store.predictions("model", "svhn", 1)
    path = store.folder / "evaluations" / "run.json"
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged .* delete it"):
        store.read_json("evaluations/run.json")


def test_objects_are_never_unpickled(store):
    path = store.folder / "labels" / "svhn.npy"
    path.parent.mkdir(parents=True)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="damaged"):
        store.array("labels", "svhn")


def test_a_full_disk_is_said_plainly_and_leaves_what_was_there(store, monkeypatch):
    store.save_predictions("model", "svhn", predictions())
    before = store.predictions("model", "svhn", 2).copy()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_module.np, "save", full)
    with pytest.raises(OSError, match=r"No space left on device.*make room"):
        store.save_predictions("model", "svhn", predictions(9))
    np.testing.assert_array_equal(store.predictions("model", "svhn", 2), before)
    assert [path.name for path in (store.folder / "predictions" / "model").iterdir() if path.name[0] == "."] == []


def test_other_errors_of_the_disk_are_left_as_they_are(store, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(store_module.np, "save", forbidden)
    with pytest.raises(PermissionError, match="not yours"):
        store.save_array("labels", "svhn", np.zeros(2))


def test_arrays_in_parts_equal_arrays_at_once(store):
    images = np.random.default_rng(0).integers(0, 255, (7, 2, 2, 3)).astype(np.uint8)
    store.save_chunks("images", "set", images.shape, (images[i : i + 3] for i in range(0, 7, 3)))
    np.testing.assert_array_equal(store.array("images", "set"), images)


def test_summaries_come_back(store):
    assert store.summary("model", "svhn") is None
    store.save_summary("model", "svhn", {"count": np.asarray(3), "lower": np.zeros((2, 2))})
    parts = store.summary("model", "svhn")
    assert parts["count"] == 3
    np.testing.assert_array_equal(parts["lower"], np.zeros((2, 2)))


def test_results_are_files_of_their_label(store):
    provenance = Provenance.here(get_preset("full"), {"device": "abacus"})
    about = {"kind": "figure", "description": "", "models": (), "status": "measured", "provenance": provenance}
    result = FigureResult(label="Concept comparisons", files=("a.png",), panels=(), **about)
    store.save_result(result)
    stored = read_result(store.folder / "results" / "Concept_comparisons.json")
    assert to_json(stored) == to_json(result)


def test_numbers_that_json_does_not_have_are_refused(store):
    with pytest.raises(ValueError, match="JSON"):
        store.write_json("a.json", {"x": float("nan")})
    assert store.read_json("a.json") is None
    store.write_json("a.json", {"x": "ä"})
    assert store.read_json("a.json") == {"x": "ä"}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file; results need a folder"):
        Store(tmp_path / "file")


def test_provenance_names_machine_versions_and_commit(monkeypatch):
    monkeypatch.setenv("CREDALENS_COMMIT", "abc")
    provenance = Provenance.here(get_preset("smoke"), {"device": "abacus"})
    assert provenance.preset.name == "smoke"
    assert provenance.hardware.cores >= 1
    assert {"python", "numpy", "credalens"} <= provenance.versions.keys()
    assert provenance.commit == "abc"


def test_two_reproductions_do_not_share_a_folder(store):
    with store.locked(), pytest.raises(ValueError, match="another run is writing into"), store.locked():
        pass
    assert not store.folder.exists()
