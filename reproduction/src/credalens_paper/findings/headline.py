"""The few rows that open the README, taken from result files so that nobody types them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BOTH, SMALL
from credalens_paper.findings.lookup import Kind, is_better, numbers_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import markdown_table
from credalens_paper.results.rendering.values import value_text


class Row(NamedTuple):
    """What a row is called, and where its numbers are."""

    title: str
    label: str
    ood_set: str | None
    metric: str
    measure: str | None


ROWS: Final = (
    Row("OOD AUROC by TU, SVHN", "OODMainTU", "svhn", "AUROC", "TU"),
    Row("OOD AUROC by EU, SVHN", "OODMain", "svhn", "AUROC", "EU"),
    Row("OOD AUROC by TU, Tiny-ImageNet", "OODMainTU", "tiny-imagenet", "AUROC", "TU"),
    Row("OOD AUROC by EU, Tiny-ImageNet", "OODMain", "tiny-imagenet", "AUROC", "EU"),
    Row("ECE on corrupted CIFAR-10", "OODMain", "cifar10-c", "ECE", None),
    Row("ECE on clean CIFAR-10", "OODMain", None, "ECE", None),
    Row("accuracy on clean CIFAR-10", "OODMain", None, "ACC", None),
)


def headline_table(results: Sequence[Result], /) -> str:
    """Deep ensembles of five, averaged against credal: a Markdown table of OODMain and OODMainTU."""
    known = [result for result in results if result.label in ("OODMain", "OODMainTU")]
    rows = []
    for backbone in SMALL if known else ():
        for row in ROWS:
            classical, credal = (_runs(known, backbone, variant, row) for variant in BOTH)
            if classical and credal:
                better = sum(is_better(row.metric, difference) for difference in np.subtract(credal, classical))
                values = [value_text(float(np.mean(runs)), row.metric) for runs in (classical, credal)]
                rows.append([display_name(backbone), row.title, *values, f"{better} of {len(credal)} runs"])
    return markdown_table(["backbone", "metric", "averaging", "credal", "credal better in"], rows) if rows else ""


def _runs(results: Sequence[Result], backbone: str, variant: str, row: Row) -> tuple[float, ...]:
    keys = {"backbone": backbone, "method": "DE", "variant": variant, "ood_set": row.ood_set, "metric": row.metric}
    numbers = numbers_of(results, Kind(row.label, {**keys, "measure": row.measure}))
    return numbers[0].ours.runs if len(numbers) == 1 and numbers[0].ours else ()
