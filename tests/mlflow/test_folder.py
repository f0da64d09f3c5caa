"""The files of a saved model: all of them, none other, and those of earlier versions with a warning."""

import json

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper

from credalens import wrap_logits
from credalens.guard import Guard
from credalens.mlflow import load_model
from credalens.mlflow.folder import Description
from credalens.mlflow.model import write_files
from credalens.storage.formats.onnx import external_files
from tests.serve.onnx_files import write_linear

ROWS = np.random.default_rng(0).normal(0, 2, (20, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
PREDICTION = wrap_logits(np.stack([ROWS @ w for w in WEIGHTS]))
GUARD = Guard.fit(PREDICTION, score="mean_total")


@pytest.fixture
def members(tmp_path):
    return [write_linear(tmp_path / f"{n}.onnx", w) for n, w in enumerate(WEIGHTS)]


@pytest.fixture
def write(members, tmp_path):
    def written(guard=GUARD, paths=members):
        folder = tmp_path / "saved"
        folder.mkdir()
        write_files(paths, folder, guard=guard)
        return folder

    return written


def make_earlier(folder):
    """What versions without digests wrote: flat files, and fewer fields."""
    for n in range(2):
        (folder / f"member_{n}" / "member.onnx").rename(folder / f"member_{n}.onnx")
        (folder / f"member_{n}").rmdir()
    fields = json.loads((folder / "credal.json").read_text())
    kept = {name: value for name, value in fields.items() if name not in ("files", "wheel")}
    (folder / "credal.json").write_text(json.dumps(kept))


def change_description(folder, changes):
    fields = json.loads((folder / "credal.json").read_text())
    (folder / "credal.json").write_text(json.dumps(fields | changes))


class TestDigests:
    def test_a_guard_that_was_removed(self, write):
        folder = write()
        (folder / "guard.json").unlink()
        with pytest.raises(ValueError, match=r"guard\.json is missing, and belongs to the saved model"):
            load_model(folder)

    def test_a_guard_that_was_exchanged(self, write):
        folder = write()
        Guard.fit(PREDICTION, score="mean_total", false_alarm_rate=0.4).save(folder / "guard.json")
        with pytest.raises(ValueError, match=r"guard\.json is not the file that was saved"):
            load_model(folder)

    def test_a_guard_that_was_added(self, write):
        folder = write(guard=None)
        GUARD.save(folder / "guard.json")
        with pytest.raises(ValueError, match=r"guard\.json does not belong to the saved model"):
            load_model(folder)

    def test_a_member_that_was_exchanged(self, write, members):
        folder = write()
        (folder / "member_0" / "member.onnx").write_bytes(members[1].read_bytes())
        with pytest.raises(ValueError, match="is not the file that was saved"):
            load_model(folder)

    def test_a_member_without_a_digest(self, write):
        folder = write(guard=None)
        digests = Description.read(folder).files
        change_description(folder, {"files": {name.replace("member_1", "member_2"): x for name, x in digests.items()}})
        with pytest.raises(ValueError, match="saved without that file"):
            load_model(folder)

    def test_files_that_no_one_reads_are_left_alone(self, write):
        folder = write()
        (folder / ".DS_Store").write_bytes(b"")
        assert "decision" in load_model(folder).predict(ROWS)


def test_models_of_earlier_versions_load_with_a_warning(write):
    folder = write()
    make_earlier(folder)
    with pytest.warns(UserWarning, match="without digests of its files"):
        frame = load_model(folder).predict(ROWS)
    np.testing.assert_allclose(frame["total"], PREDICTION.total, atol=1e-6)
    assert "decision" in frame


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "pickle"}, "kind must be one of 'torch', 'onnx'; got 'pickle'"),
        ({"kind": ["onnx"]}, "kind is of type list, expected str"),
        ({"newer": 1}, "'newer' is not known"),
        ({"scores": None}, "scores is of type NoneType, expected list"),
        ({"scores": "total"}, "scores is of type str"),
        ({"scores": ["nope"]}, "a score must be one of .*'nope'"),
        ({"scores": [["total"]]}, "a score must be one of"),
        ({"members": "3"}, "members is of type str, expected int"),
        ({"members": 3.0}, "members is of type float"),
        ({"members": True}, "members is of type bool"),
        ({"members": 0}, "members must be at least 1"),
        ({"members": -1}, "members must be at least 1"),
        ({"members": 10**9}, "members must be at most 100000"),
        ({"members": 10**9, "files": None}, "members must be at most 100000"),
        ({"members": 3}, "members is 3, and files names those of 2"),
        ({"members": 1}, "members is 1, and files names those of 2"),
        ({"files": 3}, "files is of type int, expected dict or null"),
        ({"files": []}, "files is of type list"),
        ({"files": {"../x": ""}}, "files names '../x', which is not in the folder"),
        ({"files": {"a\0": ""}}, "which is not in the folder"),
        ({"files": dict.fromkeys("abc", 1)}, "files has 1 for 'a', expected a SHA-256"),
        ({"options": {"x": 1}}, "options.'x' is not known"),
        ({"options": {"base": 2}}, "options.'base' is not known"),
        ({"options": {"logits": 1}}, "options.logits is of type int, expected bool"),
        ({"options": {"output": 3}}, "options.output is of type int, expected str or null"),
        ({"options": None}, "options is of type NoneType"),
        ({"factory": 3}, "factory is of type int"),
        ({"wheel": {"name": 1}}, "wheel.name is of type int"),
        ({"wheel": {"name": "a"}}, "sha256"),
        ({"wheel": []}, "wheel is of type list"),
    ],
)
def test_descriptions_are_checked_before_they_are_used(write, changes, words):
    folder = write()
    change_description(folder, changes)
    with pytest.raises(ValueError, match=rf"credal\.json describes no model .*{words}"):
        load_model(folder)


@pytest.mark.parametrize("text", ["[]", "null", "3", "{}", "{", '{"kind": "onnx"}', "[" * 100_000])
def test_descriptions_that_are_none(write, text):
    folder = write()
    (folder / "credal.json").write_text(text)
    with pytest.raises(ValueError, match=r"credal\.json describes no model"):
        load_model(folder)


class TestIndex:
    @pytest.mark.parametrize(
        "index", [list("abcdefghijklmnopqrst"), [7] * 20, pd.MultiIndex.from_product([range(4), range(5)])]
    )
    def test_frames_keep_it(self, write, index):
        frame = pd.DataFrame(ROWS, index=index)
        pd.testing.assert_index_equal(load_model(write()).predict(frame).index, frame.index)

    def test_arrays_have_none(self, write):
        pd.testing.assert_index_equal(load_model(write()).predict(ROWS).index, pd.RangeIndex(20))


def save_outside(path, location):
    """Move the weights of an ONNX file into a file beside it."""
    options = {"save_as_external_data": True, "location": location, "size_threshold": 0}
    onnx.save(onnx.load(path), path, **options)
    return path


class TestExternalData:
    def test_they_are_saved_with_the_file(self, write, members, tmp_path):
        """Members may have given their data the same name in folders of their own."""
        paths = []
        for n, path in enumerate(members):
            (tmp_path / f"{n}").mkdir()
            paths.append(save_outside(path.rename(tmp_path / f"{n}" / "model.onnx"), "weights.bin"))
        folder = write(paths=paths)
        for path in paths:
            path.with_name("weights.bin").unlink()
            path.unlink()
        np.testing.assert_allclose(load_model(folder).predict(ROWS)["total"], PREDICTION.total, atol=1e-6)
        assert "member_1/weights.bin" in Description.read(folder).files
        (folder / "member_0" / "weights.bin").write_bytes((folder / "member_1" / "weights.bin").read_bytes())
        with pytest.raises(ValueError, match=r"weights\.bin is not the file that was saved"):
            load_model(folder)

    def test_missing_ones_are_named(self, write, members, tmp_path):
        save_outside(members[0], "weights.bin")
        (tmp_path / "weights.bin").unlink()
        with pytest.raises(FileNotFoundError, match=r"the external data of 0\.onnx: .*weights\.bin"):
            write()

    @pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "C:/x", "a\\b", "member.onnx", "."])
    def test_what_lies_elsewhere_is_refused(self, write, members, location):
        model = onnx.load(members[0])
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        members[0].write_bytes(model.SerializeToString())
        with pytest.raises(ValueError, match="the folder of the ONNX file or below it"):
            write()

    def test_they_are_found_wherever_tensors_are(self, tmp_path):
        """In initializers, constants, branches, sparse tensors and functions."""

        def tensor(name):
            made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
            made.external_data.add(key="offset", value="0")
            made.external_data.add(key="location", value=f"{name}.bin")
            return made

        def constant(name):
            return helper.make_node("Constant", [], [name], value=tensor(name))

        sparse = helper.make_sparse_tensor(tensor("values"), numpy_helper.from_array(np.zeros(1, np.int64)), [1])
        branch = helper.make_graph([constant("branch")], "then", [], [])
        nodes = [constant("constant"), helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)]
        graph = helper.make_graph(nodes, "g", [], [], [tensor("initializer")], sparse_initializer=[sparse])
        opset = helper.make_opsetid("", 17)
        function = helper.make_function("d", "f", [], ["z"], [constant("function")], [opset])
        path = tmp_path / "all.onnx"
        path.write_bytes(helper.make_model(graph, functions=[function]).SerializeToString())
        names = ("values", "branch", "constant", "initializer", "function")
        assert external_files(path.read_bytes()) == {f"{name}.bin" for name in names}

    @pytest.mark.parametrize(
        "content", [b"cos\nsystem\n(S'true'\ntR.", b"\x3a\xff\xff\xff\xff", b"\x3a\x05ab", b"\xff"]
    )
    def test_files_that_are_none(self, content):
        with pytest.raises(ValueError, match="it is not an ONNX file, or damaged"):
            external_files(content)


class TestWheel:
    @pytest.fixture
    def installed(self, monkeypatch):
        """Replace what the installer wrote down."""

        def install(direct_url):
            recorded = type("Distribution", (), {"read_text": lambda self, name: direct_url})
            monkeypatch.setattr("credalens.mlflow.folder.metadata.distribution", lambda name: recorded())

        return install

    @pytest.mark.parametrize("archive", [{"hashes": {"sha256": "ab12"}, "hash": "sha256=cd"}, {"hash": "sha256=ab12"}])
    def test_it_is_saved_without_its_folder(self, installed, write, archive):
        url = "file:///home/somebody/wheels/credalens-0.1.0-py3-none-any.whl"
        installed(json.dumps({"url": url, "archive_info": archive}))
        folder = write()
        assert Description.read(folder).wheel == {"name": "credalens-0.1.0-py3-none-any.whl", "sha256": "ab12"}
        assert "somebody" not in (folder / "credal.json").read_text()

    @pytest.mark.parametrize(
        "direct_url", [None, '{"url": "file:///x", "dir_info": {"editable": true}}', '{"url": "a", "archive_info": {}}']
    )
    def test_none_is_known_of_an_index_or_a_folder(self, installed, write, direct_url):
        installed(direct_url)
        assert Description.read(write()).wheel is None
