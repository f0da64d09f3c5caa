"""Trimmed intervals against the number of members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.findings.trimming import TRIMS, Model, Variants, kind_of_number, leaves_out, models_by_size
from credalens_paper.results.records import Result
from credalens_paper.results.sizes import SizePanel, draw_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES: Final = {
    "classical": "Averaged",
    "credal": "Credal, all members",
    **{name: f"Without {percent} % at each end" for name, percent in TRIMS.items()},
}
AXES: Final = {"ECE": "ECE on clean inputs", "TU": "AUROC by TU (%)"}
Sizes = Mapping[int, Variants]
"""Of one kind of network, by its number of members."""


def draw_trims(results: Sequence[Result], /, *, label: str) -> Figure | None:
    """Calibration and detection of every model with several sizes, a line for each trim that leaves somebody out."""
    chosen = [result for result in results if result.label == label]
    kinds: dict[tuple[str, str, str], dict[int, Variants]] = {}
    for (data, backbone, method, N), variants in models_by_size(chosen).items():
        kinds.setdefault((data, backbone, method), {})[N] = variants
    runs = _runs(chosen, label)
    panels = [
        panel for kind, sizes in kinds.items() if len(sizes) > 1 for panel in _panels(kind, sizes, runs) if panel.lines
    ]
    return draw_sizes(panels) if panels else None


def _runs(results: Sequence[Result], label: str) -> dict[Model, int]:
    """How many runs the numbers of a model are means of."""
    counts: dict[Model, int] = {}
    for number in numbers_of(results, Kind(label, {})):
        if number.ours:
            id_set, backbone, method, N = number.at(("id_set", "backbone", "method", "N"))
            counts[id_set, backbone, method, N] = number.ours.n
    return counts


def _panels(kind: tuple[str, str, str], sizes: Sizes, runs: Mapping[Model, int]) -> Iterator[SizePanel]:
    data, backbone, method = kind
    title = f"{display_name(data)}, {display_name(backbone)} {method}"
    counts = {N: runs[data, backbone, method, N] for N in sizes}
    for metric, axis in AXES.items():
        lines = {name: _line(sizes, variant, metric) for variant, name in NAMES.items() if _is_shown(variant, sizes)}
        yield SizePanel(title, axis, counts, {name: line for name, line in lines.items() if line})


def _is_shown(variant: str, sizes: Sizes) -> bool:
    return any(leaves_out(variant, N) for N in sizes)


def _line(sizes: Sizes, variant: str, metric: str) -> dict[int, float]:
    """The numbers by size; those of the whole set where a trim leaves out nobody, none where it was not measured."""
    chosen = {N: variants.get(variant if leaves_out(variant, N) else "credal", {}) for N, variants in sizes.items()}
    numbers = {N: kind_of_number(cells, metric) for N, cells in chosen.items()}
    return {N: number for N, number in numbers.items() if number is not None}
