"""The paper's claims, each as a comparison of cells, and in how many of them it holds, there and here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.cell_keys import is_better
from credalens_paper.experiments.paper_entries import DETECTION, OOD, SIZES
from credalens_paper.pages.lookup import Gap, Keys, Tally, ends, gaps, numbers_of
from credalens_paper.pages.markdown import NONE, joined, markdown_table
from credalens_paper.pages.result_page import substitutes_text
from credalens_paper.results.records import Result

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
