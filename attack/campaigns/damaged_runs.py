"""Manifests and parts of a stopped run that are damaged before it goes on.

Parts in an output folder are results already: a run that goes on reads their footers alone, so that they are cut short here
and not changed inside.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

from attack.case import Case, expect
from attack.damage import SPRUNG, cut_end, damaged
from attack.scoring_runs import Run, first_difference, score, tree, write_input

JSONS = (
    "null",
    "[]",
    "3",
    '"text"',
    "{}",
    '{"settings": null}',
    '{"settings": 3}',
    "NaN",
    "[" * 100_000,
    '{"a":' * 100_000,
    "",
)


class StopError(BaseException):
    """Not an Exception, so that nothing on the way takes it for bad input."""


def attack(case: Case) -> None:
    """Damaged manifests and parts: the run is refused with an error that says how to go on, or ends with the same bytes."""
    run = write_input(case, folder=True)
    whole, out = run.at(case.folder / "whole"), run.at(case.folder / "out")
    score(whole)
    _stop(case, out)
    path = case.choose(*(path for path in sorted(case.folder.glob("out*/**/*")) if path.is_file()))
    cause = _damage(case, path)
    try:
        score(out)
    except (ValueError, OSError) as error:
        expect(len(str(error)) > 20, f"{path.name} ({cause}): the error says too little: {error!r}")
        _begin_anew(out)
    difference = first_difference(tree(out.target), tree(whole.target))
    expect(not difference, f"{path.name} ({cause}) changes the result: {difference}")
    expect(not (case.folder / SPRUNG).exists(), "code in a file was run")


def _begin_anew(run: Run) -> None:
    """By ``restart``; where that too is refused, the user deletes what is damaged."""
    try:
        score(run, restart=True)
    except ValueError as error:
        expect("delete" in str(error), f"no way to go on: {error}")
        shutil.rmtree(run.work_folder())
        score(run)


def _stop(case: Case, run: Run) -> None:
    """Stop after some parts, or after all."""
    parts = case.between(1, 5)

    def progress(what: str, done: int, of: int) -> None:
        if done >= parts:
            raise StopError

    with suppress(StopError):
        score(run, progress=progress)


def _damage(case: Case, path: Path) -> str:
    if path.suffix == ".json" and case.between(0, 2) == 0:
        text = case.choose(*JSONS)
        path.write_text(text)
        return text[:20]
    if path.suffix == ".json" and case.between(0, 1):
        return _other_setting(case, path)
    if path.suffix == ".parquet":
        path.write_bytes(cut_end(case, path.read_bytes()))
        return "cut_end"
    cause, content = damaged(case, path.read_bytes())
    path.write_bytes(content)
    return cause


def _other_setting(case: Case, path: Path) -> str:
    manifest = json.loads(path.read_text())
    name = case.choose(*manifest["settings"])
    manifest["settings"][name] = case.choose(None, 3, "other", [], {}, 1e308, True)
    path.write_text(json.dumps(manifest))
    return f"setting {name} is {manifest['settings'][name]!r}"
