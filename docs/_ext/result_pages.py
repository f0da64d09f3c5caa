"""The pages of measured results, copied from `results/` beside the sources when the site is built."""

import re
import shutil
from functools import partial
from pathlib import Path

from sphinx.application import Sphinx

PAGES = ("All entries together <comparisons>", "Measured again <repeated>", "Machines <machines>")
KEPT = {".md", ".json", ".jsonl", ".svg", ""}
PICTURE = "```{{figure}} {}\n:alt: {}\n:figclass: {}\n```"
CONTENTS = "\n```{{toctree}}\n:hidden:\n\n{}\n```\n"


def copy_results(app: Sphinx) -> None:
    """Bring the folder; tables, figures and three pages more are listed under their index, the others only linked."""
    source, target = Path(app.srcdir).parent / "results", Path(app.srcdir) / "results"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=lambda _, names: [name for name in names if Path(name).suffix not in KEPT])
    for page in target.rglob("*.md"):
        figure = partial(as_figure, page.parent)
        text = re.sub(r"^!\[(.*)\]\((.*\.svg)\)$", figure, page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        page.write_text(f"---\norphan: true\n---\n\n{text}", encoding="utf-8")
    names = {folder: [page.stem for page in (target / folder).glob("*.md")] for folder in ("tables", "figures")}
    entries = [f"{name} <{folder}/{name}>" for folder in names for name in sorted(names[folder], key=str.lower)]
    with (target / "README.md").open("a", encoding="utf-8") as index:
        index.write(CONTENTS.format("\n".join([*entries, *PAGES])))


def as_figure(folder: Path, picture: re.Match[str]) -> str:
    """A figure for a picture; one with several panels in a row has room to scroll on a phone."""
    name, path = picture.groups()
    width = re.search(r'width="([\d.]+)pt"', (folder / path).read_text(encoding="utf-8"))
    return PICTURE.format(path, name, "panels" if width and float(width[1]) > 500 else "panel")


def link_into_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Pages of `docs/` name result files as they lie in the repository. A number stays with its deviation."""
    source[0] = source[0].replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    if "/" not in docname:
        source[0] = source[0].replace("](../results/", "](results/")


def setup(app: Sphinx) -> dict[str, bool]:
    """Before anything is read."""
    app.connect("builder-inited", copy_results)
    app.connect("source-read", link_into_site)
    return {"parallel_read_safe": True}
