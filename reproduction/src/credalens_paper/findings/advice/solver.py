"""Exactness: what a local solver misses, and whether class reduction as printed can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from credalens_paper.findings.advice.sentence import Advice, ends, section
from credalens_paper.findings.comparisons import compared_in
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import ExactnessResult, Result, TableResult

TITLE: Final = "What exactness changes"
MANY: Final = 0.01
"""The share of inputs from which on a mistake counts."""


@dataclass(frozen=True)
class Mistakes:
    """Shares of inputs by run: unknown ones with a wrong lower entropy, known ones with an empty printed set.

    `gains`: by how many points of AUROC by epistemic uncertainty exact values are better, by run.
    """

    wrong: tuple[float, ...]
    gains: tuple[float, ...]
    empty: tuple[float, ...]
    size: float


def solver_mistakes(result: ExactnessResult, /) -> Mistakes:
    """The mistakes of all runs."""
    runs = [run for part in result.parts for run in part.solver or ()]
    wrong = tuple(errors.wrong[0] for run in runs for errors in list(run.sets.values())[1:])
    reductions = [by_set for part in result.parts for run in part.reduction or () for by_set in run.J.values()]
    empty = tuple(effect.inside_empty for by_set in reductions for effect in by_set.values())
    gains = tuple(effect.difference for run in runs for effect in run.pairs.values())
    return Mistakes(wrong, gains, empty, result.wrong_sizes[0])


def lost_by_reduction(results: Sequence[Result], measure: str, /) -> Tally:
    """AUROC against unknown inputs, exact less reduced (PIA in its sound form) on the same runs, a cell each."""
    kind = (measure, "AUROC", "unknown")
    differences: list[float] = []
    for result in (result for result in results if isinstance(result, TableResult)):
        entries = {
            one.keys: one for one in compared_in(result) if (one.keys.measure, one.keys.metric, one.place) == kind
        }
        pairs = ((entries.get(replace(keys, J=None)), one) for keys, one in entries.items() if keys.J is not None)
        differences += [exact.ours.mean - reduced.ours.mean for exact, reduced in pairs if exact is not None]
    return Tally("AUROC", tuple(differences))


def solver_advice(results: Sequence[Result], /) -> Advice | None:
    """Whether a local solver and the printed reduction are good enough."""
    found = [solver_mistakes(result) for result in results if isinstance(result, ExactnessResult)]
    if not found or not found[0].wrong or not found[0].empty:
        return None
    mistakes = found[0]
    local, printed = (max(shares) < MANY for shares in (mistakes.wrong, mistakes.empty))
    do = (
        "A local solver is good enough for the entropies"
        if local
        else "Compute the entropies exactly, not by a local solver"
    )
    reduction = "the paper's class reduction (PIA, for many classes)"
    lost = lost_by_reduction(results, "EU")
    at_all = ", nor at all for `epistemic`" if lost.pick("exact", "reduced", "") == "exact" else ""
    reduce = f"{reduction} can be used as printed" if printed else f"do not use {reduction} as printed{at_all}"
    because = (
        f"The paper's solver misses the lowest entropy by more than {mistakes.size:g} bit on {_per_cent(mistakes.wrong)} of "
        f"the unknown inputs{_gains(mistakes.gains)}; the printed reduction gives bounds that no distribution meets for "
        f"{_per_cent(mistakes.empty)} of the known ones{_lost(results)}. "
        "`wrap` is certified, and `approximate_intervals` the sound reduction."
    )
    return Advice(f"{do}; {reduce}", because, (section(TITLE), section("What it costs")))


def _gains(gains: Sequence[float]) -> str:
    return f"; exact values change the AUROC of `epistemic` by {ends(gains, '+.2f')} points" if gains else ""


def _lost(results: Sequence[Result]) -> str:
    """How often exact sets are better than those that the paper's tables reduce to J classes, by both scores."""
    by_score = {"epistemic": lost_by_reduction(results, "EU"), "total": lost_by_reduction(results, "TU")}
    texts = [f"by `{score}` in {lost.text} points of AUROC" for score, lost in by_score.items() if lost]
    return f", and exact sets beat its sound form, with the paper's J, {' and '.join(texts)}" if texts else ""


def _per_cent(shares: Sequence[float]) -> str:
    return f"{ends([100 * share for share in shares], '.0f')} %"
