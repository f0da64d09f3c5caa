"""How many members: what more of them add to detection, and from how many on they harm calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BOTH, C10, C100, OOD, SIZES
from credalens_paper.findings.advice.sentence import Advice, listed, page, section
from credalens_paper.findings.lookup import Kind, gaps, numbers_of
from credalens_paper.findings.tally import Tally
from credalens_paper.findings.trimming import trim_tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined, markdown_table
from credalens_paper.results.rendering.origin_lines import substitutes_text

TITLE: Final = "How many members"
USUAL, MOST = 5, SIZES[-1]
WORTH: Final = 1.0
"""Points of AUROC from which on more members are worth training."""
LABELS: Final = {"EU": "AblationNEUAPP", "TU": "AblationNTU"}
CALIBRATION: Final = "AblationStudyEnsemble"
SOURCES: Final = {
    C10: ("10 classes", (LABELS["TU"],)),
    C100: ("100 classes", ("TrimmedIntervals",)),
    "clinc150": ("texts", ("TextIntents", "TrimmedText")),
}
"""Training set -> its plain words, and the results that have credal ensembles of several sizes on it."""


@dataclass(frozen=True)
class Growth:
    """AUROC by total uncertainty of the most members that were measured less that of the usual number."""

    words: str
    data: str
    most: int
    gain: Tally

    @property
    def text(self) -> str:
        """The gain and where it was measured."""
        return f"{self.gain.spread} points for {self.words} ({display_name(self.data)}, {self.most} members)"


def growths(results: Sequence[Result], /) -> list[Growth]:
    """What more members add, for every kind of data that was measured with several numbers of them."""
    found = []
    for data, (words, labels) in SOURCES.items():
        keys = {"id_set": data, "method": "DE", "variant": "credal", "measure": "TU", "metric": "AUROC"}
        aurocs: dict[int, dict[str, float]] = {}
        for number in (one for label in labels for one in numbers_of(results, Kind(label, keys))):
            if number.ours:
                aurocs.setdefault(number.keys["N"], {})[number.keys["ood_set"]] = number.ours.mean
        most = max(aurocs, default=USUAL)
        if most > USUAL and USUAL in aurocs:
            gain = Tally("AUROC", tuple(auroc - aurocs[USUAL][ood_set] for ood_set, auroc in aurocs[most].items()))
            found.append(Growth(words, data, most, gain))
    return found


def added(results: Sequence[Result], measure: str, first: tuple[str, int], second: tuple[str, int], /) -> Tally:
    """AUROC by a measure of one variant and number of members less that of another."""
    kinds = [Kind(LABELS[measure], {"variant": variant, "N": N, "metric": "AUROC"}) for variant, N in (first, second)]
    return Tally.of("AUROC", (gap.ours for gap in gaps(results, *kinds, on=("ood_set",))))


def harmful_size(results: Sequence[Result], /) -> int | None:
    """The least number of members whose intersection probability has the higher ECE at some severity of corruption."""
    return next((N for N in SIZES if worse_severities(results, N)), None)


def worse_severities(results: Sequence[Result], N: int, /) -> list[int]:
    """The severities of corruption at which the intersection probability of N members has the higher ECE."""
    credal, averaged = (
        {one.keys["severity"]: one.ours.mean for one in numbers_of(results, Kind(CALIBRATION, keys)) if one.ours}
        for keys in ({"variant": variant, "N": N} for variant in ("credal", "classical"))
    )
    return [severity for severity in credal if credal[severity] > averaged[severity]]


def members_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether five members are enough, whether they replace many averaged ones, and when more of them harm."""
    more, harmful = growths(results), harmful_size(results)
    if not more:
        return None
    gain = f"Going from {USUAL} members to the most measured changes the AUROC of `total` by {listed(g.text for g in more)}. "
    because = f"{gain}{_instead(results)}{_harm(results, harmful)}"
    return Advice(
        f"{_how_many(more)}{_then(results, harmful)}", because, (section(TITLE), section("Trimmed intervals"))
    )


def _how_many(more: Sequence[Growth]) -> str:
    """For which data the usual number of members is enough."""
    enough = [one.words for one in more if max(one.gain.differences) < WORTH]
    others = [one.words for one in more if one.words not in enough]
    if not others:
        return f"Train {USUAL} members; more add little"
    if not enough:
        return f"Train more than {USUAL} members if you can"
    return (
        f"Train {USUAL} members for {listed(enough)}, where more add little; train more for {listed(others)} if you can"
    )


def _then(results: Sequence[Result], harmful: int | None) -> str:
    """From how many members on to predict with the average, and for which inputs not even then."""
    if harmful is None:
        return ""
    severest = max(one.keys["severity"] for one in numbers_of(results, Kind(CALIBRATION, {"N": harmful})))
    always = any(severest in worse_severities(results, N) for N in SIZES)
    return f". From {harmful} on predict with the average{'' if always else ', unless inputs are badly corrupted'}"


def _instead(results: Sequence[Result]) -> str:
    """Whether five credal members are better than many averaged ones, by either uncertainty."""
    epistemic, total = (added(results, measure, ("credal", USUAL), ("classical", MOST)) for measure in LABELS)
    if not epistemic or not total:
        return ""
    return (
        f"By epistemic uncertainty {USUAL} credal members {epistemic.pick('beat', 'do not beat', 'sometimes beat')} {MOST} "
        f"averaged ones ({epistemic.share}); by total uncertainty they {total.pick('do', 'do not', 'sometimes do')} "
        f"({total.share}). "
    )


def _harm(results: Sequence[Result], harmful: int | None) -> str:
    """From how many members on calibration suffers, and whether trimmed intervals mend it."""
    if harmful is None:
        return "More members never harmed calibration on corrupted images."
    severities = listed(str(severity) for severity in worse_severities(results, harmful))
    harm = (
        f"From {harmful} on the intersection probability is worse calibrated than the average on mildly corrupted images "
        f"({harmful} members: severity {severities})"
    )
    whole, averaged = (trim_tally(results, "ECE", against) for against in ("credal", "classical"))
    mend = (
        f"; `trim=0.1` lowers its calibration error on clean inputs in {whole.share}, to below the average's in {averaged.won}"
        if whole
        else ""
    )
    return f"{harm}{mend}."


def sizes_table(results: Sequence[Result], /) -> str:
    """AUROC by the number of members, averaged / credal."""
    columns = [(measure, ood_set) for measure in LABELS for ood_set in OOD]
    rows = [[str(N), *(_aurocs(results, *column, N) for column in columns)] for N in SIZES]
    head = ["Members", *(f"{measure}, {display_name(ood_set)}" for measure, ood_set in columns)]
    networks = dict.fromkeys(substitutes_text(result) for result in results if result.label in LABELS.values())
    of = f" ({', '.join(filter(None, networks))})" if any(networks) else ""
    note = f"AUROC by EU and TU on CIFAR-10, averaged / credal: {page(LABELS['EU'])}, {page(LABELS['TU'])}{of}."
    return joined(markdown_table(head, rows), note) if any(any(row[1:]) for row in rows) else ""


def _aurocs(results: Sequence[Result], measure: str, ood_set: str, N: int) -> str:
    kind = Kind(LABELS[measure], {"ood_set": ood_set, "N": N, "metric": "AUROC"})
    means = {number.keys["variant"]: number.ours.mean for number in numbers_of(results, kind) if number.ours}
    return " / ".join(f"{means[variant]:.2f}" for variant in BOTH if variant in means)
