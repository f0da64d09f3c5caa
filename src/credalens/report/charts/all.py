"""All charts of an evaluation, by what they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.single_inputs import Sample
from credalens.report.charts.chart import Chart
from credalens.report.charts.detection import histogram_chart, pr_chart, ranking_chart, roc_chart
from credalens.report.charts.one_input import bars_chart, simplex_chart
from credalens.report.charts.prediction import members_chart, rejection_chart, reliability_chart


@dataclass(frozen=True)
class Charts:
    """The charts that an evaluation has data for.

    :ivar detection: OOD data set -> ROC, precision and recall, histogram.
    """

    ranking: Chart | None
    detection: dict[str, list[Chart]]
    reliability: Chart | None
    rejection: Chart | None
    members: list[Chart]

    @classmethod
    def of(cls, evaluation: Evaluation, /) -> Charts:
        """Declare them; nothing is drawn yet."""
        makers = (roc_chart, pr_chart, histogram_chart)
        return cls(
            ranking_chart(evaluation.recommended) if evaluation.ood else None,
            {one.name: [make(evaluation, one.name) for make in makers] for one in evaluation.ood},
            reliability_chart(evaluation.calibration) if evaluation.calibration else None,
            rejection_chart(evaluation.selective) if evaluation.selective else None,
            list(_members(evaluation)),
        )

    def named(self) -> Iterator[tuple[str, Chart]]:
        """Every chart with the name of its file."""
        for kind in ("ranking", "reliability", "rejection"):
            if chart := getattr(self, kind):
                yield kind, chart
        for name, charts in self.detection.items():
            yield from ((f"{chart.kind} {name}", chart) for chart in charts)
        yield from ((f"members {chart.title}", chart) for chart in self.members)


def _members(evaluation: Evaluation) -> Iterator[Chart]:
    needed = evaluation.members_needed
    if needed is None:
        return
    for name, trends in needed.epistemic_auroc().items():
        if len(needed.sizes) > 2:
            lines = {"epistemic": trends.credal, "mean_epistemic": trends.classical}
            yield members_chart(f"AUROC, {name}", needed.sizes[1:], lines)
    for title, by_method in (("Accuracy", needed.accuracy), ("ECE", needed.ece)):
        if by_method:
            lines = {"intersection": by_method.credal, "averaged": by_method.classical}
            yield members_chart(f"{title} on ID data", needed.sizes, lines)


def input_charts(sample: Sample, names: list[str], /) -> list[Chart]:
    """What every member says of one input."""
    title = f"{sample.set}, row {sample.row}"
    charts = [bars_chart(sample, names, title)]
    return [*charts, simplex_chart(sample.simplex, names, title)] if sample.simplex else charts
