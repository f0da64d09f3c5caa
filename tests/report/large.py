"""An evaluation at the edge of what a page must show: many OOD sets, many classes, long names."""

from __future__ import annotations

import numpy as np

from credalens.evaluation import Evaluation, evaluate


def large_evaluation(sets: int = 12, classes: int = 1000, letters: int = 60) -> Evaluation:
    """Of 300 inputs and two members."""
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.full(classes, 0.01), size=(2, 300))
    ood = {f"{'a rather long name of a data set ' * 2}{k:02d}"[-letters:]: members[:, : 40 + k] for k in range(sets)}
    names = [f"{'class with a long name ' * 3}{k:04d}"[-letters:] for k in range(classes)]
    return evaluate(members, ood, labels=rng.integers(0, classes, 300), replicates=40, class_names=names)
