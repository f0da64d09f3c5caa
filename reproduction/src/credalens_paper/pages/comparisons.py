"""Comparisons over all entries: every score by its mean rank, and credal against averaged in every cell that was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from credalens.core.scores import SCORES
from credalens.evaluation.which_score import mean_ranks
from credalens_paper.experiments.cell_keys import DIGITS, CellKey, better_side, display_name
from credalens_paper.experiments.paper_entries import BAYESIAN, C10, C100, TABLES
from credalens_paper.pages.claims import Tally, compared_lines, model_name, numbers_of
from credalens_paper.pages.markdown import NONE, difference_text, joined, markdown_table, paper_difference_text
from credalens_paper.results.records import Difference, PaperDifference, Result, TableResult, declared_label


class Pair(NamedTuple):
    """A network and a set of unknown inputs."""

    id_set: str
    backbone: str
    method: str
    ood_set: str


Cells = Mapping[Pair, Mapping[str, float]]  # for every pair the AUROC by each score
Group = Callable[[Pair], bool]
DATA: Final[Mapping[str, Group]] = {
    "10 classes (CIFAR-10)": lambda pair: pair.id_set == C10,
    "100 classes (CIFAR-100)": lambda pair: pair.id_set == C100,
    "texts (CLINC150)": lambda pair: pair.id_set == "clinc150",
}
DISTANCES: Final[Mapping[str, Group]] = {
    "near unknowns (CIFAR-10 against CIFAR-100, or back)": lambda pair: pair.ood_set in (C10, C100),
    "far unknown objects (Tiny-ImageNet)": lambda pair: pair.ood_set == "tiny-imagenet",
    "far pictures of another kind (SVHN)": lambda pair: pair.ood_set == "svhn",
}


@dataclass(frozen=True)
class Ranking:
    """The scores by their mean rank on some pairs, the best first; of equal ranks the one of the higher mean AUROC."""

    cells: Cells
    ranks: Mapping[str, float]

    @property
    def best(self) -> str:
        """The score of the best mean rank."""
        return next(iter(self.ranks))

    def behind(self, name: str, /) -> list[float]:
        """By how many points of AUROC a score is behind the best one of each pair."""
        return [max(cell.values()) - cell[name] for cell in self.cells.values()]

    def less(self, first: str, second: str, /) -> float:
        """Mean AUROC of a score less that of another."""
        return float(np.mean([cell[first] - cell[second] for cell in self.cells.values()]))


def catalogue(results: Sequence[Result], /) -> Cells:
    """The pairs in which every score was measured."""
    cells: dict[Pair, dict[str, float]] = {}
    for label in ("ScoreCatalogue", "TextIntents"):
        for number in numbers_of(results, label, metric="AUROC", measure=tuple(SCORES)):
            if number.ours:
                pair = Pair(*(number.keys[name] for name in Pair._fields))
                cells.setdefault(pair, {})[number.keys["measure"]] = number.ours.mean
    most = max(map(len, cells.values()), default=0)
    return {pair: cell for pair, cell in cells.items() if len(cell) == most}


def ranking(cells: Cells, chosen: Group = lambda _: True, /) -> Ranking | None:
    """The mean ranks on the chosen pairs; None where there is none."""
    some = {pair: cell for pair, cell in cells.items() if chosen(pair)}
    if not some:
        return None
    aurocs = {name: np.array([cell[name] for cell in some.values()]) for name in next(iter(some.values()))}
    ranks = mean_ranks(aurocs)
    return Ranking(some, dict(sorted(ranks.items(), key=lambda item: (item[1], -aurocs[item[0]].mean()))))


def ranking_table(results: Sequence[Result], /) -> str:
    """The best scores of every group, how far the usual one is behind, and which one is chosen on the other pairs."""
    cells = catalogue(results)
    if (overall := ranking(cells)) is None:
        return ""
    rows = []
    for words, chosen in {"all": lambda _: True, **DATA, **DISTANCES}.items():
        if found := ranking(cells, chosen):
            behind = found.behind(overall.best)
            best = [f"`{name}` {rank:.1f}" for name, rank in list(found.ranks.items())[:2]]
            gaps = f"{np.mean(behind):.2f} / {max(behind):.2f}"
            rows.append([words, str(len(found.cells)), *best, gaps, f"{found.ranks['epistemic']:.1f}"])
    head = ["Unknown inputs", "Pairs", "Best", "Second", f"`{overall.best}` behind", "`epistemic`"]
    ranks = ", ".join(f"{SCORES[name].label} {rank:.1f}" for name, rank in overall.ranks.items())
    rankings = [ranking({other: cell for other, cell in cells.items() if other != pair}) for pair in cells]
    winners = Counter(found.best for found in rankings if found)
    counts = " and ".join(f"{SCORES[name].label} for {count}" for name, count in winners.most_common())
    return joined(
        markdown_table(head, rows),
        f"Mean ranks of all {len(overall.ranks)} scores over all {len(cells)} pairs: {ranks}. Chosen on the other pairs, the "
        f"score is {counts} of {len(cells)}.",
    )


REPEATED: Final = 1e-3
"""Relative difference below which two tables give the same comparison; predictions stored as float16 change it by 1e-5."""
SPOILT: Final = {label for label, table in TABLES.items() if table.regime}
CURVES: Final = ("ece_cifar10_100_de", "nll_cifar10_100_de")
"""Figures against severity of networks that no table has on corrupted images."""
WORDS: Final = {
    "efficientnet_b2": "EfficientNet-B2",
    "vit_base": "ViT-Base",
    "efficientnet_lite0": "EfficientNet-Lite0",
    "mlp": "text networks",
    "cifar10n": "CIFAR-10 with wrong labels",
}
MEASURES: Final = {
    "EU": "`epistemic` less `mean_epistemic`",
    "GH": "`hartley` less `mean_epistemic`",
    "TU": "`total` less `mean_total`",
}
METRICS: Final = ("ACC", "ECE", "NLL")
FEW: Final = 10  # members, below which there are few
CREDAL, AVERAGE, EITHER = "the intersection probability", "the average", "either"
PLACES: Final = {
    ("cifar10", "clean"): "clean images of 10 classes",
    ("cifar100", "clean"): "clean images of 100 classes",
    ("clinc150", "clean"): "texts",
    ("cifar10", "corrupted"): "corrupted images of 10 classes",
    ("cifar100", "corrupted"): "corrupted images of 100 classes",
    ("cifar10n", "clean"): "clean images after wrong labels",
}
"""Training set and kind of test images -> their plain words."""
Case = tuple[str, str, bool]  # the data in plain words, the kind of model, and whether it has few members


@dataclass(frozen=True)
class Comparison:
    """Credal less averaged, under the keys of what was measured."""

    label: str
    keys: CellKey
    ours: Difference
    paper: PaperDifference | None = None

    @property
    def place(self) -> str:
        """Unknown inputs, corrupted ones, or the clean test set."""
        ood_set = self.keys.ood_set
        return "clean" if not ood_set else "corrupted" if ood_set.endswith("-c") else "unknown"


def comparisons(results: Iterable[Result], /) -> list[Comparison]:
    """Measured comparisons of models, those that two tables share only once."""
    seen: dict[CellKey, list[Comparison]] = {}
    found = []
    for entry in (entry for result in results for entry in compared_in(result)):
        others = seen.setdefault(entry.keys, [])
        if not _repeats(entry, others):
            others.append(entry)
            found.append(entry)
    return found


def compared_in(result: Result, /) -> Iterator[Comparison]:
    """Measured comparisons of one table, of models that are given their images as in training."""
    if isinstance(result, TableResult):
        measured = {cell.keys: CellKey(**{**cell.keys.as_dict(), **cell.substitutes}) for cell in result.cells}
        for entry in result.improvements:
            keys = measured[entry.keys]
            if entry.ours and keys.id_set and keys.preparation is None:
                yield Comparison(result.label, keys, entry.ours, entry.paper)


def _repeats(entry: Comparison, others: Iterable[Comparison]) -> bool:
    """Whether one of the others is the same difference over as many runs."""
    pairs = ((entry.ours, other.ours) for other in others)
    return any(one.n == other.n and isclose(one.mean, other.mean, rel_tol=REPEATED) for one, other in pairs)


def cells(results: Sequence[Result], /) -> list[Comparison]:
    """One comparison for each cell: a model with one number of members on one set, by one measure and metric.

    Where several tables measured networks of the same kind it is the mean over all their runs. Sets that PIA has reduced
    are left out, since exact measures need no reduction, and so are predictions that were made worse on purpose.
    """
    entries = comparisons(results)
    return _by_cell(one for one in entries if one.keys.J is None and declared_label(one.label) not in SPOILT)


def _by_cell(entries: Iterable[Comparison]) -> list[Comparison]:
    """The comparisons under the same keys as one, their mean over all runs."""
    groups: dict[CellKey, list[Comparison]] = {}
    for entry in entries:
        groups.setdefault(entry.keys, []).append(entry)
    merged = []
    for keys, group in groups.items():
        runs = [entry.ours.n for entry in group]
        mean, wins = fmean([entry.ours.mean for entry in group], runs), sum(entry.ours.wins for entry in group)
        whole = Difference(round(mean, DIGITS), None, sum(runs), wins, better_side(keys.metric, round(mean, DIGITS)))
        merged.append(replace(group[0], ours=whole) if len(group) > 1 else group[0])
    return merged


def network_name(keys: CellKey, /) -> str:
    """A kind of network and the data that it was trained on, in plain words.

    >>> network_name(CellKey(metric="ACC", backbone="vit_base", method="BNNR", id_set="cifar10"))
    'Bayesian ViT-Base on CIFAR-10'
    """
    kind, data = (WORDS.get(str(name)) or display_name(name) for name in (keys.backbone, keys.id_set))
    return f"{'Bayesian ' if keys.method in BAYESIAN else ''}{kind} on {data}"


def by_network(results: Sequence[Result], measure: str, /) -> dict[str, Tally]:
    """Credal less averaged in AUROC against unknown inputs."""
    differences: dict[str, list[float]] = {}
    for entry in cells(results):
        if (entry.keys.measure, entry.keys.metric, entry.place) == (measure, "AUROC", "unknown"):
            differences.setdefault(network_name(entry.keys), []).append(entry.ours.mean)
    return {network: Tally("AUROC", tuple(values)) for network, values in differences.items()}


def networks_table(results: Sequence[Result], /) -> str:
    """For every kind of network in how many cells credal is better than averaging, by each measure."""
    columns = [by_network(results, measure) for measure in MEASURES]
    networks = dict.fromkeys(network for column in columns for network in column)
    rows = [[name, *(column[name].text if name in column else NONE for column in columns)] for name in networks]
    return markdown_table(["Network", *MEASURES.values()], rows)


def by_data(results: Sequence[Result], /) -> dict[Case, dict[str, Tally]]:
    """For every case that has a calibration error and a log loss the point predictions' differences, by metric."""
    found: dict[Case, dict[str, list[float]]] = {}
    for entry in _by_cell((*cells(results), *_of_curves(results))):
        keys, words = entry.keys, PLACES.get((entry.keys.id_set or "", entry.place))
        if keys.measure is None and keys.metric in METRICS and words:
            case = words, "Bayesian samples" if keys.method in BAYESIAN else "ensembles", (keys.N or 0) < FEW
            found.setdefault(case, {}).setdefault(keys.metric, []).append(entry.ours.mean)
    order = list(PLACES.values())
    cases = sorted(found, key=lambda case: (case[1] != "ensembles", order.index(case[0]), not case[2]))
    return {
        case: {metric: Tally(metric, tuple(found[case].get(metric, ()))) for metric in METRICS}
        for case in cases
        if {"ECE", "NLL"} <= found[case].keys()
    }


def _of_curves(results: Sequence[Result]) -> Iterator[Comparison]:
    """Point predictions on corrupted images that figures have and tables do not, a mean over all severities each."""
    in_tables = comparisons(results)
    for result in (result for result in results if declared_label(result.label) in CURVES):
        for panel, averaged, credal in compared_lines(result):
            keys = CellKey(**{**(panel.keys.as_dict() if panel.keys else {}), **(panel.substitutes or {})})
            mean = fmean(credal.mean) - fmean(averaged.mean)
            better = better_side(keys.metric, mean)
            ours = Difference(mean, None, min(credal.n), int(better == "credal"), better)
            entry = Comparison(result.label, replace(keys, variant="credal"), ours)
            if not _repeats(entry, (one for one in in_tables if one.keys == entry.keys)):
                yield entry


def better_prediction(tallies: Mapping[str, Tally], /) -> str:
    """The intersection probability where ECE and NLL are for it; the average where one is, and none against it."""
    picks = {tallies[metric].pick(CREDAL, AVERAGE, EITHER) for metric in ("ECE", "NLL")}
    return CREDAL if picks == {CREDAL} else AVERAGE if AVERAGE in picks and CREDAL not in picks else EITHER


def predictions_table(results: Sequence[Result], /) -> str:
    """Every case with its metrics and the better prediction."""
    rows = []
    for (words, kind, few), tallies in by_data(results).items():
        texts = [tallies[metric].text if tallies[metric].differences else NONE for metric in METRICS]
        rows.append([words, kind, f"below {FEW}" if few else f"{FEW} or more", *texts, better_prediction(tallies)])
    return markdown_table(["Data", "Model", "Members", *METRICS, "Better"], rows)


def _place_name(entry: Comparison) -> str:
    return display_name(entry.keys.ood_set) if entry.keys.ood_set else "clean"


def tally_table(compared: Sequence[Comparison], /) -> str:
    """Wins and losses by measure, metric and set."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for entry in compared:
        where = "OOD sets" if entry.place == "unknown" else _place_name(entry)
        kind = entry.keys.measure or "prediction", display_name(entry.keys.metric), where
        counts.setdefault(kind, Counter())[entry.ours.better] += 1
    sides = ("credal", "classical", "equal")
    rows = [[*kind, *(str(won[side]) for side in sides)] for kind, won in sorted(counts.items())]
    return markdown_table(["Measured by", "Metric", "Set", "Won", "Lost", "Equal"], rows)


def losses_table(compared: Sequence[Comparison], /) -> str:
    """Every comparison that credal loses."""
    rows = []
    for entry in compared:
        keys = entry.keys
        if entry.ours.better == "classical":
            reduced = "" if keys.J is None else f", J = {keys.J}"
            data = "" if keys.id_set == C10 else f", on {display_name(keys.id_set)}"
            rows.append([
                f"`{entry.label}`",
                f"{model_name(keys.as_dict())}{reduced}{data}",
                _place_name(entry),
                keys.measure or NONE,
                display_name(keys.metric),
                difference_text(entry.ours, keys.metric),
                paper_difference_text(entry.paper, keys.metric),
            ])  # fmt: skip
    return markdown_table(["Table", "Model", "Set", "By", "Metric", "Difference", "Paper"], rows)
