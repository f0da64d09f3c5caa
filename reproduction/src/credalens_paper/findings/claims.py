"""The paper's claims, each as a comparison of cells, and in how many of them it holds, there and here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.names import display_name
from credalens_paper.experiments.tables import OOD, SIZES
from credalens_paper.findings.lookup import Gap, Kind, gaps, is_better, spread_text
from credalens_paper.findings.notes import weak_models
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import NONE, markdown_table

__all__ = ["CLAIMS", "Claim", "claims_table", "verdict"]

SAME: Final = ("backbone", "method", "N", "id_set", "ood_set", "measure", "metric")
DETECTION: Final = ("AUROC", "AUPRC")
ABSENT: Final = None


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


def _credal(text: str, label: str, /, *, limit: float | None = None, **keys: Any) -> Claim:
    """Credal against classical in the cells of one table."""
    first, second = (Kind(label, {"variant": variant, **keys}) for variant in ("credal", "classical"))
    return Claim(text, first, second, limit=limit)


def _sizes() -> tuple[Claim, ...]:
    """Claims about the number of members compare cells of different N."""
    label, on = "AblationNEUAPP", ("ood_set", "metric")
    few, most = (Kind(label, {"variant": "credal", "N": N}) for N in (SIZES[0], SIZES[-1]))
    five, averaged = Kind(label, {"variant": "credal", "N": 5}), Kind(label, {"variant": "classical", "N": SIZES[-1]})
    return (
        Claim(f"More members help: credal EU of {SIZES[-1]} against {SIZES[0]}", most, few, on),
        Claim(f"Five credal members find OOD better than {SIZES[-1]} averaged ones, by EU", five, averaged, on),
    )


def _calibrated() -> tuple[Claim, ...]:
    """Claims about calibration by the number of members, at every severity."""
    label = "AblationStudyEnsemble"
    credal, averaged = (Kind(label, {"variant": variant}) for variant in ("credal", "classical"))
    few, most = (Kind(label, {"variant": "credal", "N": N}) for N in (SIZES[0], SIZES[-1]))
    lower = "It has lower ECE on corrupted images for every number of members and severity"
    return (
        Claim(lower, credal, averaged, ("N", "severity")),
        Claim(f"... and the lower, the more members: {SIZES[-1]} against {SIZES[0]}", most, few, ("severity",)),
    )


def _samples() -> Claim:
    few, many = (
        Kind("AblationBNNs", {"variant": variant, "N": N, "measure": "EU"})
        for variant, N in (("credal", 10), ("classical", 50))
    )
    on = ("backbone", "method", "ood_set", "metric")
    return Claim("Ten credal samples of them find OOD better than 50 averaged ones, by EU", few, many, on)


def _distilled() -> tuple[Claim, ...]:
    on = ("backbone", "ood_set", "metric")
    ensembles = {"method": "DE", "measure": "EU", "ood_set": OOD}
    credal, averaged = (Kind("OODMain", {"variant": v, **ensembles}) for v in ("credal", "classical"))
    distilled = Kind("OODMain", {"method": "EDD", "measure": "EU"})
    fair = Kind("UndiserableEDDfair", {"measure": "EU"})
    return (
        Claim("Credal deep ensembles find OOD better than distilled ones (EDD), by EU", credal, distilled, on),
        Claim("Averaged deep ensembles find OOD better than EDD-Fair, by EU", averaged, fair, on),
    )


def _hartley() -> Claim:
    hartley, mutual = (
        Kind("GHComparison", {"variant": v, "measure": m}) for v, m in (("credal", "GH"), ("classical", "EU"))
    )
    on = ("backbone", "method", "ood_set", "metric")
    return Claim("The generalized Hartley measure finds OOD better than mutual information", hartley, mutual, on)


def _reduced() -> Claim:
    many, few = (Kind("AblationPIA", {"J": J, "metric": DETECTION}) for J in (100, 10))
    return Claim("PIA: keeping more classes helps, J = 100 against 10, by EU", many, few, ("ood_set", "metric"))


CLAIMS: Final = (
    _credal("Credal EU finds OOD better than mutual information, N = 5", "OODMain", measure="EU", ood_set=OOD),
    _credal("The same against corrupted images", "OODMain", measure="EU", ood_set="cifar10-c"),
    _credal("The intersection probability has lower ECE on corrupted images", "OODMain", metric="ECE", ood_set="cifar10-c"),
    _credal("... and lower NLL", "OODMain", metric="NLL", ood_set="cifar10-c"),
    *_calibrated(),
    _credal("Its accuracy on clean images is comparable (within 0.5)", "OODMain", metric="ACC", ood_set=ABSENT, limit=0.5),
    _credal("Its ECE on clean images is comparable (within 0.01)", "OODMain", metric="ECE", ood_set=ABSENT, limit=0.01),
    _credal("Credal TU finds OOD better than classical TU, N = 5", "OODMainTU"),
    _credal("Credal EU is better for every number of members", "AblationNEUAPP"),
    _credal("Credal TU is better for every number of members", "AblationNTU"),
    *_sizes(),
    _credal("Credal EU is better for Bayesian networks of 10 and 50 samples", "AblationBNNs", measure="EU"),
    _credal("Credal TU is better for them", "AblationBNNs", measure="TU"),
    _samples(),
    _credal("Credal EU is better with 1000 samples", "1000samplesBNNREU", measure="EU"),
    _hartley(),
    _credal("With an overconfident member credal EU is better", "Overconfident", measure="EU"),
    _credal("With an overconfident member credal TU is better", "Overconfident", measure="TU"),
    *_distilled(),
    _credal("Credal EU is better on ResNet-50 (CIFAR-10, CIFAR-100, ImageNet)", "AblationPreTrain"),
    _credal("Credal EU is better on EfficientNet-B2 and ViT-Base", "AblationBackbones"),
    _reduced(),
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
    labels = ", ".join(f"`{label}`" for label in dict.fromkeys((claim.first.label, claim.second.label)))
    caution = _caution(results, claim) if counts else ""
    shares = [_share(claim, compared, source) for source in ("paper", "ours")]
    return [claim.text, labels, *shares, runs, f"{verdict(results, claim)}{caution}"]


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
