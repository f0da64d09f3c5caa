"""What aleatoric and epistemic uncertainty do not mean: people's disagreement, and what better labels would mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from credalens_paper.experiments.tables import C10
from credalens_paper.findings.advice.sentence import Advice, section
from credalens_paper.findings.beyond import NOISY
from credalens_paper.findings.lookup import Kind, estimates_of, numbers_of
from credalens_paper.findings.people import GAP, LABEL, NEAR
from credalens_paper.results.records import Result

TITLE: Final = "People and wrong labels"
PEOPLE: Final = "what people disagree about"
RISES: Final = 1.5
"""The factor from which on an uncertainty is said to rise."""


def known_by_aleatoric(results: Sequence[Result], /) -> list[bool]:
    """For every kind of network whether aleatoric uncertainty knows people's disagreement better than epistemic does."""
    return [gains[GAP].low > NEAR for _, gains, _ in estimates_of(results, LABEL).values()]


def noisy_means(results: Sequence[Result], measure: str, /) -> Mapping[str, float]:
    """Mean credal uncertainty of the test images in bits, by what the networks were trained on."""
    kind = Kind("LabelNoise", {"variant": "credal", "measure": measure, "metric": "mean"})
    return {number.keys["id_set"]: number.ours.mean for number in numbers_of(results, kind) if number.ours}


def meaning_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether the two uncertainties mean what their names say."""
    known, means = known_by_aleatoric(results), noisy_means(results, "EU")
    if not known or not {C10, NOISY} <= means.keys():
        return None
    people = sum(known) > len(known) / 2
    rises = means[NOISY] > RISES * means[C10]
    read, not_read = "Read aleatoric uncertainty", "Do not read aleatoric uncertainty"
    verbs = {
        (True, False): f"{read} as {PEOPLE}, and epistemic as apart from wrong labels",
        (True, True): f"{read} as {PEOPLE}, but not epistemic as what the labels leave open",
        (False, False): f"{not_read} as {PEOPLE}",
        (False, True): f"{not_read} as {PEOPLE}, nor epistemic as free of label noise",
    }
    because = (
        f"Aleatoric follows people's disagreement about CIFAR-10 clearly more closely than epistemic does in {sum(known)} of "
        f"{len(known)} kinds of network; training on wrong labels moves `epistemic` from {means[C10]:.2f} to "
        f"{means[NOISY]:.2f} bits."
    )
    return Advice(verbs[people, rises], because, (section(TITLE),))
