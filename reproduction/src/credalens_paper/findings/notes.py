"""What a reader must know before comparing with the paper: weaker networks, other images, scores that coincide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.findings.lookup import Kind, Number, model_name, numbers_of
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE
from credalens_paper.results.rendering.values import value_text

WEAK: Final = 2.0
"""Per cent points of clean accuracy below the paper's from which on a network is no longer like the paper's."""
FAR: Final = 10.0
"""Per cent points of accuracy on corrupted images from which on they are no longer like the paper's."""


def _accuracies(results: Sequence[Result], ood_set: str | None) -> list[tuple[Number, float, float]]:
    """Averaged and distilled predictions with their accuracy, ours and the paper's, where both are known."""
    kind = Kind("OODMain", {"variant": ("classical", None), "metric": "ACC", "ood_set": ood_set})
    numbers = numbers_of(results, kind)
    return [(number, number.ours.mean, number.paper.mean) for number in numbers if number.ours and number.paper]


def weak_models(results: Sequence[Result], /) -> list[tuple[str, str]]:
    """Backbones and methods whose networks are well below the paper's accuracy."""
    accuracies = _accuracies(results, None)
    return [
        (number.keys["backbone"], number.keys["method"]) for number, ours, paper in accuracies if ours < paper - WEAK
    ]


def weakness_note(results: Sequence[Result], /) -> str:
    """Which networks are well below the paper's accuracy; claims about them are marked."""
    weak = [
        f"{model_name(number.keys)} ({_accuracy(ours)}, in the paper {_accuracy(paper)})"
        for number, ours, paper in _accuracies(results, None)
        if ours < paper - WEAK
    ]
    if not weak:
        return ""
    return f"Less accurate than the paper's, so that what is said of them counts for less: {'; '.join(weak)}."


def _accuracy(value: float) -> str:
    return f"{value_text(value, 'ACC')} %"


def corruption_note(results: Sequence[Result], /) -> str:
    """That effects on corrupted images cannot be compared in size where the accuracy on them is another one."""
    pairs = [(ours, paper) for _, ours, paper in _accuracies(results, "cifar10-c")]
    if not any(abs(ours - paper) > FAR for ours, paper in pairs):
        return ""
    here, there = (f"{min(values):.0f} to {max(values):.0f} %" for values in zip(*pairs, strict=True))
    return (
        f"On corrupted images accuracy is {here} here and {there} in the paper. It averages over all corruptions and\n"
        "severities as we do and gives no reason. Signs of effects on these images can be compared, sizes cannot."
    )


def corner_note(results: Sequence[Result], /) -> str:
    """That EU and TU are one number where a member is one-hot, and that the paper's are not."""
    by_measure = [numbers_of(results, Kind("Overconfident", {"variant": "credal", "measure": m})) for m in ("EU", "TU")]
    pairs = list(zip(*by_measure, strict=True))
    if not pairs or not all(eu.ours and tu.ours and eu.ours.runs == tu.ours.runs for eu, tu in pairs):
        return ""
    printed = "; ".join(
        f"{display_name(eu.keys['ood_set'])} {eu.keys['metric']} {_paper(eu)} and {_paper(tu)}" for eu, tu in pairs
    )
    return (
        "In `Overconfident` credal EU and credal TU are the same score: a one-hot member puts a corner of the simplex into\n"
        "the set, lower entropy is zero and nothing is subtracted. With the regime as the paper describes it its two\n"
        f"columns should coincide too; they read {printed}."
    )


def _paper(number: Number) -> str:
    return value_text(number.paper.mean, number.keys["metric"]) if number.paper else NONE
