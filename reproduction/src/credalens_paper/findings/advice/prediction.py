"""Which point prediction: the intersection probability or the average, by the data and the kind of network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from credalens.checks.options import count_text
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.tables import BAYESIAN
from credalens_paper.findings.advice.sentence import Advice, listed, section
from credalens_paper.findings.comparisons import Comparison, by_cell, cells, comparisons, repeats
from credalens_paper.findings.lookup import compared_lines, is_better
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Difference, Line, Panel, Result, declared_label
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table

TITLE: Final = "Which prediction"
METRICS: Final = ("ACC", "ECE", "NLL")
DECIDING: Final = METRICS[1:]
CURVES: Final = ("ece_cifar10_100_de", "nll_cifar10_100_de")
"""Figures against severity of networks that no table has on corrupted images."""
CALIBRATION: Final = ("ece_cifar10_full", CURVES[0])
FEW: Final = 10
"""Members, below which there are few."""
CREDAL, AVERAGE, EITHER = "the intersection probability", "the average", "either"
WRONG: Final = "clean images after wrong labels"
PLACES: Final = {
    ("cifar10", "clean"): "clean images of 10 classes",
    ("cifar100", "clean"): "clean images of 100 classes",
    ("clinc150", "clean"): "texts",
    ("cifar10", "corrupted"): "corrupted images of 10 classes",
    ("cifar100", "corrupted"): "corrupted images of 100 classes",
    ("cifar10n", "clean"): WRONG,
}
NOTE: Final = (
    "The intersection probability against the average: in how many cells it is better, and the least and the greatest\n"
    "difference. It is called the better one if it is so in calibration error (ECE) and in log loss (NLL), in four fifths of\n"
    "the cells or more; the average, which needs no credal set, already if it is so in one of them and the other does\n"
    "not decide. Ten classes: CIFAR-10; 100: CIFAR-100; texts: CLINC150; corrupted: CIFAR-10-C and CIFAR-100-C, the mean over\n"
    "all severities; wrong labels: trained on CIFAR-10N."
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
        """The intersection probability where ECE and NLL are for it; the average where one is, and none against it."""
        picks = {self.tallies[metric].pick(CREDAL, AVERAGE, EITHER) for metric in DECIDING}
        if picks == {CREDAL}:
            return CREDAL
        return AVERAGE if AVERAGE in picks and CREDAL not in picks else EITHER

    @property
    def by_log_loss(self) -> bool:
        """Whether the log loss decides alone."""
        return self.better != EITHER and self.tallies["ECE"].pick(CREDAL, AVERAGE, EITHER) == EITHER


def prediction_cases(results: Sequence[Result], /) -> list[Case]:
    """Every case that was measured by the metrics that decide."""
    entries: dict[tuple[str, str, bool], list[Comparison]] = {}
    for entry in by_cell((*cells(results), *_drawn(results))):
        if entry.keys.measure is None and entry.keys.metric in METRICS:
            words = PLACES.get((entry.keys.id_set or "", entry.place))
            kind = "Bayesian samples" if entry.keys.method in BAYESIAN else "ensembles"
            if words:
                entries.setdefault((words, kind, (entry.keys.N or 0) < FEW), []).append(entry)
    cases = [Case(*key, _by_metric(entries[key])) for key in _in_order(entries)]
    return [case for case in cases if all(case.tallies[metric] for metric in DECIDING)]


def _drawn(results: Sequence[Result]) -> Iterator[Comparison]:
    """Point predictions on corrupted images that figures have and tables do not, a mean over all severities each."""
    in_tables = comparisons(results)
    for result in (result for result in results if declared_label(result.label) in CURVES):
        for panel, averaged, credal in compared_lines(result):
            keys = replace(_measured(panel), variant="credal")
            mean = fmean(credal.mean) - fmean(averaged.mean)
            wins = is_better(keys.metric, mean)
            ours = Difference(mean, None, min(credal.n), int(wins), "credal" if wins else "classical")
            if not repeats(ours, (entry.ours for entry in in_tables if entry.keys == keys)):
                yield Comparison(result.label, keys, ours, None)


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
    losses = "; ".join(f"{case.words} {case.tallies['NLL'].spread}" for case in cases if case.by_log_loss)
    losses = f" Where it does not decide, the log loss does: {losses}." if losses else ""
    apart = [abs(value) for case in cases for value in case.tallies["ACC"].differences]
    accuracy = f" Accuracy differs by at most {max(apart):.2f} points." if apart else ""
    both = " If you expect several of these, `credalens evaluate` compares both on yours." if len(by_choice) > 1 else ""
    because = (
        "Calibration error (how far confidence is from accuracy) of the intersection probability minus that of the average: "
        f"{errors}.{losses}{_by_severity(results)}{accuracy}{both}"
    )
    return Advice(f"Predict with {choices}", because, (section(TITLE), section("Against corruption severity")))


def _by_severity(results: Sequence[Result]) -> str:
    """For how many kinds of ensembles it is better calibrated at the mildest and at the severest corruption."""
    kinds: dict[tuple[str | None, str | None], list[tuple[Line, Line]]] = {}
    for result in (result for result in results if declared_label(result.label) in CALIBRATION):
        for panel, averaged, credal in compared_lines(result):
            keys = _measured(panel)
            if keys.method == "DE":
                kinds.setdefault((keys.id_set, keys.backbone), []).append((averaged, credal))
    if not kinds:
        return ""
    first, last = (sum(is_better("ECE", _difference(pairs, at)) for pairs in kinds.values()) for at in (0, -1))
    mildest = f"at the mildest severity for {first} of {len(kinds)} kinds of network"
    return f" On corrupted images it is the better calibrated one {mildest}, at the severest for {last}."


def _difference(pairs: Sequence[tuple[Line, Line]], at: int) -> float:
    """Credal less averaged at one severity, the mean over the runs of all trainings of a kind of network."""
    return fmean([credal.mean[at] - averaged.mean[at] for averaged, credal in pairs], [line.n[at] for _, line in pairs])


def _measured(panel: Panel) -> CellKey:
    """The keys of a panel, with what was measured in place of the paper's."""
    found = panel.keys.as_dict() if panel.keys else {}
    return CellKey(**{**found, **(panel.substitutes or {})})


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
            *(case.tallies[metric].text if case.tallies[metric] else NONE for metric in METRICS),
            case.better,
        ]
        for case in prediction_cases(results)
    ]
    return joined(markdown_table(["Data", "Model", "Members", *METRICS, "Better"], rows), NOTE) if rows else ""
