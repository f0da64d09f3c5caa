"""The sentences in their order."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import Final

from credalens_paper.findings.advice.epistemic import epistemic_advice
from credalens_paper.findings.advice.guards import guard_advice
from credalens_paper.findings.advice.limits import limits_advice
from credalens_paper.findings.advice.meaning import meaning_advice
from credalens_paper.findings.advice.members import members_advice
from credalens_paper.findings.advice.prediction import prediction_advice
from credalens_paper.findings.advice.samples import samples_advice
from credalens_paper.findings.advice.solver import solver_advice
from credalens_paper.findings.advice.which_score import near_and_far, which_score
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined

ADVICE: Final = (
    which_score,
    near_and_far,
    epistemic_advice,
    members_advice,
    prediction_advice,
    samples_advice,
    meaning_advice,
    solver_advice,
    limits_advice,
    guard_advice,
)
LEAD: Final = (
    "For a classifier of several networks, or several samples of one. The *average* is the mean of their probabilities. The\n"
    "*credal set* keeps the lowest and the highest probability of every class, and the *intersection probability* is one\n"
    "prediction inside it. *Unknown* inputs belong to none of the classes. *AUROC*, in per cent, says how often a score is\n"
    "higher for an unknown input than for a known one; 50 is chance. Names in `code` are [scores](scores.md#the-catalogue). A\n"
    "cell is one kind of network, with one number of members, on one data set; one of two ways wins or loses for a kind of\n"
    "network or data if it does so in four fifths of the cells."
)


def numbered_advice(results: Sequence[Result], /) -> str:
    """Markdown: the sentences that the results can answer, numbered."""
    found = [advice for write in ADVICE if (advice := write(results))]
    items = [indent(f"{number}. {advice.text}", "    ").lstrip() for number, advice in enumerate(found, 1)]
    return joined(LEAD, *items) if found else ""
