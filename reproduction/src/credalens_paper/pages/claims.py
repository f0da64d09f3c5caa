"""Numbers of result files by their keys, and the paper's claims as comparisons of them, in how many of which each holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.cell_keys import display_name, is_better
from credalens_paper.experiments.paper_entries import DETECTION, OOD, POINTS, SCORES, SIZES
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperNumber
from credalens_paper.pages.markdown import NONE, joined, markdown_table, value_text
from credalens_paper.pages.result_page import substitutes_text
from credalens_paper.results.records import FigureResult, Line, Panel, Result, Runs, TableResult

Keys = Mapping[str, Any]
LINES: Final = tuple(tuple(name for name, _ in pair) for pair in (POINTS, SCORES))
"""The classical and the credal line of a figure against severity."""
CLEAR: Final = 0.8  # the share of the cells that one way must win to be called the better one


@dataclass(frozen=True)
class Number:
    """A number of a result: its keys, ours and the paper's."""

    keys: Keys
    ours: Runs | None = None
    paper: PaperNumber | None = None


def numbers_of(results: Sequence[Result], label: str, /, **keys: Any) -> list[Number]:
    """The numbers of a label with these keys, measured or not, in their order; the paper's alone where there is no result.

    A key is a value, a tuple of several, or None where it must be absent. Points of a figure's lines are numbers too, with
    the severity as a key.
    """
    labelled = [result for result in results if result.label == label]
    if labelled:
        numbers = [number for result in labelled for number in _numbers(result)]
    else:
        printed = PAPER_TABLES[label].cells if label in PAPER_TABLES else {}
        numbers = [Number(key.as_dict(), paper=number) for key, number in printed.items()]

    def fits(number: Number) -> bool:
        pairs = ((number.keys.get(name), asked) for name, asked in keys.items())
        return all(value in asked if isinstance(asked, tuple) else value == asked for value, asked in pairs)

    return [number for number in numbers if fits(number)]


def _numbers(result: Result) -> Iterator[Number]:
    if isinstance(result, TableResult):
        yield from (Number(cell.keys.as_dict(), cell.ours, cell.paper) for cell in result.cells)
    for panel, *lines in compared_lines(result):
        keys = panel.keys.as_dict() if panel.keys else {}
        for variant, line in zip(("classical", "credal"), lines, strict=True):
            for severity, mean, n in zip(line.x, line.mean, line.n, strict=True):
                yield Number({**keys, "variant": variant, "severity": severity}, Runs(mean, None, n))


def means_of(results: Sequence[Result], label: str, by: str, /, **keys: Any) -> dict[Any, float]:
    """The measured means of the numbers with these keys, by the value of another key."""
    return {number.keys.get(by): number.ours.mean for number in numbers_of(results, label, **keys) if number.ours}


def compared_lines(result: Result, /) -> Iterator[tuple[Panel, Line, Line]]:
    """Every panel of a figure that has a classical and a credal line, with both."""
    for panel in result.panels if isinstance(result, FigureResult) else ():
        lines = {line.name: line for line in panel.series or ()}
        for classical, credal in LINES:
            if {classical, credal} <= lines.keys():
                yield panel, lines[classical], lines[credal]


@dataclass(frozen=True)
class Gap:
    """A number less the one it is compared with: the means of ours, those of the paper, and how many runs ours has."""

    metric: str
    ours: float | None
    paper: float | None
    n: int


def gaps(first: Iterable[Number], second: Iterable[Number], /, *, on: Sequence[str]) -> list[Gap]:
    """Every one of the first numbers less the one of the second that has the same values of the keys `on`."""

    def at(number: Number) -> tuple[Any, ...]:
        return tuple(number.keys.get(name) for name in on)

    partners = {at(number): number for number in second}
    found = []
    for number in first:
        if (partner := partners.get(at(number))) is not None:
            ours = round(number.ours.mean - partner.ours.mean, 9) if number.ours and partner.ours else None
            paper = round(number.paper.mean - partner.paper.mean, 6) if number.paper and partner.paper else None
            n = min(one.ours.n if one.ours else 0 for one in (number, partner))
            found.append(Gap(number.keys["metric"], ours, paper, n))
    return found


@dataclass(frozen=True)
class Tally:
    """Differences of a metric, the first way less the second, a cell each."""

    metric: str
    differences: tuple[float, ...]

    def pick(self, first: str, second: str, neither: str, /) -> str:
        """The way that is better in most cells (`CLEAR`), or neither."""
        won, lost = (sum(is_better(self.metric, sign * one) for one in self.differences) for sign in (1, -1))
        enough = max(CLEAR * len(self.differences), 1)
        return first if won >= enough else second if lost >= enough else neither

    @property
    def share(self) -> str:
        """The cells that the first way wins."""
        return f"{sum(is_better(self.metric, one) for one in self.differences)} of {len(self.differences)} cells"

    @property
    def spread(self) -> str:
        """The least and the greatest difference, once where they read the same."""
        texts = [value_text(value, self.metric, sign="+") for value in (min(self.differences), max(self.differences))]
        return " to ".join(dict.fromkeys(texts))

    @property
    def text(self) -> str:
        """The cells that the first way wins, and the differences."""
        return f"{self.share}, {self.spread}"


def ends(values: Sequence[float], form: str, /) -> str:
    """The least and the greatest of some values, once where they read the same."""
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in (min(values), max(values))))


def model_name(keys: Keys, /) -> str:
    """Backbone, method and size.

    >>> model_name({"backbone": "vgg16", "method": "DE", "N": 5}), model_name({"backbone": "vgg16", "method": "EDD"})
    ('VGG16 DE, N = 5', 'VGG16 EDD')
    """
    size = f", N = {keys['N']}" if keys.get("N") else ""
    return f"{display_name(keys.get('backbone'))} {keys.get('method')}{size}"


ABSENT: Final = None
CREDAL, AVERAGED = {"variant": "credal"}, {"variant": "classical"}
FEW, MOST = {"N": SIZES[0]}, {"N": SIZES[-1]}


@dataclass(frozen=True)
class Claim:
    """Numbers with the first keys are better than those with the second; or, with a limit, no further from them than that.

    :ivar keys: of both; :ivar other: the label of the second, where that is another one.
    """

    text: str
    label: str
    first: Keys
    second: Keys
    keys: Keys
    on: tuple[str, ...] = ("backbone", "method", "N", "id_set", "ood_set", "measure", "metric")
    limit: float | None = None
    other: str = ""

    def gaps(self, results: Sequence[Result], /) -> list[Gap]:
        """Every difference that the claim is about."""
        sides = ((self.label, self.first), (self.other or self.label, self.second))
        first, second = (numbers_of(results, label, **self.keys, **keys) for label, keys in sides)
        return gaps(first, second, on=self.on)

    def holds(self, metric: str, difference: float, /) -> bool:
        """Whether one difference bears the claim out."""
        return is_better(metric, difference) if self.limit is None else abs(difference) <= self.limit


def _credal(text: str, label: str, /, *, limit: float | None = None, **keys: Any) -> Claim:
    """Credal against classical in the cells of one table."""
    return Claim(text, label, CREDAL, AVERAGED, keys, limit=limit)


CLAIMS: Final = (
    _credal("Credal EU finds OOD better than mutual information, N = 5", "OODMain", measure="EU", ood_set=OOD),
    _credal("The same against corrupted images", "OODMain", measure="EU", ood_set="cifar10-c"),
    _credal("The intersection probability has lower ECE on corrupted images", "OODMain", metric="ECE", ood_set="cifar10-c"),
    _credal("... and lower NLL", "OODMain", metric="NLL", ood_set="cifar10-c"),
    Claim("It has lower ECE on corrupted images for every number of members and severity",
          "AblationStudyEnsemble", CREDAL, AVERAGED, {}, ("N", "severity")),
    Claim(f"... and the lower, the more members: {SIZES[-1]} against {SIZES[0]}",
          "AblationStudyEnsemble", MOST, FEW, CREDAL, ("severity",)),
    _credal("Its accuracy on clean images is comparable (within 0.5)", "OODMain", metric="ACC", ood_set=ABSENT, limit=0.5),
    _credal("Its ECE on clean images is comparable (within 0.01)", "OODMain", metric="ECE", ood_set=ABSENT, limit=0.01),
    _credal("Credal TU finds OOD better than classical TU, N = 5", "OODMainTU"),
    _credal("Credal EU is better for every number of members", "AblationNEUAPP"),
    _credal("Credal TU is better for every number of members", "AblationNTU"),
    Claim(f"More members help: credal EU of {SIZES[-1]} against {SIZES[0]}",
          "AblationNEUAPP", MOST, FEW, CREDAL, ("ood_set", "metric")),
    Claim(f"Five credal members find OOD better than {SIZES[-1]} averaged ones, by EU",
          "AblationNEUAPP", {**CREDAL, "N": 5}, {**AVERAGED, **MOST}, {}, ("ood_set", "metric")),
    _credal("Credal EU is better for Bayesian networks of 10 and 50 samples", "AblationBNNs", measure="EU"),
    _credal("Credal TU is better for them", "AblationBNNs", measure="TU"),
    Claim("Ten credal samples of them find OOD better than 50 averaged ones, by EU", "AblationBNNs",
          {**CREDAL, "N": 10}, {**AVERAGED, "N": 50}, {"measure": "EU"}, ("backbone", "method", "ood_set", "metric")),
    _credal("Credal EU is better with 1000 samples", "1000samplesBNNREU", measure="EU"),
    Claim("The generalized Hartley measure finds OOD better than mutual information", "GHComparison",
          {**CREDAL, "measure": "GH"}, {**AVERAGED, "measure": "EU"}, {}, ("backbone", "method", "ood_set", "metric")),
    _credal("With an overconfident member credal EU is better", "Overconfident", measure="EU"),
    _credal("With an overconfident member credal TU is better", "Overconfident", measure="TU"),
    Claim("Credal deep ensembles find OOD better than distilled ones (EDD), by EU", "OODMain",
          {**CREDAL, "method": "DE"}, {"method": "EDD"}, {"measure": "EU", "ood_set": OOD},
          ("backbone", "ood_set", "metric")),
    Claim("Averaged deep ensembles find OOD better than EDD-Fair, by EU", "OODMain",
          {**AVERAGED, "method": "DE"}, {}, {"measure": "EU", "ood_set": OOD},
          ("backbone", "ood_set", "metric"), other="UndiserableEDDfair"),
    _credal("Credal EU is better on ResNet-50 (CIFAR-10, CIFAR-100, ImageNet)", "AblationPreTrain"),
    _credal("Credal EU is better on EfficientNet-B2 and ViT-Base", "AblationBackbones"),
    Claim("PIA: keeping more classes helps, J = 100 against 10, by EU", "AblationPIA",
          {"J": 100}, {"J": 10}, {"metric": DETECTION}, ("ood_set", "metric")),
)  # fmt: skip
"""In the order of the paper, in our words."""


def claims_table(results: Sequence[Result], /) -> str:
    """Every claim with the cells in which it holds and the least and greatest difference, the paper's and ours."""
    head, verdicts = ["Claim of the paper", "Result", "Paper", "Here", "n", "Holds here"], Counter[str]()
    rows = []
    for claim in CLAIMS:
        compared = claim.gaps(results)
        labels = ", ".join(_named(results, label) for label in (claim.label, claim.other) if label)
        shares = [_share(claim, compared, source) for source in ("paper", "ours")]
        counts = [gap.n for gap in compared if gap.ours is not None]
        answer = verdict(claim, compared)
        verdicts[answer] += 1
        rows.append([claim.text, labels, *shares, ends(counts, "d") if counts else NONE, answer])
    summary = (
        f"Of {len(CLAIMS)} claims of the paper {verdicts['yes']} hold here in every cell measured, {verdicts['partly']} in "
        f"some, {verdicts['no']} in none; not measured: {verdicts['not measured']}."
    )
    return joined(markdown_table(head, rows), summary)


def _named(results: Sequence[Result], label: str) -> str:
    """The label, and which network was measured in place of the paper's."""
    substitutes = "".join(substitutes_text(result) for result in results if result.label == label)
    return f"`{label}` ({substitutes})" if substitutes else f"`{label}`"


def _differences(compared: Sequence[Gap], source: str) -> list[tuple[str, float]]:
    """(metric, difference) of the gaps that have one, in "ours" or in the "paper"."""
    return [(gap.metric, getattr(gap, source)) for gap in compared if getattr(gap, source) is not None]


def _share(claim: Claim, compared: Sequence[Gap], source: str) -> str:
    if not (differences := _differences(compared, source)):
        return NONE
    holding = sum(claim.holds(*difference) for difference in differences)
    sizes = Tally(differences[0][0], tuple(difference for _, difference in differences)).spread
    return f"{holding} of {len(differences)} cells, {sizes}"


def verdict(claim: Claim, compared: Sequence[Gap], /) -> str:
    """ "yes" where all measured cells bear the claim out, "no" where none does, else "partly"; "not measured"."""
    holding = [claim.holds(*difference) for difference in _differences(compared, "ours")]
    return "not measured" if not holding else "yes" if all(holding) else "partly" if any(holding) else "no"
