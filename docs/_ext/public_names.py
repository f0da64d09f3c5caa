"""Docstrings as they are read in a terminal, made valid reStructuredText for the reference."""

import re

from sphinx.application import Sphinx


def escape_stars(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """(*batch, classes) is a shape, not the begin of an emphasis; literals stay as they are."""
    for place, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [re.sub(r"\*(?=batch|samples)", r"\\*", part) for part in parts[::2]]
        lines[place] = "``".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Call it for every docstring."""
    app.connect("autodoc-process-docstring", escape_stars)
    return {"parallel_read_safe": True}
