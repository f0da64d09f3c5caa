"""What a result says about its origin: versions that are installed, the machine, the commit."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError

import numpy as np

import credalens
from credalens.storage import provenance as module
from credalens.storage.provenance import provenance


def test_it_names_versions_machine_and_time():
    made = provenance(("no-such-package",))
    assert made.versions["numpy"] == np.__version__
    assert "no-such-package" not in made.versions
    assert made.cores >= 1
    assert made.processor
    assert json.loads(json.dumps(asdict(made)))["date"].endswith("+00:00")


def test_a_copy_without_history_is_told_its_commit(monkeypatch):
    monkeypatch.setattr(module, "_git", lambda *arguments: None)
    monkeypatch.delenv("CREDALENS_COMMIT", raising=False)
    assert provenance().commit is None
    monkeypatch.setenv("CREDALENS_COMMIT", "abc")
    assert provenance().commit == "abc"


def test_a_source_tree_that_is_not_installed_knows_its_version(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(module, "version", missing)
    assert provenance(("torch",)).versions == {"python": platform.python_version(), "credalens": credalens.__version__}
