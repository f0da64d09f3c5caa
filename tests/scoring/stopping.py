"""Runs that stop half-way, for tests."""

from __future__ import annotations

import os


class Stop(BaseException):
    """Not an Exception, so that nothing on the way may take it for bad input."""


def stop_after(monkeypatch, name: str, calls: int):
    """Let ``os.<name>`` work a few times and then stop the run."""
    real, left = getattr(os, name), [calls]

    def stopping(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, stopping)
