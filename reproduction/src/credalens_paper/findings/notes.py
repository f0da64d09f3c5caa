"""What a reader must know before comparing with the paper: weaker networks, other images, scores that coincide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from credalens_paper.findings.cells import Cell, Kind, find_cells, model_name
from credalens_paper.results.rendering.markdown import NONE
from credalens_paper.results.rendering.names import shown
from credalens_paper.results.rendering.values import value_text

__all__ = ["corner_note", "corruption_note", "weak_models", "weakness_note"]

Result = Mapping[str, Any]
WEAK: Final = 2.0
"""Per cent points of clean accuracy below the paper's from which on a network is no longer like the paper's."""
FAR: Final = 10.0
"""Per cent points of accuracy on corrupted images from which on they are no longer like the paper's."""


def _accuracies(results: Sequence[Result], ood_set: str | None) -> list[Cell]:
    """Accuracy of averaged and of distilled predictions, where both we and the paper have it."""
    kind = Kind("OODMain", {"variant": ("classical", None), "metric": "ACC", "ood_set": ood_set})
    return [cell for cell in find_cells(results, kind) if "mean" in cell and cell["paper"]]


def _weak(results: Sequence[Result]) -> list[Cell]:
    return [cell for cell in _accuracies(results, None) if cell["mean"] < cell["paper"]["mean"] - WEAK]


def weak_models(results: Sequence[Result], /) -> list[tuple[str, str]]:
    """Backbones and methods whose networks are well below the paper's accuracy."""
    return [(cell["keys"]["backbone"], cell["keys"]["method"]) for cell in _weak(results)]


def weakness_note(results: Sequence[Result], /) -> str:
    """Which networks are well below the paper's accuracy; claims about them are marked."""
    named = [
        f"{model_name(cell['keys'])} ({_accuracy(cell['mean'])}, in the paper {_accuracy(cell['paper']['mean'])})"
        for cell in _weak(results)
    ]
    if not named:
        return ""
    return f"Less accurate than the paper's, so that what is said of them counts for less: {'; '.join(named)}."


def _accuracy(value: float) -> str:
    return f"{value_text(value, 'ACC')} %"


def corruption_note(results: Sequence[Result], /) -> str:
    """That effects on corrupted images cannot be compared in size where the accuracy on them is another one."""
    cells = _accuracies(results, "cifar10-c")
    if not any(abs(cell["mean"] - cell["paper"]["mean"]) > FAR for cell in cells):
        return ""
    ours, paper = (_span([one["mean"] for one in found]) for found in (cells, [cell["paper"] for cell in cells]))
    return (
        f"On corrupted images accuracy is {ours} here and {paper} in the paper. It averages over all corruptions and\n"
        "severities as we do and gives no reason. Signs of effects on these images can be compared, sizes cannot."
    )


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f} %"


def corner_note(results: Sequence[Result], /) -> str:
    """That EU and TU are one number where a member is one-hot, and that the paper's are not."""
    by_measure = [find_cells(results, Kind("Overconfident", {"variant": "credal", "measure": m})) for m in ("EU", "TU")]
    pairs = list(zip(*by_measure, strict=True))
    if not pairs or not all("mean" in eu and eu["runs"] == tu["runs"] for eu, tu in pairs):
        return ""
    printed = "; ".join(
        f"{shown(eu['keys']['ood_set'])} {eu['keys']['metric']} {_paper(eu)} and {_paper(tu)}" for eu, tu in pairs
    )
    return (
        "In `Overconfident` credal EU and credal TU are the same score: a one-hot member puts a corner of the simplex into\n"
        "the set, lower entropy is zero and nothing is subtracted. With the regime as the paper describes it its two\n"
        f"columns should coincide too; they read {printed}."
    )


def _paper(cell: Cell) -> str:
    return value_text(cell["paper"]["mean"], cell["keys"]["metric"]) if cell["paper"] else NONE
