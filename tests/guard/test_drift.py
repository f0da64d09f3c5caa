"""A drift alarm: p-values by rank, a martingale, an alarm that is rarely false however long the stream is."""

import json
import math
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.guard import DriftAlarm
from credalens.guard.binomial import binomial_interval
from credalens.guard.drift import BETS, FixedReference, RankedScores, Wealth, grid_counts, upper_limits
from credalens.storage.saved import SavedFormat
from tests import strategies  # noqa: F401  (settings)

METHODS = pytest.mark.parametrize("method", ["online", "fixed"])
scores = st.lists(st.one_of(st.integers(0, 3).map(float), st.floats(allow_nan=False)), min_size=1, max_size=40)


TOLERANCE = 2.0**-17


@cache
def cell(score, half):
    """The cell of a score, four tolerances wide; cells of the other grid are half a cell further."""
    place = math.copysign(math.log1p(abs(score)), score) / (4 * TOLERANCE)
    return math.floor(min(max(place, -(2.0**50)), 2.0**50) + half)


def slow_p_values(reference, stream, theta):
    known, p_values = list(reference), []
    for s, u in zip(stream, theta, strict=True):
        ranks = []
        for half in (0.0, 0.5):
            above = sum(cell(x, half) > cell(s, half) for x in known)
            equal = sum(cell(x, half) == cell(s, half) for x in known)
            ranks.append((above + u * (equal + 1)) / (len(known) + 1))
        p_values.append(max(ranks))
        known.append(s)
    return np.array(p_values)


@given(scores, scores, st.integers(0, 99))
def test_p_values_are_ranks_among_all_scores_so_far(reference, stream, seed):
    theta = 1 - np.random.default_rng(seed).random(len(stream))
    p_values = RankedScores.of(np.array(reference), TOLERANCE).p_values(np.array(stream), theta)
    assert (p_values == slow_p_values(reference, stream, theta)).all()


def test_p_values_are_those_of_one_large_block_after_many_chunks():
    rng = np.random.default_rng(0)
    stream, theta = rng.integers(0, 50, 1500) / 7, 1 - rng.random(1500)
    ranked = RankedScores.of(stream[:3], TOLERANCE)
    p_values = [
        ranked.p_values(stream[i : i + step], theta[i : i + step]) for i, step in ((3, 1), (4, 700), (704, 796))
    ]
    assert (np.concatenate(p_values) == slow_p_values(stream[:3], stream[3:], theta[3:])).all()
    assert (np.diff(list(map(len, ranked._blocks))) < 0).all()


@METHODS
@given(st.data())
def test_one_at_a_time_or_in_batches_gives_the_same_bits(method, data):
    calibration, stream = np.arange(40) % 7 / 7, np.array(data.draw(scores))
    cuts = sorted(data.draw(st.lists(st.integers(1, len(stream)), max_size=5)))
    whole, parts = (DriftAlarm(calibration, alpha=0.5, method=method, seed=1) for _ in range(2))
    values = np.concatenate([parts.update(part) for part in np.split(stream, cuts) if len(part)])
    assert whole.update(stream).tobytes() == values.tobytes()
    assert (whole.alarm_at, whole.log_value, whole.n_seen) == (parts.alarm_at, parts.log_value, parts.n_seen)


@METHODS
def test_a_saved_alarm_goes_on_to_the_bit(method, tmp_path):
    rng = np.random.default_rng(2)
    alarm = DriftAlarm(rng.integers(0, 9, 100), method=method, seed=5)
    alarm.update(rng.integers(0, 9, 300))
    alarm.save(tmp_path / "alarm.json")
    restored, rest = DriftAlarm.load(tmp_path / "alarm.json"), rng.integers(6, 15, 300)
    assert (restored.value, restored.n_calibration, restored.alarm) == (alarm.value, 100, alarm.alarm)
    assert restored.update(rest[:1]).tobytes() + restored.update(rest[1:]).tobytes() == alarm.update(rest).tobytes()
    assert restored.alarm_at == alarm.alarm_at is not None


def test_an_alarm_before_any_input_and_infinite_scores_can_be_saved(tmp_path):
    DriftAlarm([0.0, math.inf, -math.inf]).save(tmp_path / "alarm.json")
    assert DriftAlarm.load(tmp_path / "alarm.json").update([math.inf, 1.0]).shape == (2,)


def plain_mixture(p_values):
    """Each bet from the first p-value on, with equal shares."""
    return np.mean([np.cumprod(e * p_values ** (e - 1)) for e in BETS], axis=0)


def test_the_value_is_the_mixture_over_bets_and_beginnings():
    p_values = np.random.default_rng(3).random(60) ** 1.5
    kept = 1 / (1 + np.log(1 + np.arange(61)))
    slow = kept[1:].copy()
    for t in range(60):
        slow[t:] += (kept[t] - kept[t + 1]) * plain_mixture(p_values[t:])
    assert np.exp(Wealth.start().after(p_values)[1]) == pytest.approx(slow, rel=1e-11)


def test_p_values_and_martingale_are_those_of_crepes():
    base, martingales = pytest.importorskip("crepes.base"), pytest.importorskip("crepes.martingales")
    rng = np.random.default_rng(4)
    calibration, stream = rng.integers(0, 20, 50) / 4, rng.integers(2, 22, 80) / 4
    theta = np.random.RandomState(7).rand(80)  # what crepes draws from
    ours = RankedScores.of(calibration, TOLERANCE).p_values(stream, theta)
    theirs = base.p_values_online_regression(stream, alphas_cal=calibration, seed=7)
    assert ours == pytest.approx(theirs, rel=1e-14)

    class Power(martingales.BettingFunction):
        def apply(self, p):
            return np.array(BETS) * p[:, None] ** (np.array(BETS) - 1)

    jumper = martingales.SimpleJumper(J=1e-300, bf=Power())  # which never jumps: the plain mixture
    kept = 1 / (1 + np.log(1 + np.arange(81)))
    value = kept[-1] + sum((kept[t] - kept[t + 1]) * jumper.apply(theirs[t:])[-1] for t in range(80))
    assert Wealth.start().after(ours)[1][-1] == pytest.approx(math.log(value), rel=1e-11)


def test_p_values_are_independent_and_uniform_with_heavy_ties():
    rng = np.random.default_rng(5)
    stream = rng.choice(4, 10_000, p=[0.7, 0.2, 0.09, 0.01])
    ranked = RankedScores.of(stream[:10].astype(float), TOLERANCE)
    p_values = ranked.p_values(stream[10:].astype(float), 1 - rng.random(9990))
    cells = np.floor(5 * p_values[:-1]) * 5 + np.floor(5 * np.minimum(p_values[1:], 0.999))
    for hits in np.bincount(cells.astype(int).clip(max=24), minlength=25):
        low, high = binomial_interval(int(hits), 9989, level=1 - 1e-4)
        assert low <= 1 / 25 <= high


def test_the_martingale_keeps_its_level_and_is_not_far_below():
    p_values = 1 - np.random.default_rng(6).random((3000, 200))
    false = sum(bool((Wealth.start().after(row)[1] >= math.log(20)).any()) for row in p_values)
    low, high = binomial_interval(false, 3000, level=0.999)
    assert low <= 0.05
    assert high >= 0.05 / 4


@METHODS
def test_few_alarms_are_false_on_streams_far_longer_than_the_calibration_set(method):
    rng, false = np.random.default_rng(7), 0
    for draw in range(200):
        tied = rng.geometric(0.5, 1530).astype(float)
        alarm = DriftAlarm(tied[:30], alpha=0.2, method=method, seed=draw)
        alarm.update(tied[30:])
        false += alarm.alarm
    assert binomial_interval(false, 200, level=0.999)[0] <= 0.2


def test_a_fixed_reference_without_margin_would_not_keep_its_level():
    rng, false = np.random.default_rng(8), 0
    for _ in range(200):
        calibration, stream = np.sort(rng.random(30)), rng.random(3000)
        p_values = (31 - np.searchsorted(calibration, stream)) / 31
        false += bool((Wealth.start().after(p_values)[1] >= math.log(20)).any())
    assert binomial_interval(false, 200, level=0.999)[0] > 0.05


def test_the_margin_holds_for_all_scores_at_once_and_is_not_far_too_wide():
    n, delta, counts = 60, 0.1, list(grid_counts(60))
    survival = np.sort(np.random.default_rng(9).random((10_000, n)))[:, counts]
    broken = int((survival > upper_limits(n, delta)).any(axis=1).sum())
    assert binomial_interval(broken, 10_000, level=0.999)[0] <= delta
    assert broken / 10_000 >= delta / 5  # counts next to each other nearly always hold or break together


@given(scores.filter(lambda x: len(x) > 1), scores)
def test_the_margin_counts_calibration_scores_at_or_above(calibration, stream):
    p_values = FixedReference.of(np.array(calibration), 0.1, TOLERANCE).p_values(np.array(stream))
    limits = dict(zip(grid_counts(len(calibration)), upper_limits(len(calibration), 0.1), strict=True))
    for s, p in zip(stream, p_values, strict=True):
        at_or_above = sum(x >= s - TOLERANCE * (1 + min(abs(s), 8e307)) for x in calibration)
        assert p == min([limits[k] for k in limits if k >= at_or_above], default=1.0)


@METHODS
@pytest.mark.parametrize("noise", [3e-7, -3e-7])
def test_another_precision_is_no_drift(method, noise):
    """Scores of a few values, which another precision moves, at the borders of cells too."""
    rng = np.random.default_rng(11)
    values = np.array([0.0, 0.3, 0.5, 1.0, math.log2(3), *np.expm1(np.array([1, 1.5, 2, 7.5, 1e4]) * 4 * TOLERANCE)])
    scores = rng.choice(values, 4000)
    alarm = DriftAlarm(scores[:2000], method=method)
    alarm.update(scores[2000:] + noise * rng.random(2000) * (1 + scores[2000:]))
    assert not alarm.alarm


@METHODS
@pytest.mark.parametrize("shift", [0.0, 1e-5, 3e-5])
def test_p_values_of_scores_as_dense_as_the_tolerance_keep_their_level(method, shift):
    rng, false = np.random.default_rng(12), 0
    for draw in range(200):
        scores = 1e-3 + shift + 4e-5 * rng.random(830)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            alarm = DriftAlarm(scores[:30], alpha=0.2, method=method, seed=draw)
        alarm.update(scores[30:])
        false += alarm.alarm
    assert binomial_interval(false, 200, level=0.999)[0] <= 0.2


def test_scores_of_a_small_scale_ask_for_a_tolerance():
    scores = 1e-6 * np.random.default_rng(13).normal(size=500)
    with pytest.warns(UserWarning, match=r"differences of 7.63e-06 .* give tol"):
        DriftAlarm(scores)
    alarm = DriftAlarm(scores, tolerance=1e-12)
    alarm.update(scores[:100] + 3e-6)
    assert alarm.alarm
    for wrong in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="tolerance must be"):
            DriftAlarm(scores, tolerance=wrong)


def test_some_scores_of_a_stream_may_be_rougher_than_the_rest():
    rng = np.random.default_rng(16)
    scores = rng.choice([0.3, 0.5, 1.0], 600)
    alarm = DriftAlarm(scores[:300], method="fixed")
    alarm.update(scores[300:] + 3e-3, tolerance=4e-3)
    assert not alarm.alarm
    alarm.update(scores[300:] + 3e-3)
    assert alarm.alarm_at > 300
    with pytest.raises(ValueError, match=r"an online alarm .*tolerance=0\.004"):
        DriftAlarm(scores).update(scores, tolerance=4e-3)


@METHODS
def test_an_alarm_of_the_first_version_goes_on(method, tmp_path):
    """It had no tolerance, and kept the scores themselves."""
    rng = np.random.default_rng(14)
    calibration, stream, rest = (rng.normal(size=n) for n in (300, 200, 500))
    alarm = DriftAlarm(calibration, method=method)
    alarm.update(stream)
    alarm.save(tmp_path / "new.json")
    fields = json.loads((tmp_path / "new.json").read_text())
    for name in ("format", "checksum", "tolerance"):
        del fields[name]
    if method == "online":
        fields["reference"] = {"scores": np.sort([*calibration, *stream]).tolist()}
    SavedFormat("drift-alarm").write(tmp_path / "old.json", fields)
    restored = DriftAlarm.load(tmp_path / "old.json")
    assert restored.update(rest).tobytes() == alarm.update(rest).tobytes()


@METHODS
@pytest.mark.parametrize("clean", [0, 3000])
def test_a_drift_is_noticed_also_late(method, clean):
    rng = np.random.default_rng(10)
    alarm = DriftAlarm(rng.normal(size=2000), method=method)
    alarm.update(rng.normal(size=clean + 1))
    assert not alarm.alarm
    alarm.update(rng.normal(size=200) + 1.5)
    assert clean < alarm.alarm_at < clean + 60


def test_the_alarm_stays_and_the_value_does_not_overflow():
    alarm = DriftAlarm(np.zeros(2000), method="fixed")
    alarm.update(np.ones(2000))
    assert alarm.log_value > 1000
    assert alarm.value == pytest.approx(np.finfo(float).max, rel=1e-10)
    alarm.update(np.zeros(10_000))
    assert alarm.value < alarm.bound
    assert alarm.alarm


def test_several_streams_share_the_false_alarms():
    alarms = DriftAlarm.for_streams(np.arange(100), 4, alpha=0.1, seed=3)
    assert [alarm.alpha for alarm in alarms] == [0.025] * 4
    values = [alarm.update(np.full(5, 50.0))[-1] for alarm in alarms]
    assert len(set(values)) == 4, "ties must not be broken alike"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DriftAlarm([]), "calibration_scores holds 0 samples"),
        (lambda: DriftAlarm([[1.0]]), "one-dimensional"),
        (lambda: DriftAlarm([1.0, math.nan]), "NaN"),
        (lambda: DriftAlarm([1.0], alpha=0), "alpha"),
        (lambda: DriftAlarm([1.0], method="best"), "method must be one of 'online', 'fixed'"),
        (lambda: DriftAlarm([1.0], seed=-1), "seed"),
        (lambda: DriftAlarm(np.arange(5), method="fixed"), "5 calibration scores: too few.*At least 14"),
        (lambda: DriftAlarm([1.0]).update([]), "scores holds 0 samples"),
        (lambda: DriftAlarm([1.0]).update(math.nan), "NaN"),
        (lambda: DriftAlarm([1.0]).update([[1.0]]), "one-dimensional"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_batch_leaves_the_alarm_as_it_was():
    alarm, untouched = DriftAlarm([1.0, 2.0]), DriftAlarm([1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        alarm.update([3.0, math.nan])
    assert alarm.update([1.5]) == untouched.update([1.5])
