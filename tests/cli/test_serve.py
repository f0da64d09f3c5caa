"""credalens serve: options become settings, and what is wrong is said before anything listens."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from credalens import wrap
from credalens.guard import Guard
from credalens.serve import Limits, running
from credalens.serve.server import bound_sockets
from tests.cli.running import run
from tests.strategies import batch_of

EVERYWHERE = "0.0.0.0"  # noqa: S104 - never bound here


@pytest.fixture
def served(monkeypatch):
    """The servers and supervisors that would have run."""
    calls = []
    monkeypatch.setattr(running, "_serve_alone", calls.append)
    monkeypatch.setattr(running.Supervisor, "run", lambda supervisor: calls.append(supervisor))
    return calls


def test_by_default_it_listens_to_this_machine_only(capsys, served):
    assert run(capsys, "serve") == (0, "", "")
    [server] = served
    config = server.config
    assert (config.host, config.port, config.ssl_certfile, config.ws) == ("127.0.0.1", 8000, None, "none")
    assert {"/v2", "/v2/models/{model}/infer"} <= {route.path for route in config.app().app.routes}


def test_workers_get_the_same_settings_and_the_content_of_files(capsys, served, tmp_path):
    Guard.fit(wrap(batch_of("peaked", 3, 30, 4))).save(tmp_path / "guard.json")
    (tmp_path / "tokens").write_text("secret\n")
    arguments = ("--workers", 2, "--guard", tmp_path / "guard.json", "--token-file", tmp_path / "tokens", "--port", 0)
    load = ("--batch-delay", 2.5, "--queue", 7, "--max-rows", 9, "--timeout", 3)
    names = ("--allow-host", "credalens.svc", "--allow-host", "*.example.org")
    code, _, err = run(capsys, "serve", *arguments, *load, "--name", "mine", "--model-version", "2", "--logits", *names)
    assert (code, err.count("\n")) == (0, 1)  # where it listens
    [supervisor] = served
    settings, content, options, sockets = supervisor.arguments
    assert (supervisor.number, supervisor.timeout, len(sockets)) == (2, 3, 1)
    assert settings.limits == Limits(rows=9, queue=7, batch_delay=0.0025, timeout=3.0)
    assert (settings.name, settings.version, settings.logits, settings.workers) == ("mine", "2", True, 2)
    assert settings.allowed_hosts == ("credalens.svc", "*.example.org")
    assert (content.tokens, content.guard.n) == (("secret",), 30)
    assert "secret" not in f"{settings}{options}{os.environ}"
    assert running.make_app(settings, content).routes
    sockets[0].close()


def test_an_open_server_is_warned_of(capsys, served):
    code, _, err = run(capsys, "serve", "--host", EVERYWHERE)
    assert code == 0
    assert "Anyone who can reach 0.0.0.0" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.onnx"], "No such file: none.onnx"),
        (["bad.onnx"], "bad.onnx: ONNX Runtime cannot load it"),
        (["--guard", "none.json"], "none.json"),
        (["--token-file", "empty"], "empty: holds no token"),
        (["--base", "1"], "base must be finite and above 1"),
        (["--base", "e", "--guard", "guard.json"], "fitted in base 2 and base 2.71828 was passed"),
        (["--queue", "0"], "--queue"),
        (["--timeout", "inf"], "timeout must be above 0 and at most"),
        (["--name", "a/b"], "the model's name must be"),
        (["--allow-host", "http://a"], "allowed_hosts must be names without scheme, port or path"),
    ],
)
def test_what_is_wrong_is_one_line(capsys, served, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    (tmp_path / "empty").touch()
    Guard.fit(wrap(batch_of("peaked", 3, 30, 4))).save(tmp_path / "guard.json")
    code, out, err = run(capsys, "serve", *arguments)
    assert (code, out, served) == (2, "", [])
    assert err.startswith("error: ")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_missing_package_is_named_with_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in ("running", "server"):
        monkeypatch.delitem(sys.modules, f"credalens.serve.{name}")
    code, _, err = run(capsys, "serve")
    assert code == 2
    assert "needs uvicorn, which is missing or too old: pip install 'credalens[serve]'" in err


def test_every_address_of_a_name_is_listened_on_and_a_taken_one_is_named(capsys):
    sockets = bound_sockets("localhost", 0)
    try:
        addresses = {name for *_, (name, *_) in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
        assert {listener.getsockname()[0] for listener in sockets} <= addresses
        (port,) = {listener.getsockname()[1] for listener in sockets}
        assert all(listener.proto == socket.IPPROTO_TCP for listener in sockets)
        host = sockets[0].getsockname()[0]
        sockets[0].listen()
        code, _, err = run(capsys, "serve", "--host", host, "--port", port)
        assert code == 2
        assert f"cannot listen on {host}, port {port}: " in err
    finally:
        for listener in sockets:
            listener.close()
