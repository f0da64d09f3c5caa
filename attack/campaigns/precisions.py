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

ROWS = 400
NEAR = 2e-4  # of a threshold; what hangs on it lies far from it but for chance
HALF = ("float16", "bfloat16")


def attack(case: Case) -> None:
    """The same inputs in any precision, as logits, summaries or tensors: the same decisions, and promises that hold."""
    classes, members = case.choose(2, 3, 5, 12), case.between(2, 6)
    probs = many_rows.predictions(case, rows=3 * ROWS, classes=classes, members=members)
    fitted, used = (case.choose(*MAKE) for _ in range(2))
    score = case.choose(*[name for name in SCORES if _has(fitted, name) and _has(used, name)])
    calibration, fresh = probs[:, :ROWS], probs[:, ROWS:]
    with warnings.catch_warnings(action="ignore"):  # members of one kind and guards of tied scores are meant
        labels = _labels(case, calibration)
        guards = _guards(MAKE[fitted](calibration), labels, score)
        same, other = MAKE[fitted](fresh), MAKE[used](fresh)
        for guard in guards:
            _check_decisions(guard, same, other, {fitted, used})
            checks = guard.check_promises(other, _labels(case, fresh))
            broken = [check for check in checks if check.p_value < 1e-9]
            expect(not broken, f"{score}, fitted in {fitted}, used in {used}: {broken}")
        if not {fitted, used} & set(HALF):
            _check_sets_and_drift(case, same, other, MAKE[fitted](calibration), labels, score)


def _check_decisions(guard: Guard, same: Any, other: Any, kinds: set[str]) -> None:
    ours, theirs = guard.decide(same), guard.decide(other)
    near = np.zeros(len(same), bool)
    slack = 0.05 if kinds & set(HALF) else NEAR
    for edge in (guard.threshold, guard.limit):
        if np.isfinite(edge):
            near |= np.abs(np.asarray(ours.scores) - edge) <= slack * (1 + abs(edge))
    differ = np.asarray(ours.reason) != np.asarray(theirs.reason)
    expect(not (differ & ~near).any(), f"{guard}: {int((differ & ~near).sum())} inputs far from a threshold differ")


def _check_sets_and_drift(case: Case, same: Any, other: Any, calibration: Any, labels: NDArray, score: str) -> None:
    method = case.choose("lac", "intersection", "upper", "lower", "dominance")
    sets = ConformalSets.fit(calibration, labels, alpha=0.1, method=method)
    ours, theirs = (np.asarray(sets.predict_set(prediction)) for prediction in (same, other))
    near = np.abs(sets.score.of(same) - sets.thresholds) <= 1e-5  # what rounding may decide either way
    differ = float((ours != theirs).any(axis=-1)[~near.any(axis=-1)].mean()) if not near.any(axis=-1).all() else 0.0
    expect(differ == 0, f"{method}: {differ:.1%} of the sets differ")
    alarm = DriftAlarm(np.asarray(calibration.score(score)), alpha=1e-6, method=case.choose("online", "fixed"))
    alarm.update(np.asarray(other.score(score)))
    expect(not alarm.alarm, f"{score}: a drift alarm for the same kind of inputs")


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
    if kind in HALF and score == "set_size":  # refused beside another precision
        return False
    return score != "mean_pairwise_kl" or not (kind in HALF or "summary" in kind)


def _tensor(dtype: str) -> Callable[[NDArray], Any]:
    def make(probs: NDArray) -> Any:
        import torch

        return credalens.wrap(torch.from_numpy(probs).to(getattr(torch, dtype)))

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
    "float32 summary": lambda p: credalens.MemberSummary().update(p.astype(np.float32)).prediction(),
}
