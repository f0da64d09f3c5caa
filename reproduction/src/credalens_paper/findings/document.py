"""What the result files say: which claims hold, where credal loses, what exactness changes, what is not measured.

Every sentence and table is generated, so that a new measurement rewrites them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import C10
from credalens_paper.findings.advice import score_ranks_sentence
from credalens_paper.findings.beyond import backbone_note, near_sentence, noise_sentence, tuned_sentence
from credalens_paper.findings.claims import CLAIMS, claims_table, verdict
from credalens_paper.findings.lookup import model_name, place_name
from credalens_paper.findings.mistakes import mistakes_sentence, mistakes_table
from credalens_paper.findings.notes import corner_note, corruption_note, weakness_note
from credalens_paper.findings.people import people_sentence
from credalens_paper.findings.score_tables import (
    levels_table,
    score_sentence,
    scores_table,
    severity_table,
    size_sentence,
)
from credalens_paper.findings.texts import text_sentence, text_table
from credalens_paper.findings.trimming import trim_sentence, trim_table
from credalens_paper.results.records import Difference, ExactnessResult, PaperDifference, Result, TableResult
from credalens_paper.results.rendering.exactness_parts import (
    effect_sentence,
    error_sentence,
    exactness_parts,
    reduction_sentence,
)
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table
from credalens_paper.results.rendering.origin_lines import absent_line, unmeasured
from credalens_paper.results.rendering.values import difference_text, number_text, paper_difference_text

HEADING: Final = """# Findings

Generated from the result files of this repository, as the pages of [results/README.md](../results/README.md) are, where every
number stands with its runs, hardware and command; the seeds are in the files. A comparison is credal less classical on the
same runs; it is won where the mean over the runs is on the better side. Differences of AUROC, AUPRC and ACC are in
percentage points. Runs of deep ensembles are distinct choices among the same networks, so the larger N is, the more members
they share, and the less their spread says about other networks. Which networks were trained where, how often, and what is
missing: [results/fast/HOW.md](../results/fast/HOW.md); for large backbones, near unknowns and noisy labels
[results/scratch/HOW.md](../results/scratch/HOW.md); for texts [results/text/HOW.md](../results/text/HOW.md). What guards, sets
and drift alarms promise and keep on predictions of these networks: [guard.md](guard.md). Abbreviations such as BNNR, EDD or
PIA: [results/README.md](../results/README.md)."""
LEVELS: Final = (
    "Accuracy of the averaged predictions, N = 5, in per cent: how alike the networks and the corrupted images are. Every\n"
    "comparison below is on the same networks and images."
)
UNMEASURED: Final = (
    "Reasons are those of the machine that put a result together last: data that were not found there may have been at\n"
    "hand where the networks were trained."
)
COSTS: Final = {"classical": "Averaging, NumPy", "credal": "Exact, one input", "credal, batched": "Exact, batch"}


@dataclass(frozen=True)
class Comparison:
    """Credal less classical, under the keys of what was measured."""

    label: str
    keys: CellKey
    ours: Difference
    paper: PaperDifference | None


def render_findings(results: Sequence[Result], /) -> str:
    """Markdown: claims, wins and losses, the best score, severities, exactness, cost, and what is not measured."""
    compared = list(_comparisons(results))
    exactness = [result for result in results if isinstance(result, ExactnessResult)]
    sections = {
        "In short": _short(results, compared, exactness),
        "The networks beside the paper's": _levels(results),
        "The paper's claims": joined(claims_table(results), corner_note(results), backbone_note(results)),
        "Wins and losses": _tally(compared),
        "Every comparison that credal loses": _losses(compared),
        "Does another score beat credal EU?": joined(score_sentence(results), scores_table(results)),
        "Texts": text_table(results),
        "Trimmed intervals": trim_table(results),
        "Against corruption severity": severity_table(results),
        "What exactness changes": joined(*(part for result in exactness for part in exactness_parts(result))),
        "What it costs": _costs(results),
        "Not measured": _unmeasured(results),
    }
    return joined(HEADING, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)) + "\n"


def _comparisons(results: Sequence[Result]) -> Iterator[Comparison]:
    """Measured comparisons of models, those that two tables share only once."""
    seen = set()
    for result in results:
        if not isinstance(result, TableResult):
            continue
        measured = {cell.keys: CellKey(**{**cell.keys.as_dict(), **cell.substitutes}) for cell in result.cells}
        for entry in result.improvements:
            keys = measured[entry.keys]
            given_as_trained = keys.preparation is None
            if entry.ours and keys.id_set and given_as_trained and (keys, entry.ours.mean) not in seen:
                seen.add((keys, entry.ours.mean))
                yield Comparison(result.label, keys, entry.ours, entry.paper)


def _short(results: Sequence[Result], compared: Sequence[Comparison], exactness: Sequence[ExactnessResult]) -> str:
    verdicts = Counter(verdict(results, claim) for claim in CLAIMS)
    better = Counter(entry.ours.better for entry in compared)
    claims = (
        f"Of {len(CLAIMS)} claims of the paper {verdicts['yes']} hold here in every cell measured, {verdicts['partly']} in "
        f"some, {verdicts['no']} in none; not measured: {verdicts['not measured']}."
    )
    cells = f"Of {len(compared)} comparisons credal wins {better['credal']} and loses {better['classical']}."
    exact = [write(result) for result in exactness for write in (error_sentence, effect_sentence, reduction_sentence)]
    notes = (claims, weakness_note(results), cells, score_sentence(results), size_sentence(results))
    beyond = (
        score_ranks_sentence(results),
        trim_sentence(results),
        near_sentence(results),
        tuned_sentence(results),
        noise_sentence(results),
        text_sentence(results),
        people_sentence(results),
        mistakes_sentence(results),
    )
    return "\n".join(f"- {line}" for line in (*notes, *beyond, *exact) if line)


def _levels(results: Sequence[Result]) -> str:
    table = levels_table(results)
    return joined(LEVELS, table, corruption_note(results), mistakes_table(results)) if table else ""


def _tally(compared: Sequence[Comparison]) -> str:
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for entry in compared:
        keys = entry.keys
        where = "OOD sets" if keys.ood_set and not keys.ood_set.endswith("-c") else place_name(keys.as_dict())
        counts.setdefault((keys.measure or "prediction", keys.metric, where), Counter())[entry.ours.better] += 1
    rows = [
        [*kind, *(str(sides[side]) for side in ("credal", "classical", "equal"))]
        for kind, sides in sorted(counts.items())
    ]
    return markdown_table(["Measured by", "Metric", "Set", "Won", "Lost", "Equal"], rows)


def _losses(compared: Sequence[Comparison]) -> str:
    rows = [
        [
            f"`{entry.label}`",
            _trained_model(entry.keys),
            place_name(entry.keys.as_dict()),
            entry.keys.measure or NONE,
            entry.keys.metric,
            difference_text(entry.ours, entry.keys.metric),
            paper_difference_text(entry.paper, entry.keys.metric),
        ]
        for entry in compared
        if entry.ours.better == "classical"
    ]
    return markdown_table(["Table", "Model", "Set", "By", "Metric", "Difference", "Paper"], rows) or "None."


def _trained_model(keys: CellKey) -> str:
    """The model, with its training set where that is not CIFAR-10."""
    name = model_name(keys.as_dict())
    return name if keys.id_set == C10 else f"{name}, on {display_name(keys.id_set)}"


def _costs(results: Sequence[Result]) -> str:
    """Milliseconds for both entropies of one input, by the number of classes."""
    for result in results:
        if isinstance(result, TableResult) and result.label == "CPUcost":
            cells = {(cell.keys.C, cell.keys.variant): cell for cell in result.cells}
            rows = [
                [
                    str(C),
                    *(number_text(cells[C, variant].ours, "time_ms") for variant in (*COSTS, "SLSQP")),
                    *(number_text(cells[C, variant].paper, "time_ms") for variant in ("classical", "credal")),
                ]
                for C in dict.fromkeys(classes for classes, _ in cells)
            ]
            head = ["Classes", *COSTS.values(), "SLSQP", "Paper: averaging", "Paper: credal"]
            machine = f"on {result.provenance.hardware.cpu}, one thread."
            note = f"Milliseconds for the uncertainty of one input of five members, {machine}"
            return joined(note, markdown_table(head, rows))
    return ""


def _unmeasured(results: Sequence[Result]) -> str:
    """Labels without a result file, and the reasons that the others give."""
    reasons: dict[str, dict[str, None]] = {}
    for result in results:
        for _, reason in unmeasured(result):
            reasons.setdefault(reason, {})[f"`{result.label}`"] = None
    lines = [f"{reason}: parts of {', '.join(labels)}." for reason, labels in reasons.items()]
    lines = [line for line in (*lines, absent_line(results)) if line]
    return joined(UNMEASURED, "\n".join(f"- {line}" for line in lines)) if lines else ""
