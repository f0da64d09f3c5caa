"""What the server answers is what ``wrap`` gives, to the bit, as JSON and as binary data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from credalens import wrap, wrap_logits
from credalens.core.scores import SCORES
from credalens.guard import ConformalSets, Guard
from credalens.serve import app, member_outputs
from tests.serve.messages import answers, infer, request
from tests.strategies import KINDS, batch_of

PLAIN = ("probability", "lower", "upper", "mean")
EXACT = [name for name in SCORES if name not in ("hartley", "mean_pairwise_kl")]
CREDAL = app(member_outputs())


@st.composite
def batches(draw: st.DrawFn) -> np.ndarray:
    """(members, rows, classes) in one of the precisions."""
    sizes = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 12))
    probs = batch_of(draw(st.sampled_from(KINDS)), *sizes, seed=draw(st.integers(0, 2**32 - 1)))
    return probs.astype(draw(st.sampled_from(["float64", "float32"])))


def expected(prediction, names):
    values = {"prediction": prediction.predict, "set": prediction.predict_set}
    arrays = {name: getattr(prediction, name) for name in PLAIN} | {name: call() for name, call in values.items()}
    return {name: arrays[name] if name in arrays else prediction.score(name) for name in names}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@settings(max_examples=40, deadline=None)
@given(batches(), st.booleans(), st.sets(st.sampled_from([*PLAIN, "prediction", "set", *EXACT]), min_size=1))
def test_an_answer_is_the_prediction_to_the_bit(probs, binary, names):
    response = infer(CREDAL, request({"probs": probs}, sorted(names), binary=binary))
    assert_same(answers(response), expected(wrap(probs), sorted(names)))


def test_every_score_is_an_output():
    probs = batch_of("flat", 3, 4, 5)
    found = answers(infer(CREDAL, request({"probs": probs}, list(SCORES), binary=True)))
    assert_same(found, expected(wrap(probs), list(SCORES)))


def test_half_precision_and_logits():
    logits = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float16)
    server = app(member_outputs(logits=True))
    found = answers(infer(server, request({"logits": logits}, ["total"], binary=True)))
    assert_same(found, {"total": wrap_logits(logits).total})


def test_nested_lists_are_flat_ones():
    probs = batch_of("flat", 2, 3, 4)
    flat = request({"probs": probs}, ["total"])
    nested = request({"probs": probs}, ["total"])
    changed = nested.content.replace(str(probs.ravel().tolist()).encode(), str(probs.tolist()).encode())
    assert changed != flat.content
    assert infer(CREDAL, type(flat)(changed, {})).json() == infer(CREDAL, flat).json()


def test_what_comes_if_nothing_is_named():
    response = infer(CREDAL, request({"probs": batch_of("flat", 2, 3, 4)}, id="seven"))
    assert list(answers(response)) == ["prediction", "probability", "lower", "upper", "total", "aleatoric", "epistemic"]
    metadata = TestClient(CREDAL).get("/v2/models/credal").json()
    assert metadata["parameters"] == {"default_outputs": [output["name"] for output in response.json()["outputs"]]}
    assert (response.json()["id"], response.json()["model_name"]) == ("seven", "credal")


@pytest.mark.parametrize("binary", [False, True])
def test_a_guard_decides(binary):
    calibration, labels = wrap(batch_of("peaked", 4, 200, 5, seed=1)), np.zeros(200, int)
    sets = ConformalSets.fit(calibration, labels, alpha=0.2)
    guard = Guard.fit(calibration, labels, sets=sets)
    probs = np.concatenate([batch_of(kind, 4, 15, 5, seed=2) for kind in ("flat", "peaked")], axis=1)
    names = ["decision", "p_value", "reason", "guard_set"]
    found = answers(infer(app(member_outputs(guard)), request({"probs": probs}, names, binary=binary)))
    decided = guard.decide(wrap(probs))
    assert found["decision"].tolist() == decided.decision.tolist()
    assert found["reason"].tolist() == decided.reason.tolist()
    np.testing.assert_array_equal(found["p_value"], decided.p_value)
    np.testing.assert_array_equal(found["guard_set"], decided.set)
    assert len(set(found["decision"].tolist())) > 1


def test_the_prediction_is_the_class_that_the_guard_decides_about():
    probs = batch_of("mixed", 4, 50, 5, seed=2)
    found = answers(
        infer(
            app(member_outputs(Guard.fit(wrap(probs), score="mean_total", point="mean"))),
            request({"probs": probs}, ["prediction"]),
        )
    )
    assert (found["prediction"] != wrap(probs).predict()).any()
    np.testing.assert_array_equal(found["prediction"], probs.mean(0).argmax(-1))


def test_a_guard_fixes_members_classes_base_and_trim():
    guard = Guard.fit(wrap(batch_of("peaked", 12, 50, 5), base=np.e, trim=0.1))
    server = app(member_outputs(guard))
    probs = batch_of("peaked", 12, 3, 5, seed=5)
    found = answers(infer(server, request({"probs": probs}, ["total", "p_value"], binary=True)))
    assert_same(found, {"total": (p := wrap(probs, base=np.e, trim=0.1)).total, "p_value": guard.decide(p).p_value})
    refused = infer(server, request({"probs": probs[:11]}, ["decision"]))
    assert refused.status_code == 400
    assert "[12, -1, 5]" in refused.json()["error"]


def test_the_metadata_say_what_comes():
    calibration, labels = wrap(batch_of("peaked", 4, 200, 5, seed=1).astype(np.float32)), np.zeros(200, int)
    guard = Guard.fit(calibration, labels, sets=ConformalSets.fit(calibration, labels))
    server = app(member_outputs(guard))
    metadata = TestClient(server).get("/v2/models/credal").json()
    assert metadata["inputs"] == [{"name": "probs", "datatype": "FP32", "shape": [4, -1, 5]}]
    names = [output["name"] for output in metadata["outputs"]]
    probs = batch_of("flat", 4, 3, 5).astype(np.float32)
    given = infer(server, request({"probs": probs}, names)).json()["outputs"]
    for promised, output in zip(metadata["outputs"], given, strict=True):
        assert (promised["name"], promised["datatype"]) == (output["name"], output["datatype"])
        assert len(promised["shape"]) == len(output["shape"])
