"""The reference: docstrings as they are read in a terminal, as valid reStructuredText; signatures without private fields."""

import re

from sphinx.application import Sphinx


def escape_stars(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape the star of a shape such as (*batch, classes), which would begin an emphasis; literals stay as they are."""
    for place, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [re.sub(r"\*(?=batch|samples)", r"\\*", part) for part in parts[::2]]
        lines[place] = "``".join(parts)


def hide_private(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, result: object
):
    """Leave private fields out of the signature of a class: callers never pass them."""
    return signature and re.sub(r"(, )?\b_\w+(=[^,()]*)?", "", signature), result


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both for every public name."""
    app.connect("autodoc-process-docstring", escape_stars)
    app.connect("autodoc-process-signature", hide_private)
    return {"parallel_read_safe": True}
