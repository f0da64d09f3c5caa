"""What can be served: ONNX files, scikit-learn, PyTorch, and any function."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import Recalibration, wrap, wrap_logits
from credalens.guard import Guard
from credalens.serve import RequestError, TensorSpec, app
from tests.serve.messages import answers, infer, request
from tests.strategies import batch_of

ROWS = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(2).normal(size=(3, 4, 5)).astype(np.float32)


class TestOnnx:
    @pytest.fixture
    def files(self, tmp_path):
        pytest.importorskip("onnxruntime")
        from tests.serve.onnx_files import write_linear

        return lambda **options: [write_linear(tmp_path / f"{k}.onnx", w, **options) for k, w in enumerate(WEIGHTS)]

    @staticmethod
    def served(paths, guard=None, **options):
        from credalens.serve.onnx_members import onnx_members

        return onnx_members(paths, guard, **options)

    @pytest.mark.parametrize("binary", [False, True])
    def test_files_are_members(self, files, binary):
        found = answers(infer(app(self.served(files())), request({"x": ROWS}, binary=binary), "model"))
        logits = np.einsum("rf,mfc->mrc", ROWS, WEIGHTS)
        wanted = wrap_logits(logits)
        for name in ("lower", "upper", "total", "epistemic"):
            np.testing.assert_allclose(found[name], getattr(wanted, name), atol=2e-6)
        np.testing.assert_array_equal(found["prediction"], wanted.predict())

    def test_a_guard_decides(self, files):
        logits = np.einsum("rf,mfc->mrc", np.random.default_rng(3).normal(size=(90, 4)), WEIGHTS)
        guard = Guard.fit(wrap_logits(logits), score="mean_total")
        found = answers(infer(app(self.served(files(), guard)), request({"x": ROWS}, ["decision"]), "model"))
        decided = guard.decide(wrap_logits(np.einsum("rf,mfc->mrc", ROWS, WEIGHTS)))
        assert found["decision"].tolist() == decided.decision.tolist()

    def test_members_are_recalibrated_by_a_file_or_as_the_guard_was_fitted(self, files):
        recalibration = Recalibration.of([0.5, 1.0, 2.0], classes=5)
        logits = np.einsum("rf,mfc->mrc", np.random.default_rng(3).normal(size=(90, 4)), WEIGHTS)
        guard = Guard.fit(wrap_logits(logits, recalibration=recalibration), score="mean_total")
        wanted = wrap_logits(np.einsum("rf,mfc->mrc", ROWS, WEIGHTS), recalibration=recalibration)
        for model in (self.served(files(), recalibration=recalibration), self.served(files(), guard)):
            found = answers(infer(app(model), request({"x": ROWS}, ["total", "probability"]), "model"))
            np.testing.assert_allclose(found["total"], wanted.total, atol=2e-6)
        with pytest.raises(ValueError, match="Use the same recalibration"):
            self.served(files(), guard, recalibration=recalibration[::-1])

    def test_logits(self, files):
        plain, softmax = self.served(files(softmax=False), logits=True), self.served(files())
        answer = [answers(infer(app(model), request({"x": ROWS}, ["total"]), "model")) for model in (plain, softmax)]
        np.testing.assert_allclose(answer[0]["total"], answer[1]["total"], atol=2e-6)

    def test_metadata_are_the_files(self, files):
        model = self.served(files(), name="three", version="7")
        assert [spec.metadata() for spec in model.inputs] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
        wrong = infer(app(model), request({"x": ROWS[:, :3]}), "three")
        assert wrong.status_code == 400
        assert "input 'x' must have shape [-1, 4]" in wrong.json()["error"]

    def test_values_that_are_no_numbers_are_named(self, files):
        rows = ROWS.copy()
        rows[4, 2] = np.nan
        wrong = infer(app(self.served(files())), request({"x": rows}, binary=True), "model")
        assert wrong.status_code == 400
        assert "the members' output, row 4, member 0: class 0 is nan" in wrong.json()["error"]

    @pytest.mark.parametrize(
        ("options", "served", "words"),
        [
            ({"rows": 1}, {}, "first axis must be free"),
            ({"extra": True}, {}, "Name the right one with --output"),
            ({}, {"output": "other"}, "named other"),
        ],
    )
    def test_files_that_cannot_be_served(self, files, options, served, words):
        with pytest.raises(ValueError, match=words):
            self.served(files(**options), **served)
        if options.get("extra"):
            assert self.served(files(extra=True), output="probabilities").inputs

    def test_members_must_agree(self, files, tmp_path):
        from tests.serve.onnx_files import write_linear

        other = write_linear(tmp_path / "other.onnx", np.ones((7, 5)))
        with pytest.raises(ValueError, match=r"other\.onnx x FP32 \[-1, 7\]"):
            self.served([*files(), other])
        guard = Guard.fit(wrap(batch_of("peaked", 4, 30, 5)))
        with pytest.raises(ValueError, match="fitted with 4 members and there are 3"):
            self.served(files(), guard)

    @pytest.mark.parametrize("free", [(), ("classes",)])
    def test_members_must_have_the_same_classes(self, files, tmp_path, free):
        """Where a file does not say how many it has, one row of zeros does."""
        from tests.serve.onnx_files import write_linear

        other = write_linear(tmp_path / "other.onnx", np.ones((4, 2)), free=free)
        with pytest.raises(ValueError, match=r"0\.onnx predicts 5, .*other\.onnx predicts 2"):
            self.served([*files(free=free), other])
        with pytest.raises(ValueError, match="at least two classes"):
            self.served([write_linear(tmp_path / "one.onnx", np.ones((4, 1)), free=free)])

    @pytest.mark.parametrize("free", [(), ("classes",)])
    def test_a_guard_of_other_classes_is_refused_at_start(self, files, free):
        guard = Guard.fit(wrap(batch_of("peaked", 3, 30, 4)))
        with pytest.raises(ValueError, match="the guard is for 4 classes; the model has 5"):
            app(self.served(files(free=free), guard))

    @pytest.mark.parametrize("binary", [False, True])
    def test_a_wrong_size_of_a_free_axis_is_the_requests_fault(self, files, binary, caplog):
        server = app(self.served(files(free=("features", "classes"))))
        assert answers(infer(server, request({"x": ROWS}, binary=binary), "model"))["prediction"].shape == (6,)
        wrong = infer(server, request({"x": ROWS[:, :3]}, binary=binary), "model")
        assert wrong.status_code == 400
        assert "refuses the inputs 'x' FP32 [6, 3]" in wrong.json()["error"]
        assert "onnx" not in wrong.json()["error"]
        assert "0.onnx" in caplog.text

    def test_files_that_are_none(self, tmp_path):
        pytest.importorskip("onnxruntime")
        (tmp_path / "pickle.onnx").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
        with pytest.raises(ValueError, match="ONNX Runtime cannot load it"):
            self.served([tmp_path / "pickle.onnx"])
        with pytest.raises(FileNotFoundError, match=r"none\.onnx"):
            self.served([tmp_path / "none.onnx"])


class TestFunctions:
    @staticmethod
    def softmax_members(x):
        z = np.exp(np.einsum("rf,mfc->mrc", x, WEIGHTS))
        return z / z.sum(-1, keepdims=True)

    def test_a_function_returns_members(self):
        found = answers(infer(app(self.softmax_members), request({"x": ROWS}, ["epistemic"], binary=True), "model"))
        np.testing.assert_array_equal(found["epistemic"], wrap(self.softmax_members(ROWS)).epistemic)

    def test_a_function_returns_a_prediction_or_logits(self):
        asked = request({"x": ROWS}, ["total"], binary=True)
        ready = answers(infer(app(lambda x: wrap(self.softmax_members(x), base=3)), asked, "model"))
        np.testing.assert_array_equal(ready["total"], wrap(self.softmax_members(ROWS), base=3).total)
        logits = np.einsum("rf,mfc->mrc", ROWS, WEIGHTS)
        raw = answers(infer(app(lambda x: np.einsum("rf,mfc->mrc", x, WEIGHTS), logits=True), asked, "model"))
        np.testing.assert_array_equal(raw["total"], wrap_logits(logits).total)

    def test_several_inputs_are_keywords_and_words_are_strings(self):
        def model(*, words, scale):
            p = np.array([[len(word) * s, 1.0] for word, s in zip(words, scale, strict=True)])
            return (p / p.sum(1, keepdims=True))[None].repeat(2, axis=0)

        words, scale = np.array(["é", "four"], object), np.array([1.0, 2.0])
        for binary in (False, True):
            asked = request({"scale": scale, "words": words}, ["prediction", "upper"], binary=binary)
            found = answers(infer(app(model), asked, "model"))
            assert found["upper"].tolist() == [[0.5, 0.5], [8 / 9, 1 / 9]]

    def test_declared_inputs_are_checked(self):
        server = app(self.softmax_members, inputs=[TensorSpec("x", ("FP32",), (-1, 4))])
        assert infer(server, request({"x": ROWS}), "model").status_code == 200
        for arrays, words in (({"y": ROWS}, "['y']"), ({"x": ROWS.astype(float)}, "FP64"), ({"x": ROWS[0]}, "[4]")):
            refused = infer(server, request(arrays), "model")
            assert refused.status_code == 400
            assert words in refused.json()["error"]

    @pytest.mark.parametrize("error", [ValueError, TypeError])
    @pytest.mark.parametrize("binary", [False, True])
    def test_what_a_model_says_stays_in_the_log(self, error, binary, caplog):
        def model(x):
            raise error("no row of /secret/customers.csv has 4 features")

        refused = infer(app(model), request({"x": ROWS}, binary=binary), "model")
        assert refused.status_code == 400
        words = f"the model refuses the inputs 'x' FP32 [6, 4] ({error.__name__}); the server's log says why."
        assert refused.json() == {"error": words}
        assert "/secret/customers.csv" in caplog.text

    def test_a_model_may_speak_to_clients(self):
        def model(x):
            raise RequestError("x must be positive; it is in metres.", status=422)

        refused = infer(app(model), request({"x": ROWS}), "model")
        assert (refused.status_code, refused.json()) == (422, {"error": "x must be positive; it is in metres."})

    def test_a_model_that_returns_no_members_is_a_fault_of_the_server(self):
        failed = infer(app(lambda x: np.ones(3)), request({"x": ROWS}), "model")
        assert failed.status_code == 500
        assert "the model's output" in failed.json()["error"]

    def test_a_guard_of_other_members_decides_nothing(self):
        guard = Guard.fit(wrap(batch_of("peaked", 4, 30, 5)))
        failed = infer(app(self.softmax_members, guard), request({"x": ROWS}, ["total"]), "model")
        assert failed.status_code == 500
        assert (
            "does not fit the model: this was fitted with 4 members and the prediction has 3" in failed.json()["error"]
        )

    def test_rows_must_agree(self):
        refused = infer(app(self.softmax_members), request({"x": ROWS, "y": ROWS[:2]}), "model")
        assert refused.status_code == 400
        assert "{'x': 6, 'y': 2}" in refused.json()["error"]

    @pytest.mark.parametrize("change", [lambda p: p[:, :-1], lambda p: p[:, None], lambda p: p.repeat(2, axis=1)])
    def test_a_model_must_answer_for_every_row(self, change):
        failed = infer(app(lambda x: change(self.softmax_members(x))), request({"x": ROWS[:4]}, ["total"]), "model")
        assert failed.status_code == 500
        assert "for inputs of 4 rows" in failed.json()["error"]

    def test_a_model_that_is_none(self):
        with pytest.raises(TypeError, match="must be a CredalWrapper"):
            app("model.onnx")


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.naive_bayes import GaussianNB

    from credalens.sklearn import CredalClassifier

    x, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    classifier = CredalClassifier(GaussianNB(), n_members=3, random_state=0).fit(x, y)
    classifier.guard = Guard.fit(classifier.credal_predict(x), score="mean_total")
    server = app(classifier)
    found = answers(infer(server, request({"input": x}, ["lower", "total", "decision"], binary=True), "model"))
    prediction = classifier.credal_predict(x)
    np.testing.assert_array_equal(found["lower"], prediction.lower)
    assert found["decision"].tolist() == classifier.decide(x).decision.tolist()
    refused = infer(server, request({"input": x}, ["mean_pairwise_kl"]), "model")
    assert refused.status_code == 400
    wrong = infer(server, request({"input": np.full((1, 4), np.nan)}), "model")
    assert wrong.status_code == 400
    assert "refuses the inputs 'input' FP64 [1, 4] (ValueError)" in wrong.json()["error"]
    with pytest.raises(ValueError, match="the guard is for 4 classes; the model has 3"):
        app(classifier, Guard.fit(wrap(batch_of("peaked", 3, 30, 4))))


def test_texts():
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    from credalens.sklearn import CredalClassifier

    texts, labels = ["good day", "bad day", "good night", "bad night"], [1, 0, 1, 0]
    models = [make_pipeline(CountVectorizer(), MultinomialNB(alpha=a)).fit(texts, labels) for a in (0.5, 2)]
    asked = request({"text": np.array(texts, object)}, ["prediction"], binary=True)
    found = answers(infer(app(CredalClassifier.from_fitted(models)), asked, "model"))
    assert found["prediction"].tolist() == labels


def test_torch():
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    torch.manual_seed(0)
    wrapper = CredalWrapper([torch.nn.Linear(4, 3) for _ in range(3)])
    server = app(wrapper)
    found = answers(infer(server, request({"x": ROWS}, ["upper", "epistemic"], binary=True), "model"))
    prediction = wrapper(torch.from_numpy(ROWS))
    np.testing.assert_array_equal(found["upper"], prediction.upper.numpy())
    np.testing.assert_array_equal(found["epistemic"], prediction.epistemic.numpy())
    wrong = infer(server, request({"x": ROWS[:, :3]}), "model")
    assert wrong.status_code == 400
    assert "inputs 'x' FP32 [6, 3]" in wrong.json()["error"]
