"""Numbers of the hand-written guide are those of the result files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

from credalens.core.hartley import EXACT_CLASSES
from credalens.core.scores import SCORES
from credalens.evaluation.which_score import SPLITS

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "scores.md").read_text()
NAMES = ("epistemic", "mean_epistemic", "hartley", "total", "mean_total")


def result(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def measured(name: str, **keys: str) -> float | None:
    """The mean of the cell that has these keys; nothing where there is none."""
    means = [cell["mean"] for cell in result(name)["cells"] if keys.items() <= cell["keys"].items()]
    assert len(means) <= 1, keys
    return means[0] if means else None


def row(network: str, values: dict[str, float | None]) -> tuple[str, list[str]]:
    shown = ["–" if values.get(name) is None else f"{values[name]:.1f}" for name in NAMES]
    return network, shown


def label_noise() -> tuple[str, list[str]]:
    kinds = {"epistemic": "EU", "mean_epistemic": "EU", "hartley": "GH", "total": "TU", "mean_total": "TU"}
    keys = {"id_set": "cifar10n", "ood_set": "svhn", "metric": "AUROC"}
    variants = {name: "classical" if name.startswith("mean_") else "credal" for name in NAMES}
    values = {n: measured("scratch/LabelNoise", measure=kinds[n], variant=variants[n], **keys) for n in NAMES}
    return row("ResNet-18, 40 % of the training labels wrong", values)


def large(backbone: str, title: str, id_set: str, data: str) -> tuple[str, list[str]]:
    keys = {"backbone": backbone, "id_set": id_set}
    accuracy = measured("scratch/NearOOD", metric="ACC", variant="classical", **keys)
    values = {n: measured("scratch/ScoreCatalogue", measure=n, ood_set="svhn", metric="AUROC", **keys) for n in NAMES}
    return row(f"{title} on {data}, accuracy {accuracy:.0f} %", values)


def texts() -> tuple[str, list[str]]:
    panels = [panel for panel in result("text/TextScores")["panels"] if panel["title"] == "MLP DE"]
    means = {
        one["name"]: one["mean"] for panel in panels if panel["metric"] == "AUROC (%)" for one in panel["estimates"]
    }
    return row("MLPs on texts, 150 classes, underconfident", {name: means.get(SCORES[name].label) for name in NAMES})


def test_where_epistemic_misleads_is_as_measured():
    lines = GUIDE.partition("| five members |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert [(network.partition(" (")[0], values) for network, *values in cells] == [
        label_noise(),
        large("vit_base", "ViT-Base", "cifar10", "CIFAR-10"),
        large("vit_base", "ViT-Base", "cifar100", "CIFAR-100"),
        large("efficientnet_b2", "EfficientNet-B2", "cifar100", "CIFAR-100"),
        texts(),
    ]


def test_settings_in_the_guide_are_those_of_the_code():
    assert f"over {SPLITS} splits" in GUIDE
    assert f"leaves out `hartley` beyond {EXACT_CLASSES} classes" in GUIDE


def test_the_score_advised_for_guards_turns_away_most_unknown_images_too():
    """The advice is made from guards for many networks; those for ResNet-18 have files of their own."""
    (advised,) = re.findall(r"fit a guard .* with `(\w+)` as its score", (ROOT / "docs" / "findings.md").read_text())
    shares: dict[str, list[float]] = {}
    for guards in result("guard/decisions")["false_alarms"].values():
        for guard in guards:
            shares.setdefault(guard["score"], []).extend(guard[name] for name in ("SVHN", "Tiny-ImageNet"))
    assert max(shares, key=lambda score: fmean(shares[score])) == advised


def test_what_other_scores_change_for_guards_is_as_measured():
    advice = (ROOT / "docs" / "findings.md").read_text()
    (sure,) = re.findall(r"or with `(\w+)` if it is to promise few errors", advice)
    text = " ".join((ROOT / "docs" / "deciding.md").read_text().split())
    assert "with each of the twelve kinds of network" in text
    accepted, turned = points("halved_accepted", sure, "total"), points("halved_turned_away", "total", sure)
    assert (
        f"accepts more with `{sure}`: at the same promised error rate {accepted} points more of the known inputs"
        in text
    )
    assert f"it turned away {turned} points fewer" in text
    accepted, turned = (
        points("halved_accepted", "mean_total", "total"),
        points("halved_turned_away", "total", "mean_total"),
    )
    assert (
        f"`mean_total` lies between: {accepted} points more of the known inputs than with `total`, {turned} points"
        in text
    )
    others = guard_differences("turned_away", "mean_total", "total")
    assert abs(fmean(others)) < 0.5  # "as many"
    assert f"({-min(others):.0f} points fewer to {max(others):.0f} more, by network, on average" in text


def test_weak_members_turn_away_as_few_unknown_inputs_as_the_guide_says():
    text = " ".join((ROOT / "docs" / "deciding.md").read_text().split())
    right, turned = guard_means("accepted_ACC", "total"), guard_means("turned_away", "total")
    sure = guard_means("turned_away", "mean_least_confidence")
    shares = {data: [turned[one] for one in right if one[1] == data] for data in ("cifar10", "cifar100")}
    small, large = (f"{min(each):.0f} to {max(each):.0f} %" for each in shares.values())
    assert f"CIFAR-10 turned away {small} of the unknown inputs by `total`, guards for CIFAR-100 {large}" in text
    more = {one: sure[one] - turned[one] for one in turned if sure[one] > turned[one]}
    assert set(more) == {("vit_base", "cifar10"), ("vit_base", "cifar100"), ("efficientnet_b2", "cifar100")}
    fewest, most = min(more.values()), max(more.values())
    highest = max(sure[one] for one in more)
    assert f"{fewest:.0f} to {most:.0f} points more than `total`, though no more than {highest:.0f} %" in text


def points(metric: str, score: str, other: str) -> str:
    differences = guard_differences(metric, score, other)
    assert len(differences) == 12
    return f"{min(differences):.0f} to {max(differences):.0f}"


def guard_differences(metric: str, score: str, other: str) -> list[float]:
    """For every kind of network the metric of guards by a score less that by another."""
    ones, others = guard_means(metric, score), guard_means(metric, other)
    return [ones[network] - others[network] for network in ones]


def guard_means(metric: str, score: str) -> dict[tuple[str, str], float]:
    """For every kind of network, by backbone and data, the metric of guards by a score, mean over the sets."""
    values: dict[tuple[str, str], list[float]] = {}
    for cell in result("scratch/GuardPromises")["cells"]:
        keys = cell["keys"]
        if keys.get("measure") == score and keys["metric"] == metric and "mean" in cell:
            values.setdefault((keys["backbone"], keys["id_set"]), []).append(cell["mean"])
    return {network: fmean(means) for network, means in values.items()}
