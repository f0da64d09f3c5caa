"""Entropy of the mean and mean of the entropies."""

from __future__ import annotations

import math

import numpy as np

import credalens
from attack import truths
from attack.case import Case, expect, expect_close
from attack.ensembles import ensemble
from tests import oracles


def attack(case: Case) -> None:
    """The classical decomposition against its definition in extended precision."""
    probs = ensemble(case, rows=6, classes=(2, case.choose(5, 100, 2000)), members=(1, case.choose(5, 200)))
    base = case.choose(2, math.e, 10, 1.5)
    p = truths.member_rows(probs).astype(np.longdouble)
    total = oracles.entropy(p.mean(axis=0)) / np.log2(np.longdouble(base))
    aleatoric = oracles.entropy(p).mean(axis=0) / np.log2(np.longdouble(base))
    tolerance = 1e-12 * max(1.0, float(total.max()))
    for name, result in (
        ("classical_uncertainty()", credalens.classical_uncertainty(probs, base=base)),
        ("wrap().classical", credalens.wrap(probs, base=base, max_nodes=1).classical),
    ):
        expect_close(f"{name}.total", result.total, total, tolerance=tolerance)
        expect_close(f"{name}.aleatoric", result.aleatoric, aleatoric, tolerance=tolerance)
        expect_close(f"{name}.epistemic", result.epistemic, total - aleatoric, tolerance=tolerance)
        for part in ("total", "aleatoric", "epistemic"):
            least = np.asarray(getattr(result, part)).min()
            expect(least >= 0, f"{name}.{part} is {least:.3g}")
