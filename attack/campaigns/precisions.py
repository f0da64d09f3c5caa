"""Guards, sets and drift alarms that learn from members in one precision and meet them in another."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import many_rows
from attack.case import Case, expect
from credalens.core.scores import SCORES
from credalens.guard import ConformalSets, DriftAlarm, Guard
from credalens.guard.binomial import conformal_excess
from credalens.guard.conformal_sets import NONCONFORMITY

ROWS = 400
NEAR = 2e-4  # of a threshold; what hangs on it lies far from it but for chance
BROKEN = 1e-9  # the probability of as many broken promises
RANDOMISED = [name for name in NONCONFORMITY if name in ("aps", "raps") or "cumulative" in name]


def attack(case: Case) -> None:
    """The same inputs in any precision, as logits, summaries or tensors: the same decisions, and promises that hold."""
    classes, members = case.choose(2, 3, 5, 12), case.between(2, 6)
    probs = many_rows.predictions(case, rows=3 * ROWS, classes=classes, members=members)
    fitted, fresh = case.choose(*MAKE), probs[:, ROWS:]
    labels, truth = _labels(case, probs[:, :ROWS]), _labels(case, fresh)
    with warnings.catch_warnings(action="ignore"):  # members of one kind and guards of tied scores are meant
        calibration, same = MAKE[fitted](probs[:, :ROWS]), MAKE[fitted](fresh)
        for used in case.rng.choice(list(MAKE), 3, replace=False):
            kinds, other = f"fitted in {fitted}, used in {used}", MAKE[used](fresh)
            score = case.choose(*[name for name in SCORES if _has(fitted, name) and _has(used, name)])
            for guard in _guards(calibration, labels, score):
                slack = max(vars(guard.slack(other._rounding)).values())
                _check_decisions(guard, same, other, max(NEAR, 2 * slack))
                broken = [check for check in guard.check_promises(other, truth) if check.p_value < BROKEN]
                expect(not broken, f"{score}, {kinds}: {broken}")
            for method in NONCONFORMITY:
                sets = ConformalSets.fit(calibration, labels, alpha=0.1, method=method, seed=case.number)
                _check_coverage(sets, other, truth, f"{method}, {kinds}")
                if not (_is_half(fitted) or _is_half(used) or method in RANDOMISED):
                    _check_sets(sets, same, other)
            known = calibration.score(score)
            alarm = DriftAlarm(known, alpha=1e-6, method=case.choose("online", "fixed"), tolerance=slack)
            alarm.update(np.asarray(other.score(score)))
            expect(not alarm.alarm, f"{score}, {kinds}: a drift alarm for the same kind of inputs")


def _check_decisions(guard: Guard, same: Any, other: Any, slack: float) -> None:
    ours, theirs = guard.decide(same), guard.decide(other)
    near = np.zeros(len(same), bool)
    for edge in (guard.threshold, guard.limit):
        if np.isfinite(edge):
            near |= np.abs(np.asarray(ours.scores) - edge) <= slack * (1 + abs(edge))
    differ = np.asarray(ours.reason) != np.asarray(theirs.reason)
    expect(not (differ & ~near).any(), f"{guard}: {int((differ & ~near).sum())} inputs far from a threshold differ")


def _check_coverage(sets: ConformalSets, other: Any, truth: NDArray, about: str) -> None:
    missed = int((~np.asarray(sets.predict_set(other))[np.arange(len(truth)), truth]).sum())
    chance = conformal_excess(missed, n=len(truth), rate=sets.alpha, calibrated=sets.n_samples)
    expect(
        chance >= BROKEN, f"{about}: {missed} of {len(truth)} sets without the true class, {sets.alpha:.0%} promised"
    )


def _check_sets(sets: ConformalSets, same: Any, other: Any) -> None:
    ours, theirs = (np.asarray(sets.predict_set(prediction)) for prediction in (same, other))
    scores = sets.score.of(same)
    best = np.sort(scores, axis=-1)[:, :2]
    near = (np.abs(scores - sets.thresholds) <= 1e-5).any(axis=-1) | (
        np.diff(best)[:, 0] <= 1e-5
    )  # rounding may decide
    differ = int(((ours != theirs).any(axis=-1) & ~near).sum())
    expect(not differ, f"{sets.score.method}: {differ} of {len(near)} sets differ")


def _guards(prediction: Any, labels: NDArray, score: str) -> list[Guard]:
    guards = [Guard.fit(prediction, score=score)]
    try:
        guards.append(Guard.fit(prediction, labels, score=score, false_alarm_rate=None, max_error=0.3))
    except ValueError:
        return guards
    return guards


def _labels(case: Case, probs: NDArray) -> NDArray:
    """Classes drawn from the mean of the members, which no promise needs to fear."""
    mean = probs.mean(axis=0)
    drawn = (mean.cumsum(axis=-1) < case.rng.random((len(mean), 1))).sum(axis=-1)
    return np.minimum(drawn, mean.shape[-1] - 1)


def _has(kind: str, score: str) -> bool:
    if _is_half(kind) and score == "set_size":  # refused beside another precision
        return False
    return score != "mean_pairwise_kl" or not (_is_half(kind) or "summary" in kind)


def _is_half(kind: str) -> bool:
    return "float16" in kind


def _tensor(dtype: str, *, logits: bool = False) -> Callable[[NDArray], Any]:
    def make(probs: NDArray) -> Any:
        import torch

        values, wrap = (_logits(probs), credalens.wrap_logits) if logits else (probs, credalens.wrap)
        return wrap(torch.from_numpy(values).to(getattr(torch, dtype)))

    return make


def _logits(probs: NDArray) -> NDArray:
    return np.log(np.maximum(probs, 1e-300))


MAKE: dict[str, Callable[[NDArray], Any]] = {
    "float64": credalens.wrap,
    "float32": lambda p: credalens.wrap(p.astype(np.float32)),
    "float16": lambda p: credalens.wrap(p.astype(np.float16)),
    "bfloat16": _tensor("bfloat16"),
    "torch": _tensor("float32"),
    "logits": lambda p: credalens.wrap_logits(_logits(p)),
    "float32 logits": lambda p: credalens.wrap_logits(_logits(p).astype(np.float32)),
    "summary": lambda p: credalens.MemberSummary().update(p[::-1]).prediction(),
    "float16 logits": lambda p: credalens.wrap_logits(_logits(p).astype(np.float16)),
    "bfloat16 logits": _tensor("bfloat16", logits=True),
    "one member in float16": lambda p: credalens.wrap([p[0].astype(np.float16), *p[1:]]),
    "float16 summary": lambda p: credalens.MemberSummary().update(p.astype(np.float16)).prediction(),
    "float32 summary": lambda p: credalens.MemberSummary().update(p.astype(np.float32)).prediction(),
}
