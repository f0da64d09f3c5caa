"""The few rows that open the README, taken from a result file so that nobody types them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from credalens_paper.experiments.numbers import HIGHER
from credalens_paper.experiments.tables import BOTH, SMALL
from credalens_paper.results.rendering.markdown import markdown_table
from credalens_paper.results.rendering.names import shown
from credalens_paper.results.rendering.values import value_text
from credalens_paper.results.store import read_json

__all__ = ["headline"]

ROWS: Final = (
    ("OOD AUROC by EU, SVHN", "svhn", "AUROC"),
    ("OOD AUROC by EU, Tiny-ImageNet", "tiny-imagenet", "AUROC"),
    ("ECE on corrupted CIFAR-10", "cifar10-c", "ECE"),
    ("ECE on clean CIFAR-10", None, "ECE"),
    ("accuracy on clean CIFAR-10", None, "ACC"),
)


def headline(result: str | Path, /) -> str:
    """Deep ensembles of five, averaged against credal, from the result file of the table OODMain: a Markdown table."""
    cells = read_json(Path(result))["cells"]
    rows = []
    for backbone in SMALL:
        for title, ood_set, metric in ROWS:
            classical, credal = (_runs(cells, backbone, kind, ood_set, metric) for kind in BOTH)
            better = int(((credal > classical) if metric in HIGHER else (credal < classical)).sum())
            values = [value_text(runs.mean(), metric) for runs in (classical, credal)]
            rows.append([shown(backbone), title, *values, f"{better} of {len(credal)} runs"])
    return markdown_table(["backbone", "", "averaging", "credal", "credal better in"], rows)


def _runs(cells: list[dict[str, Any]], backbone: str, variant: str, ood_set: str | None, metric: str) -> Any:
    wanted = {"backbone": backbone, "method": "DE", "variant": variant, "ood_set": ood_set, "metric": metric}
    for cell in cells:
        keys = cell["keys"]
        if all(keys.get(key) == value for key, value in wanted.items()) and keys.get("measure") in (None, "EU"):
            return np.array(cell["runs"])
    raise ValueError(f"the result file has no cell {wanted}")
