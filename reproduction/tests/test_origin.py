"""What a result says about its origin: versions that are installed, the machine, the commit."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError

import numpy as np

import credalens
from credalens_paper import origin


def test_it_names_versions_machine_and_time():
    versions = origin.versions(("no-such-package",))
    assert versions["numpy"] == np.__version__
    assert "no-such-package" not in versions
    assert origin.hardware().cores >= 1
    assert origin.hardware().cpu
    assert origin.now().endswith("+00:00")


def test_a_copy_without_history_is_told_its_commit(monkeypatch):
    monkeypatch.setattr(origin, "_git", lambda *arguments: None)
    monkeypatch.delenv("CREDALENS_COMMIT", raising=False)
    assert origin.commit() is None
    monkeypatch.setenv("CREDALENS_COMMIT", "abc")
    assert origin.commit() == "abc"


def test_a_source_tree_that_is_not_installed_knows_its_version(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(origin, "version", missing)
    assert origin.versions(("torch",)) == {"python": platform.python_version(), "credalens": credalens.__version__}
