"""``credalens demo``: an honest split, images that are really others, and a report from end to end."""

from __future__ import annotations

import functools
import json
import shlex

import numpy as np
import pytest

from credalens import wrap
from credalens.datasets import cifar10_ensemble
from credalens.demo import digits, ood_images, run_demo
from credalens.demo.run import evaluate_real_networks
from credalens.evaluation import ood_metrics
from tests.cli.running import run

FEWER = {"count": 60, "epochs": 4, "real_rows": 300}
"""The same demo with fewer images and epochs."""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("credalens.demo.run_demo", functools.partial(run_demo, **FEWER))


def test_the_demo_leads_with_real_networks_ends_with_a_command_and_gives_the_same_files_again(
    capsys, quick, tmp_path, request
):
    code, out, _ = run(capsys, "demo", "-o", tmp_path / "out")
    assert code == 0
    first, second = tmp_path / "out" / "report.html", tmp_path / "out" / "digits" / "report.html"
    assert 0 < out.index(f"Report: {first.resolve()}") < out.index(f"Report: {second.resolve()}")
    assert all(report.stat().st_size < 3_000_000 for report in (first, second))
    assert second.read_text(encoding="utf-8").count('<img src="data:') > 50
    assert [name in out for name in ("SVHN", "letters", "photos", "textures", "corrupted digits")] == [True] * 5
    real, result = (json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in (first, second))
    assert [one["name"] for one in real["ood"]] == ["SVHN", "Tiny-ImageNet"]
    assert result["data"]["members"] == 5
    assert result["calibration"]["averaged"]["accuracy"] > 0.85
    assert all(one["epistemic"]["credal"]["auroc"] > 0.7 for one in result["ood"])
    assert_same_files(run_demo(tmp_path / "same seed", **FEWER).folder, tmp_path / "out")
    request.getfixturevalue("undrawn")  # what follows is about numbers
    again(capsys, out.splitlines()[-1], result, tmp_path / "again")


def test_real_networks_are_measured_as_the_metrics_do_it():
    shipped = cifar10_ensemble()
    known, other = wrap(shipped.cifar10[:, :500]), wrap(shipped.svhn[:, :500])
    found = evaluate_real_networks(rows=500).ood[0]
    assert found.epistemic.credal.auroc == pytest.approx(ood_metrics(known.epistemic, other.epistemic).auroc)


def again(capsys, command, result, folder):
    """The command it prints gives the same numbers from the saved predictions."""
    program, *args = shlex.split(command)
    assert program == "credalens"
    args[-1] = str(folder)
    assert run(capsys, *args)[0] == 0
    repeated = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    for key in ("ood", "calibration", "sets", "selective", "thresholds"):
        assert repeated[key] == result[key]


def test_bad_output_is_said_before_anything_is_trained(capsys, tmp_path):
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "demo", "-o", tmp_path / "file" / "report")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "is a file; name a folder" in err


def test_a_bad_seed_is_said_before_anything_is_trained(capsys, tmp_path):
    code, out, err = run(capsys, "demo", "--seed", -1, "-o", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "Invalid value for '--seed'" in err
    code, out, err = run(capsys, "demo", "--seed", 2**32, "-o", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "seed must be a whole number from 0 to 4294967295; got 4294967296" in err
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to 4294967295; got -1"):
        run_demo(tmp_path / "out", seed=-1)


@pytest.mark.parametrize("seed", [1.5, 1.0, "1", True, None])
def test_a_seed_that_is_no_whole_number_is_refused(tmp_path, seed):
    with pytest.raises(TypeError, match=f"seed must be a whole number from 0 to 4294967295; got {seed!r}"):
        run_demo(tmp_path / "out", seed=seed)
    assert list(tmp_path.iterdir()) == []


def assert_same_files(folder, other):
    names = [{path.relative_to(root) for path in root.rglob("*.*")} for root in (folder, other)]
    assert names[0] == names[1]
    for name in (name for name in names[0] if name.suffix != ".html"):  # whose foot has the date and the command
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name


def test_training_and_test_digits_are_different_ones():
    data = digits.load(0)
    train, test = ({image.tobytes() for image in images} for images in (data.train_images, data.test_images))
    assert len(data.train_images) + len(data.test_images) == 1797
    assert len(train & test) == 0
    assert np.abs(np.bincount(data.train_labels) - np.bincount(data.test_labels)).max() <= 1
    assert (digits.load(1).test_images != data.test_images).any()


@pytest.mark.parametrize("make", [ood_images.letters, ood_images.photos, ood_images.textures])
def test_ood_images_look_like_the_digits_and_no_two_alike(make):
    images = make(40, np.random.default_rng(0))
    assert images.shape == (40, 8, 8)
    assert (images.min(), images.max()) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    assert len({image.tobytes() for image in images}) == 40
    assert (images == make(40, np.random.default_rng(0))).all()


def test_every_digit_is_corrupted():
    data = digits.load(0).test_images
    images = ood_images.corrupted(data, np.random.default_rng(0))
    assert images.shape == data.shape
    changed = np.abs(images - data).reshape(len(data), -1)
    assert (changed.max(axis=1) > 0.2).all()
    assert images.min() >= 0
    assert images.max() <= 1
    np.testing.assert_allclose(images[3::4], 1 - data[3::4])
    assert (images[2::4, :, 4:] == 0).all()
    assert (images[2::4, :, :4] == data[2::4, :, :4]).all()
