"""In the registry: members and guard come back as they went, from files that hold no pickle."""

import importlib
import json
import pickletools
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from credalens import Recalibration, wrap_logits
from credalens.guard import Guard
from credalens.mlflow import load_model, log_model, save_model
from credalens.mlflow.model import find_factory, write_files
from credalens.storage.prediction_file import to_frame
from credalens.torch import CredalWrapper
from tests.mlflow import networks
from tests.mlflow.networks import network
from tests.serve.onnx_files import write_linear

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow warns of itself, pandas of MLflow
ROWS = np.random.default_rng(0).normal(0, 2, (100, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(3, 4, 3)).astype(np.float32)
FACTORY = "tests.mlflow.networks:network"


@pytest.fixture
def wrapper():
    torch.manual_seed(0)
    wrapper = CredalWrapper([network() for _ in range(3)], base=10)
    wrapper.guard = Guard.fit(wrapper(torch.from_numpy(ROWS)), score="epistemic", point="mean", false_alarm_rate=0.2)
    return wrapper


@pytest.fixture
def mlflow(monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    import mlflow.pyfunc

    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_registry_uri((tmp_path / "store").as_uri())
    return mlflow


def assert_predicts(frame, prediction, decisions=None):
    expected = to_frame(prediction, predicted=None if decisions is None else decisions.prediction)
    pd.testing.assert_frame_equal(frame[list(expected)], expected)
    for name in ("decision", "p_value", "reason") if decisions is not None else ():
        np.testing.assert_array_equal(frame[name], getattr(decisions, name))


def is_pickle(path):
    """Whether the file reads as the instructions of a pickle, which are not followed here."""
    try:
        return len(list(pickletools.genops(path.read_bytes()))) > 1
    except ValueError:
        return False


def test_a_wrapper_comes_back_with_its_guard_and_without_a_pickle(mlflow, wrapper, tmp_path):
    save_model(wrapper, tmp_path / "model", factory=FACTORY, input_example=ROWS[:2], scores=["hartley"])
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"MLmodel", "weights.safetensors", "guard.json", "input_example.json"}
    assert not [path for path in files if is_pickle(path)]
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    prediction = wrapper(torch.from_numpy(ROWS))
    frame = loaded.predict(ROWS)
    assert_predicts(frame, prediction, wrapper.guard.decide(prediction))
    np.testing.assert_array_equal(frame["hartley"], prediction.hartley)
    assert set(frame["decision"]) == {"accept", "abstain"}
    assert loaded.metadata.signature.inputs.to_dict()[0]["tensor-spec"] == {"dtype": "float32", "shape": (-1, 4)}
    assert [column["name"] for column in loaded.metadata.signature.outputs.to_dict()] == list(frame)
    np.testing.assert_array_equal(loaded.input_example, ROWS[:2])


def test_a_registered_model_takes_data_frames(mlflow, wrapper):
    frame = pd.DataFrame(ROWS.astype(float), columns=list("abcd"), index=pd.Index(range(100, 0, -1), name="patient"))
    options = {"factory": FACTORY, "factory_options": {"width": 8}, "registered_model_name": "credal"}
    with mlflow.start_run():
        log_model(wrapper, "model", input_example=frame[:2], **options)
    prediction = mlflow.pyfunc.load_model("models:/credal/1").predict(frame)
    of_members = wrapper(torch.from_numpy(ROWS))
    expected = to_frame(of_members, predicted=wrapper.guard.decide(of_members).prediction).set_index(frame.index)
    pd.testing.assert_frame_equal(prediction[list(expected)], expected)


@pytest.mark.parametrize("of_columns", [True, False])
def test_signatures_of_columns_keep_the_index_and_those_of_tensors_do_not(mlflow, tmp_path, of_columns):
    weights = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    paths = [write_linear(tmp_path / f"{n}.onnx", w) for n, w in enumerate(weights)]
    frame = pd.DataFrame(ROWS[:3], columns=list("abcd"), index=[7, "z", 9])
    save_model(paths, tmp_path / "model", input_example=frame if of_columns else ROWS[:2])
    predicted = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    assert list(predicted.index) == ([7, "z", 9] if of_columns else [0, 1, 2])
    (folder,) = (path.parent for path in (tmp_path / "model").rglob("credal.json"))
    assert list(load_model(folder).predict(frame).index) == [7, "z", 9]


def test_onnx_files_come_back_as_members(mlflow, tmp_path):
    weights = np.random.default_rng(1).normal(size=(3, 4, 3)).astype(np.float32)
    paths = [write_linear(tmp_path / f"{n}.onnx", w, softmax=False) for n, w in enumerate(weights)]
    expected = wrap_logits(np.stack([ROWS @ w for w in weights]))
    guard = Guard.fit(expected)
    save_model(paths, tmp_path / "model", logits=True, guard=guard, input_example=ROWS[:2])
    for path in paths:
        path.unlink()
    predicted = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(ROWS)
    np.testing.assert_allclose(predicted["total"], expected.total, atol=1e-6)
    assert (predicted["decision"] == guard.decide(expected).decision).mean() > 0.98  # but for rounding at the threshold


@pytest.mark.parametrize(
    ("factory", "width", "words"),
    [
        ("no_colon", 8, "module:function"),
        ("tests.mlflow.networks:nothing", 8, "cannot be imported"),
        (FACTORY, 9, "does not take the weights"),
        ("types:SimpleNamespace", 8, "member_factory above"),
        ("tests.mlflow.networks:no_network", 8, "must build one member"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(wrapper, tmp_path, factory, width, words):
    options = {"factory": factory, "factory_options": {"width": width}, "input_example": ROWS[:2]}
    with pytest.raises((ValueError, TypeError), match=words):
        save_model(wrapper, tmp_path / "model", **options)
    assert not (tmp_path / "model").exists()


def test_models_whose_weights_nobody_knows_are_refused(tmp_path):
    options = {"factory": FACTORY, "input_example": ROWS[:2]}
    for model, words in ((CredalWrapper([lambda x: x] * 2), "plain callable"), (SimpleNamespace(), "CredalWrapper or")):
        with pytest.raises(TypeError, match=words):
            save_model(model, tmp_path / "model", **options)


def test_a_folder_of_a_stranger_calls_only_marked_functions(wrapper, tmp_path):
    written = tmp_path / "written.txt"
    write_files(wrapper, tmp_path, factory=FACTORY)
    description = json.loads((tmp_path / "credal.json").read_text())
    hostile = {"factory": "os:system", "factory_options": {"command": f"touch {written}"}}
    (tmp_path / "credal.json").write_text(json.dumps(description | hostile))
    with pytest.raises(ValueError, match="a saved model may call nothing else"):
        load_model(tmp_path)
    assert not written.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"members": 4}, "members is 4, and the file has the weights of 3"),
        ({"members": 10**5}, "members is 100000, and the file has the weights of 3"),
        ({"options": {"base": 0}}, "base must be finite and above 1"),
        ({"options": {"samples": 0}}, "samples must be at least 1"),
        ({"options": {"outputs": "labels"}}, "outputs must be one of"),
        ({"options": {"guard": None}}, "options.'guard' is not known"),
        ({"factory_options": {"wide": 8}}, "unexpected keyword argument 'wide'"),
        ({"factory_options": {"width": 9}}, "does not take the weights"),
    ],
)
def test_a_description_that_does_not_fit_its_weights(wrapper, tmp_path, changes, words):
    write_files(wrapper, tmp_path, factory=FACTORY)
    description = json.loads((tmp_path / "credal.json").read_text())
    (tmp_path / "credal.json").write_text(json.dumps(description | changes))
    with pytest.raises(ValueError, match=rf"(?s)credal\.json .*{words}"):
        load_model(tmp_path)


class TestFactoriesOfSavedModels:
    """Only what the loading process imported or named is called; nothing is imported because a folder says so."""

    @pytest.fixture
    def module(self, tmp_path, monkeypatch):
        """A module that writes a file when it is imported, and the name of its marked factory."""
        written = tmp_path / "written.txt"
        source = Path(networks.__file__).read_text()
        (tmp_path / "stranger.py").write_text(f"open({str(written)!r}, 'w').close()\n{source}")
        monkeypatch.syspath_prepend(tmp_path)
        yield written
        sys.modules.pop("stranger", None)

    @pytest.fixture
    def folder(self, wrapper, tmp_path):
        """A model whose description names the factory of that module."""
        folder = tmp_path / "saved"
        folder.mkdir()
        write_files(wrapper, folder, factory=FACTORY)
        text = (folder / "credal.json").read_text()
        (folder / "credal.json").write_text(text.replace(FACTORY, "stranger:network"))
        return folder

    def test_a_module_that_nobody_imported_is_not_imported(self, folder, module):
        with pytest.raises(ValueError, match="set CREDALENS_FACTORIES=stranger:network in the environment"):
            load_model(folder)
        assert not module.exists()
        assert "stranger" not in sys.modules

    def test_a_name_in_the_call_is_imported(self, folder, module):
        assert len(load_model(folder, factory="stranger:network").predict(ROWS)) == len(ROWS)
        assert module.exists()

    def test_an_imported_module_is_known(self, folder, module):
        importlib.import_module("stranger")
        assert len(load_model(folder).predict(ROWS)) == len(ROWS)

    @pytest.mark.parametrize(
        ("named", "known"), [("other:f, stranger:network", True), ("stranger:other", False), ("stranger", False)]
    )
    def test_the_environment_names_factories(self, folder, module, monkeypatch, named, known):
        monkeypatch.setenv("CREDALENS_FACTORIES", named)
        with nullcontext() if known else pytest.raises(ValueError, match="not imported"):
            load_model(folder)
        assert module.exists() == known

    def test_modules_that_make_names_on_request_are_not_asked(self):
        module = ModuleType("lazy")
        module.__getattr__ = lambda name: pytest.fail(f"asked for {name}")
        sys.modules["lazy"] = module
        try:
            with pytest.raises(ValueError, match="not marked"):
                find_factory("lazy:network", by_caller=False)
        finally:
            del sys.modules["lazy"]


def test_a_folder_of_another_kind_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"credal\.json"):
        load_model(tmp_path)


def test_a_recalibration_comes_back(tmp_path):
    torch.manual_seed(0)
    recalibration = Recalibration.of([0.5, 1.0, 2.0], classes=3)
    model = CredalWrapper([network() for _ in range(3)], recalibration=recalibration)
    (tmp_path / "torch").mkdir()
    write_files(model, tmp_path / "torch", factory=FACTORY)
    paths = [write_linear(tmp_path / f"{k}.onnx", w) for k, w in enumerate(WEIGHTS)]
    (tmp_path / "onnx").mkdir()
    write_files(paths, tmp_path / "onnx", recalibration=recalibration)
    assert_predicts(load_model(tmp_path / "torch", factory=FACTORY).predict(ROWS), model(torch.from_numpy(ROWS)))
    logits = np.einsum("rf,mfc->mrc", ROWS, WEIGHTS)
    frame = load_model(tmp_path / "onnx").predict(ROWS)
    np.testing.assert_allclose(frame["total"], wrap_logits(logits, recalibration=recalibration).total, atol=2e-6)
    (tmp_path / "onnx" / "recalibration.json").unlink()
    with pytest.raises(ValueError, match=r"recalibration\.json is missing"):
        load_model(tmp_path / "onnx")
