"""Promises and decisions do not depend on the precision of the members, nor on how and where they were combined."""

import contextlib
import sys
import warnings
from dataclasses import replace
from functools import lru_cache
from itertools import permutations, product

import numpy as np
import pytest

from credalens import MemberSummary, wrap, wrap_logits
from credalens.core.classical import ClassicalUncertainty
from credalens.core.scores import SCORES
from credalens.guard import ConformalSets, DriftAlarm, Guard
from credalens.guard.conformal_sets import NONCONFORMITY
from credalens.prediction import ARRAYS
from tests.guard.earlier_files import earlier_fields
from tests.strategies import batch_of

with contextlib.suppress(ModuleNotFoundError):
    import torch  # noqa: F401 - on a GPU there are more kinds

pytestmark = pytest.mark.filterwarnings("ignore:.*the highest .* there can be", "ignore:.*fewer than the")
ROWS = 2000


def continuous(rng, classes, rows):
    center = 2.5 * rng.normal(size=(1, rows, classes))
    z = np.exp(center + rng.normal(size=(5, rows, classes)))
    return z / z.sum(axis=-1, keepdims=True)


def tied(rng, classes, rows):
    """Votes of ten: few different scores, each of many inputs, with classes and members in any order."""
    shares = rng.dirichlet(np.full(classes, 0.3), 12)[rng.integers(0, 12, rows)]
    return rng.multinomial(10, shares, (5, rows)) / 10


def one_hot(rng, classes, rows):
    shares = rng.dirichlet(np.full(classes, 0.3), rows)
    return np.eye(classes)[(shares.cumsum(axis=-1) < rng.random((5, rows, 1))).sum(axis=-1).clip(max=classes - 1)]


def thirds(rng, classes, rows):
    """Numbers that no float holds, and one distribution in many orders."""
    p = rng.permuted(np.repeat([np.arange(1.0, classes + 1)], 5 * rows, axis=0).reshape(5, rows, classes), axis=-1)
    return p / p.sum(axis=-1, keepdims=True)


def smoothed(rng, classes, rows):
    return 0.9 * one_hot(rng, classes, rows) + 0.1 / classes


def logits(p):
    return np.log(np.maximum(p, 1e-300))


def torch_of(p, dtype, function=wrap):
    torch = pytest.importorskip("torch")
    return function(torch.from_numpy(p).to(getattr(torch, dtype)))


def has_cuda():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def on_cuda(function, values, dtype):
    """The prediction of tensors on a GPU, fetched from there."""
    import torch

    prediction = function(torch.from_numpy(values).to("cuda", getattr(torch, dtype)))
    arrays = {name: getattr(prediction, name).cpu() for name in ARRAYS}
    members = prediction._members.to_cpu()
    classical = ClassicalUncertainty(*(x.cpu() for x in vars(prediction.classical).values()))
    return replace(prediction, **arrays, _members=members, _classical=classical)


KINDS = {
    "float64": wrap,
    "float32": lambda p: wrap(p.astype(np.float32)),
    "float16": lambda p: wrap(p.astype(np.float16)),
    "reversed": lambda p: wrap(p[::-1].astype(np.float32)),
    "logits": lambda p: wrap_logits(logits(p)),
    "float32 logits": lambda p: wrap_logits(logits(p).astype(np.float32)),
    "summary": lambda p: MemberSummary().update(p).prediction(),
    "float32 summary": lambda p: MemberSummary().update(p.astype(np.float32)).prediction(),
    "torch": lambda p: torch_of(p, "float32"),
    "bfloat16": lambda p: torch_of(p, "bfloat16"),
    "float16 logits": lambda p: wrap_logits(logits(p).astype(np.float16)),
    "bfloat16 logits": lambda p: torch_of(logits(p), "bfloat16", wrap_logits),
    "one member in float16": lambda p: wrap([p[0].astype(np.float16), *p[1:]]),
}
if has_cuda():
    KINDS |= {
        "CUDA float64": lambda p: on_cuda(wrap, p, "float64"),
        "CUDA float32": lambda p: on_cuda(wrap, p, "float32"),
        "CUDA float16": lambda p: on_cuda(wrap, p, "float16"),
        "CUDA logits": lambda p: on_cuda(wrap_logits, logits(p), "float32"),
        "CUDA float16 logits": lambda p: on_cuda(wrap_logits, logits(p), "float16"),
    }
WIDE = [kind for kind in KINDS if "float16" not in kind]
DATA = {"continuous": continuous, "tied": tied, "one_hot": one_hot, "smoothed": smoothed, "thirds": thirds}
FITTED = ("float64", "float32", "float16", "bfloat16", "bfloat16 logits", "one member in float16", "float32 summary")


def scores_for(kind):
    half = "float16" in kind
    without_members = "summary" in kind
    changed = ("mean_pairwise_kl", "set_size") if half else ("mean_pairwise_kl",) if without_members else ()
    return [name for name in SCORES if name not in changed]


def labels_of(members, rng):
    """Wrong the more often, the less certain the members are."""
    mean = members.mean(axis=0)
    return (mean.cumsum(axis=-1) < rng.random((len(mean), 1))).sum(axis=-1).clip(max=mean.shape[-1] - 1)


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("classes", [2, 5])
def test_the_same_inputs_are_decided_alike_but_near_a_threshold(classes, data, kind):
    rng = np.random.default_rng(1)
    members, fresh = np.split(DATA[data](rng, classes, 2 * ROWS), [ROWS], axis=1)
    labels = labels_of(members, rng)
    calibration, expected, prediction = wrap(members), wrap(fresh), KINDS[kind](fresh)
    for score in scores_for(kind):
        for fitted in (Guard.fit(calibration, score=score), *promising(calibration, labels, score)):
            ours, theirs = fitted.decide(expected), fitted.decide(prediction)
            near = np.zeros(ROWS, bool)
            for edge in (fitted.threshold, fitted.limit):
                if np.isfinite(edge):
                    near |= np.abs(ours.scores - edge) <= 4e-5 * (1 + abs(edge))
            differ = ours.reason != np.asarray(theirs.reason)
            assert not (differ & ~near).any(), score
            if data != "continuous":  # no input lies near a threshold by chance
                assert not differ.any(), score
            assert np.abs(ours.p_value - np.asarray(theirs.p_value)).max() <= 0.01, score  # of values that are near


def promising(prediction, labels, score):
    """A guard that promises fewer errors, where one can."""
    try:
        return [Guard.fit(prediction, labels, score=score, false_alarm_rate=None, max_error=0.2)]
    except ValueError:
        return []


@lru_cache(maxsize=1)
def inputs(data):
    """Calibration data and three times as many later inputs, both with labels."""
    rng = np.random.default_rng(2)
    members, fresh = np.split(DATA[data](rng, 3, 4 * ROWS), [ROWS], axis=1)
    return members, labels_of(members, rng), fresh, labels_of(fresh, rng)


@lru_cache(maxsize=len(KINDS))
def later_inputs(data, kind):
    _, _, fresh, truth = inputs(data)
    return KINDS[kind](fresh), truth


@lru_cache(maxsize=1)
def fitted_guards(data, kind):
    """Guards of every score, fitted once for all kinds of later inputs."""
    members, labels, _, _ = inputs(data)
    prediction = KINDS[kind](members)
    return {
        score: [Guard.fit(prediction, score=score), *promising(prediction, labels, score)] for score in scores_for(kind)
    }


@pytest.mark.parametrize("used", KINDS)
@pytest.mark.parametrize("fitted", FITTED)
@pytest.mark.parametrize("data", DATA)
def test_a_promise_of_one_precision_holds_in_another(data, fitted, used):
    """False alarms and errors on three times as many inputs: the exact check calls a sound promise broken in 2.5 % of cases."""
    broken, checked = [], 0
    later, truth = later_inputs(data, used)
    for score, guards in fitted_guards(data, fitted).items():
        for guard in guards if score in scores_for(used) else ():
            checks = guard.check_promises(later, truth)
            checked += len(checks)
            broken += [(score, check) for check in checks if check.p_value <= 0.001]
    assert checked >= 11
    assert not broken


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("fitted", "used"), [("float32", "float64"), ("float64", "float32"), ("float64", "summary")])
def test_sets_and_drift_do_not_depend_on_the_precision(data, fitted, used):
    rng = np.random.default_rng(3)
    members, fresh = np.split(DATA[data](rng, 4, 2 * ROWS), [ROWS], axis=1)
    labels = labels_of(members, rng)
    calibration, later = KINDS[fitted](members), [KINDS[kind](fresh) for kind in (fitted, used)]
    for method in NONCONFORMITY:
        sets = ConformalSets.fit(calibration, labels, alpha=0.1, method=method)
        masks = [np.asarray(sets.predict_set(prediction)) for prediction in later]
        assert (masks[0] != masks[1]).any(axis=-1).mean() <= (0.002 if data == "continuous" else 0), method
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # all scores the same
        for score in ("total", "epistemic", "mean_total"):
            for method in ("online", "fixed"):
                alarm = DriftAlarm(np.asarray(calibration.score(score)), method=method)
                alarm.update(np.asarray(later[1].score(score)))
                assert not alarm.alarm, (score, method)


@lru_cache(maxsize=1)
def ten_draws(data, classes):
    """(calibration data, their labels, predictions of fresh inputs by every kind, theirs) ten times."""
    rng, draws = np.random.default_rng(6), []
    for _ in range(10):
        members, fresh = np.split(DATA[data](rng, classes, 800), [300], axis=1)
        labels, truth = labels_of(members, rng), labels_of(fresh, rng)
        draws.append((members, labels, {kind: make(fresh) for kind, make in KINDS.items()}, truth))
    return draws


@pytest.mark.parametrize("fitted", ["float64", "float32", "float16", "bfloat16 logits"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("data", DATA)
def test_sets_of_one_precision_cover_in_another(data, classes, fitted):
    """On average over calibration data and seeds: ten of each, of which few inputs come many times where scores are tied."""
    missed = dict.fromkeys(product(NONCONFORMITY, KINDS), 0)
    for seed, (members, labels, later, truth) in enumerate(ten_draws(data, classes)):
        calibration = KINDS[fitted](members)
        for method in NONCONFORMITY:
            sets = ConformalSets.fit(calibration, labels, alpha=0.1, method=method, seed=seed)
            for kind, prediction in later.items():
                missed[method, kind] += (~np.asarray(sets.predict_set(prediction))[np.arange(500), truth]).sum()
    assert not {
        key: count for key, count in missed.items() if count > 0.1 * 5000 + 5 * 65
    }  # 65: the deviation of a mean of ten


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    ("fitted", "used"), list(permutations(["float32", "float16", "bfloat16", "bfloat16 logits"], 2))
)
def test_half_precision_is_no_drift_where_the_alarm_is_told(data, fitted, used):
    rng = np.random.default_rng(7)
    members, fresh = np.split(DATA[data](rng, 3, 2 * ROWS), [ROWS], axis=1)
    calibration, later = KINDS[fitted](members), KINDS[used](fresh)
    for score in ("total", "mean_total", "least_confidence"):
        tolerance = max(vars(Guard.fit(calibration, score=score).slack(later._rounding)).values())
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # all scores the same
            alarms = [
                DriftAlarm(calibration.score(score), method=method, tolerance=tolerance)
                for method in ("online", "fixed")
            ]
            alarms.append(DriftAlarm(calibration.score(score), method="fixed"))
        for alarm, options in zip(alarms, ({}, {}, {"tolerance": tolerance}), strict=True):
            alarm.update(np.asarray(later.score(score)), **options)
            assert not alarm.alarm, score


@pytest.mark.parametrize("score", ["mean_pairwise_kl", "set_size"])
def test_scores_that_half_precision_changes_are_not_compared_with_others(score):
    members = batch_of("peaked", 5, 300, 4)
    half, single = KINDS["float16"](members), KINDS["float32"](members)
    guard = Guard.fit(single, score=score)
    with pytest.raises(ValueError, match=r"not both of .* in the same half precision"):
        guard.decide(half)
    with pytest.raises(ValueError, match="in the same half precision"):
        Guard.fit(half, score=score).decide(KINDS["float16 logits"](members))
    assert len(Guard.fit(half, score=score).decide(half)) == 300
    guard.decide(KINDS["float64"](members))


def test_a_guard_of_the_first_version_keeps_its_promise_in_another_precision(tmp_path):
    """It compared scores to the last digit: half of these inputs have the highest entropy, up to rounding."""
    from credalens.storage.saved import SavedFormat

    rng = np.random.default_rng(4)
    members = one_hot(rng, 2, ROWS)
    fields = earlier_fields(Guard.fit(KINDS["float32"](members)), 1)
    SavedFormat("guard").write(tmp_path / "old.json", fields)
    guard = Guard.load(tmp_path / "old.json")
    for kind in ("float32", "float64", "float32 summary"):
        assert (~np.asarray(guard.decide(KINDS[kind](one_hot(rng, 2, ROWS))).accepted)).mean() <= 0.06


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_limit_of_the_first_version_that_was_its_threshold_accepts_what_ties_there(tmp_path, kind):
    from credalens.storage.saved import SavedFormat

    rng = np.random.default_rng(5)
    members = tied(rng, 3, ROWS)
    prediction = KINDS["float32"](members)
    guard = Guard.fit(prediction, prediction.predict(), max_error=0.05, score="total")
    old = {**earlier_fields(guard, 1), "limit": np.nextafter(guard.threshold, np.inf)}
    SavedFormat("guard").write(tmp_path / "old.json", old)
    expected = ~(prediction.total > guard.threshold)
    np.testing.assert_array_equal(Guard.load(tmp_path / "old.json").decide(KINDS[kind](members)).accepted, expected)
