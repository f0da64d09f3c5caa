"""Trimmed intervals against the number of members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.findings.trimming import TRIMS, Model, Variants, kind_of_number, models_by_size
from credalens_paper.results.drawing import draw_sizes
from credalens_paper.results.records import Line, Panel, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES: Final = {
    "classical": "Averaged",
    "credal": "Credal, all members",
    **{name: f"Without {percent} % at each end" for name, percent in TRIMS.items()},
}
AXES: Final = {"ECE": "ECE on clean inputs", "TU": "AUROC by TU (%)"}


def draw_trims(results: Sequence[Result], /, *, label: str) -> Figure | None:
    """Calibration and detection of every model with several sizes, a line for each trim."""
    models = models_by_size([result for result in results if result.label == label])
    sizes: dict[tuple[str, str, str], list[Model]] = {}
    for model in models:
        sizes.setdefault(model[:3], []).append(model)
    panels = [panel for same in sizes.values() if len(same) > 1 for panel in _panels(models, same)]
    return draw_sizes(panels) if panels else None


def _panels(models: Mapping[Model, Variants], sizes: Sequence[Model]) -> Iterator[Panel]:
    data, backbone, method, _ = sizes[0]
    title = f"{display_name(data)}, {display_name(backbone)} {method}"
    for kind, axis in AXES.items():
        lines = tuple(_line(models, sizes, variant, kind) for variant in NAMES)
        yield Panel(title=title, metric=axis, series=lines)


def _line(models: Mapping[Model, Variants], sizes: Sequence[Model], variant: str, kind: str) -> Line:
    """A trim that leaves out nobody is the whole set."""
    means = tuple(kind_of_number(models[size].get(variant, models[size]["credal"]), kind) for size in sizes)
    return Line(NAMES[variant], tuple(N for *_, N in sizes), means, (None,) * len(means), (1,) * len(means))
