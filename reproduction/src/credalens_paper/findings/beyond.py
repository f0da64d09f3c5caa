"""What the tables beyond the paper's say in a sentence each: near unknowns, fine-tuned networks, labels with mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import C10, C100
from credalens_paper.findings.lookup import Gap, Kind, gaps, numbers_of
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.values import value_text

NOISY: Final = "cifar10n"
WORDS: Final = {
    "EU": "credal EU beats mutual information",
    "GH": "the generalized Hartley measure beats mutual information",
    "TU": "credal TU beats classical TU",
}
MEASURES: Final = tuple(WORDS)


def near_sentence(results: Sequence[Result], /) -> str:
    """How often credal scores find near unknowns better."""
    shares = _shares(results, "NearOOD", "FineTuned", ood_set=(C10, C100))
    return f"Near unknowns (CIFAR-10 against CIFAR-100, or back), AUROC: {shares}." if shares else ""


def tuned_sentence(results: Sequence[Result], /) -> str:
    """How often credal scores find unknowns better in networks fine-tuned from weights of ImageNet."""
    shares = _shares(results, "FineTuned")
    about = "Fine-tuned from weights of ImageNet at 224 pixels, as the paper's large networks are (EfficientNet-Lite0), AUROC"
    seen = "Tiny-ImageNet was made from ImageNet, so that these weights have seen its classes."
    return f"{about}: {shares}. {seen}" if shares else ""


def noise_sentence(results: Sequence[Result], /) -> str:
    """Which uncertainty rises with wrong labels, and what becomes of OOD detection."""
    rises = [_rise(results, variant, name) for variant in ("classical", "credal") for name in ("AU", "EU")]
    shares = _shares(results, "LabelNoise", id_set=NOISY)
    if not all((*rises, shares)):
        return ""
    return (
        f"Trained on CIFAR-10's worst human labels instead of its own, an ensemble's mean uncertainty of the test images "
        f"changes, in bits: {', '.join(rises)}. OOD detection with them, AUROC: {shares}."
    )


def backbone_note(results: Sequence[Result], /) -> str:
    """That networks trained from random weights on small images stand for the paper's pretrained ones."""
    presets = [result.provenance.preset for result in results if result.label == "AblationBackbones"]
    backbones = tuple(presets[0].image_sizes or ()) if presets else ()
    if not backbones:
        return ""
    kind = Kind("NearOOD", {"variant": "classical", "metric": "ACC", "id_set": C10, "backbone": backbones})
    models = [
        f"{display_name(number.keys['backbone'])} at {presets[0].pixels(number.keys['backbone'])} pixels, "
        f"{value_text(number.ours.mean, 'ACC')} % accurate"
        for number in numbers_of(results, kind)
        if number.ours
    ]
    return (
        "The large networks of `AblationBackbones` and `NearOOD` are trained from random weights on small images (CIFAR-10,\n"
        f"averaged predictions: {'; '.join(models)}); the paper\nfine-tunes ImageNet weights at 224 pixels."
    )


def _shares(results: Sequence[Result], *labels: str, **keys: Any) -> str:
    """Credal against classical by every measure in the cells of some tables; empty where one is not measured."""
    tallies = {
        measure: Tally.of("AUROC", (gap.ours for label in labels for gap in _gaps(results, label, measure, **keys)))
        for measure in MEASURES
    }
    return (
        "; ".join(f"{WORDS[name]} in {tally.text}" for name, tally in tallies.items()) if all(tallies.values()) else ""
    )


def _gaps(results: Sequence[Result], label: str, measure: str, **keys: Any) -> list[Gap]:
    """Credal less classical AUROC."""
    pair = {"credal": measure, "classical": "EU" if measure == "GH" else measure}
    kinds = [Kind(label, {"variant": v, "measure": m, "metric": "AUROC", **keys}) for v, m in pair.items()]
    return gaps(results, *kinds, on=("backbone", "id_set", "ood_set"))


def _rise(results: Sequence[Result], variant: str, measure: str) -> str:
    means = {
        number.keys["id_set"]: number.ours.mean
        for number in numbers_of(
            results, Kind("LabelNoise", {"variant": variant, "measure": measure, "metric": "mean"})
        )
        if number.ours
    }
    if not {C10, NOISY} <= means.keys():
        return ""
    return f"{variant} {measure} {value_text(means[C10], 'mean')} to {value_text(means[NOISY], 'mean')}"
