"""How often 95 % intervals of the AUROC and of a paired difference hold the truth: `python -m benchmarks.interval_coverage`.

Two laws for one AUROC: "normal", equal variances; "few wrong", OOD scores far above all ID ones but for a share among them.
The difference is that of a normal score and the same with as much noise again. Writes results/interval_coverage.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist

import numpy as np

from benchmarks.provenance import provenance
from credalens.evaluation import auroc_interval, compare_auroc

SIZES = (50, 50), (30, 200), (200, 30), (500, 300)
TRUTHS = 0.5, 0.7, 0.9, 0.96, 0.99
REPEATS = 10_000
NORMAL = NormalDist()


def coverage(sizes: tuple[int, int], truth: float) -> dict[str, float]:
    """The share of intervals that hold the truth, by law, and that of comparisons."""
    rng = np.random.default_rng([*sizes, round(100 * truth)])
    gap = 2**0.5 * NORMAL.inv_cdf(truth)
    held = np.zeros(3)
    for _ in range(REPEATS):
        id_scores, ood_scores, noise_id, noise_ood = (rng.normal(size=size) for size in sizes * 2)
        far = 20 * (rng.random(sizes[1]) < 2 * truth - 1)
        one, other = auroc_interval(id_scores, ood_scores + gap), auroc_interval(id_scores, ood_scores + far)
        pair = compare_auroc(id_scores, ood_scores + gap, id_scores + noise_id, ood_scores + gap + noise_ood)
        difference = truth - NORMAL.cdf(gap / 2)
        held += one.low <= truth <= one.high, other.low <= truth <= other.high, pair.low <= difference <= pair.high
    return dict(zip(("normal", "few wrong", "difference"), (held / REPEATS).round(4).tolist(), strict=True))


def main() -> None:
    """Simulate all sizes and write."""
    rows = [
        {"n_id": sizes[0], "n_ood": sizes[1], "auroc": truth, **coverage(sizes, truth)}
        for sizes in SIZES
        for truth in TRUTHS
    ]
    content = {"repeats": REPEATS, "level": 0.95, "provenance": provenance(), "coverage": rows}
    Path("results/interval_coverage.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
