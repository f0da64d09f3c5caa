"""credalens serve: options become settings, and what is wrong is said before anything listens."""

from __future__ import annotations

import os
import sys

import pytest

from credalens import wrap
from credalens.guard import Guard
from credalens.serve import Limits, running
from credalens.serve.settings import Settings
from tests.cli.running import run
from tests.strategies import batch_of

EVERYWHERE = "0.0.0.0"  # noqa: S104 - never bound here


@pytest.fixture
def served(monkeypatch):
    """What uvicorn is asked to run."""
    calls = []
    monkeypatch.setattr(running.uvicorn, "run", lambda app, **options: calls.append((app, options)))
    monkeypatch.setenv(running.VARIABLE, "")
    return calls


def test_by_default_it_listens_to_this_machine_only(capsys, served):
    assert run(capsys, "serve") == (0, "", "")
    [(app, options)] = served
    assert {"/v2", "/v2/models/{model}/infer"} <= {route.path for route in app.routes}
    assert (options["host"], options["port"], options["ssl_certfile"]) == ("127.0.0.1", 8000, None)


def test_workers_get_the_same_settings(capsys, served, tmp_path):
    Guard.fit(wrap(batch_of("peaked", 3, 30, 4))).save(tmp_path / "guard.json")
    (tmp_path / "tokens").write_text("secret\n")
    arguments = ("--workers", 2, "--guard", tmp_path / "guard.json", "--token-file", tmp_path / "tokens")
    load = ("--batch-delay", 2.5, "--queue", 7, "--max-rows", 9, "--timeout", 3, "--host", EVERYWHERE)
    names = ("--allow-host", "credalens.svc", "--allow-host", "*.example.org")
    code, _, err = run(capsys, "serve", *arguments, *load, "--name", "mine", "--model-version", "2", "--logits", *names)
    assert (code, err) == (0, "")
    [(target, options)] = served
    assert (target, options["factory"], options["workers"]) == (
        "credalens.serve.running:app_of_environment",
        True,
        2,
    )
    settings = Settings.from_json(os.environ[running.VARIABLE])
    assert settings.limits == Limits(rows=9, queue=7, batch_delay=0.0025, timeout=3.0)
    assert (settings.name, settings.version, settings.logits) == ("mine", "2", True)
    assert settings.allowed_hosts == ("credalens.svc", "*.example.org")
    assert settings.guard == str(tmp_path / "guard.json")
    assert running.app_of_environment().routes


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
    monkeypatch.delitem(sys.modules, "credalens.serve.running")
    code, _, err = run(capsys, "serve")
    assert code == 2
    assert "needs uvicorn, which is missing or too old: pip install 'credalens[serve]'" in err
