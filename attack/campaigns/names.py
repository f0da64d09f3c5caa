"""Names of data sets, classes, groups and files that no terminal, page or drawing should meet as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from attack.case import Case, expect
from credalens.checks.options import UNSAFE, escaped

SECONDS = 300
PIECES = (
    "\0", "\x1b[31m", "\x1b]0;x\a", "\r", "\t", "\x7f", "\x9b2J", "\u2028", "\u202e", "\ud800", "\udcff", "\ufffe", "\uffff",
    "\ufeff", "<script>alert(1)</script>", "</script>", "<!--", "-->", "]]>", "{{ 7 }}", "&amp;", '"', "'", "\\", "a/b", "..",
    "ä", "\U0001f600", "x" * 300,
)  # fmt: skip
SCRIPT = """
import json, sys
import numpy as np
from credalens import evaluate

data, options = np.load(sys.argv[1]), json.loads(open(sys.argv[2]).read())
groups = {options["column"]: [options["group"], "w"] * (len(data["labels"]) // 2)}
found = evaluate(
    data["known"], {options["ood"]: data["other"]}, labels=data["labels"], replicates=40, id_name=options["id"],
    class_names=[options["class"], "b", "c"], groups=groups,
)
found.report(sys.argv[3], title=options["title"], made=[options["made"]], figures=True)
print(found.table())
"""


def attack(case: Case) -> None:
    """Hostile names of data sets, classes, groups: the report is written, text in every file, nothing steers a terminal."""
    names = {what: _name(case) for what in ("ood", "class", "id", "column", "group", "title", "made")}
    names["id"] += " (ID)"
    done = _evaluate(case, names)
    expect(done.returncode == 0, f"{names!r}: ended with {done.returncode}: {done.stderr[-500:]!r}")
    expect(not UNSAFE.search(done.stdout.replace("\n", "")), f"{names!r}: the table steers the terminal")
    written = _text(case.folder / "out" / "report.json")
    result = json.loads(written)
    safe = {what: escaped(name) for what, name in names.items()}
    data = result["data"]
    found = (data["ood"][0]["name"], data["class_names"][0], data["id"]["name"], result["groups"][1]["column"])
    expect(found == tuple(safe[what] for what in ("ood", "class", "id", "column")), f"{names!r} became {found!r}")
    page = _text(case.folder / "out" / "report.html")
    expect(page.count("<script") == 6, f"{names!r}: the page has {page.count('<script')} scripts")
    for path in (case.folder / "out").rglob("*.svg"):
        expect(not re.search("<script", _text(path)), f"{names!r}: {path.name} has a script")


def _name(case: Case) -> str:
    return "n" + "".join(case.choose(*PIECES) for _ in range(case.between(1, 3)))


def _evaluate(case: Case, names: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a drawing library may abort it."""
    arrays: dict[str, Any] = {
        "known": case.rng.dirichlet([20, 2, 1], (3, 30)),
        "other": case.rng.dirichlet([1, 1, 1], (3, 30)),
        "labels": np.arange(30) % 3,
    }
    np.savez(case.folder / "data.npz", **arrays)
    (case.folder / "names.json").write_text(json.dumps(names), encoding="ascii")
    paths = [case.folder / name for name in ("data.npz", "names.json", "out")]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, *map(os.fspath, paths)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:surrogatepass"}
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="surrogatepass",
        timeout=SECONDS,
        check=False,
        env=environment,
    )


def _text(path: Path) -> str:
    """Text as UTF-8 holds it, which lone surrogates are not."""
    return path.read_bytes().decode()
