"""How many members: what more of them add to detection, and from how many on they harm calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import BOTH, OOD, SIZES
from credalens_paper.findings.advice.sentence import Advice, page, section
from credalens_paper.findings.lookup import Kind, gaps, numbers_of
from credalens_paper.findings.tally import Tally
from credalens_paper.findings.trimming import trim_tally
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined, markdown_table

TITLE: Final = "How many members"
USUAL, MOST = 5, SIZES[-1]
WORTH: Final = 1.0
"""Points of AUROC from which on more members are worth training."""
LABELS: Final = {"EU": "AblationNEUAPP", "TU": "AblationNTU"}


def added(results: Sequence[Result], measure: str, first: tuple[str, int], second: tuple[str, int], /) -> Tally:
    """AUROC by a measure of one variant and number of members less that of another."""
    kinds = [Kind(LABELS[measure], {"variant": variant, "N": N, "metric": "AUROC"}) for variant, N in (first, second)]
    return Tally.of("AUROC", (gap.ours for gap in gaps(results, *kinds, on=("ood_set",))))


def harmful_size(results: Sequence[Result], /) -> int | None:
    """The least number of members whose intersection probability has the higher ECE at some severity of corruption."""
    label = "AblationStudyEnsemble"
    for N in SIZES:
        kinds = [Kind(label, {"variant": variant, "N": N}) for variant in ("credal", "classical")]
        if Tally.of("ECE", (gap.ours for gap in gaps(results, *kinds, on=("severity",)))).lost:
            return N
    return None


def members_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether five members are enough, whether they replace many averaged ones, and when more of them harm."""
    more, harmful = added(results, "TU", ("credal", MOST), ("credal", USUAL)), harmful_size(results)
    if not more:
        return None
    enough = max(more.differences) < WORTH
    do = f"Train {USUAL} members; more add little" if enough else f"Train more than {USUAL} members if you can"
    then = f", and from {harmful} on predict with the average" if harmful else ""
    gain = f"Going from {USUAL} to {MOST} members changes the AUROC of `total` by {more.spread} points. "
    because = f"{gain}{_instead(results)}{_harm(results, harmful)}"
    return Advice(f"{do}{then}", because, (section(TITLE),))


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
    harm = f"From {harmful} on the intersection probability is worse calibrated than the average on mildly corrupted images"
    whole, averaged = (trim_tally(results, "ECE", against) for against in ("credal", "classical"))
    mend = (
        f"; `trim=0.1` lowers its calibration error in {whole.share}, to below the average's in {averaged.won}"
        if whole
        else ""
    )
    return f"{harm}{mend}."


def sizes_table(results: Sequence[Result], /) -> str:
    """AUROC by the number of members, averaged / credal."""
    columns = [(measure, ood_set) for measure in LABELS for ood_set in OOD]
    rows = [[str(N), *(_aurocs(results, *column, N) for column in columns)] for N in SIZES]
    head = ["Members", *(f"{measure}, {display_name(ood_set)}" for measure, ood_set in columns)]
    note = f"AUROC by EU and TU, averaged / credal: {page(LABELS['EU'])}, {page(LABELS['TU'])}."
    return joined(markdown_table(head, rows), note) if any(any(row[1:]) for row in rows) else ""


def _aurocs(results: Sequence[Result], measure: str, ood_set: str, N: int) -> str:
    kind = Kind(LABELS[measure], {"ood_set": ood_set, "N": N, "metric": "AUROC"})
    means = {number.keys["variant"]: number.ours.mean for number in numbers_of(results, kind) if number.ours}
    return " / ".join(f"{means[variant]:.2f}" for variant in BOTH if variant in means)
