"""credalens train: what it trains, what it prints, how it goes on, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from credalens.cli.app import COMMANDS
from credalens.storage import open_predictions, read_labels
from credalens_paper.data import load_images
from credalens_paper.training import train_networks
from credalens_paper.training.spec import schedule_for
from tests.cli.running import run as run_command

TINY = ("--data", "digits", "--width", "0.0625", "--schedule", "smoke", "--device", "cpu")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(COMMANDS, "train", "Train")


def run(capsys, *args: object) -> tuple[int, str, str]:
    return run_command(capsys, "train", *args)


def trained(capsys, out, *args: object) -> dict:
    code, text, err = run(capsys, *TINY, "--out", out, "--json", *args)
    assert (code, err) == (0, "")
    return json.loads(text)


def refused(capsys, *args: object) -> str:
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def test_an_ensemble_is_trained_once_and_its_predictions_are_written(capsys, tmp_path):
    file = tmp_path / "members.npz"
    first = trained(capsys, tmp_path / "runs", "--members", 2, "--predictions", file)
    assert [row["key"].split("-seed")[1][0] for row in first["networks"]] == ["0", "1"]
    assert all(row["trained"] and row["epochs"] == 2 for row in first["networks"])
    members, labels = np.asarray(open_predictions(file).read(0, 500)), read_labels(file)
    assert members.shape == (2, 500, 10)
    np.testing.assert_array_equal(labels, load_images("digits", split="test").labels)
    accuracies = [(one.argmax(-1) == labels).mean() for one in members]
    assert [row["test_accuracy"] for row in first["networks"]] == pytest.approx(accuracies)
    assert first["test_accuracy"] == pytest.approx((members.mean(0).argmax(-1) == labels).mean())
    again = trained(capsys, tmp_path / "runs", "--members", 3)
    assert [row["trained"] for row in again["networks"]] == [False, False, True]
    assert again["networks"][0]["loss"] == first["networks"][0]["loss"]


@pytest.mark.parametrize(("method", "networks", "members"), [("bnnf", 1, 3), ("edd", 3, 1), ("edd_fair", 3, 1)])
def test_other_methods(capsys, tmp_path, method, networks, members):
    count = 1 if method == "bnnf" else 2
    summary = trained(
        capsys, tmp_path, "--method", method, "--members", count, "--samples", 3, "--epochs", 1, "--side-by-side", 2
    )
    assert len(summary["networks"]) == networks
    assert summary["members"] == members
    assert f"-{method}-" in summary["networks"][-1]["key"]
    assert 0 <= summary["test_accuracy"] <= 1


def test_the_table(capsys, tmp_path):
    code, out, err = run(capsys, *TINY, "--out", tmp_path, "--members", 1, "--epochs", 1)
    assert code == 0
    assert "seed0" in "".join(out.split())
    assert "correct on the test split" in out
    assert err.count("epoch 1/1, loss") == 1  # a line for each epoch, as there is no terminal
    _, out, _ = run(capsys, *TINY, "--out", tmp_path, "--members", 1, "--epochs", 1)
    assert "kept" in out


def test_a_set_without_a_test_split_is_trained_all_the_same(capsys, tmp_path):
    rng = np.random.default_rng(0)
    for label in range(10):
        (tmp_path / "data" / "train" / str(label)).mkdir(parents=True)
        image = Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8))
        image.save(tmp_path / "data" / "train" / str(label) / "0.png")
    options = ("--data", "svhn", "--folder", tmp_path / "data", *TINY[2:], "--members", 1, "--size", 8)
    code, out, _ = run(capsys, *options, "--out", tmp_path / "runs")
    assert (code, "No test split was found" in out) == (0, True)
    message = refused(capsys, *options, "--out", tmp_path / "other", "--predictions", tmp_path / "p.npz")
    assert "no test split of SVHN" in message
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--data", "digits", "--method", "swag"), "method must be one of"),
        (("--data", "digits", "--members", "0"), "Invalid value for '--members'"),
        (("--data", "digits", "--schedule", "slow"), "schedule must be one of"),
        (("--data", "digits", "--backbone", "alexnet"), "backbone must be one of 'vgg16', 'resnet18'"),
        (("--data", "digits", "--width", "inf"), "--width multiplies the number of channels and must be finite"),
        (("--data", "digits", "--width", "0"), "width multiplies the number of channels and must be positive"),
        (("--data", "digits", "--precision", "float64"), "precision must be one of 'auto', 'float32', 'bfloat16'"),
        (("--data", "digits", "--size", "0"), "Invalid value for '--size'"),
        (("--data", "digits", "--method", "bnnr", "--samples", "0"), "Invalid value for '--samples'"),
        (("--data", "digits", "--predictions", "nowhere/p.npz"), "there is no folder nowhere; create it first"),
        (("--data", "digits", "--method", "edd", "--members", "1"), "at least two teachers"),
        (("--data", "digits", "--predictions", "p.csv"), ".npz, .parquet or .safetensors"),
        (("--data", "cifar10", "--folder", "nowhere"), "Download"),
        (("--data", "mnist"), "unknown data set 'mnist'"),
        ((), "Missing option '--data'"),
    ],
)
def test_bad_calls_are_refused_on_one_line(capsys, tmp_path, args, message):
    assert message in refused(capsys, *args, "--out", tmp_path / "runs", "--device", "cpu")
    assert not (tmp_path / "runs").exists()


def test_an_output_that_is_a_file_is_refused_as_one(capsys, tmp_path):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "runs"):
        message = refused(capsys, *TINY, "--out", out, "--members", 1)
        assert f"cannot write into {out}: {tmp_path / 'file'} is a file; name a folder." in message


@pytest.mark.parametrize(
    "option",
    [
        ("--method", "swag"),
        ("--schedule", "slow"),
        ("--backbone", "alexnet"),
        ("--precision", "float64"),
        ("--device", "foo"),
        ("--width", "-1"),
        ("--pretrained", "."),
        ("--backbone", "vit_base", "--pretrained", "nowhere"),
        ("--predictions", "nowhere/p.npz"),
    ],
    ids=lambda option: option[0],
)
def test_bad_options_are_refused_before_the_data_are_read(capsys, tmp_path, unread, option):
    refused(capsys, *TINY, "--out", tmp_path / "runs", *option)


@pytest.fixture
def unread(monkeypatch):
    """No data may be read."""

    def read(*args, **options):
        raise AssertionError("the data were read")

    monkeypatch.setattr("credalens_paper.data.load_images", read)


def test_predictions_take_the_place_of_no_data(capsys, tmp_path, unread):
    data = tmp_path / "data" / "cifar10" / "train.npz"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"images")
    message = refused(capsys, "--data", "cifar10", "--folder", tmp_path / "data", "--predictions", data)
    assert f"cannot write {data}: it is the file that is being read" in message
    assert data.read_bytes() == b"images"


def test_weights_that_cannot_be_loaded_are_refused_before_the_data_are_read(capsys, tmp_path, unread):
    def message():
        return refused(capsys, *TINY, "--out", tmp_path / "runs", "--backbone", "resnet50", "--pretrained", weights)

    weights = tmp_path / "weights"
    weights.mkdir()
    assert f"no config.json in {weights}; pretrained weights are a folder with" in message()
    (weights / "config.json").write_text('{"model_type": "vit"}')
    assert f"no model.safetensors in {weights}" in message()
    (weights / "model.safetensors").touch()
    assert f"{weights} holds a 'vit' network; resnet50 is a ResNet" in message()


@pytest.mark.parametrize("device", ["foo", "meta", "cuda:-1"])
def test_a_device_that_torch_cannot_use_is_bad_input_and_no_defect(capsys, tmp_path, device):
    message = refused(capsys, *TINY, "--out", tmp_path / "runs", "--device", device)
    assert "device" in message
    assert repr(device) in message
    assert not (tmp_path / "runs").exists()


def test_another_configuration_is_refused(capsys, tmp_path):
    trained(capsys, tmp_path, "--members", 1, "--epochs", 1)
    message = refused(capsys, *TINY, "--out", tmp_path, "--members", 1, "--epochs", 2)
    assert "schedule.epochs was 1 and is now 2" in message


def test_a_network_that_diverges_is_no_defect(capsys, tmp_path, monkeypatch):
    plain = schedule_for
    monkeypatch.setattr(
        train_networks, "schedule_for", lambda *spec, **options: replace(plain(*spec, **options), rate=1e30)
    )
    message = refused(capsys, *TINY, "--out", tmp_path, "--members", 1, "--json")
    assert "diverged" in message
    assert "another seed" in message


def test_help_needs_no_torch():
    code = (
        "import sys; from credalens.cli.app import COMMANDS, main; COMMANDS['train'] = ''\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit as left: assert left.code == 0\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--side-by-side" in done.stdout
