"""What a server was started with: bytes that every process gets, whatever happens to the files."""

from __future__ import annotations

import json
import os
import pickle
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest

from credalens import wrap
from credalens.guard import Guard
from credalens.serve.onnx_members import onnx_members
from credalens.serve.settings import Content, ModelFile, Settings
from tests.serve.messages import request
from tests.serve.onnx_files import write_linear
from tests.serve.test_processes import ask, eventually, running, workers
from tests.strategies import batch_of

RNG = np.random.default_rng(3)
X = RNG.random((5, 6), np.float32)


@pytest.fixture
def settings(tmp_path):
    """Two members, a guard and tokens in files."""
    models = [write_linear(tmp_path / f"{i}.onnx", RNG.normal(size=(6, 4))) for i in range(2)]
    Guard.fit(wrap(batch_of("peaked", 2, 300, 4))).save(tmp_path / "guard.json")
    (tmp_path / "tokens").write_text("first\n")
    files = {"guard": str(tmp_path / "guard.json"), "token_file": str(tmp_path / "tokens")}
    return Settings(models=tuple(map(str, models)), **files)


def test_content_is_what_the_files_were(settings, tmp_path):
    content = Content.read(settings)
    wanted = totals(content)
    for path in tmp_path.iterdir():
        path.write_bytes(b"damaged")
    there = pickle.loads(pickle.dumps(content))  # noqa: S301 - as a worker gets it
    assert there.tokens == ("first",)
    assert repr(there.guard) == repr(content.guard)
    np.testing.assert_array_equal(there.guard.scores, content.guard.scores)
    np.testing.assert_array_equal(totals(there), wanted)


def totals(content):
    return onnx_members(content.models, content.guard).predict({"x": X}).total


def test_secrets_and_bytes_are_not_shown(settings):
    text = repr(Content.read(settings))
    assert "first" not in text
    assert len(text) < 1000


def test_another_machine_loads_the_same_file_or_none(settings):
    content = Content.read(settings)
    remote = content.for_cluster()
    assert len(pickle.dumps(remote.models)) < 1000
    np.testing.assert_array_equal(totals(remote), totals(content))
    write_linear(settings.models[1], RNG.normal(size=(6, 4)))
    with pytest.raises(ValueError, match=r"1\.onnx is not the file"):
        totals(remote)


@pytest.mark.parametrize("name", ["weights.bin", "parts/weights.bin"])
def test_weights_in_a_file_of_their_own_belong_to_the_model(tmp_path, name):
    path, weights = write_linear(tmp_path / "model.onnx", RNG.normal(size=(6, 4))), tmp_path / name
    wanted = onnx_members([path]).predict({"x": X}).total
    weights.parent.mkdir(exist_ok=True)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location=name, size_threshold=0)
    file = ModelFile.read(path)
    assert list(file.weights) == [name]
    weights.write_bytes(bytes(len(file.weights[name])))
    np.testing.assert_array_equal(onnx_members([file]).predict({"x": X}).total, wanted)
    assert ModelFile.read(path).digest != file.digest
    weights.unlink()
    with pytest.raises(ValueError, match=r"model\.onnx: ONNX Runtime cannot load it"):
        onnx_members([path])


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a/../../secret", ""])
def test_files_elsewhere_are_not_read(tmp_path, name):
    (tmp_path / "secret").write_bytes(b"secret")
    (folder := tmp_path / "models").mkdir()
    path = write_linear(folder / "model.onnx", RNG.normal(size=(6, 4)))
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights", size_threshold=0)
    assert ModelFile.read(path).weights
    model = onnx.load(path, load_external_data=False)
    next(entry for entry in model.graph.initializer[0].external_data if entry.key == "location").value = name
    path.write_bytes(model.SerializeToString())
    assert ModelFile.read(path).weights == {}


@pytest.mark.parametrize("tail", [b"", b"\xff" * 9, b"\x7f", b"\x02\0\0", b"\x03../", b"\xff\xff\xff\xff\x0fx"])
def test_bytes_that_only_look_like_a_name_are_no_error(tmp_path, tail):
    (path := tmp_path / "model.onnx").write_bytes(b"\n\x08location\x12" + tail)
    assert ModelFile.read(path).weights == {}


def test_a_worker_that_is_replaced_decides_as_the_others_do(tmp_path, settings):
    """Guard, tokens and models are damaged or replaced after the start; then one of two workers is killed."""
    options = ["--guard", settings.guard, "--token-file", settings.token_file, "--workers", "2", "--port", "0"]
    with running(tmp_path, "-m", "credalens", "serve", *settings.models, *options) as (server, port):
        eventually(lambda: len(workers(server)) == 2)
        message = request({"x": X}, ["total", "decision", "p_value"])
        message.headers["Authorization"] = "Bearer first"
        wanted = outputs(port, message)
        Guard.fit(wrap(batch_of("peaked", 2, 40, 4)), false_alarm_rate=0.5).save(settings.guard)
        write_linear(settings.models[0], RNG.normal(size=(6, 4)))
        (tmp_path / "1.onnx").write_bytes(b"damaged")
        (tmp_path / "tokens").unlink()
        killed = min(workers(server))
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: len(workers(server) - {killed}) == 2)
        (first,) = workers(server) - {killed} - {max(workers(server) - {killed}, key=started)}
        os.kill(first, signal.SIGSTOP)  # so that only the new one answers
        try:
            assert outputs(port, message) == wanted
        finally:
            with suppress(ProcessLookupError):
                os.kill(first, signal.SIGCONT)


def outputs(port, message):
    status, body = ask(port, "POST", "/v2/models/model/infer", message)
    assert status == 200, body
    return [output["data"] for output in json.loads(body)["outputs"]]


def started(pid):
    """When a process began, in ticks since the machine did."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
