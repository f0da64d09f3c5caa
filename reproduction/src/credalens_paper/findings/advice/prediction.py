"""Which point prediction: the intersection probability or the average, by the data and the kind of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from credalens.checks.counted import count_text
from credalens_paper.experiments.tables import BAYESIAN
from credalens_paper.findings.advice.sentence import Advice, listed, section
from credalens_paper.findings.comparisons import Comparison, comparisons
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined, markdown_table

TITLE: Final = "Which prediction"
METRICS: Final = ("ACC", "ECE", "NLL")
FEW: Final = 10
"""Members, below which there are few."""
CREDAL, AVERAGE, EITHER = "the intersection probability", "the average", "either"
WRONG: Final = "clean images after wrong labels"
PLACES: Final = {
    ("cifar10", "clean"): "clean images of 10 classes",
    ("cifar100", "clean"): "clean images of 100 classes",
    ("clinc150", "clean"): "texts",
    ("cifar10", "corrupted"): "corrupted images",
    ("cifar100", "corrupted"): "corrupted images of 100 classes",
    ("cifar10n", "clean"): WRONG,
}
NOTE: Final = (
    "The intersection probability against the average: in how many cells it is better, and the least and the greatest\n"
    "difference. The better one is better in calibration error (ECE) and in log loss (NLL), in four fifths of the cells or\n"
    "more. Ten classes: CIFAR-10; 100: CIFAR-100; texts: CLINC150; corrupted: CIFAR-10-C; wrong labels: trained on CIFAR-10N.\n"
    "Corrupted images of 100 classes: [CIFAR-100](../results/cifar100/README.md)."
)


@dataclass(frozen=True)
class Case:
    """Data, a kind of model and whether it has few members, with the comparisons of the point predictions."""

    words: str
    method: str
    few: bool
    tallies: Mapping[str, Tally]

    @property
    def better(self) -> str:
        """The prediction that is better in ECE and in NLL."""
        picks = {self.tallies[metric].pick(CREDAL, AVERAGE, EITHER) for metric in ("ECE", "NLL")}
        return picks.pop() if len(picks) == 1 else EITHER


def prediction_cases(results: Sequence[Result], /) -> list[Case]:
    """Every case that was measured by all metrics."""
    entries: dict[tuple[str, str, bool], list[Comparison]] = {}
    for entry in comparisons(results):
        if entry.keys.measure is None and entry.keys.metric in METRICS:
            words = PLACES.get((entry.keys.id_set or "", entry.place))
            kind = "Bayesian samples" if entry.keys.method in BAYESIAN else "ensembles"
            if words:
                entries.setdefault((words, kind, (entry.keys.N or 0) < FEW), []).append(entry)
    cases = [Case(*key, _by_metric(entries[key])) for key in _in_order(entries)]
    return [case for case in cases if all(case.tallies.values())]


def _in_order(entries: Mapping[tuple[str, str, bool], Sequence[Comparison]]) -> list[tuple[str, str, bool]]:
    order = list(PLACES.values())
    return sorted(entries, key=lambda key: (key[1] != "ensembles", order.index(key[0]), not key[2]))


def _by_metric(entries: Sequence[Comparison]) -> dict[str, Tally]:
    return {m: Tally(m, tuple(one.ours.mean for one in entries if one.keys.metric == m)) for m in METRICS}


def prediction_advice(results: Sequence[Result], /) -> Advice | None:
    """For ensembles of few members the better prediction of every kind of data."""
    cases = [
        case for case in prediction_cases(results) if case.few and case.method == "ensembles" and case.words != WRONG
    ]
    if not cases:
        return None
    by_choice: dict[str, list[str]] = {}
    for case in cases:
        by_choice.setdefault(case.better, []).append(case.words)
    choices = "; with ".join(f"{choice} for {listed(places)}" for choice, places in by_choice.items())
    errors = "; ".join(f"{case.words} {_error(case)}" for case in cases)
    apart = max(abs(value) for case in cases for value in case.tallies["ACC"].differences)
    both = " If you expect several of these, `credalens evaluate` compares both on yours." if len(by_choice) > 1 else ""
    because = (
        "Calibration error (how far confidence is from accuracy) of the intersection probability minus that of the average: "
        f"{errors}. Accuracy differs by at most {apart:.2f} points.{both}"
    )
    return Advice(f"Predict with {choices}", because, (section(TITLE), section("Against corruption severity")))


def _error(case: Case) -> str:
    tally = case.tallies["ECE"]
    return f"{tally.spread} ({count_text(len(tally.differences), 'cell')})"


def prediction_table(results: Sequence[Result], /) -> str:
    """Every case with its metrics and the better prediction."""
    rows = [
        [
            case.words,
            case.method,
            f"below {FEW}" if case.few else f"{FEW} or more",
            *(case.tallies[metric].text for metric in METRICS),
            case.better,
        ]
        for case in prediction_cases(results)
    ]
    return joined(markdown_table(["Data", "Model", "Members", *METRICS, "Better"], rows), NOTE) if rows else ""
