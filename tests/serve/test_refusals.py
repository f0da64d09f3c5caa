"""Bad requests: each gets a 4xx that says what is wrong and where, and the next request is answered as ever."""

from __future__ import annotations

import json
import math
import re
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from credalens.serve import Limits, app, member_outputs
from tests.serve.messages import Message, answers, infer, request
from tests.strategies import batch_of

PROBS = batch_of("flat", 3, 4, 5)
CREDAL = app(member_outputs(), limits=Limits(rows=50, classes=100, body_bytes=20_000))
GOOD = request({"probs": PROBS}, ["total"])


def spoiled(place: tuple[int, int, int], value: float) -> dict[str, object]:
    probs = PROBS.copy()
    probs[place] = value
    return {"data": probs.ravel().tolist()}


def changed(tensor: dict[str, object] | None = None, **fields: object) -> Message:
    """The good request with other fields, or another tensor."""
    content = json.loads(GOOD.content) | fields
    content["inputs"] = [content["inputs"][0] | (tensor or {})] if "inputs" not in fields else fields["inputs"]
    return Message(json.dumps(content).encode(), {})


def binary(**header: str) -> Message:
    message = request({"probs": PROBS}, ["total"], binary=True)
    return Message(message.content, message.headers | {"Inference-Header-Content-Length": header["length"]})


WIDE = [3, 1, 101]
BAD = {
    "nothing": (Message(b"", {}), "not JSON"),
    "no JSON": (Message(b"{", {}), "not JSON"),
    "no text": (Message(b"\xff\xfe\x00", {}), "not JSON"),
    "too deep": (Message(b"[" * 10_000, {}), "not JSON"),
    "a list": (Message(b"[]", {}), "must be a JSON object; got list"),
    "no inputs": (Message(b"{}", {}), "inputs must be a list"),
    "empty inputs": (changed(inputs=[]), r"takes the inputs \['probs'\]; got \[\]"),
    "an input of text": (changed(inputs=["probs"]), "an input must be a JSON object"),
    "no name": (changed({"name": None}), "needs a name"),
    "another name": (changed({"name": "logits"}), r"\['probs'\]; got \['logits'\]"),
    "two of a name": (changed(inputs=json.loads(GOOD.content)["inputs"] * 2), "'probs' is named twice"),
    "id": (changed(id=7), "id must be a string"),
    "datatype": (changed({"datatype": "FP8"}), "'probs': datatype must be one of"),
    "whole numbers": (changed({"datatype": "INT32", "data": [1] * 60}), "'probs' must be FP32 or FP64 or FP16; got INT32"),
    "fractions as whole": (changed({"datatype": "INT32"}), "'probs': data must be values of INT32"),
    "no shape": (changed({"shape": None}), "'probs': shape must be a list"),
    "a negative axis": (changed({"shape": [-3, 4, -5]}), "'probs': shape must be a list"),
    "an empty axis": (changed({"shape": [3, 0, 5], "data": []}), "'probs': shape must be a list"),
    "a truth as axis": (changed({"shape": [True, 12, 5]}), "'probs': shape must be a list"),
    "too many axes": (changed({"shape": [1] * 40}), "1 to 32 axes; got 40"),
    "another shape": (changed({"shape": [3, 4, 6]}), r"'probs': shape \[3, 4, 6\] needs 72 values; got 60"),
    "a huge shape": (changed({"shape": [2**40, 2**40, 3]}), "needs .* values; got 60"),
    "two axes": (changed({"shape": [12, 5]}), r"'probs' must have shape \[-1, -1, -1\].*got \[12, 5\]"),
    "one class": (changed({"shape": [3, 20, 1]}), "at least two classes"),
    "ragged": (changed({"data": [[0.5, 0.5], [1.0]]}), "'probs': data do not form a rectangular array"),
    "text": (changed({"data": ["0.2"] * 60}), "'probs': data must be values of FP64; got <U3"),
    "nulls": (changed({"data": [None] * 60}), "'probs': data must be values of FP64; got object"),
    "objects": (changed({"data": [{}] * 60}), "'probs': data must be values of FP64; got object"),
    "truths": (changed({"data": [True] * 60}), "'probs': data must be values of FP64; got bool"),
    "no data": (changed({"data": None}), "'probs': data must be a list"),
    "overflow": (changed({"datatype": "FP16", **spoiled((0, 0, 0), 1e6)}), "at 0 does not fit into float16"),
    "a huge integer": (changed({"data": [10**400] + [0] * 59}), "data must be values of FP64; got object"),
    "sum": (changed(spoiled((1, 2, 3), 0.9)), r"input 'probs', row 2, member 1: it sums to"),
    "NaN": (changed(spoiled((1, 2, 3), float("nan"))), "input 'probs', row 2, member 1: class 3 is nan"),
    "infinite": (changed(spoiled((2, 0, 4), float("inf"))), "input 'probs', row 0, member 2: class 4 is inf"),
    "negative": (changed(spoiled((0, 3, 0), -0.5)), "input 'probs', row 3, member 0: class 0 is -0.5"),
    "too many rows": (changed({"shape": [1, 51, 2], "data": [0.5] * 102}), "'probs' has 51 rows; at most 50"),
    "too many classes": (changed({"shape": WIDE, "data": [0.0] * 303}), "'probs' has 101 classes; at most 100"),
    "an unknown output": (changed(outputs=[{"name": "certainty"}]), "no output 'certainty'; the outputs are prediction"),
    "an output twice": (changed(outputs=[{"name": "total"}] * 2), "'total' is named twice"),
    "outputs of text": (changed(outputs="total"), "outputs must be a list"),
    "a decision without a guard": (changed(outputs=[{"name": "decision"}]), "no output 'decision'"),
    "shared memory": (changed({"parameters": {"shared_memory_region": "a"}}), "'shared_memory_region' is not supported"),
    "a flag of text": (changed(parameters={"binary_data_output": "yes"}), "must be true or false"),
    "parameters": (changed(parameters=[]), "parameters of the request must be a JSON object"),
    "bytes that are not there": (changed({"parameters": {"binary_data_size": 480}}), "both data and binary_data_size"),
    "a length of text": (binary(length="many"), "Inference-Header-Content-Length must be a number"),
    "a length beyond": (binary(length="99999"), "Inference-Header-Content-Length must be a number"),
    "a negative length": (binary(length="-1"), "Inference-Header-Content-Length must be a number"),
    "a length too short": (binary(length="20"), "not JSON"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_is_told_what_is_wrong(case):
    message, words = BAD[case]
    response = infer(CREDAL, message)
    assert response.status_code == 400
    assert list(response.json()) == ["error"]
    assert re.search(words, response.json()["error"])


def test_binary_data_must_fit():
    message = request({"probs": PROBS}, ["total"], binary=True)
    for content, words in (
        (message.content[:-8], "binary_data_size is 480, with 472 bytes left"),
        (message.content[:-479], "binary_data_size is 480, with 1 byte left"),
        (message.content + b"12345678", "holds 488 bytes of binary data; the inputs account for 480"),
        (message.content.replace(b"[3, 4, 5]", b"[3, 4, 6]"), "takes 576 bytes; binary_data_size is 480"),
    ):
        response = infer(CREDAL, Message(content, message.headers))
        assert response.status_code == 400
        assert words in response.json()["error"]


def test_large_and_packed_bodies():
    large = Message(GOOD.content + b" " * 20_000, {})
    assert infer(CREDAL, large).status_code == 413
    assert infer(CREDAL, GOOD, **{"content-encoding": "gzip"}).status_code == 415

    def parts():
        yield from (b" " * 10_000 for _ in range(3))

    with TestClient(CREDAL) as client:
        assert client.post("/v2/models/credal/infer", content=parts()).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/credal/versions/2", 404),
        ("GET", "/v2/models/credal/versions/1", 200),
        ("GET", "/v2/models/credal/infer", 405),
        ("POST", "/v2/models/other/infer", 404),
        ("POST", "/v2/models/credal/versions/2/infer", 404),
        ("POST", "/v2", 405),
    ],
)
def test_paths(method, path, status):
    headers = {"Content-Type": "application/json"}
    response = TestClient(CREDAL).request(method, path, content=GOOD.content, headers=headers)
    assert response.status_code == status
    assert status == 200 or list(response.json()) == ["error"]


@pytest.mark.parametrize("name", ["a/b", "", ".", "..", "a\nb", "\x7f", "\ud800", 7])
def test_names_that_no_path_can_hold(name):
    for names in ({"name": name}, {"version": name}):
        with pytest.raises((ValueError, TypeError), match=f"the model's {next(iter(names))} must be"):
            member_outputs(**names)


@given(st.text(min_size=1, max_size=8))
def test_a_model_answers_to_every_name_that_is_taken(name):
    try:
        server = app(member_outputs(name=name, version=name), observers=[])
    except ValueError:
        return
    path = "/v2/models/" + quote(name, safe="")
    client = TestClient(server)
    assert (
        client.get(path).json()["name"]
        == client.get(f"{path}/versions/{quote(name, safe='')}/ready").json()["name"]
        == name
    )


@pytest.mark.parametrize(
    "limits", [{"timeout": math.inf}, {"timeout": math.nan}, {"timeout": 0}, {"timeout": 10**400}, {"timeout": 1e10}]
)
def test_limits_that_no_server_can_keep(limits):
    with pytest.raises(ValueError, match="timeout must be"):
        Limits(**limits)


@st.composite
def mutants(draw: st.DrawFn) -> Message:
    """A good request with some bytes replaced, left out or put in."""
    message = request({"probs": PROBS}, ["total"], binary=draw(st.booleans()))
    content = bytearray(message.content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        content[start : start + draw(st.integers(0, 6))] = draw(
            st.binary(max_size=6)
            | st.sampled_from([b"null", b"[", b"}", b'"', b"-1", b"1e999", b"NaN", b"true", b"9" * 30])
        )
    return Message(bytes(content), message.headers)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutants())
def test_damaged_requests_are_refused_or_answered(message):
    response = infer(CREDAL, message)
    if response.status_code == 200:
        (total,) = answers(response).values()
        assert ((total >= 0) & (total <= np.log2(5) + 1e-9)).all()
    else:
        assert response.status_code == 400, response.text
        assert len(response.json()["error"]) > 10


def test_after_all_that_it_answers():
    assert answers(infer(CREDAL, GOOD))["total"].shape == (4,)
