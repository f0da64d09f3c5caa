"""Seen from outside: counts, drift and log lines are those of the predictions that were served."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from itertools import pairwise

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from credalens import wrap
from credalens.guard import DriftAlarm, Guard
from credalens.serve import JsonFormatter, LogLines, Watch, app, member_outputs
from credalens.serve.metrics import FOLDER, MINUTES, STEP, History, observe_all
from credalens.serve.observer import LOG, Answered
from credalens.serve.watch import MOST_PENDING, Restarts
from tests.serve.messages import Message, ask, request
from tests.strategies import batch_of

CALIBRATION = wrap(batch_of("peaked", 3, 200, 4, seed=1))
GUARD = Guard.fit(CALIBRATION)
BATCHES = [batch_of(kind, 3, rows, 4, seed=rows) for kind, rows in (("peaked", 5), ("flat", 3), ("mixed", 1))]


@given(st.lists(st.integers(0, 12).map(lambda n: n / 4), max_size=30))
def test_many_values_are_observed_as_if_one_by_one(values):
    found = []
    for together in (True, False):
        registry = CollectorRegistry()
        histogram = Histogram("h", "words", ["a"], buckets=(0.5, 1, 2.5), registry=registry).labels("x")
        if together:
            observe_all(histogram, np.array(values))
        else:
            for value in values:
                histogram.observe(value)
        found.append([line for line in generate_latest(registry).decode().splitlines() if "_created" not in line])
    assert found[0] == found[1]


async def served(application, messages, path="/metrics"):
    """What a path shows after some requests, one after the other."""
    for message in messages:
        await ask(application, message)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
        return await client.get(path)


def numbers(text):
    """Every number by its name and labels."""
    return {
        (sample.name.removeprefix("credalens_"), *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_metrics_are_those_of_the_predictions():
    application = app(member_outputs(GUARD, name="credal", version="7"), GUARD)
    bad = [Message(b"{", {}), request({"probs": np.full((3, 1, 4), 0.5)})]
    messages = [*(request({"probs": batch}, ["total"]) for batch in BATCHES), *bad]
    found = numbers(asyncio.run(served(application, messages)).text)
    prediction = wrap(np.concatenate(BATCHES, axis=1))
    decisions = GUARD.decide(prediction)
    model = (("model", "credal"), ("version", "7"))
    expected = {
        ("requests_total", model[0], ("status", "200"), model[1]): 3,
        ("requests_total", model[0], ("status", "400"), model[1]): 2,
        ("request_seconds_count", *model): 5,
        ("batch_rows_count", *model): 3,
        ("batch_rows_sum", *model): 9,
        ("batch_requests_sum", *model): 3,
        ("queue_requests_sum", *model): 0,
        ("total_count", *model): 9,
        ("total_sum", *model): prediction.total.sum(),
        ("epistemic_sum", *model): prediction.epistemic.sum(),
        ("set_size_sum", *model): prediction.predict_set().sum(),
        ("drift_alarm", *model): 0,
        ("drift_log_bound", *model): math.log(40),
    }
    for key, value in expected.items():
        assert found[key] == pytest.approx(value), key
    low = sum(value <= 1 for value in prediction.total)
    assert found["total_bucket", ("le", "1.0"), *model] == low
    for decision in ("accept", "abstain"):
        of_kind = [value for (name, *labels), value in found.items() if ("decision", decision) in labels]
        assert sum(of_kind) == (decisions.decision == decision).sum() > 0


def test_drift_is_the_alarm_of_the_guards_scores_whatever_the_batches():
    application = app(member_outputs(GUARD), GUARD)
    stream = batch_of("flat", 3, 60, 4, seed=5)
    messages = [request({"probs": stream[:, n : n + 20]}, ["total"]) for n in (0, 20, 40)]
    found = numbers(asyncio.run(served(application, messages)).text)
    alarm = DriftAlarm(GUARD.scores, alpha=0.05, method="fixed")
    alarm.update(wrap(stream).score(GUARD.score))
    key = (("model", "credal"), ("version", "1"))
    assert found["drift_log_value", *key] == alarm.log_value
    assert found["drift_alarm", *key] == alarm.alarm == 1


def test_requests_in_half_precision_are_no_drift():
    """Of the same kind as a guard's float64 members, smoothed votes, which have few scores."""
    rng = np.random.default_rng(0)

    def members(rows):
        return 0.9 * np.eye(5)[rng.integers(0, 5, (3, rows))] + 0.02

    guard = Guard.fit(wrap(members(2000)), score="mean_total")
    messages = [request({"probs": members(200).astype(np.float16)}, ["total"]) for _ in range(5)]
    found = numbers(asyncio.run(served(app(member_outputs(guard), guard), messages)).text)
    assert found["drift_alarm", ("model", "credal"), ("version", "1")] == 0


async def restarted(application):
    """The answer to a call that restarts the drift alarm."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
        return await client.post("/drift/restart", headers={"X-Requested-With": "a test"})


def test_a_drift_alarm_that_is_restarted_has_seen_nothing():
    async def drift(messages):
        found = numbers((await served(application, messages)).text)
        return found["drift_alarm", *key], found["drift_log_value", *key]

    async def steps():
        return await drift([message]), await restarted(application), await drift([]), await drift([message])

    application, key = app(member_outputs(GUARD), GUARD), (("model", "credal"), ("version", "1"))
    message = request({"probs": batch_of("flat", 3, 60, 4, seed=5)}, ["total"])
    raised, answer, after, again = asyncio.run(steps())
    assert (answer.status_code, raised[0], after) == (200, 1, (0, 0))
    assert again == raised


def test_without_a_guard_there_is_no_alarm_to_restart():
    refusal = asyncio.run(restarted(app(member_outputs())))
    assert (refusal.status_code, refusal.json()["error"][:20]) == (404, "no drift is watched:")


def test_workers_restart_together(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    workers = [Restarts(), Restarts()]
    assert not any(worker.is_new() for worker in workers)
    workers[0].ask()
    assert [worker.is_new() for worker in workers] == [True, True]
    assert not any(worker.is_new() for worker in [*workers, Restarts()])


def test_requests_with_other_numbers_of_classes_and_other_precisions_are_counted_together():
    batches = [batch_of("flat", 3, 4, 3), batch_of("flat", 2, 5, 7).astype(np.float32), batch_of("flat", 3, 1, 3)]
    found = numbers(asyncio.run(served(app(member_outputs()), [request({"probs": p}) for p in batches])).text)
    key = (("model", "credal"), ("version", "1"))
    assert found["set_size_sum", *key] == sum(wrap(p).predict_set().sum() for p in batches)
    assert found["set_size_count", *key] == found["total_count", *key] == 10
    assert not any(name.startswith(("drift", "decisions")) for name, *_ in found)


def test_a_guard_with_too_few_scores_or_none_watches_no_drift(caplog):
    few = Guard.fit(wrap(batch_of("peaked", 3, 5, 4)), false_alarm_rate=0.3)
    assert Watch(few).alarm is None
    assert "drift is not watched" in caplog.text
    assert Watch().alarm is None
    assert Watch(GUARD, workers=4).alarm.alpha == 0.05 / 4


def test_events_do_not_pile_up_where_nobody_reads():
    watch = Watch()
    application = app(member_outputs(), observers=[watch])
    messages = [request({"probs": BATCHES[2]}, ["total"])] * MOST_PENDING
    asyncio.run(served(application, messages, "/v2"))
    assert len(watch._pending) < MOST_PENDING
    for _ in range(5 * MOST_PENDING):
        watch.answered(Answered("credal", "1", 400, None, 0, 0.0, "bad"))
    assert len(watch._pending) < 4 * MOST_PENDING


def test_the_page_is_given_counts_that_grow():
    application = app(member_outputs(GUARD), GUARD)
    about = asyncio.run(served(application, [request({"probs": BATCHES[0]})], "/recent")).json()
    assert about["models"] == [["credal", "1"]]
    assert (about["guarded"], about["sets"], about["drift"], about["workers"]) == (True, False, True, 1)
    (sample,) = about["samples"]
    assert sample["total_count"] == sample["accept"] + sample.get("abstain", 0) == 5
    assert sample["status_2xx"] == sample["within_+Inf"] == 1


def test_the_last_minutes_are_kept_and_no_more():
    history = History()
    for second in range(60 * MINUTES + 300):
        history.add({"total_count": float(second)}, float(second))
    times = [sample["time"] for sample in history.samples]
    assert times[-1] - times[0] == pytest.approx(60 * MINUTES, abs=STEP)
    assert all(b - a >= STEP for a, b in pairwise(times[:-1]))
    assert history.samples[-1]["total_count"] == times[-1]


def test_every_request_is_one_line_of_json(caplog):
    event = Answered("credal", "1", 400, "an\nid", 3, 0.25, "row 2: it sums to 2")
    with caplog.at_level(logging.INFO, LOG.name):
        LogLines().answered(event)
        try:
            raise KeyError("x")
        except KeyError:
            LOG.exception("a %s", "defect")
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert not any("\n" in line for line in lines)
    answered, defect = map(json.loads, lines)
    assert answered.items() >= {"message": "request", "level": "info", "status": 400, "id": "an\nid", "rows": 3}.items()
    assert defect["message"] == "a defect"
    assert "KeyError: 'x'" in defect["exception"]


def test_tokens_guard_the_numbers_and_not_the_empty_page():
    application = app(member_outputs(), tokens=["secret"])
    status = {path: asyncio.run(served(application, [], path)).status_code for path in ("/", "/recent", "/metrics")}
    assert status == {"/": 200, "/recent": 401, "/metrics": 401}


def test_the_log_of_an_alarm_compares_logarithms_with_logarithms(caplog):
    from credalens.serve.watch import update

    alarm = DriftAlarm(np.linspace(0, 1, 200), alpha=0.05, method="fixed")
    with caplog.at_level("WARNING", logger="credalens"):
        update(alarm, np.full(300, 0.99), model="m")
    (record,) = caplog.records
    assert record.fields["log_value"] >= record.fields["log_bound"] == pytest.approx(np.log(alarm.bound))
