"""The paper's claims, each as a comparison of cells, and in how many of them it holds, there and here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import DETECTION, OOD, SIZES
from credalens_paper.findings.lookup import Gap, Kind, gaps, is_better, spread_text
from credalens_paper.findings.notes import weak_models
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.origin_lines import substitutes_text

SAME: Final = ("backbone", "method", "N", "id_set", "ood_set", "measure", "metric")
ABSENT: Final = None
Keys = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """The first kind of numbers is better than the second; or, with a limit, no further from it than that."""

    text: str
    first: Kind
    second: Kind
    on: tuple[str, ...] = SAME
    limit: float | None = None

    def holds(self, metric: str, difference: float, /) -> bool:
        """Whether one difference bears the claim out."""
        return is_better(metric, difference) if self.limit is None else abs(difference) <= self.limit


def _claim(
    text: str, labels: tuple[str, str], first: Keys, second: Keys, on: tuple[str, ...] = SAME, /, **keys: Any
) -> Claim:
    """The cells of one label with the first keys against those of another with the second; both have the others."""
    return Claim(text, Kind(labels[0], {**first, **keys}), Kind(labels[1], {**second, **keys}), on)


def _credal(text: str, label: str, /, *, limit: float | None = None, **keys: Any) -> Claim:
    """Credal against classical in the cells of one table."""
    return replace(_claim(text, (label, label), CREDAL, CLASSICAL, **keys), limit=limit)


CREDAL: Final = {"variant": "credal"}
CLASSICAL: Final = {"variant": "classical"}
FEW, MOST = {"N": SIZES[0]}, {"N": SIZES[-1]}
BY_SIZE: Final = ("AblationNEUAPP", "AblationNEUAPP")
LINES: Final = ("AblationStudyEnsemble", "AblationStudyEnsemble")
CLAIMS: Final = (
    _credal("Credal EU finds OOD better than mutual information, N = 5", "OODMain", measure="EU", ood_set=OOD),
    _credal("The same against corrupted images", "OODMain", measure="EU", ood_set="cifar10-c"),
    _credal("The intersection probability has lower ECE on corrupted images", "OODMain", metric="ECE", ood_set="cifar10-c"),
    _credal("... and lower NLL", "OODMain", metric="NLL", ood_set="cifar10-c"),
    _claim("It has lower ECE on corrupted images for every number of members and severity",
           LINES, CREDAL, CLASSICAL, ("N", "severity")),
    _claim(f"... and the lower, the more members: {SIZES[-1]} against {SIZES[0]}", LINES, MOST, FEW, ("severity",), **CREDAL),
    _credal("Its accuracy on clean images is comparable (within 0.5)", "OODMain", metric="ACC", ood_set=ABSENT, limit=0.5),
    _credal("Its ECE on clean images is comparable (within 0.01)", "OODMain", metric="ECE", ood_set=ABSENT, limit=0.01),
    _credal("Credal TU finds OOD better than classical TU, N = 5", "OODMainTU"),
    _credal("Credal EU is better for every number of members", "AblationNEUAPP"),
    _credal("Credal TU is better for every number of members", "AblationNTU"),
    _claim(f"More members help: credal EU of {SIZES[-1]} against {SIZES[0]}",
           BY_SIZE, MOST, FEW, ("ood_set", "metric"), **CREDAL),
    _claim(f"Five credal members find OOD better than {SIZES[-1]} averaged ones, by EU",
           BY_SIZE, {**CREDAL, "N": 5}, {**CLASSICAL, **MOST}, ("ood_set", "metric")),
    _credal("Credal EU is better for Bayesian networks of 10 and 50 samples", "AblationBNNs", measure="EU"),
    _credal("Credal TU is better for them", "AblationBNNs", measure="TU"),
    _claim("Ten credal samples of them find OOD better than 50 averaged ones, by EU", ("AblationBNNs", "AblationBNNs"),
           {**CREDAL, "N": 10}, {**CLASSICAL, "N": 50}, ("backbone", "method", "ood_set", "metric"), measure="EU"),
    _credal("Credal EU is better with 1000 samples", "1000samplesBNNREU", measure="EU"),
    _claim("The generalized Hartley measure finds OOD better than mutual information", ("GHComparison", "GHComparison"),
           {**CREDAL, "measure": "GH"}, {**CLASSICAL, "measure": "EU"}, ("backbone", "method", "ood_set", "metric")),
    _credal("With an overconfident member credal EU is better", "Overconfident", measure="EU"),
    _credal("With an overconfident member credal TU is better", "Overconfident", measure="TU"),
    _claim("Credal deep ensembles find OOD better than distilled ones (EDD), by EU", ("OODMain", "OODMain"),
           {**CREDAL, "method": "DE"}, {"method": "EDD"}, ("backbone", "ood_set", "metric"), measure="EU", ood_set=OOD),
    _claim("Averaged deep ensembles find OOD better than EDD-Fair, by EU", ("OODMain", "UndiserableEDDfair"),
           {**CLASSICAL, "method": "DE"}, {}, ("backbone", "ood_set", "metric"), measure="EU", ood_set=OOD),
    _credal("Credal EU is better on ResNet-50 (CIFAR-10, CIFAR-100, ImageNet)", "AblationPreTrain"),
    _credal("Credal EU is better on EfficientNet-B2 and ViT-Base", "AblationBackbones"),
    _claim("PIA: keeping more classes helps, J = 100 against 10, by EU", ("AblationPIA", "AblationPIA"),
           {"J": 100}, {"J": 10}, ("ood_set", "metric"), metric=DETECTION),
)  # fmt: skip
"""In the order of the paper, in our words."""


def claims_table(results: Sequence[Result], /) -> str:
    """Every claim with the cells in which it holds and the least and greatest difference, the paper's and ours."""
    head = ["Claim of the paper", "Result", "Paper", "Here", "n", "Holds here"]
    return markdown_table(head, [_row(results, claim) for claim in CLAIMS])


def _row(results: Sequence[Result], claim: Claim) -> list[str]:
    compared = gaps(results, claim.first, claim.second, on=claim.on)
    counts = sorted({gap.n for gap in compared if gap.ours is not None})
    runs = " to ".join(dict.fromkeys((str(counts[0]), str(counts[-1])))) if counts else NONE
    labels = ", ".join(_named(results, label) for label in dict.fromkeys((claim.first.label, claim.second.label)))
    caution = _caution(results, claim) if counts else ""
    shares = [_share(claim, compared, source) for source in ("paper", "ours")]
    return [claim.text, labels, *shares, runs, f"{verdict(results, claim)}{caution}"]


def _named(results: Sequence[Result], label: str) -> str:
    """The label, and which network was measured in place of the paper's."""
    substitutes = "".join(substitutes_text(result) for result in results if result.label == label)
    return f"`{label}` ({substitutes})" if substitutes else f"`{label}`"


def _caution(results: Sequence[Result], claim: Claim) -> str:
    """Which networks of a method that a claim names are not as good here as the paper's."""
    methods = {kind.keys.get("method") for kind in (claim.first, claim.second)}
    weak = [(backbone, method) for backbone, method in weak_models(results) if method in methods]
    return "".join(f"; {method} on {display_name(backbone)} is weaker here" for backbone, method in weak)


def _share(claim: Claim, compared: Sequence[Gap], source: str) -> str:
    differences = _differences(compared, source)
    if not differences:
        return NONE
    holding = sum(claim.holds(metric, difference) for metric, difference in differences)
    sizes = spread_text([difference for _, difference in differences], differences[0][0])
    return f"{holding} of {len(differences)} cells, {sizes}"


def _differences(compared: Sequence[Gap], source: str) -> list[tuple[str, float]]:
    """(metric, difference) of the gaps that have one, in "ours" or in the "paper"."""
    return [(gap.metric, getattr(gap, source)) for gap in compared if getattr(gap, source) is not None]


def verdict(results: Sequence[Result], claim: Claim, /) -> str:
    """ "yes" where all measured cells bear the claim out, "no" where none does, else "partly"; "not measured"."""
    compared = gaps(results, claim.first, claim.second, on=claim.on)
    holding = [claim.holds(metric, difference) for metric, difference in _differences(compared, "ours")]
    if not holding:
        return "not measured"
    return "yes" if all(holding) else "partly" if any(holding) else "no"
