"""The few rows that open the README, taken from a result file so that nobody types them."""

from __future__ import annotations

from typing import Final

import numpy as np

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BOTH, SMALL
from credalens_paper.findings.lookup import Kind, is_better, numbers_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import markdown_table
from credalens_paper.results.rendering.values import value_text

ROWS: Final = (
    ("OOD AUROC by EU, SVHN", "svhn", "AUROC"),
    ("OOD AUROC by EU, Tiny-ImageNet", "tiny-imagenet", "AUROC"),
    ("ECE on corrupted CIFAR-10", "cifar10-c", "ECE"),
    ("ECE on clean CIFAR-10", None, "ECE"),
    ("accuracy on clean CIFAR-10", None, "ACC"),
)


def headline_table(result: Result, /) -> str:
    """Deep ensembles of five, averaged against credal: a Markdown table of OODMain, nothing of other results."""
    rows = []
    for backbone in SMALL if result.label == "OODMain" else ():
        for title, ood_set, metric in ROWS:
            classical, credal = (_runs(result, backbone, variant, ood_set, metric) for variant in BOTH)
            if classical and credal:
                better = sum(is_better(metric, difference) for difference in np.subtract(credal, classical))
                values = [value_text(float(np.mean(runs)), metric) for runs in (classical, credal)]
                rows.append([display_name(backbone), title, *values, f"{better} of {len(credal)} runs"])
    return markdown_table(["backbone", "", "averaging", "credal", "credal better in"], rows)


def _runs(result: Result, backbone: str, variant: str, ood_set: str | None, metric: str) -> tuple[float, ...]:
    keys = {"backbone": backbone, "method": "DE", "variant": variant, "ood_set": ood_set, "metric": metric}
    (number,) = numbers_of([result], Kind(result.label, {**keys, "measure": (None, "EU")}))
    return number.ours.runs if number.ours else ()
