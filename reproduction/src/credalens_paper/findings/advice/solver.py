"""Exactness: what a local solver misses, and whether class reduction as printed can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from credalens_paper.findings.advice.sentence import Advice, ends, section
from credalens_paper.findings.comparisons import comparisons
from credalens_paper.findings.tally import Tally
from credalens_paper.results.records import ExactnessResult, Result

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


def lost_by_reduction(results: Sequence[Result], /) -> Tally:
    """AUROC of credal EU against unknown inputs: exact less reduced (PIA, in its sound form) on the same runs, a cell each."""
    kind = ("EU", "AUROC", "unknown")
    entries = [e for e in comparisons(results) if (e.keys.measure, e.keys.metric, e.place) == kind]
    exact = {(entry.label, entry.keys): entry.ours.mean for entry in entries if entry.keys.J is None}
    reduced = [(entry, exact.get((entry.label, replace(entry.keys, J=None)))) for entry in entries if entry.keys.J]
    return Tally.of("AUROC", (None if whole is None else whole - entry.ours.mean for entry, whole in reduced))


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
    lost = lost_by_reduction(results)
    reduce = (
        "the paper's class reduction (PIA, for many classes) can be used as printed"
        if printed
        else "do not reduce many classes to a few (the paper's PIA), least of all as printed"
        if lost.pick("exact", "reduced", "") == "exact"
        else "do not use the paper's class reduction (PIA, for many classes) as printed"
    )
    because = (
        f"The paper's solver misses the lowest entropy by more than {mistakes.size:g} bit on {_per_cent(mistakes.wrong)} of "
        f"the unknown inputs{_gains(mistakes.gains)}; the printed reduction gives bounds that no distribution meets for "
        f"{_per_cent(mistakes.empty)} of the known ones{_lost(lost)}. "
        "`wrap` is exact, and `approximate_intervals` the sound reduction."
    )
    return Advice(f"{do}; {reduce}", because, (section(TITLE), section("What it costs")))


def _gains(gains: Sequence[float]) -> str:
    return f"; exact values change the AUROC of `epistemic` by {ends(gains, '+.2f')} points" if gains else ""


def _lost(lost: Tally) -> str:
    return f", and exact sets beat its sound form by `epistemic` in {lost.text} points of AUROC" if lost else ""


def _per_cent(shares: Sequence[float]) -> str:
    return f"{ends([100 * share for share in shares], '.0f')} %"
