"""Do two versions write the same files, reports and answers? ``python -m benchmarks.compare_outputs OLD/src NEW/src``.

Each version makes guards, sets, intervals, alarms, hulls, all scores, evaluations, scored tables and answers of the server
from the same seeded predictions, in a process of its own. Numbers that differ by more than 1e-12 are listed with
their place, and so is every text that differs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.compare_versions import kinds_of_rows

CODE: Final = """
import sys
sys.path.insert(0, {source!r})
from benchmarks.compare_outputs import write_outputs
write_outputs({file!r})
"""
TOLERANCE: Final = 1e-12
CLASSES: Final = (2, 3, 10, 17)
ROWS: Final = 400


def write_outputs(target: str, /) -> None:
    """Everything that must not change, by the version that this process imports, as one JSON file."""
    outputs: dict[str, Any] = {}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, members, labels in _cases():
            outputs[name] = {
                "scores": _scores(members),
                "hull": _hull(members),
                "guards": _guards(members, labels, Path(folder)),
                "evaluation": _evaluation(members, labels),
                "server": _answers(members, labels),
                "scored": _scored(members, labels, Path(folder)),
            }
    Path(target).write_text(json.dumps(outputs, default=_plain))


def _cases() -> Iterator[tuple[str, NDArray[Any], NDArray[np.int64]]]:
    for classes in CLASSES:
        rng = np.random.default_rng(classes)
        for kind, members in kinds_of_rows(classes, ROWS, rng):
            likely = members.mean(0).argmax(-1)
            labels = np.where(rng.random(ROWS) < 0.85, likely, rng.integers(0, classes, ROWS))
            yield f"{kind}, C = {classes}", members, labels.astype(np.int64)


def _scores(members: NDArray[Any]) -> dict[str, Any]:
    from credalens import MemberSummary, wrap
    from credalens.core.scores import SCORES

    prediction, summary = wrap(members), MemberSummary()
    for member in members:
        summary.update(member)
    merged = summary.prediction()
    values = {name: prediction.score(name) for name in SCORES if name != "hartley" or members.shape[-1] <= 10}
    return values | {f"{name} of a summary": merged.score(name) for name in ("total", "epistemic", "mean_total")}


def _hull(members: NDArray[Any]) -> dict[str, Any]:
    from credalens import ConvexHull, maximum_mean_imprecision, probability_intervals

    hull, few = ConvexHull(members), slice(20)
    lower, upper = probability_intervals(members)
    values = {"upper": hull.upper_entropy(), "lower": hull.lower_entropy()}
    return values | {"imprecision": maximum_mean_imprecision(lower[few], upper[few])}


def _guards(members: NDArray[Any], labels: NDArray[Any], folder: Path) -> dict[str, Any]:
    from credalens import wrap
    from credalens.guard import ConformalSets, CoveringIntervals, DriftAlarm, Guard
    from credalens.guard.conformal_sets import NONCONFORMITY

    half, outputs = len(labels) // 2, {}
    known, new = wrap(members[:, :half]), wrap(members[:, half:])
    makers: dict[str, Any] = {
        "alarm only": lambda: Guard.fit(known),
        "mean_total": lambda: Guard.fit(known, score="mean_total", false_alarm_rate=0.1),
        "error": lambda: Guard.fit(known, labels[:half], max_error=0.3),
        "class error": lambda: Guard.fit(known, labels[:half], max_class_error=0.6, class_by="predicted"),
        "offers": lambda: Guard.fit(
            known, labels[:half], max_error=0.3, sets=ConformalSets.fit(known, labels[:half], alpha=0.2)
        ),
    }
    for name, make in makers.items():
        outputs[name] = _tried(lambda make=make: _guard_output(make(), new, folder))
    for method in NONCONFORMITY:
        outputs[f"sets, {method}"] = _tried(
            lambda method=method: ConformalSets.fit(known, labels[:half], method=method).predict_set(new)
        )
    shares = np.eye(members.shape[-1])[labels[:half]] * 8 + 1
    covering = CoveringIntervals.fit(known, shares)
    outputs["intervals"] = [covering.margin, covering.raw_coverage]
    alarm = DriftAlarm(known.total, seed=3)
    alarm.update(new.total)
    return outputs | {"drift": [alarm.value, alarm.alarm]}


def _guard_output(guard: Any, new: Any, folder: Path) -> dict[str, Any]:
    decisions, file = guard.decide(new), folder / "guard.json"
    guard.save(file)
    saved = json.loads(file.read_text())
    file.unlink()
    fields = {"accepted": decisions.accepted, "p_value": decisions.p_value, "reason": decisions.reason}
    return fields | {"prediction": decisions.prediction, "set": decisions.set, "file": saved}


def _evaluation(members: NDArray[Any], labels: NDArray[Any]) -> Any:
    from credalens import evaluate

    rng, classes = np.random.default_rng(1), members.shape[-1]
    strange = rng.dirichlet(np.ones(classes), (len(members), 150))
    groups = {"site": rng.choice(["a", "b"], len(labels))}

    def evaluated() -> Any:
        evaluation = evaluate(members, {"strange": strange}, labels=labels, groups=groups, replicates=40)
        return [json.loads(evaluation.to_json()), evaluation.table()]

    return _tried(evaluated)


def _answers(members: NDArray[Any], labels: NDArray[Any]) -> Any:
    from starlette.testclient import TestClient

    from credalens import wrap
    from credalens.core.scores import SCORES
    from credalens.guard import Guard
    from credalens.serve import app, member_outputs

    few = members[:, :20].astype(np.float64)
    tensor = {"name": "probs", "datatype": "FP64", "shape": list(few.shape), "data": few.ravel().tolist()}
    names = ["prediction", "probability", "lower", "upper", "mean", "set", *(s for s in SCORES if s != "hartley")]
    body = {"inputs": [tensor], "outputs": [{"name": name} for name in names]}
    headers = {"Host": "localhost"}
    with TestClient(app(member_outputs(), Guard.fit(wrap(members)))) as client:
        answer = client.post("/v2/models/credal/infer", json=body, headers=headers).json()
        plain = client.post("/v2/models/credal/infer", json={"inputs": [tensor]}, headers=headers).json()
    return [answer, plain]


def _scored(members: NDArray[Any], labels: NDArray[Any], folder: Path) -> Any:
    import pyarrow.parquet as pq

    from credalens.cli import main

    os.chdir(folder)  # reports name their files as the command line does
    source, table, report = Path("id.npz"), Path("scored.parquet"), Path("report")
    np.savez(source, probs=members, labels=labels)
    for command in (["score", str(source), "-o", str(table)], ["guard", "fit", str(source), "-o", "g.json"]):
        _run(main, command)
    _run(main, ["evaluate", "--id", str(source), "-o", str(report)])
    rows = pq.read_table(table).to_pylist() if table.exists() else None
    guard, found = Path("g.json"), report / "report.json"
    outputs = [rows, *(json.loads(file.read_text()) if file.exists() else None for file in (guard, found))]
    for file in (table, guard):
        file.unlink(missing_ok=True)
    shutil.rmtree(report, ignore_errors=True)
    return outputs


def _run(main: Any, command: list[str]) -> None:
    sys.argv = ["credalens", *command]
    with suppress(SystemExit):
        main()


def _tried(make: Any) -> Any:
    try:
        return make()
    except ValueError as error:
        return f"ValueError: {error}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else np.asarray(value).tolist()


def differences(old: Any, new: Any, place: str = "", /) -> Iterator[str]:
    """A line for everything that differs, with its place."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (f"{place}/{key}: only in one version" for key in sorted(old.keys() ^ new.keys()))
        for key in sorted(old.keys() & new.keys()):
            yield from differences(old[key], new[key], f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{place}/{index}")
    elif isinstance(old, float) and isinstance(new, float):
        if not (old == new or abs(old - new) <= TOLERANCE * max(1.0, abs(old))):
            yield f"{place}: {old!r} became {new!r}"
    elif old != new:
        yield f"{place}: {str(old)[:300]!r} became {str(new)[:300]!r}"


def main(old: str, new: str) -> int:
    """Run both versions and print what differs; the number of such lines."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("old.json", "new.json")]
        for source, file in zip((old, new), files, strict=True):
            code = CODE.format(source=str(Path(source).resolve()), file=str(file))
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        texts = [file.read_text() for file in files]
    lines = list(differences(*map(json.loads, texts)))
    print("\n".join(lines[:200]) or f"no difference in {len(texts[0]):,} characters")  # noqa: T201
    return len(lines)


if __name__ == "__main__":
    raise SystemExit(min(1, main(*sys.argv[1:3])))
