"""The transcription of the paper's tables: cells typed again by hand, counts, completeness, logic."""

from __future__ import annotations

import json
from collections import defaultdict
from importlib.resources import files
from itertools import product
from types import SimpleNamespace

import pytest

from credalens_paper.experiments.paper_numbers import PAPER_FIGURES, PAPER_TABLES

# (rows x columns) counted in the paper
COUNTS = {
    "OODMain": 14 * 8,
    "AblationPreTrain": 2 * 10,
    "AblationBackbones": 4 * 8,
    "AblationPIA": 3 * 5,
    "AblationNEUAPP": 6 * 8,
    "ablation BNNsVGG16EU": 4 * 8,
    "1000samplesBNNREU": 2 * 6,
    "GHComparison": 6 * 4,
    "OODMainTU": 6 * 8,
    "AblationPreTrainTU": 2 * 10,
    "AblationBackbonesTU": 4 * 8,
    "AblationNTU": 6 * 8,
    "AblationBNNs": 16 * 8,
    "Overconfident": 2 * 8,
    "CPUcost": 2 * 4,
    "DEsamples": 2 * 3,
    "InferenceBNNsamples": 4 * 2,
    "AblationPIATU": 3 * 4,
    "UndiserableEDDfair": 2 * 6,
}
WITHOUT_BOLD = {
    "AblationPIA",
    "CPUcost",
    "DEsamples",
    "InferenceBNNsamples",
    "AblationPIATU",
    "UndiserableEDDfair",
}

SVHN, TINY = "svhn", "tiny-imagenet"

# table: (backbone, method, variant, N, id_set, ood_set, metric, mean, std), read from the paper by eye
MAIN_CELLS = {
    "OODMain": [
        ("vgg16", "BNNR", "classical", 5, "cifar10", None, "ACC", 90.98, 0.11),
        ("vgg16", "BNNF", "credal", 5, "cifar10", "cifar10-c", "ECE", 0.452, 0.068),
        ("vgg16", "DE", "credal", 5, "cifar10", SVHN, "AUROC", 91.96, 1.33),
        ("vgg16", "EDD", None, None, "cifar10", TINY, "AUPRC", 82.53, 2.18),
        ("resnet18", "DE", "classical", 5, "cifar10", SVHN, "AUROC", 87.40, 0.68),
        ("resnet18", "DE", "credal", 5, "cifar10", TINY, "AUPRC", 87.41, 0.19),
        ("resnet18", "BNNR", "credal", 5, "cifar10", None, "ECE", 0.055, 0.002),
        ("resnet18", "EDD", None, None, "cifar10", "cifar10-c", "ACC", 27.00, 1.20),
    ],
    "AblationPreTrain": [
        ("resnet50", "DE", "classical", 5, "cifar10", SVHN, "AUROC", 89.58, 0.93),
        ("resnet50", "DE", "credal", 5, "cifar100", TINY, "AUPRC", 77.16, 0.23),
        ("resnet50", "DE", "credal", 5, "imagenet", "imagenet-o", "AUROC", 66.20, 0.38),
        ("resnet50", "DE", "classical", 5, "imagenet", "imagenet-o", "AUPRC", 63.20, 0.35),
    ],
    "AblationBackbones": [
        ("efficientnet_b2", "DE", "classical", 5, "cifar10", SVHN, "AUROC", 95.76, 0.59),
        ("efficientnet_b2", "DE", "credal", 5, "cifar100", SVHN, "AUPRC", 94.58, 0.56),
        ("vit_base", "DE", "credal", 5, "cifar10", TINY, "AUROC", 84.28, 0.76),
        ("vit_base", "DE", "classical", 5, "cifar100", TINY, "AUPRC", 77.46, 0.49),
    ],
    "AblationNEUAPP": [
        ("resnet50", "DE", "classical", 3, "cifar10", SVHN, "AUROC", 89.64, 1.16),
        ("resnet50", "DE", "credal", 5, "cifar10", SVHN, "AUPRC", 95.79, 0.70),
        ("resnet50", "DE", "classical", 15, "cifar10", TINY, "AUROC", 88.10, 0.10),
        ("resnet50", "DE", "credal", 25, "cifar10", TINY, "AUPRC", 88.72, 0.07),
    ],
    "ablation BNNsVGG16EU": [
        ("vgg16", "BNNR", "classical", 10, "cifar10", SVHN, "AUROC", 86.60, 1.28),
        ("vgg16", "BNNF", "credal", 10, "cifar10", TINY, "AUPRC", 83.29, 0.28),
        ("vgg16", "BNNR", "credal", 50, "cifar10", TINY, "AUROC", 87.17, 0.26),
        ("vgg16", "BNNF", "classical", 50, "cifar10", SVHN, "AUPRC", 90.56, 0.79),
    ],
    "1000samplesBNNREU": [
        ("resnet18", "BNNR", "classical", 1000, "cifar10", None, "ACC", 91.89, 0.18),
        ("resnet18", "BNNR", "credal", 1000, "cifar10", None, "ECE", 0.034, 0.003),
        ("resnet18", "BNNR", "credal", 1000, "cifar10", TINY, "AUPRC", 84.63, 0.33),
    ],
    "GHComparison": [
        ("vgg16", "BNNR", "credal", 5, "cifar10", SVHN, "AUROC", 87.24, 1.32),
        ("vgg16", "BNNF", "classical", 5, "cifar10", TINY, "AUPRC", 79.91, 0.35),
        ("vgg16", "DE", "credal", 5, "cifar10", TINY, "AUROC", 88.98, 0.13),
    ],
    "OODMainTU": [
        ("resnet18", "BNNR", "classical", 5, "cifar10", SVHN, "AUROC", 88.18, 1.30),
        ("vgg16", "BNNF", "credal", 5, "cifar10", TINY, "AUPRC", 83.23, 0.28),
        ("resnet18", "DE", "credal", 5, "cifar10", TINY, "AUROC", 89.53, 0.14),
        ("vgg16", "DE", "classical", 5, "cifar10", SVHN, "AUPRC", 94.87, 0.78),
    ],
    "AblationPreTrainTU": [
        ("resnet50", "DE", "classical", 5, "cifar10", SVHN, "AUROC", 94.80, 0.43),
        ("resnet50", "DE", "credal", 5, "cifar100", SVHN, "AUPRC", 89.97, 0.99),
        ("resnet50", "DE", "credal", 5, "imagenet", "imagenet-o", "AUPRC", 52.27, 0.05),
    ],
    "AblationBackbonesTU": [
        ("efficientnet_b2", "DE", "classical", 5, "cifar100", TINY, "AUPRC", 84.88, 0.14),
        ("efficientnet_b2", "DE", "credal", 5, "cifar10", TINY, "AUROC", 93.74, 0.15),
        ("vit_base", "DE", "credal", 5, "cifar10", SVHN, "AUPRC", 88.48, 1.48),
    ],
    "AblationNTU": [
        ("resnet50", "DE", "classical", 3, "cifar10", SVHN, "AUROC", 94.30, 0.99),
        ("resnet50", "DE", "credal", 10, "cifar10", TINY, "AUROC", 89.86, 0.14),
        ("resnet50", "DE", "classical", 20, "cifar10", TINY, "AUPRC", 88.34, 0.09),
        ("resnet50", "DE", "credal", 25, "cifar10", SVHN, "AUPRC", 98.01, 0.10),
    ],
}

# table: (measure, backbone, method, variant, N, ood_set, metric, mean, std): both measures in one table
TWO_MEASURES = {
    "AblationBNNs": [
        ("TU", "vgg16", "BNNR", "classical", 50, SVHN, "AUPRC", 93.29, 1.12),
        ("TU", "vgg16", "BNNF", "credal", 10, TINY, "AUROC", 85.99, 0.19),
        ("EU", "resnet18", "BNNR", "credal", 10, TINY, "AUPRC", 82.99, 0.26),
        ("EU", "resnet18", "BNNF", "classical", 50, SVHN, "AUROC", 88.79, 0.95),
        ("TU", "resnet18", "BNNF", "credal", 50, TINY, "AUPRC", 84.53, 0.36),
    ],
    "Overconfident": [
        ("EU", "resnet50", "DE", "classical", 5, SVHN, "AUROC", 90.42, 0.81),
        ("EU", "resnet50", "DE", "credal", 5, TINY, "AUPRC", 87.42, 0.27),
        ("TU", "resnet50", "DE", "credal", 5, SVHN, "AUPRC", 97.48, 0.23),
    ],
}

# table: (keys, mean, std)
OTHER_CELLS = {
    "AblationPIA": [
        ({"J": 10, "ood_set": SVHN, "metric": "AUROC"}, 78.81, 1.87),
        ({"J": 20, "ood_set": TINY, "metric": "AUPRC"}, 77.16, 0.23),
        ({"J": 100, "metric": "time_ms"}, 109.469, 1.330),
    ],
    "CPUcost": [
        ({"variant": "classical", "C": 3}, 0.002, None),
        ({"variant": "classical", "C": 100}, 0.006, None),
        ({"variant": "credal", "C": 3}, 2.526, None),
        ({"variant": "credal", "C": 100}, 87.384, None),
    ],
    "DEsamples": [
        ({"N": 5, "metric": "model_size_mb"}, 500.05, None),
        ({"N": 5, "metric": "gpu_ms"}, 300.4, 97.7),
        ({"N": 25, "metric": "cpu_ms"}, 4495.3, 120.8),
    ],
    "InferenceBNNsamples": [
        ({"method": "BNNR", "N": 10, "metric": "cpu_ms"}, 4951.4, 91.8),
        ({"method": "BNNR", "N": 50, "metric": "gpu_ms"}, 9758.2, 197.9),
        ({"method": "BNNF", "N": 50, "metric": "cpu_ms"}, 27498.8, 478.1),
    ],
    "AblationPIATU": [
        ({"J": 10, "ood_set": TINY, "metric": "AUROC"}, 81.24, 0.14),
        ({"J": 20, "ood_set": SVHN, "metric": "AUPRC"}, 89.97, 0.99),
        ({"J": 100, "ood_set": TINY, "metric": "AUPRC"}, 78.50, 0.15),
    ],
    "UndiserableEDDfair": [
        ({"backbone": "vgg16", "metric": "ACC"}, 56.57, 12.56),
        ({"backbone": "resnet18", "metric": "ECE"}, 0.102, 0.056),
        ({"backbone": "resnet18", "ood_set": SVHN, "metric": "AUROC"}, 85.30, 7.85),
    ],
}


def typed_cells():
    for table, cells in MAIN_CELLS.items():
        for backbone, method, variant, N, id_set, ood_set, metric, mean, std in cells:
            keys = {"backbone": backbone, "method": method, "variant": variant, "N": N}
            yield table, keys | {"id_set": id_set, "ood_set": ood_set, "metric": metric}, mean, std
    for table, cells in TWO_MEASURES.items():
        for measure, backbone, method, variant, N, ood_set, metric, mean, std in cells:
            keys = {"measure": measure, "backbone": backbone, "method": method, "variant": variant, "N": N}
            yield table, keys | {"ood_set": ood_set, "metric": metric}, mean, std
    for table, cells in OTHER_CELLS.items():
        for keys, mean, std in cells:
            yield table, keys, mean, std


DOCUMENT = json.loads(files("credalens_paper.experiments").joinpath("numbers.json").read_text(encoding="utf-8"))
BOLD = {table["label"]: [record.get("bold", False) for record in table["records"]] for table in DOCUMENT["tables"]}


def paper_cells(table, **keys):
    """The cells that have these keys, each with its keys as attributes."""
    cells = zip(PAPER_TABLES[table].cells.items(), BOLD[table], strict=True)
    return [
        SimpleNamespace(**{**vars(key), **vars(number), "table": table, "bold": bold})
        for (key, number), bold in cells
        if all(key.get(name) == value for name, value in keys.items())
    ]


ALL_CELLS = [cell for table in PAPER_TABLES for cell in paper_cells(table)]


def test_every_table_and_figure_of_the_paper_is_there():
    assert tuple(PAPER_TABLES) == tuple(COUNTS)
    assert len(PAPER_FIGURES) == 17
    assert "ece_cifar10_full" in PAPER_FIGURES
    assert all(PAPER_FIGURES.values())
    assert all(table.description for table in PAPER_TABLES.values())


@pytest.mark.parametrize(("table", "count"), list(COUNTS.items()))
def test_every_cell_of_a_table_is_there_once(table, count):
    assert len(PAPER_TABLES[table].cells) == count


@pytest.mark.parametrize(("table", "keys", "mean", "std"), list(typed_cells()))
def test_cells_typed_again_by_hand(table, keys, mean, std):
    (cell,) = paper_cells(table, **keys)
    assert (cell.mean, cell.std) == (mean, std)


def test_each_table_has_at_least_three_cells_typed_again():
    typed = defaultdict(int)
    for table, *_ in typed_cells():
        typed[table] += 1
    assert set(typed) == set(PAPER_TABLES)
    assert min(typed.values()) >= 3


def rows(table: str) -> dict[tuple, list[str]]:
    """Metrics by row, where the sets tested on belong to the columns."""
    found = defaultdict(list)
    for cell in paper_cells(table):
        found[cell.backbone, cell.method, cell.variant, cell.N, cell.C].append(
            f"{cell.measure}:{cell.id_set}:{cell.ood_set}:{cell.metric}"
        )
    return found


@pytest.mark.parametrize("table", [t for t in COUNTS if t not in ("AblationPIA", "AblationPIATU", "GHComparison")])
def test_all_rows_have_the_same_columns(table):
    columns = [sorted(metrics) for metrics in rows(table).values()]
    assert all(row == columns[0] for row in columns)
    assert len(columns) * len(columns[0]) == COUNTS[table]


@pytest.mark.parametrize(
    ("table", "axes"),
    [
        ("AblationNEUAPP", {"N": (3, 5, 10, 15, 20, 25), "variant": ("classical", "credal")}),
        ("AblationNTU", {"N": (3, 5, 10, 15, 20, 25), "variant": ("classical", "credal")}),
        ("AblationBNNs", {"backbone": ("vgg16", "resnet18"), "method": ("BNNR", "BNNF"), "N": (10, 50)}),
        ("AblationPIA", {"J": (10, 20, 100), "ood_set": (SVHN, TINY)}),
        ("AblationPIATU", {"J": (10, 20, 100), "ood_set": (SVHN, TINY)}),
        ("GHComparison", {"method": ("BNNR", "BNNF", "DE"), "variant": ("classical", "credal")}),
        ("OODMainTU", {"backbone": ("vgg16", "resnet18"), "method": ("BNNR", "BNNF", "DE")}),
        ("InferenceBNNsamples", {"method": ("BNNR", "BNNF"), "N": (10, 50)}),
        ("CPUcost", {"C": (3, 10, 20, 100), "variant": ("classical", "credal")}),
    ],
)
def test_tables_are_full_grids_of_their_axes(table, axes):
    sizes = {len(paper_cells(table, **dict(zip(axes, point, strict=True)))) for point in product(*axes.values())}
    assert len(sizes) == 1
    assert sizes.pop() > 0


def test_values_are_possible():
    for cell in ALL_CELLS:
        assert cell.std is None or cell.std >= 0
        assert 0 <= cell.mean <= (100 if cell.metric in ("ACC", "AUROC", "AUPRC") else 1e5)
        assert cell.metric != "ECE" or cell.mean < 1
    missing = {(cell.table, cell.metric) for cell in ALL_CELLS if cell.std is None}
    assert missing == {("CPUcost", "time_ms"), ("DEsamples", "model_size_mb")}


def contest(cell) -> tuple:
    """The cells that compete for bold: EDD competes with the ensemble it was distilled from."""
    family = "DE" if cell.method == "EDD" else cell.method
    N = None if family == "DE" and cell.table == "OODMain" else cell.N
    measure = "EU" if cell.measure == "GH" else cell.measure
    return cell.table, cell.backbone, family, N, measure, cell.id_set, cell.ood_set, cell.metric


def test_bold_marks_exactly_the_best_of_each_contest():
    contests = defaultdict(list)
    for cell in ALL_CELLS:
        contests[contest(cell)].append(cell)
    for cells in contests.values():
        best = (min if cells[0].metric == "ECE" else max)(cell.mean for cell in cells)
        for cell in cells:
            assert cell.bold == (cell.mean == best and cell.table not in WITHOUT_BOLD), cell


def test_credal_detection_is_bold_but_for_the_two_cells_where_the_paper_lost():
    credal = [c for c in ALL_CELLS if c.variant == "credal" and c.ood_set and c.table not in WITHOUT_BOLD]
    lost = [c for c in credal if c.metric in ("AUROC", "AUPRC") and not c.bold]
    assert [(c.table, c.backbone, c.ood_set, c.metric, c.mean) for c in lost] == [
        ("AblationBackbonesTU", "efficientnet_b2", TINY, "AUPRC", 84.87),
        ("AblationBNNs", "vgg16", SVHN, "AUPRC", 93.24),
    ]


@pytest.mark.parametrize(
    ("table", "keys", "twin", "twin_keys"),
    [
        ("ablation BNNsVGG16EU", {}, "AblationBNNs", {"backbone": "vgg16", "measure": "EU"}),
        ("GHComparison", {"variant": "classical"}, "OODMain", {"backbone": "vgg16", "variant": "classical"}),
        ("AblationPIA", {"J": 20}, "AblationPreTrain", {"id_set": "cifar100", "variant": "credal"}),
        ("AblationPIATU", {"J": 20}, "AblationPreTrainTU", {"id_set": "cifar100", "variant": "credal"}),
    ],
)
def test_numbers_that_the_paper_prints_twice_agree(table, keys, twin, twin_keys):
    for cell in paper_cells(table, **keys):
        if cell.metric in ("AUROC", "AUPRC"):
            place = {k: getattr(cell, k) for k in ("method", "variant", "N", "ood_set", "metric")}
            (other,) = paper_cells(twin, **(place | twin_keys))
            assert (cell.mean, cell.std) == (other.mean, other.std)


def test_runs_are_told_where_the_paper_tells_them():
    assert PAPER_TABLES["OODMain"].runs == 15
    assert PAPER_TABLES["DEsamples"].runs == 20
    assert PAPER_TABLES["1000samplesBNNREU"].runs is None
