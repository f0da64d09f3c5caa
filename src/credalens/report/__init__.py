"""The report of an evaluation: a page, its files, and charts as PNG and SVG."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["render_html", "write_comparison", "write_report"]
MODULES = {"render_html": "page", "write_comparison": "comparison", "write_report": "files"}


def __getattr__(name: str) -> Any:
    """Import when it is asked for, so that tables for the terminal need none of what pages need."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
