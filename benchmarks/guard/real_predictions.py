"""The guard on predictions of real networks, fitted on half of the test images.

`python -m benchmarks.guard.real_predictions DATA PREDICTIONS`: DATA holds cifar10_test.npz and cifar100_test.npz with their
labels and cifar10h_counts.npy. CIFAR-10: the shipped predictions of five ResNet-18. CIFAR-100: PREDICTIONS holds a folder
for each network with cifar100.npy, svhn.npy and tiny-imagenet.npy; networks in the order of their seeds form ensembles of
five. Sizes and coverages are means over random halves. Writes results/guard/real_predictions.json.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.guard.drift_streams import Draw, delays
from benchmarks.provenance import provenance
from credalens import CredalPrediction, wrap
from credalens.datasets import cifar10_ensemble
from credalens.guard import CoveringIntervals, compare_sets
from credalens.guard.covering_intervals import largest_violations

TARGET: Final = Path("results/guard/real_predictions.json")
ALPHAS: Final = {"CIFAR-10": (0.05, 0.02, 0.01), "CIFAR-100": (0.2, 0.1, 0.05)}
SHARES: Final = (0.05, 0.1, 0.2, 0.5)
SCORES: Final = ("total", "epistemic", "mean_total", "mean_epistemic")
HALVES, STREAMS, IMAGES = 30, 100, 10_000


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Predictions of one ensemble on its test set and on two others, and the true classes."""

    known: CredalPrediction
    labels: NDArray
    ood: dict[str, CredalPrediction]

    def halves(self, repeats: int) -> Iterator[tuple[NDArray, NDArray]]:
        """Random halves of the test images."""
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(len(self.labels))
            yield order[: len(order) // 2], order[len(order) // 2 :]


def read_ensembles(data: Path, predictions: Path) -> dict[str, list[Ensemble]]:
    """The ensembles by data set."""
    shipped = cifar10_ensemble()
    ood = {"SVHN": wrap(shipped.svhn[:, :IMAGES]), "Tiny-ImageNet": wrap(shipped.tiny_imagenet)}
    ten = Ensemble(wrap(shipped.cifar10), labels_of(data, "cifar10"), ood)
    folders = sorted(predictions.iterdir(), key=lambda folder: int(re.findall(r"seed(\d+)", folder.name)[0]))
    groups = [folders[i : i + 5] for i in range(0, len(folders), 5)]
    return {"CIFAR-10": [ten], "CIFAR-100": [_of_folders(group, labels_of(data, "cifar100")) for group in groups]}


def from_arguments() -> tuple[Path, dict[str, list[Ensemble]]]:
    """The folder of data and the ensembles that the command names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("predictions", type=Path)
    arguments = parser.parse_args()
    return arguments.data, read_ensembles(arguments.data, arguments.predictions)


def labels_of(data: Path, name: str) -> NDArray:
    """The true classes of a packed test set."""
    with np.load(data / f"{name}_test.npz") as packed:
        return packed["labels"].astype(np.int64)


def _of_folders(folders: Sequence[Path], labels: NDArray) -> Ensemble:
    def members(name: str) -> CredalPrediction:
        return wrap(np.concatenate([np.load(folder / f"{name}.npy")[:, :IMAGES] for folder in folders]))

    return Ensemble(members("cifar100"), labels, {"SVHN": members("svhn"), "Tiny-ImageNet": members("tiny-imagenet")})


def set_sizes(ensembles: list[Ensemble], alphas: Sequence[float], by_class: bool) -> list[dict[str, Any]]:
    """Coverage and size by alpha and method; the difference to LAC at equal coverage with its spread over the halves."""
    runs = []
    for ensemble in ensembles:
        for a, b in ensemble.halves(HALVES // len(ensembles)):
            known, labels = ensemble.known, ensemble.labels
            runs.append(compare_sets(known[a], labels[a], known[b], labels[b], alphas=alphas, by_class=by_class))
    return [_mean_row(row, [run[i] for run in runs], runs) for i, row in enumerate(runs[0])]


def _mean_row(first: Any, rows: Sequence[Any], runs: Sequence[Sequence[Any]]) -> dict[str, Any]:
    lac = [next(r for r in run if (r.method, r.alpha) == ("lac", first.alpha)).equal_size for run in runs]
    difference = np.array([row.equal_size for row in rows]) - lac
    names = ("coverage", "mean_size", "single", "worst_class_coverage", "equal_size")
    means = {name: round(float(np.mean([getattr(row, name) for row in rows])), 4) for name in names}
    spread = {"less_lac": round(float(difference.mean()), 4), "sd": round(float(difference.std(ddof=1)), 4)}
    return {"method": first.method, "alpha": first.alpha, "halves": len(rows), **means, **spread}


def covering(ensemble: Ensemble, counts: NDArray, *, adaptive: bool) -> dict[str, Any]:
    """Joint coverage of people's label distributions, and the mean width of the intervals, raw and inflated."""
    rows = []
    for a, b in ensemble.halves(HALVES):
        fitted = CoveringIntervals.fit(ensemble.known[a], counts[a], adaptive=adaptive)
        test, h = ensemble.known[b], counts[b] / counts[b].sum(axis=1, keepdims=True)
        low, high = fitted.inflate(test)
        held = ((low <= h) & (h <= high)).all(axis=1).mean()
        raw = (largest_violations(test, counts[b]) == 0).mean()
        rows.append([raw, held, fitted.margin, (test.upper - test.lower).mean(), (high - low).mean()])
    names = ("raw_coverage", "coverage", "margin", "raw_width", "width")
    means = dict(zip(names, np.mean(rows, axis=0).round(4).tolist(), strict=True))
    return {"adaptive": adaptive, "alpha": fitted.alpha, "halves": HALVES, **means}


def streams(known: NDArray, ood: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray]:
    """Half of the known scores to calibrate, the other half and the OOD ones for a stream, in random order."""
    order = rng.permutation(len(known))
    return known[order[: len(order) // 2]], known[order[len(order) // 2 :]], rng.permutation(ood)


def drift(ensemble: Ensemble) -> list[dict[str, Any]]:
    """Delays of the alarm by score, OOD set, share and method."""
    rows = []
    for score in SCORES:
        for name, other in ensemble.ood.items():
            draw: Draw = partial(streams, ensemble.known.score(score), other.score(score))
            rows += [{"score": score, "ood": name, **row} for row in delays(draw, SHARES, streams=STREAMS)]
    return rows


def main() -> None:
    """Measure and write."""
    data, ensembles = from_arguments()
    counts = np.load(data / "cifar10h_counts.npy")
    content = {
        "provenance": provenance(),
        "sets": {name: set_sizes(each, ALPHAS[name], by_class=False) for name, each in ensembles.items()},
        "sets_by_class": {"CIFAR-10": set_sizes(ensembles["CIFAR-10"], ALPHAS["CIFAR-10"], by_class=True)},
        "covering": [covering(ensembles["CIFAR-10"][0], counts, adaptive=adaptive) for adaptive in (False, True)],
        "drift": {name: drift(each[0]) for name, each in ensembles.items()},
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
