"""What the result files say: ten sentences to act on, then the evidence: every claim, every loss, what is not measured.

Every sentence and table is generated, so that a new measurement rewrites them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.index import LABELS
from credalens_paper.findings.advice import epistemic, guards, meaning, members, prediction, ranking, solver
from credalens_paper.findings.advice.listing import numbered_advice
from credalens_paper.findings.beyond import backbone_note, near_sentence, noise_sentence, tuned_sentence
from credalens_paper.findings.claims import CLAIMS, claims_table, verdict
from credalens_paper.findings.comparisons import comparisons, losses_table, tally_table
from credalens_paper.findings.guard_table import guards_table
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
from credalens_paper.results.records import ExactnessResult, Result, TableResult
from credalens_paper.results.rendering.exactness_parts import (
    effect_sentence,
    error_sentence,
    exactness_parts,
    reduction_sentence,
)
from credalens_paper.results.rendering.markdown import joined, markdown_table
from credalens_paper.results.rendering.origin_lines import absent_line, unmeasured, unmeasured_runs
from credalens_paper.results.rendering.values import number_text

HEADING: Final = """# Findings

What was measured with this library, and what follows from it. Generated from [result files](../results/README.md): a new
measurement rewrites the advice too. The guide to choosing: [which score, which prediction](scores.md)."""
READING: Final = """\
- All data that were measured have ten classes or more. With fewer, many inputs can share the highest `total`, and another score
  is better: [what to do then](scores.md#when-total-is-the-same-for-many-inputs).
- A comparison is credal less classical (averaging) on the same runs; it is won where the mean over the runs is on the better
  side. Differences of AUROC, AUPRC and ACC (accuracy) are in percentage points. ECE is the calibration error, NLL the log loss.
- EU, AU, TU: epistemic, aleatoric, total uncertainty; OOD: unknown (out of distribution); DE: deep ensemble; N: members.
  Others, such as BNNR, EDD or PIA, are explained in [results/README.md](../results/README.md), where every number stands
  with its runs, hardware and command; the seeds are in the files.
- An entry that was measured again, mostly with other networks, stands here under the name of its preset as well, such as
  `AblationNTU (scratch)`: what ResNet-50 itself gave, where ResNet-18 stands in for it. Its numbers are in [entries measured
  again](../results/repeated.md).
- Runs of deep ensembles are distinct choices among the same networks, so the larger N is, the more members they share, and the
  less their spread says about other networks.
- Which networks were trained where, how often, and what is missing: [results/fast/HOW.md](../results/fast/HOW.md); for large
  backbones, near unknowns and noisy labels [results/scratch/HOW.md](../results/scratch/HOW.md); for texts
  [results/text/HOW.md](../results/text/HOW.md).
- What guards, sets and drift alarms promise and keep on predictions of these networks: [guard.md](guard.md)."""
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
    """Markdown: ten sentences of advice, then the evidence for each, the paper's claims, every loss, what is not measured."""
    compared = comparisons(results)
    sections = {
        "What to do": numbered_advice(results),
        "How to read the evidence": READING,
        ranking.TITLE: joined(ranking.ranking_table(results), near_sentence(results)),
        "Five scores beside the paper's": joined(scores_table(results), score_sentence(results)),
        epistemic.TITLE: joined(epistemic.epistemic_table(results), tuned_sentence(results), backbone_note(results)),
        members.TITLE: joined(members.sizes_table(results), size_sentence(results)),
        "Trimmed intervals": joined(trim_table(results), trim_sentence(results)),
        prediction.TITLE: prediction.prediction_table(results),
        "Against corruption severity": severity_table(results),
        guards.TITLE: guards_table(results),
        "Texts": joined(text_table(results), text_sentence(results)),
        meaning.TITLE: joined(people_sentence(results), noise_sentence(results)),
        solver.TITLE: _exactness(results),
        "What it costs": _costs(results),
        "The paper's claims": joined(claims_table(results), _claims(results), corner_note(results)),
        "The networks beside the paper's": _levels(results),
        "Wins and losses": tally_table(compared),
        "Every comparison that credal loses": losses_table(compared),
        "Not measured": _unmeasured(results),
    }
    return joined(HEADING, *(f"## {title}\n\n{text}" for title, text in sections.items() if text)) + "\n"


def _claims(results: Sequence[Result]) -> str:
    verdicts = Counter(verdict(results, claim) for claim in CLAIMS)
    claims = (
        f"Of {len(CLAIMS)} claims of the paper {verdicts['yes']} hold here in every cell measured, {verdicts['partly']} in "
        f"some, {verdicts['no']} in none; not measured: {verdicts['not measured']}."
    )
    return joined(claims, weakness_note(results))


def _exactness(results: Sequence[Result]) -> str:
    exactness = [result for result in results if isinstance(result, ExactnessResult)]
    sentences = [write(one) for one in exactness for write in (error_sentence, effect_sentence, reduction_sentence)]
    return joined(
        "\n".join(f"- {line}" for line in sentences if line), *(p for one in exactness for p in exactness_parts(one))
    )


def _levels(results: Sequence[Result]) -> str:
    table = levels_table(results)
    return (
        joined(LEVELS, table, corruption_note(results), mistakes_table(results), mistakes_sentence(results))
        if table
        else ""
    )


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
    parts: dict[str, dict[str, None]] = {}
    runs: dict[str, dict[str, None]] = {}
    for result in results:
        if result.label not in LABELS:  # measured again with other networks
            continue
        for reasons, missing in ((parts, unmeasured(result)), (runs, unmeasured_runs(result))):
            for _, reason in missing:
                reasons.setdefault(reason, {})[f"`{result.label}`"] = None
    lines = [f"{reason}: parts of {', '.join(labels)}." for reason, labels in parts.items()]
    lines += [f"Fewer runs than planned ({why}): parts of {', '.join(labels)}." for why, labels in runs.items()]
    lines = [line for line in (*lines, absent_line(results)) if line]
    return joined(UNMEASURED, "\n".join(f"- {line}" for line in lines)) if lines else ""
