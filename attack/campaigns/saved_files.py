"""Guards, sets, intervals, alarms, predictions and thresholds in files, and what stands beside predictions, damaged."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import credalens
from attack.case import Case, DefectError, expect
from attack.damage import SPRUNG, array_of_traps, damaged
from credalens.cli.side_files import read_class_names, read_groups, read_images
from credalens.evaluation import select_threshold
from credalens.evaluation.thresholds import Threshold
from credalens.guard import ConformalSets, CoveringIntervals, DriftAlarm, Guard
from credalens.storage.saved import checksum

MUTANTS = 40
ROWS = 40
MAX_BYTES = 64 << 20
HOSTILE: tuple[Any, ...] = (
    10**400,
    -(10**400),
    2**64,
    -1,
    0.5,
    True,
    None,
    "",
    "inf",
    "\ud800",
    [],
    {},
    [[[]]],
    [10**400],
)
PYTHON_2 = "Reading `.npy` or `.npz` file required additional header parsing"  # what NumPy thinks of a damaged header
Load = Callable[[Path], Any]


def attack(case: Case) -> None:
    """Damaged guards, predictions, pictures, tables and names: a ValueError that names the file, or content; no code is run."""
    write, load, suffix = case.choose(*KINDS)
    good = case.folder / f"good{suffix}"
    write(case, good)
    load(good)
    content = good.read_bytes()
    for number in range(MUTANTS):
        path = case.folder / f"{number:03d}{suffix}"
        cause, mutant = _forged(case, content) if suffix == ".json" and case.between(0, 1) else damaged(case, content)
        path.write_bytes(mutant)
        _check(path, load, cause)
    expect(not (case.folder / SPRUNG).exists(), "code in a file was run")


def _check(path: Path, load: Load, cause: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=PYTHON_2)
            load(path)
    except ValueError as error:
        expect(path.name in str(error), f"{path.name} ({cause}) is not named: {error}")
    except Exception as error:
        raise DefectError(f"{path.name} ({cause}) gives {type(error).__name__}: {error}") from error


def _forged(case: Case, content: bytes) -> tuple[str, bytes]:
    """A hostile value of a field under a checksum that is right."""
    fields = json.loads(content)
    name = case.choose(*(name for name in fields if name not in ("format", "checksum")))
    fields[name] = case.choose(*HOSTILE)
    if fields.pop("checksum", None) is not None:
        fields["checksum"] = checksum(fields)
    return f"{name} is {fields[name]!r}"[:60], json.dumps(fields).encode()


def _members(case: Case) -> Any:
    return case.rng.dirichlet([20, 2, 1], (case.between(2, 5), ROWS))


def _guard(case: Case, path: Path) -> None:
    Guard.fit(credalens.wrap(_members(case)), score="mean_total", false_alarm_rate=0.1).save(path)


def _sets(case: Case, path: Path) -> None:
    ConformalSets.fit(credalens.wrap(_members(case)), case.rng.integers(0, 3, ROWS), alpha=0.2).save(path)


def _intervals(case: Case, path: Path) -> None:
    answers = case.rng.multinomial(20, [0.8, 0.1, 0.1], ROWS)
    CoveringIntervals.fit(credalens.wrap(_members(case)), answers, alpha=0.2).save(path)


def _alarm(case: Case, path: Path) -> None:
    alarm = DriftAlarm(case.rng.normal(size=ROWS), method=case.choose("online", "fixed"))
    alarm.update(case.rng.normal(size=case.between(1, 20)))
    alarm.save(path)


def _prediction(case: Case, path: Path) -> None:
    credalens.wrap(_members(case)).save(path)


def _threshold(case: Case, path: Path) -> None:
    select_threshold(credalens.wrap(_members(case)).total).save(path)


def _images(case: Case, path: Path) -> None:
    images = case.rng.integers(0, 256, (ROWS, 4, 4)).astype(np.uint8)
    if path.suffix == ".npy":
        np.save(path, images if case.between(0, 3) else np.asfortranarray(images))
    else:
        case.choose(np.savez, np.savez_compressed)(path, id=images, ood=images / 255)
    np.savez(path.with_name("traps.npz"), id=array_of_traps(case))
    _check(path.with_name("traps.npz"), _read_images, "pickles")


def _table(case: Case, path: Path) -> None:
    names = case.choose(["a", "b"], ["ä", "\N{ZERO WIDTH NO-BREAK SPACE}b", "c\x1b"], ["x" * 1000])
    columns = {"site": [case.choose(*names) for _ in range(ROWS)], "n": list(range(ROWS))}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, write_page_checksum=bool(case.between(0, 1)))
    else:
        lines = ["site,n", *(f"{site},{n}" for site, n in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines), encoding=case.choose("utf-8", "utf-8-sig"))


def _class_names(case: Case, path: Path) -> None:
    path.write_text("cat\ndog\nä\n", encoding=case.choose("utf-8", "utf-8-sig"))


def _read_images(path: Path) -> Any:
    return read_images(path, max_bytes=MAX_BYTES)


def _read_groups(path: Path) -> Any:
    return read_groups(path, max_bytes=MAX_BYTES)


def _read_class_names(path: Path) -> Any:
    return read_class_names(path, 3)


KINDS: tuple[tuple[Callable[[Case, Path], None], Load, str], ...] = (
    (_guard, Guard.load, ".json"),
    (_sets, ConformalSets.load, ".json"),
    (_intervals, CoveringIntervals.load, ".json"),
    (_alarm, DriftAlarm.load, ".json"),
    (_threshold, Threshold.load, ".json"),
    (_prediction, credalens.CredalPrediction.load, ".npz"),
    (_images, _read_images, ".npz"),
    (_images, _read_images, ".npy"),
    (_table, _read_groups, ".csv"),
    (_table, _read_groups, ".parquet"),
    (_class_names, _read_class_names, ".txt"),
)
