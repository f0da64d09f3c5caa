"""What the result files say: which claims hold, where credal loses, what exactness changes, what is not measured.

Every sentence and table is generated, so that a new measurement rewrites them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from credalens_paper.experiments.cells import CellKey
from credalens_paper.experiments.exactness import EXACTNESS, OWN
from credalens_paper.findings.cells import model_name, place_name
from credalens_paper.findings.claims import CLAIMS, claims_table, verdict
from credalens_paper.findings.notes import corner_note, corruption_note, weakness_note
from credalens_paper.findings.scores import levels_table, score_sentence, scores_table, severity_table, size_sentence
from credalens_paper.results.rendering.exactness import (
    effect_sentence,
    error_sentence,
    exactness_parts,
    reduction_sentence,
)
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.provenance import absent_line, unmeasured
from credalens_paper.results.rendering.values import difference_text, number_text, paper_difference_text

__all__ = ["render_findings"]

Result = Mapping[str, Any]
HEADING: Final = """# Findings

Generated from the result files of this repository, as [results/README.md](../results/README.md) is, where every number
stands with its runs, hardware and command; the seeds are in the files. A comparison is credal less classical on the
same runs; it is won where the mean over the runs is on the better side. Differences of AUROC, AUPRC and ACC are in
percentage points. Runs of deep ensembles are distinct choices among the same networks, so the larger N is, the more members
they share, and the less their spread says about other networks. Which networks were trained where, how often, and what is
missing: [results/fast/HOW.md](../results/fast/HOW.md)."""
LEVELS: Final = (
    "Accuracy of the averaged predictions, N = 5, in per cent: how alike the networks and the corrupted images are. Every\n"
    "comparison below is on the same networks and images."
)
UNMEASURED: Final = (
    "Reasons are those of the machine that put a result together last: data that were not found there may have been at\n"
    "hand where the networks were trained."
)
COSTS: Final = {"classical": "Averaging, NumPy", "credal": "Exact, one input", "credal, batched": "Exact, batch"}


def render_findings(results: Sequence[Result], /) -> str:
    """Markdown: claims, wins and losses, the best score, severities, exactness, cost, and what is not measured."""
    compared = list(_compared(results))
    sections = {
        "In short": _short(results, compared),
        "The networks beside the paper's": _levels(results),
        "The paper's claims": _joined(claims_table(results), corner_note(results)),
        "Wins and losses": _tally(compared),
        "Every comparison that credal loses": _losses(compared),
        "Does another score beat credal EU?": _joined(score_sentence(results), scores_table(results)),
        "Against corruption severity": severity_table(results),
        "What exactness changes": _exactness(results),
        "What it costs": _costs(results),
        "Not measured": _unmeasured(results),
    }
    parts = [f"## {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join([HEADING, *parts]) + "\n"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _compared(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Measured comparisons of models under the keys of what was measured, those that two tables share only once."""
    seen = set()
    for result in results:
        own = {CellKey(**cell["keys"]): {**cell["keys"], **cell["measured"]} for cell in result.get("cells", ())}
        for entry in result.get("improvements", ()):
            keys = own[CellKey(**entry["keys"])]
            if "mean" in entry and "id_set" in keys and (same := (CellKey(**keys), entry["mean"])) not in seen:
                seen.add(same)
                yield {**entry, "label": result["label"], "keys": keys}


def _short(results: Sequence[Result], compared: Sequence[Result]) -> str:
    verdicts = Counter(verdict(results, claim) for claim in CLAIMS)
    better = Counter(entry["better"] for entry in compared)
    claims = (
        f"Of {len(CLAIMS)} claims of the paper {verdicts['yes']} hold here in every cell measured, {verdicts['partly']} in "
        f"some, {verdicts['no']} in none; {verdicts['not measured']} are not measured."
    )
    cells = f"Of {len(compared)} comparisons credal wins {better['credal']} and loses {better['classical']}."
    own = [result for result in results if result["label"] == EXACTNESS.label]
    exact = [sentence(result) for result in own for sentence in (error_sentence, effect_sentence, reduction_sentence)]
    notes = (claims, weakness_note(results), cells, score_sentence(results), size_sentence(results), *exact)
    return "\n".join(f"- {line}" for line in notes if line)


def _levels(results: Sequence[Result]) -> str:
    table = levels_table(results)
    return _joined(LEVELS, table, corruption_note(results)) if table else ""


def _tally(compared: Sequence[Result]) -> str:
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for entry in compared:
        keys = entry["keys"]
        corrupted = str(keys.get("ood_set", "")).endswith("-c")
        where = place_name(keys) if corrupted or not keys.get("ood_set") else "OOD sets"
        kind = (keys.get("measure") or "prediction", keys["metric"], where)
        counts.setdefault(kind, Counter())[entry["better"]] += 1
    rows = [
        [*kind, *(str(found[side]) for side in ("credal", "classical", "equal"))]
        for kind, found in sorted(counts.items())
    ]
    return markdown_table(["Measured by", "Metric", "Set", "Won", "Lost", "Equal"], rows) if rows else ""


def _losses(compared: Sequence[Result]) -> str:
    lost = [entry for entry in compared if entry["better"] == "classical"]
    rows = [
        [
            f"`{entry['label']}`",
            model_name(entry["keys"]),
            place_name(entry["keys"]),
            entry["keys"].get("measure") or NONE,
            entry["keys"]["metric"],
            difference_text(entry, entry["keys"]["metric"]),
            paper_difference_text(entry["paper"], entry["keys"]["metric"]),
        ]
        for entry in lost
    ]
    return markdown_table(["Table", "Model", "Set", "By", "Metric", "Difference", "Paper"], rows) if rows else "None."


def _exactness(results: Sequence[Result]) -> str:
    return "\n\n".join(part for result in results if result["label"] in OWN for part in exactness_parts(result))


def _costs(results: Sequence[Result]) -> str:
    """Milliseconds for both entropies of one input, by the number of classes."""
    found = [result for result in results if result["label"] == "CPUcost"]
    if not found:
        return ""
    cells = {(cell["keys"]["C"], cell["keys"]["variant"]): cell for cell in found[0]["cells"]}
    rows = []
    for C in dict.fromkeys(classes for classes, _ in cells):
        ours = [number_text(cells[C, variant], "time_ms") for variant in (*COSTS, "SLSQP")]
        printed = [number_text(cells[C, variant]["paper"], "time_ms") for variant in ("classical", "credal")]
        rows.append([str(C), *ours, *printed])
    head = ["Classes", *COSTS.values(), "SLSQP", "Paper: averaging", "Paper: credal"]
    hardware = found[0]["provenance"]["hardware"]
    note = f"Milliseconds for the uncertainty of one input of five members, on {hardware['cpu']}, one thread."
    return f"{note}\n\n{markdown_table(head, rows)}"


def _unmeasured(results: Sequence[Result]) -> str:
    """Labels without a result file, and the reasons that the others give."""
    reasons: dict[str, dict[str, None]] = {}
    for result in results:
        for _, reason in unmeasured(result):
            reasons.setdefault(reason, {})[f"`{result['label']}`"] = None
    lines = [f"{reason}: parts of {', '.join(labels)}." for reason, labels in reasons.items()]
    lines = [line for line in (*lines, absent_line(results)) if line]
    return _joined(UNMEASURED, "\n".join(f"- {line}" for line in lines)) if lines else ""
