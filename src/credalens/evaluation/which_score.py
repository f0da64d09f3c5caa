"""Which score finds OOD inputs best: the rule that chooses one, and how good its choice is on data it did not see.

The rule: rank all scores by AUROC on every OOD data set, and take the one with the best mean rank. Recommend it if

- its mean AUROC is clearly better than that of the default, by DeLong's paired test with Holm's correction for all comparisons,
- and choosing also gained something on data that were not used to choose.

Otherwise recommend the default, the first of `DEFAULTS` that can be used. A score cannot if so many ID inputs have the highest
value there can be that no threshold keeps the wanted rate of false alarms and flags anything; it is recommended only if that is
so for all `DEFAULTS`. With two classes it is common for credal total, which is at its maximum wherever the members disagree
about the class.

The quality of a choice is measured on data that it was not made on. With several OOD data sets, each is left out in turn: the
score is chosen on the others and one half of the ID inputs, and measured on it and the other half. With a single OOD data set,
the score is chosen on one half of all inputs and measured on the other half, over many splits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import DEFAULT, FALLBACK_SCORES
from credalens.evaluation.metrics.threshold import threshold_for_rate
from credalens.evaluation.results import Comparison, Result
from credalens.evaluation.statistics.comparisons import holm
from credalens.evaluation.statistics.counts import LEAST, Wins, compare_wins, quantile, wins
from credalens.guard.binomial import binomial_interval
from credalens.guard.false_alarms import share_at_top

DEFAULTS: Final = (DEFAULT, *FALLBACK_SCORES)
NOTHING: Final[Mapping[str, float]] = MappingProxyType({})
SPLITS: Final = 20
"""Of a single OOD data set; with several, what differs between splits are the ID inputs alone."""
SPLITS_OF_SETS: Final = 4
ScoresByName = Mapping[str, NDArray]


@dataclass(frozen=True)
class Ranked(Result):
    """One score: its mean rank and mean AUROC over the OOD data sets, and how it compares with the default."""

    name: str
    mean_rank: float
    auroc: float
    difference: Comparison | None
    p_value: float | None
    """Of the difference, with Holm's correction; both are None for the default itself."""


@dataclass(frozen=True)
class Choice(Result):
    """The score that the rule chooses, and all scores in order of mean rank."""

    score: str
    ranking: tuple[Ranked, ...]


@dataclass(frozen=True)
class HeldOut(Result):
    """What the rule is worth on data that it did not see.

    :ivar name: the OOD data set.
    :ivar score: the score that was chosen without it in most of the splits; the default if that is recommended.
    :ivar caught: share of its inputs that this score catches at the wanted rate of false alarms.
    :ivar low: lower end of an interval that holds ``caught``, and what the recommended score catches if it is another one.
    :ivar high: its upper end.
    """

    name: str
    score: str
    auroc: float
    default_auroc: float
    caught: float
    low: float
    high: float


@dataclass(frozen=True)
class Recommendation(Result):
    """A score to use, why, and what to expect of it on data that it was not chosen on.

    :ivar rule: "leave one set out", "halves", or "default" if there is nothing to choose by.
    :ivar gain: what choosing gained in AUROC over the default on data that were not used to choose, whatever is recommended.
    :ivar tied: scores that cannot be used, and the share of the ID inputs that have the highest value each can have.
    """

    score: str
    default: str
    rule: Literal["leave one set out", "halves", "default"]
    false_alarm_rate: float
    ranking: tuple[Ranked, ...] = ()
    held_out: tuple[HeldOut, ...] = ()
    gain: float | None = None
    tied: Mapping[str, float] = field(default_factory=dict)


def recommend(
    id_scores: ScoresByName,
    ood_scores: Mapping[str, ScoresByName],
    /,
    *,
    highest: Mapping[str, float] = NOTHING,
    false_alarm_rate: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> Recommendation:
    """Choose a score by the rule above; ``ood_scores`` are data set -> score -> values.

    ``highest`` is the largest value that a score can have, where it is known.
    """
    shares = {
        name: share_at_top(scores, false_alarm_rate, highest.get(name, math.inf)) for name, scores in id_scores.items()
    }
    tied = {name: share for name, share in shares.items() if share}
    default = min((name for name in DEFAULTS if name in shares), key=lambda name: shares[name])
    recommended = partial(Recommendation, default=default, false_alarm_rate=false_alarm_rate, tied=tied)
    if not ood_scores:
        return recommended(default, rule="default")
    table = _wins_table(id_scores, ood_scores)
    choice = choose(table, default=default, level=level, tied=tied)
    trial = _Trial(id_scores, ood_scores, default, false_alarm_rate, level, seed, tied)
    if not trial.is_large_enough():
        return recommended(default, rule="default", ranking=choice.ranking)
    rule: Literal["leave one set out", "halves"] = "leave one set out" if len(table) > 1 else "halves"
    measured = trial.measure(choice.score)
    gain = float(np.mean([one.auroc - one.default_auroc for of_set in measured.values() for one in of_set]))
    score = choice.score if gain > 0 else default
    held_out = tuple(trial.summary(name, of_set, score == default) for name, of_set in measured.items())
    return recommended(score, rule=rule, ranking=choice.ranking, held_out=held_out, gain=gain)


WinsByScore = dict[str, Wins]


def choose(table: Mapping[str, WinsByScore], /, *, default: str, level: float, tied: Collection[str] = ()) -> Choice:
    """Apply the rule to OOD data set -> score -> its wins; scores that are ``tied`` are ranked but not chosen."""
    names = list(next(iter(table.values())))
    aurocs = {name: np.array([by_score[name].mean() for by_score in table.values()]) for name in names}
    ranks = mean_ranks(aurocs)
    differences = {
        name: compare_wins([s[name] for s in table.values()], [s[default] for s in table.values()], level=level)
        for name in names
        if name != default
    }
    p_values = holm({name: difference.p_value for name, difference in differences.items()})
    ranking = tuple(
        Ranked(name, ranks[name], float(aurocs[name].mean()), differences.get(name), p_values.get(name))
        for name in sorted(names, key=lambda name: (ranks[name], name != default))
    )
    best = next((ranked for ranked in ranking if ranked.name not in tied), ranking[0])
    return Choice(best.name if _clearly_better(best, level) else default, ranking)


def _clearly_better(ranked: Ranked, level: float) -> bool:
    difference, p_value = ranked.difference, ranked.p_value
    return difference is not None and difference.difference > 0 and (p_value or 0.0) < 1 - level


def clear_leader(recommended: Recommendation, level: float, /) -> Ranked | None:
    """Of the scores that can be used and are clearly better than the default, the one of the highest AUROC; else None."""
    usable = (ranked for ranked in recommended.ranking if ranked.name not in recommended.tied)
    better = [ranked for ranked in usable if _clearly_better(ranked, level)]
    return max(better, key=lambda ranked: ranked.auroc, default=None)


def mean_ranks(aurocs: Mapping[str, NDArray], /) -> dict[str, float]:
    """The mean over the data sets of the rank of each score, 1 for the highest; equal ones share the mean of their ranks.

    >>> mean_ranks({"a": np.array([0.9, 0.8]), "b": np.array([0.9, 0.7])})
    {'a': 1.25, 'b': 1.75}
    """
    values = np.array(list(aurocs.values()))
    above = (values[None] > values[:, None]).sum(axis=1)
    equal = (values[None] == values[:, None]).sum(axis=1)
    ranks = above + (equal + 1) / 2
    return {name: float(rank) for name, rank in zip(aurocs, ranks.mean(axis=-1), strict=True)}


def _wins_table(id_scores: ScoresByName, ood_scores: Mapping[str, ScoresByName]) -> dict[str, WinsByScore]:
    return {of: {name: wins(id_scores[name], scores[name]) for name in id_scores} for of, scores in ood_scores.items()}


class _Measured(NamedTuple):
    """A choice, its AUROC and the default's on other inputs; what it, the winner on all data and the default catch there."""

    score: str
    auroc: float
    default_auroc: float
    caught: float
    winner_caught: float
    default_caught: float


@dataclass(frozen=True)
class _Trial:
    """Choices on a part of the data, measured on the rest."""

    id_scores: ScoresByName
    ood_scores: Mapping[str, ScoresByName]
    default: str
    rate: float
    level: float
    seed: int
    tied: Collection[str]

    def is_large_enough(self) -> bool:
        """Whether the parts that choices are made on have as many inputs as a comparison needs."""
        halved = [self.id_scores, *(self.ood_scores.values() if len(self.ood_scores) == 1 else ())]
        return all(_rows(scores) >= 2 * LEAST for scores in halved)

    def measure(self, winner: str) -> dict[str, list[_Measured]]:
        """Measure on every OOD data set, split by split; ``winner`` is the choice on all data."""
        generator = np.random.default_rng(self.seed)
        splits = SPLITS if len(self.ood_scores) == 1 else SPLITS_OF_SETS
        measured = [self._split(winner, generator) for _ in range(splits)]
        return {name: [of_split[name] for of_split in measured] for name in self.ood_scores}

    def _split(self, winner: str, generator: np.random.Generator) -> dict[str, _Measured]:
        """Choose on one half of the ID inputs and other OOD inputs, measure with the other half."""
        id_a, id_b = _halves(self.id_scores, generator)
        seen, unseen = self.ood_scores, self.ood_scores
        if len(seen) == 1:
            ((only, scores),) = seen.items()
            seen, unseen = ({only: half} for half in _halves(scores, generator))
        table = _wins_table(id_a, seen)
        results = {}
        for name, scores in unseen.items():
            others = {other: of_set for other, of_set in table.items() if other != name} or table
            score = choose(others, default=self.default, level=self.level, tied=self.tied).score
            aurocs = (wins(id_b[which], scores[which]).mean() for which in (score, self.default))
            shares = (self._caught(id_a[which], scores[which]) for which in (score, winner, self.default))
            results[name] = _Measured(score, *aurocs, *shares)
        return results

    def summary(self, name: str, measured: list[_Measured], stays: bool) -> HeldOut:
        """What the recommended score is worth: the default where it ``stays``, else what was chosen without the data."""
        scores, aurocs, default_aurocs, *shares, default_shares = zip(*measured, strict=True)
        if stays:
            scores, aurocs, shares = (self.default,), default_aurocs, [default_shares]
        intervals = [self._interval(list(of_score), _rows(self.ood_scores[name])) for of_score in shares]
        return HeldOut(
            name,
            max(sorted(set(scores)), key=scores.count),
            float(np.mean(aurocs)),
            float(np.mean(default_aurocs)),
            float(np.mean(shares[0])),
            min(low for low, _ in intervals),
            max(high for _, high in intervals),
        )

    def _caught(self, id_scores: NDArray, ood_scores: NDArray) -> float:
        return float(threshold_for_rate(id_scores, self.rate).flags(ood_scores).mean())

    def _interval(self, shares: list[float], n: int) -> tuple[float, float]:
        """An interval of the mean share over splits.

        Thresholds differ between splits, which share inputs (Nadeau and Bengio 2003); that is added to the interval of a share
        of ``n`` inputs.
        """
        mean = float(np.mean(shares))
        low, high = binomial_interval(round(mean * n), n, level=self.level)
        spread = quantile(self.level) * math.sqrt((1 / len(shares) + 1) * np.var(shares, ddof=1))
        below, above = math.hypot(mean - low, spread), math.hypot(high - mean, spread)
        return max(0.0, mean - below), min(1.0, mean + above)


def _rows(scores: ScoresByName) -> int:
    return len(next(iter(scores.values())))


def _halves(scores: ScoresByName, generator: np.random.Generator) -> tuple[ScoresByName, ScoresByName]:
    order = generator.permutation(_rows(scores))
    half = len(order) // 2
    first, second = order[:half], order[half:]
    return {name: x[first] for name, x in scores.items()}, {name: x[second] for name, x in scores.items()}
