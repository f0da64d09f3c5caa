"""Which score finds OOD inputs best: the rule that chooses one, and how good its choice is on data it did not see.

The rule: rank all scores by AUROC on every OOD data set, and take the one with the best mean rank. Recommend it if

- its mean AUROC is clearly better than that of the default, by DeLong's paired test with Holm's correction for all comparisons,
- and choosing also gained something on data that were not used to choose.

Otherwise recommend the default, that of `default_score` or the first fallback that can be used. A score cannot if so many ID
inputs have the highest value there can be that no threshold keeps the wanted rate of false alarms and flags anything; it is
recommended only if that is so for all of these. With two classes it is common for credal total, which is at its maximum
wherever the members disagree about the class.

The quality of a choice is measured on data that it was not made on. With several OOD data sets, each is left out in turn: the
score is chosen on the others and one half of the ID inputs, and measured on it and the other half. With a single OOD data set,
the score is chosen on one half of all inputs and measured on the other half, over many splits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import DEFAULT, FALLBACK_SCORES
from credalens.evaluation.intervals import holm
from credalens.evaluation.ood import LEAST, Wins, compare_wins, quantile, wins
from credalens.evaluation.results import Comparison, Result
from credalens.evaluation.thresholds import threshold_for_rate
from credalens.guard.binomial import binomial_interval, share_at_top

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

    def is_clearly_better(self, level: float, /) -> bool:
        """Whether it is better than the default, beyond chance."""
        better = self.difference is not None and self.difference.difference > 0
        return better and (self.p_value or 0.0) < 1 - level


@dataclass(frozen=True)
class HeldOut(Result):
    """Worth of the rule on data that it did not see.

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
    :ivar gain: the gain of choosing in AUROC over the default on data that were not used to choose, whatever is recommended.
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
    usual: str = DEFAULT,
    highest: Mapping[str, float] = NOTHING,
    false_alarm_rate: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
) -> Recommendation:
    """Choose a score by the rule above; ``ood_scores`` are data set -> score -> values.

    ``usual`` is the default where it can be used; ``highest`` is the largest value that a score can have, where it is known.
    """
    shares = {
        name: share_at_top(scores, false_alarm_rate, highest.get(name, math.inf)) for name, scores in id_scores.items()
    }
    tied = {name: share for name, share in shares.items() if share}
    defaults = dict.fromkeys((usual, DEFAULT, *FALLBACK_SCORES))
    default = min((name for name in defaults if name in shares), key=lambda name: shares[name])
    recommended = partial(Recommendation, default=default, false_alarm_rate=false_alarm_rate, tied=tied)
    if not ood_scores:
        return recommended(default, rule="default")
    choose, several = partial(_choose, default=default, level=level, tied=tied), len(ood_scores) > 1
    winner, ranking = choose(_wins_table(id_scores, ood_scores))
    halved = [id_scores, *(() if several else ood_scores.values())]
    if any(_rows(scores) < 2 * LEAST for scores in halved):
        return recommended(default, rule="default", ranking=ranking)
    split = partial(
        _split, id_scores, ood_scores, winner, default, choose, false_alarm_rate, np.random.default_rng(seed)
    )
    splits = [split() for _ in range(SPLITS_OF_SETS if several else SPLITS)]
    gain = float(np.mean([[one[name].auroc - one[name].default_auroc for one in splits] for name in ood_scores]))
    score = winner if gain > 0 else default
    held_out = tuple(
        _held_out(name, [one[name] for one in splits], default, score == default, _rows(scores), level)
        for name, scores in ood_scores.items()
    )
    rule: Literal["leave one set out", "halves"] = "leave one set out" if several else "halves"
    return recommended(score, rule=rule, ranking=ranking, held_out=held_out, gain=gain)


WinsByScore = dict[str, Wins]


def _choose(
    table: Mapping[str, WinsByScore], /, *, default: str, level: float, tied: Collection[str]
) -> tuple[str, tuple[Ranked, ...]]:
    """The score that the rule chooses by OOD data set -> score -> its wins, and all scores in order of mean rank.

    Scores that are ``tied`` are ranked but not chosen.
    """
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
    return best.name if best.is_clearly_better(level) else default, ranking


def clear_leader(recommended: Recommendation, level: float, /) -> Ranked | None:
    """Of the scores that can be used and are clearly better than the default, the one of the highest AUROC; else None."""
    better = (one for one in recommended.ranking if one.name not in recommended.tied and one.is_clearly_better(level))
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
    """A choice, its AUROC and the default's on other inputs, and the shares caught there by it, the winner and the default."""

    score: str
    auroc: float
    default_auroc: float
    caught: float
    winner_caught: float
    default_caught: float


def _split(
    id_scores: ScoresByName, ood_scores: Mapping[str, ScoresByName], winner: str, default: str,
    choose: Callable[[Mapping[str, WinsByScore]], tuple[str, Any]], rate: float, generator: np.random.Generator,
) -> dict[str, _Measured]:  # fmt: skip
    """Choose on one half of the ID inputs and other OOD inputs, measure with the other half; by OOD data set."""
    id_a, id_b = _halves(id_scores, generator)
    seen = unseen = ood_scores
    if len(ood_scores) == 1:
        ((only, scores),) = ood_scores.items()
        seen, unseen = ({only: half} for half in _halves(scores, generator))
    table = _wins_table(id_a, seen)
    results = {}
    for name, scores in unseen.items():
        score, _ = choose({other: of_set for other, of_set in table.items() if other != name} or table)
        aurocs = (wins(id_b[which], scores[which]).mean() for which in (score, default))
        shares = (
            float(threshold_for_rate(id_a[which], rate).flags(scores[which]).mean())
            for which in (score, winner, default)
        )
        results[name] = _Measured(score, *aurocs, *shares)
    return results


def _held_out(name: str, measured: list[_Measured], default: str, stays: bool, n: int, level: float) -> HeldOut:
    """The worth of the recommended score for ``n`` inputs: the default where it ``stays``, else what was chosen without them.

    Thresholds differ between splits, which share inputs (Nadeau and Bengio 2003); that is added to the interval of a share.
    """
    scores, aurocs, default_aurocs, *shares, default_shares = zip(*measured, strict=True)
    if stays:
        scores, aurocs, shares = (default,), default_aurocs, [default_shares]
    lows, highs = [], []
    for of_score in shares:
        mean = float(np.mean(of_score))
        low, high = binomial_interval(round(mean * n), n, level=level)
        spread = quantile(level) * math.sqrt((1 / len(of_score) + 1) * np.var(of_score, ddof=1))
        lows.append(max(0.0, mean - math.hypot(mean - low, spread)))
        highs.append(min(1.0, mean + math.hypot(high - mean, spread)))
    chosen = max(sorted(set(scores)), key=scores.count)
    auroc, default_auroc, caught = (float(np.mean(values)) for values in (aurocs, default_aurocs, shares[0]))
    return HeldOut(name, chosen, auroc, default_auroc, caught, min(lows), max(highs))


def _rows(scores: ScoresByName) -> int:
    return len(next(iter(scores.values())))


def _halves(scores: ScoresByName, generator: np.random.Generator) -> tuple[ScoresByName, ScoresByName]:
    order = generator.permutation(_rows(scores))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return {name: x[first] for name, x in scores.items()}, {name: x[second] for name, x in scores.items()}
