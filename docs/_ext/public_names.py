"""The reference: docstrings as valid reStructuredText, examples with imports, signatures without private fields."""

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
    """Leave private fields out of the signature of a class: callers never pass them. Default values as they are written."""
    signature = signature and re.sub(r"(, )?\b_\w+(=[^,()]*)?", "", signature)
    return signature and re.sub(r"mappingproxy\((.*?)\)|<function (\w+)>", r"\1\2", signature), result


IMPORTS = {"np": "import numpy as np", "nn": "from torch import nn", "torch": "import torch"}


def add_imports(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Import in an example what its module imports already, so that it runs where it is pasted."""
    code = [line for line in lines if re.match(r" *(>>>|\.\.\.) ", line)]
    missing = [
        line
        for name, line in IMPORTS.items()
        if re.search(rf"(?<![\w.]){name}\.", "\n".join(code))
        and not re.search(rf"import .*\b{name}\b", "\n".join(code))
    ]
    if missing:
        first = lines.index(code[0])
        lines[first:first] = [code[0].partition(">>>")[0] + f">>> {line}" for line in missing]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all for every public name."""
    app.connect("autodoc-process-docstring", escape_stars)
    app.connect("autodoc-process-docstring", add_imports)
    app.connect("autodoc-process-signature", hide_private)
    return {"parallel_read_safe": True}
