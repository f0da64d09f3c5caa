"""Large requests: refused before they are predicted, answered in turns, and written in pieces."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap
from credalens.serve import Limits, ServedModel, app, member_outputs
from credalens.serve.batcher import Batcher, Job
from credalens.serve.predictor import FIRST_VALUES, LONG_CLASSES, LONG_VALUES, BatchPredictor
from credalens.serve.protocol import RequestError, WantedOutput
from credalens.serve.responses import AT_ONCE, HEADER_LENGTH, Answer
from tests.serve.messages import answers, ask, infer, request
from tests.strategies import batch_of


def watched(model):
    """The model, and the numbers of rows that it is asked for."""
    rows = []

    def predict(inputs):
        rows.append(next(iter(inputs.values())).shape[model.row_axis])
        return model.predict(inputs)

    return replace(model, predict=predict), rows


@pytest.mark.parametrize(
    ("names", "values"), [(["lower", "upper", "total"], 4 * (2 * 5 + 1)), (["total"], 4 * 5), (None, 4 * (3 * 5 + 4))]
)
def test_an_answer_of_too_many_values_is_refused_before_anything_is_predicted(names, values):
    """Classes count also where only scores are asked for: the prediction has them."""
    model, rows = watched(member_outputs())
    message = request({"probs": batch_of("flat", 3, 4, 5)}, names)
    assert infer(app(model, limits=Limits(values=values)), message).status_code == 200
    assert rows == [4]
    refused = infer(app(model, limits=Limits(values=values - 1)), message)
    assert refused.status_code == 400
    assert f"would hold {values} values for 4 rows of 5 classes; at most {values - 1}" in refused.json()["error"]
    assert rows == [4]


def test_a_model_that_does_not_say_how_many_classes_it_has_is_asked_for_a_few_rows():
    def predict(inputs):
        rows.append(len(inputs["x"]))
        return wrap(np.full((2, len(inputs["x"]), 700), 1 / 700))

    rows, limits = [], Limits(values=50 * 700, classes=10_000)
    server = app(ServedModel("model", "1", "test", (), predict), limits=limits)
    for _ in range(2):
        refused = infer(server, request({"x": np.zeros((51, 2))}, ["total"]), "model")
        assert (refused.status_code, "51 rows of 700 classes" in refused.json()["error"]) == (400, True)
    assert rows == [FIRST_VALUES // limits.classes]
    assert answers(infer(server, request({"x": np.zeros((50, 2))}, ["total"]), "model"))["total"].shape == (50,)


def job(probs, *names):
    return Job(None, {"probs": probs}, probs.shape[1], tuple(WantedOutput(name, False) for name in names), row_axis=1)


def predictor(model, **limits):
    return BatchPredictor(model, Limits(**limits))


def turns_of(work):
    """How often the work stops for others, and the replies."""
    count = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return count, end.value
        count += 1


def test_many_classes_are_predicted_in_parts_that_others_can_wait_for():
    """However long a part took: each has at most four times the rows of the one before."""
    probs = np.full((2, 60, 5000), 1 / 5000)
    model, rows = watched(member_outputs())
    count, (reply,) = turns_of(predictor(model).replies([job(probs, "total")], 0, lambda: False))
    assert rows[0] == FIRST_VALUES // (2 * 5000)
    assert (sum(rows), count) == (60, len(rows) - 1)
    assert all(later <= 4 * before for before, later in pairwise(rows))
    np.testing.assert_array_equal(reply.arrays["total"], wrap(probs).total)


def test_one_bad_row_among_parts_is_named_and_the_rest_answered():
    good, bad = batch_of("flat", 2, 5, 4), batch_of("flat", 2, 5, 4)
    bad[1, 3] = 0.9
    work = predictor(member_outputs(), batch_rows=2).replies([job(good, "total"), job(bad, "total")], 0, lambda: False)
    _, (first, second) = turns_of(work)
    np.testing.assert_array_equal(first.arrays["total"], wrap(good).total)
    assert "row 3, member 1" in str(second)


def order_of_answers(sizes, *, while_first=()):
    """The numbers of jobs in the order of their answers. Each needs so many turns; some come while the first is worked on."""
    done, came = [], []

    def replies(batch, waiting, given_up):
        (number,) = (int(job.id) for job in batch)
        for _ in range(sizes[number] - 1):
            yield
        return [Answer({"number": number}, (), {})]

    async def submit(number):
        kind = {"x": np.zeros((1, number + 1))}  # one kind each, so that none are joined
        done.append((await batcher.submit(Job(str(number), kind, 1, ()))).about["number"])

    async def run():
        early = [asyncio.create_task(submit(n)) for n in range(len(sizes)) if n not in while_first]
        while not batcher._running:
            await asyncio.sleep(0)
        came.extend(asyncio.create_task(submit(n)) for n in while_first)
        await asyncio.gather(*early, *came)

    batcher = Batcher(replies, rows=8, delay=0.0)
    asyncio.run(run())
    return done


def test_small_requests_do_not_wait_for_all_of_a_large_one():
    assert order_of_answers([50, 1, 1, 1], while_first=(1, 2, 3)) == [1, 2, 3, 0]


def test_of_large_requests_the_oldest_is_answered_first():
    assert order_of_answers([9, 5, 1]) == [2, 0, 1]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=7))
def test_every_request_is_answered_whatever_comes_along(sizes):
    assert sorted(order_of_answers(sizes)) == list(range(len(sizes)))


@st.composite
def outputs(draw):
    """Arrays of several kinds, and which of them are wanted as binary data."""
    kinds = st.sampled_from(["float32", "float64", "int64", "bool", "U7"])
    shapes = st.tuples(st.integers(1, 5), st.integers(1, 5000)) | st.tuples(st.integers(1, 9000))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    arrays = {f"o{n}": rng.normal(size=draw(shapes)).astype(draw(kinds)) for n in range(draw(st.integers(1, 3)))}
    return arrays, tuple(WantedOutput(name, draw(st.booleans())) for name in arrays)


@given(outputs())
def test_the_pieces_are_the_json_of_the_whole(case):
    arrays, wanted = case
    answer = Answer({"model_name": "é", "id": "7"}, wanted, arrays)
    response = answer.written()
    pieces = list(response._pieces)
    body = b"".join(pieces)
    assert response.headers["Content-Length"] == str(len(body))
    length = int(response.headers.get(HEADER_LENGTH, len(body)))
    content = json.loads(body[:length])
    assert body[:length].decode() == json.dumps(content)
    for output, want in zip(content["outputs"], wanted, strict=True):
        assert ("data" in output) != want.binary
        if not want.binary:
            assert output["data"] == arrays[want.name].ravel().tolist()
    assert all(len(piece) < 64 * AT_ONCE for piece in pieces[: -sum(want.binary for want in wanted) or None])


def test_the_encoder_never_gets_many_values_at_once(monkeypatch):
    """It would hold the interpreter, and the event loop with it, for as long as it takes for them."""
    sizes, dumps = [], json.dumps
    monkeypatch.setattr(json, "dumps", lambda x, **options: sizes.append(len(x)) or dumps(x, **options))
    Answer({"a": 1}, (WantedOutput("x", False),), {"x": np.zeros((3, 10_000))}).written()
    assert max(sizes) == AT_ONCE
    assert sum(sizes) >= 30_000


def test_nobody_writes_an_answer_that_nobody_waits_for():
    asked = iter([False, False, True])
    answer = Answer({"a": 1}, (WantedOutput("x", False),), {"x": np.zeros(100 * AT_ONCE)})
    with pytest.raises(RequestError, match="nobody waits"):
        answer.written(lambda: next(asked))


@pytest.mark.parametrize("binary", [False, True])
def test_a_large_answer_arrives_whole(binary):
    probs = batch_of("flat", 2, 300, 40)
    found = answers(infer(app(member_outputs()), request({"probs": probs}, ["lower", "total"], binary=binary)))
    np.testing.assert_array_equal(found["lower"], wrap(probs).lower)
    np.testing.assert_array_equal(found["total"], wrap(probs).total)


@pytest.mark.parametrize(("members", "name", "first"), [(2, "total", 5), (5, "total", 2), (2, "hartley", 1)])
def test_a_first_part_counts_members_and_is_one_row_of_what_may_take_long(members, name, first):
    model, rows = watched(member_outputs())
    turns_of(predictor(model).replies([job(batch_of("flat", members, 9, 5000), name)], 0, lambda: False))
    assert rows[0] == first


def test_the_number_of_members_has_a_limit():
    server = app(member_outputs(), limits=Limits(members=3))
    assert infer(server, request({"probs": batch_of("flat", 3, 2, 5)}, ["total"])).status_code == 200
    refused = infer(server, request({"probs": batch_of("flat", 4, 2, 5)}, ["total"]))
    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "input 'probs' has 4 members; at most 3 are accepted."},
    )


@pytest.mark.parametrize(
    "shape", [(2, 1, LONG_CLASSES + 1), (LONG_VALUES // 50 + 1, 1, 50)], ids=["classes", "members"]
)
def test_others_are_answered_while_one_row_takes_long(shape):
    """Nothing interrupts a row: it has a thread of its own."""
    entered, opened, model = threading.Event(), threading.Event(), member_outputs()

    def predict(inputs):
        if inputs["probs"].shape == shape:
            entered.set()
            assert opened.wait(60)
        return model.predict(inputs)

    async def run():
        server = app(replace(model, predict=predict, quick_values=0), observers=[])
        long = asyncio.create_task(ask(server, request({"probs": np.full(shape, 1 / shape[2])}, ["total"])))
        await asyncio.to_thread(entered.wait, 60)
        other = asyncio.create_task(ask(server, request({"probs": batch_of("flat", 2, 3, 4)}, ["hartley"])))
        done, _ = await asyncio.wait([other], timeout=30)
        opened.set()
        return bool(done), (await other).status_code, (await long).status_code

    assert asyncio.run(run()) == (True, 200, 200)
