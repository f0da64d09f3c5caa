"""Do two versions of the source give the same numbers? ``python -m benchmarks.compare_versions OLD/src NEW/src``.

Each version computes everything on the same million rows, random and adversarial, in a process of its own; what differs by
more than 1e-12 is listed with its row. Kinds of rows: spread evenly, peaked, votes in tenths, near-ties, one-hots,
permutations of one another, members that agree, float32.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Values = dict[str, NDArray[Any]]

ROWS: Final = {
    2: 20_000,
    3: 20_000,
    4: 10_000,
    5: 10_000,
    8: 20_000,
    10: 30_000,
    11: 10_000,
    17: 8_000,
    33: 4_000,
    100: 2_500,
    1000: 60,
}
HARTLEY_ROWS: Final = {
    2: 20_000,
    3: 20_000,
    4: 10_000,
    5: 10_000,
    8: 5_000,
    10: 2_000,
    11: 1_000,
    17: 100,
    33: 50,
    100: 20,
    1000: 2,
}
RULES: Final = ("interval_dominance", "maximality", "e_admissibility")
CODE: Final = """
import sys
sys.path.insert(0, {source!r})
from benchmarks.compare_versions import compute
compute({file!r})
"""
ALLOWED: Final = {"float64": 1e-12, "float32": 3e-7}  # of results in float32 the last digit may differ


def kinds_of_rows(classes: int, rows: int, rng: np.random.Generator, /) -> Iterator[tuple[str, NDArray[Any]]]:
    """Kind of rows -> members (members, rows, classes)."""
    shape = (5, rows)
    yield "even", rng.dirichlet(np.ones(classes), shape)
    yield "sparse", rng.dirichlet(np.full(classes, 0.05), shape)
    logits = 3 * rng.normal(size=(1, rows, classes)) + rng.normal(size=(5, rows, classes))
    peaked = np.exp(logits - logits.max(-1, keepdims=True))
    peaked /= peaked.sum(-1, keepdims=True)
    yield "peaked", peaked
    yield "float32", peaked.astype(np.float32)
    yield "votes", rng.multinomial(10, np.ones(classes) / classes, shape) / 10
    yield "near-ties", _normalised(np.round(peaked, 2) + 1e-9 * rng.random(peaked.shape))
    yield "one-hot", np.eye(classes)[rng.integers(0, classes, shape)]
    yield "permutations", rng.permuted(np.broadcast_to(peaked[:1], peaked.shape), axis=-1)
    yield "agreeing", np.broadcast_to(peaked[:1], peaked.shape).copy()


def _normalised(x: NDArray[Any]) -> NDArray[Any]:
    return x / x.sum(-1, keepdims=True)


def compute(target: Path, /) -> None:
    """Everything that must not change, by the version that this process imports, into one file."""
    values: dict[str, Any] = _metrics()
    for classes, rows in ROWS.items():
        rng = np.random.default_rng(classes)
        for kind, members in kinds_of_rows(classes, rows, rng):
            for name, value in _measures(members, HARTLEY_ROWS[classes]).items():
                values[f"{name}, {kind}, C = {classes}"] = value
    np.savez(target, **values)


def _measures(members: NDArray[Any], hartley_rows: int) -> Values:
    import credalens

    prediction = credalens.wrap(members)
    fields = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
    values = {name: np.asarray(getattr(prediction, name)) for name in fields}
    values |= {f"classical {name}": getattr(prediction.classical, name) for name in ("total", "aleatoric", "epistemic")}
    values |= {f"set, {rule}": prediction.predict_set(rule) for rule in RULES}
    lower, upper = credalens.probability_intervals(members.astype(np.float64))
    values["upper entropy"] = credalens.upper_entropy(lower, upper)
    values["lower entropy"] = credalens.lower_entropy(lower, upper)
    few = slice(hartley_rows)
    values["hartley"] = credalens.generalized_hartley(lower[few], upper[few])
    return values | {f"decision, {rule}": credalens.credal_decision(lower, upper, rule) for rule in RULES}


def _metrics() -> Values:
    from credalens import evaluation

    rng = np.random.default_rng(0)
    id_scores, ood_scores = rng.normal(size=400).round(1), rng.normal(1, 1, size=300).round(1)
    probs, labels = rng.dirichlet(np.ones(5), 500), rng.integers(0, 5, 500)
    results = {
        "ood": evaluation.ood_metrics(id_scores, ood_scores),
        "calibration": evaluation.calibration_metrics(probs, labels),
        "interval": evaluation.auroc_interval(id_scores, ood_scores),
        "sets": evaluation.set_metrics(probs > 0.2, labels),
        "bootstrap": evaluation.bootstrap_interval("auroc", id_scores, ood_scores, seed=1),
    }
    return {
        f"{name} {key}": np.asarray(value, float)
        for name, result in results.items()
        for key, value in result.as_dict().items()
        if isinstance(value, int | float)
    }


def compare(old: Values, new: Values, /) -> list[str]:
    """A line for everything that differs."""
    lines = [f"{name}: only in one version" for name in sorted(old.keys() ^ new.keys())]
    for name in sorted(old.keys() & new.keys()):
        a, b = old[name].astype(np.float64), new[name].astype(np.float64)
        if a.shape != b.shape or old[name].dtype != new[name].dtype:
            lines.append(f"{name}: {a.shape} {old[name].dtype} became {b.shape} {new[name].dtype}")
            continue
        difference = np.where(a == b, 0.0, np.abs(a - b))
        if not difference.max(initial=0.0) <= ALLOWED.get(str(old[name].dtype), 0.0):
            place = np.unravel_index(np.argmax(difference), a.shape) if a.ndim else ()
            lines.append(
                f"{name}: {a[place]!r} became {b[place]!r} at {tuple(map(int, place))}, {(difference > 1e-12).sum()} differ"
            )
    return lines


def main(old: str, new: str) -> int:
    """Run both versions and print what differs; the number of such lines."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("old.npz", "new.npz")]
        for source, file in zip((old, new), files, strict=True):
            code = CODE.format(source=source, file=str(file))
            subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
        with np.load(files[0]) as a, np.load(files[1]) as b:
            lines = compare(dict(a), dict(b))
            rows = sum(len(a[name]) for name in a.files if name.startswith("total,"))
    print("\n".join(lines) or f"no difference on {rows:,} rows")  # noqa: T201
    return len(lines)


if __name__ == "__main__":
    raise SystemExit(min(1, main(*sys.argv[1:3])))
