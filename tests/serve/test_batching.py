"""Batches: requests are joined while the worker is busy, and no answer depends on which others came along."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import Guard
from credalens.serve import Limits, Observer, ServedModel, app, member_outputs
from credalens.serve.batcher import Batcher, Job
from credalens.serve.predictor import BatchPredictor
from credalens.serve.protocol import RequestError, WantedOutput
from credalens.serve.responses import Answer
from tests.serve.messages import answers, ask, request, together
from tests.strategies import KINDS, batch_of


class Noting(Observer):
    """Keeps what it is told."""

    def __init__(self):
        self.requests, self.batches = [], []

    def answered(self, event):
        self.requests.append(event)

    def batch_done(self, event):
        self.batches.append(event)


class Gate:
    """A model that waits before each prediction until it is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()
        self._model = member_outputs()
        self.model = replace(self._model, predict=self.predict, quick_values=0)

    def predict(self, inputs):
        self.entered.set()
        assert self.opened.wait(60)
        return self._model.predict(inputs)


async def while_busy(server, gate, messages):
    """The answers to a first message and to others that come while it is worked on."""
    first = asyncio.create_task(ask(server, messages[0]))
    await asyncio.to_thread(gate.entered.wait, 60)
    others = [asyncio.create_task(ask(server, message)) for message in messages[1:]]
    for _ in range(100):  # more turns than a request takes to reach the queue
        await asyncio.sleep(0)
    gate.opened.set()
    return await asyncio.gather(first, *others)


def ask_while_busy(messages, **options):
    gate, noting = Gate(), Noting()
    server = app(gate.model, observers=[noting], **options)
    return together(while_busy(server, gate, messages))[0], noting


@st.composite
def traffic(draw):
    """Requests of several shapes, precisions and outputs."""
    shapes = draw(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(2, 3)), min_size=2, max_size=8))
    seeds = st.integers(0, 2**32 - 1)
    for members, rows, classes in shapes:
        probs = batch_of(draw(st.sampled_from(KINDS)), members, rows, classes, seed=draw(seeds))
        dtype = draw(st.sampled_from(["float64", "float32"]))
        yield probs.astype(dtype), draw(st.sampled_from(["total", "mean_epistemic", "probability", "imprecision"]))


@settings(max_examples=20, deadline=None)
@given(traffic().map(list), st.integers(1, 12), st.booleans())
def test_batching_changes_no_answer(requests, batch_rows, binary):
    messages = [request({"probs": probs}, [name], binary=binary) for probs, name in requests]
    responses, noting = ask_while_busy(messages, limits=Limits(batch_rows=batch_rows))
    for response, (probs, name) in zip(responses, requests, strict=True):
        prediction = wrap(probs)
        wanted = prediction.probability if name == "probability" else prediction.score(name)
        np.testing.assert_array_equal(answers(response)[name], wanted)
    assert sum(batch.rows for batch in noting.batches) == sum(probs.shape[1] for probs, _ in requests)
    assert all(batch.rows <= batch_rows for batch in noting.batches)


def test_requests_of_a_kind_are_joined():
    probs = batch_of("flat", 3, 8, 5)
    messages = [request({"probs": probs[:, k : k + 1]}, ["total"]) for k in range(8)]
    responses, noting = ask_while_busy(messages)
    np.testing.assert_array_equal([answers(response)["total"][0] for response in responses], wrap(probs).total)
    assert [batch.requests for batch in noting.batches] == [1, 7]
    assert [event.status for event in noting.requests] == [200] * 8


def test_a_bad_request_does_not_spoil_its_neighbours():
    probs = batch_of("flat", 3, 6, 5)
    bad = probs.copy()
    bad[2, 4] = 0.5
    messages = [request({"probs": bad[:, k : k + 2]}, ["total"]) for k in (0, 2, 4)]
    responses, _ = ask_while_busy([messages[0], *messages])
    assert [response.status_code for response in responses] == [200, 200, 200, 400]
    assert "input 'probs', row 0, member 2" in responses[-1].json()["error"]
    np.testing.assert_array_equal(answers(responses[2])["total"], wrap(probs).total[2:4])


def test_beyond_the_queue_requests_are_sent_away():
    message = request({"probs": batch_of("flat", 2, 1, 3)}, ["total"])
    responses, noting = ask_while_busy([message] * 6, limits=Limits(queue=4))
    assert sorted(response.status_code for response in responses) == [200] * 4 + [503] * 2
    assert [response.headers["Retry-After"] for response in responses if response.status_code == 503] == ["1"] * 2
    assert sorted(event.status for event in noting.requests) == [200] * 4 + [503] * 2


def test_a_request_is_not_waited_for_forever():
    gate, noting = Gate(), Noting()
    server = app(gate.model, observers=[noting], limits=Limits(timeout=0.2, queue=1))
    message = request({"probs": batch_of("flat", 2, 1, 3)}, ["total"])

    async def run():
        late = [await ask(server, message), await ask(server, message)]
        gate.opened.set()
        return late, await ask(app(gate.model), message)

    ((first, second), last) = together(run())[0]
    late = {408, 504}  # 408 where this machine takes long to read a body
    assert {first.status_code, second.status_code} <= late
    assert last.status_code == 200
    assert "in time" in first.json()["error"]


def test_a_large_request_is_left_when_nobody_waits_for_it():
    def part(inputs):
        rows.append(len(inputs["x"]))
        given_up.set()
        return wrap(np.full((2, len(inputs["x"]), 3), 1 / 3))

    rows, given_up = [], threading.Event()
    model = ServedModel("slow", "1", "test", (), part)
    predictor = BatchPredictor(model, Limits(batch_rows=4))
    (reply,) = all_turns(predictor.replies([job(10)], 0, given_up.is_set))
    assert (rows, reply.status) == ([4], 504)


def test_the_row_of_a_large_request_is_named():
    probs = batch_of("flat", 3, 10, 5)
    probs[1, 7] = 0.5
    response = together(ask(app(member_outputs(), limits=Limits(batch_rows=4)), request({"probs": probs})))[0]
    assert "row 7, member 1" in response.json()["error"]


@pytest.mark.parametrize("given_up", [False, True])
def test_rows_of_a_request_that_is_refused_are_not_told(given_up):
    """A bad row in the last part, or nobody who waits: the parts before count for nothing, and those of others once."""
    noting, probs = Noting(), batch_of("flat", 3, 10, 5)
    probs[1, 9] = 0.5
    good = Job(None, {"probs": batch_of("flat", 3, 6, 5)}, 6, (WantedOutput("total", False),), row_axis=1)
    bad = replace(good, inputs={"probs": probs}, rows=10)
    predictor = BatchPredictor(member_outputs(), Limits(batch_rows=4), (noting,))
    turns = iter([False, False] if given_up else [False] * 99)
    replies = all_turns(predictor.replies([bad], 0, lambda: next(turns, True)))
    assert [reply.status for reply in replies] == [504 if given_up else 400]
    assert noting.batches == []
    if not given_up:
        first, second = all_turns(predictor.replies([good, bad], 0, lambda: False))
        assert (type(first), second.status) == (Answer, 400)
        assert [event.rows for event in noting.batches] == [4, 2]


def test_metrics_and_drift_do_not_count_rows_of_a_refused_request():
    calibration = wrap(batch_of("peaked", 3, 400, 4, seed=1))
    guard = Guard.fit(calibration)
    server = app(member_outputs(guard), guard, limits=Limits(batch_rows=4))
    probs = batch_of("peaked", 3, 11, 4, seed=2)
    probs[0, 10] = 0.9

    async def run():
        refused = await ask(server, request({"probs": probs}))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://test") as client:
            return refused, await client.get("/metrics")

    (refused, metrics) = asyncio.run(run())
    assert refused.status_code == 400
    assert "credalens_requests_total{" in metrics.text
    assert "credalens_batch_rows_count{" not in metrics.text
    assert "credalens_decisions_total{" not in metrics.text


def test_a_body_that_does_not_arrive():
    async def run():
        sent = []

        async def receive():
            await asyncio.sleep(60)

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v2/models/credal/infer",
            "headers": [],
            "query_string": b"",
        }
        await app(member_outputs(), limits=Limits(timeout=0.05))(scope, receive, send)
        return sent[0]["status"]

    assert together(run()) == [408]


def test_a_model_that_fails_is_a_5xx_and_the_next_request_is_answered():
    def moody(x):
        if x[0, 0] > 0:
            raise KeyError("no such thing")
        return np.full((2, len(x), 3), 1 / 3)

    server = app(moody)
    bad, good = (request({"x": np.full((1, 2), value)}, ["total"]) for value in (1.0, 0.0))
    responses = [together(ask(server, message, "model"))[0] for message in (bad, good)]
    assert [response.status_code for response in responses] == [500, 200]
    assert responses[0].json() == {"error": "the model failed: KeyError"}


def test_an_observer_that_fails_changes_no_answer():
    class Failing(Noting):
        def batch_done(self, event):
            raise RuntimeError("no metrics today")

        answered = batch_done

    response = together(
        ask(app(member_outputs(), observers=[Failing()]), request({"probs": batch_of("flat", 2, 1, 3)}))
    )
    assert response[0].status_code == 200


def job(rows, classes=2):
    return Job(None, {"x": np.zeros((rows, classes))}, rows, (WantedOutput("total", False),))


ANSWER = Answer({}, (), {})


def all_turns(turns):
    """The replies after as many turns as it takes."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value


def submitting(jobs, *, rows, delay=0.0, later=()):
    """The sizes of the batches that jobs are gathered into which come at the same moment, or some turns later."""
    sizes, all_there = [], threading.Event()

    def replies(batch, waiting, given_up):
        assert all_there.wait(60)
        sizes.append([job.rows for job in batch])
        return [ANSWER] * len(batch)
        yield

    batcher = Batcher(replies, rows=rows, delay=delay)

    async def turns(count):
        for _ in range(count):
            await asyncio.sleep(0)

    async def submit_later(job):
        await turns(5)
        await batcher.submit(job)

    async def begin():
        await turns(20)
        all_there.set()

    together(*(batcher.submit(job) for job in jobs), *(submit_later(job) for job in later), begin())
    return sizes


def test_requests_of_one_moment_are_joined_and_later_ones_waited_for_only_if_told():
    assert submitting([job(1), job(1), job(1)], rows=8) == [[1, 1, 1]]
    assert submitting([job(1)], rows=8, later=[job(1), job(1)]) == [[1], [1, 1]]
    assert submitting([job(1)], rows=3, delay=600, later=[job(1), job(1)]) == [[1, 1, 1]]
    assert submitting([job(1), job(1)], rows=8, delay=0.01) == [[1, 1]]


def test_the_oldest_job_is_in_the_next_batch_and_kinds_do_not_mix():
    jobs = [job(1), job(1, classes=3), job(2), job(9), job(1)]
    assert submitting(jobs, rows=4) == [[1, 2], [1], [9], [1]]
    assert submitting([job(1), job(1), job(9, classes=3), job(2)], rows=4) == [[1, 1, 2], [9]]


@pytest.mark.parametrize("quick", [False, True])
def test_a_defect_in_the_worker_reaches_every_request(quick):
    def replies(batch, waiting, given_up):
        raise MemoryError
        yield

    batcher = Batcher(replies, rows=8, delay=0.05, quick=lambda jobs: quick)
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            together(batcher.submit(job(1)), batcher.submit(job(1)))
        assert caught.value.status == 500


@pytest.mark.parametrize(
    ("shape", "names", "quick"),
    [((5, 1, 10), None, True), ((5, 82, 10), None, False), ((2, 1, 21), None, False), ((5, 1, 10), ["hartley"], False)],
)
def test_small_requests_for_what_is_quick_are_answered_without_a_thread(shape, names, quick):
    threads, model = [], member_outputs()

    def predict(inputs):
        threads.append(threading.current_thread())
        return model.predict(inputs)

    server = app(replace(model, predict=predict))
    together(ask(server, request({"probs": batch_of("flat", *shape)}, names)))
    assert (threads == [threading.current_thread()]) == quick
