"""Samples of Bayesian networks, and a distilled network instead of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.tables import OOD
from credalens_paper.findings.advice.prediction import CREDAL, prediction_cases
from credalens_paper.findings.advice.sentence import Advice, listed, page, section
from credalens_paper.findings.lookup import Kind, gaps
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Result

LABEL: Final = "AblationBNNs"
FEW, MANY = 10, 50


def _fewer_credal(results: Sequence[Result], measure: str) -> Tally:
    """Few credal samples less many averaged ones."""
    shared = {"measure": measure, "metric": "AUROC"}
    kinds = [Kind(LABEL, {"variant": v, "N": N, **shared}) for v, N in (("credal", FEW), ("classical", MANY))]
    return Tally.of("AUROC", (gap.ours for gap in gaps(results, *kinds, on=("backbone", "method", "ood_set"))))


def distilled(results: Sequence[Result], /) -> Tally:
    """Credal ensembles of five less one network that imitates an ensemble, by epistemic uncertainty."""
    shared = {"measure": "EU", "metric": "AUROC", "ood_set": OOD}
    kinds = [Kind("OODMain", {**keys, **shared}) for keys in ({"method": "DE", "variant": "credal"}, {"method": "EDD"})]
    return Tally.of("AUROC", (gap.ours for gap in gaps(results, *kinds, on=("backbone", "ood_set"))))


def samples_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether few credal samples replace many averaged ones, which prediction, and whether distilling pays."""
    epistemic, total = (_fewer_credal(results, measure) for measure in ("EU", "TU"))
    if not epistemic:
        return None
    do = epistemic.pick(
        f"With a Bayesian network, wrap {FEW} samples instead of averaging {MANY} if you use epistemic uncertainty",
        f"With a Bayesian network, averaging {MANY} samples beats wrapping {FEW}, even by epistemic uncertainty",
        f"With a Bayesian network, try {FEW} wrapped and {MANY} averaged samples if you use epistemic uncertainty",
    )
    by_total = f", by total uncertainty in {total.share}" if total else ""
    because = f"The {FEW} find more in {epistemic.share}{by_total}. {_prediction(results)}{_distilled(results)}"
    return Advice(do, because.strip(), (page(LABEL), section("The paper's claims")))


def _prediction(results: Sequence[Result]) -> str:
    chosen = [case for case in prediction_cases(results) if case.method != "ensembles" and case.better == CREDAL]
    places = listed(dict.fromkeys(case.words for case in chosen)) if chosen else "no data that were measured"
    return f"The intersection probability predicts better for {places}. "


def _distilled(results: Sequence[Result]) -> str:
    found = distilled(results)
    if not found:
        return ""
    word = found.pick("is worse than", "is better than", "is sometimes as good as")
    return (
        f"One network distilled from an ensemble {word} five credal networks by epistemic uncertainty; these find more in "
        f"{found.share}."
    )
