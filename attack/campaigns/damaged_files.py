"""Files of predictions that are damaged, hostile or too large."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attack.case import Case, DefectError, expect
from attack.damage import SPRUNG, array_of_traps, damaged
from attack.ensembles import ensemble
from attack.read_damaged import MAX_BYTES
from credalens.storage import open_predictions, read_labels, save_predictions

MUTANTS = 60
MEMORY = 4 * MAX_BYTES  # more than after a good file was read
SECONDS = 300
SUFFIXES = (".npy", ".npz", ".parquet", ".safetensors")


def attack(case: Case) -> None:
    """Damaged npy, npz, Parquet and safetensors: an error that names the file, or the right data; no code, little memory."""
    suffix = case.choose(*SUFFIXES)
    good = case.folder / f"good{suffix}"
    _write(case, good)
    causes = {good.name: "no damage", **(_hostile if case.between(0, 7) == 0 else _mutants)(case, good)}
    outcomes = _outcomes([case.folder / name for name in causes])
    original = outcomes[good.name]["ours"].get("content")
    expect(original is not None, f"a good {suffix} is refused: {outcomes[good.name]['ours']}")
    for name, cause in causes.items():
        _check(f"{name} ({cause})", outcomes[name], original)
    expect(not (case.folder / SPRUNG).exists(), "code in a file was run")


def _write(case: Case, path: Path) -> None:
    probs = ensemble(case, rows=case.between(2, 40), classes=(2, 6)).astype(case.choose("float32", "float64"))
    labels = (
        case.rng.integers(0, probs.shape[-1], probs.shape[1]) if path.suffix != ".npy" and case.between(0, 1) else None
    )
    if path.suffix == ".npz" and case.between(0, 1):
        arrays: dict[str, Any] = {"probs": probs} if labels is None else {"probs": probs, "labels": labels}
        np.savez_compressed(path, **arrays)
    else:
        save_predictions(path, probs, labels)


def _mutants(case: Case, good: Path) -> dict[str, str]:
    content, causes = good.read_bytes(), {}
    for number in range(MUTANTS):
        name = f"{number:03d}{good.suffix}"
        causes[name], mutant = damaged(case, content)
        (case.folder / name).write_bytes(mutant)
    return causes


def _hostile(case: Case, good: Path) -> dict[str, str]:
    """Pickles where arrays are expected, and files that say they are much larger than they are."""
    np.save(case.folder / "traps.npy", array_of_traps(case))
    np.savez(case.folder / "traps.npz", probs=array_of_traps(case))
    np.savez_compressed(case.folder / "small_traps.npz", probs=array_of_traps(case))
    _write_npz_bomb(case.folder / "bomb.npz", good)
    _write_parquet_bomb(case.folder / "bomb.parquet")
    names = ("traps.npy", "traps.npz", "small_traps.npz", "bomb.npz", "bomb.parquet")
    return dict.fromkeys(names, "hostile")


def _write_npz_bomb(path: Path, good: Path) -> None:
    """The good arrays, and one that nobody asks for and that memory could not hold."""
    predictions = open_predictions(good)
    arrays: dict[str, Any] = {"probs": predictions.read(), "other": np.zeros(MEMORY // 8 + (1 << 20))}
    if predictions.has_labels:
        arrays["labels"] = read_labels(good)
    np.savez_compressed(path, **arrays)


def _write_parquet_bomb(path: Path) -> None:
    """A few kilobytes that stand for more than memory could hold."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.full(1 << 21, 0.5)), 2)
    table = pa.table({"probs": pa.FixedSizeListArray.from_arrays(values, 1)})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(MEMORY // (8 << 21) + 1):
            writer.write_table(table, row_group_size=len(table))


def _outcomes(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """By file: ``ours`` and ``reference``. Where the reference reader dies, the next process goes on after it."""
    outcomes: dict[str, dict[str, Any]] = {}
    while left := [path for path in paths if path.name not in outcomes]:
        code, errors = _read(paths[0], left, outcomes)
        died = next((path.name for path in left if "ours" not in outcomes.get(path.name, {})), None)
        if died is not None and not any(
            "reference" not in outcomes[path.name] for path in left if path.name in outcomes
        ):
            raise DefectError(f"the process that read {died} ended with {code}: {errors[-300:]}")
    return outcomes


def _read(good: Path, paths: list[Path], outcomes: dict[str, dict[str, Any]]) -> tuple[int, str]:
    names = [str(path) for path in dict.fromkeys([good, *paths])]
    command = [sys.executable, "-m", "attack.read_damaged", str(MEMORY), *names]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    for line in process.stdout.splitlines():
        found = json.loads(line)
        outcomes.setdefault(found.pop("file"), {}).update(found)
    return process.returncode, process.stderr


def _check(name: str, outcome: dict[str, Any], original: list[str]) -> None:
    ours = outcome["ours"]
    if "error" in ours:
        expect(ours["fitting"], f"{name} gives {ours['error'][:500]}")
    else:
        expect(ours["content"] in (original, outcome.get("reference")), f"{name} is read as other data")
