"""Reproductions write many small files; tests of their content need not wait for the disk."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def hurry(monkeypatch):
    """Waiting for the disk after each of many small files would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
