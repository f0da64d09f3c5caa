"""A whole data set: the same as all rows at once, and nothing lost when a run is interrupted or killed."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from credalens.torch import CredalWrapper, load_prediction
from tests.torch.agreement import FIELDS, assert_same

X = torch.randn(10, 6, generator=torch.Generator().manual_seed(0))


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)).eval()


@pytest.fixture
def wrapper():
    return CredalWrapper([network(seed) for seed in range(3)])


def loader(**options):
    return DataLoader(TensorDataset(X, torch.zeros(10, dtype=torch.long)), batch_size=3, **options)


# The whole data set


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


@pytest.mark.parametrize(
    "data",
    [
        loader(),
        X,
        [X[:4], X[4:]],
        (X[i : i + 2] for i in range(0, 10, 2)),
        [{"x": X[:5]}, {"x": X[5:]}],
        DataLoader(Stream(), batch_size=4),
    ],
    ids=["loader", "tensor", "list", "generator", "dictionaries", "stream"],
)
def test_batches_together_are_all_rows_at_once(data):
    wrapper = CredalWrapper([lambda x, n=n: torch.tanh(x * (n + 1)) for n in range(3)])
    assert_same(wrapper.predict(data, progress=False), wrapper(X))


def test_numpy_or_tensors(wrapper):
    arrays = wrapper.predict(loader(), progress=False)
    assert all(isinstance(getattr(arrays, field), np.ndarray) for field in FIELDS)
    assert isinstance(arrays.hartley, np.ndarray)
    assert isinstance(arrays.predict(), np.ndarray)
    tensors = wrapper.predict(loader(), progress=False, returns="torch")
    assert all(isinstance(getattr(tensors, field), torch.Tensor) for field in FIELDS)
    assert_same(arrays, tensors, atol=0)
    assert_same(arrays, wrapper(X))


def test_the_hull_over_a_data_set():
    wrapper = CredalWrapper([network(seed) for seed in range(3)], hull=True)
    prediction = wrapper.predict(loader(), progress=False)
    assert_same(prediction, wrapper(X))
    np.testing.assert_allclose(prediction.hull.upper_entropy(), wrapper(X).hull.upper_entropy(), rtol=0, atol=1e-6)


class Soft(nn.Module):
    """Ends in a softmax, which in narrow floats misses one by more than float32 explains."""

    def __init__(self, seed):
        super().__init__()
        self.network = network(seed)

    def forward(self, x):
        return torch.softmax(self.network(x), -1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("folder", [False, True])
def test_narrow_probabilities_have_a_hull_and_a_classical_decomposition(dtype, folder, tmp_path):
    wrapper = CredalWrapper([Soft(seed).to(dtype) for seed in range(3)], outputs="probabilities", hull=True)
    x = X.to(dtype)
    prediction = wrapper.predict(x, batch_size=4, progress=False, output=tmp_path / "parts" if folder else None)
    at_once = wrapper(x)
    for p in (prediction, at_once):
        assert np.asarray(p.hull.upper_entropy()).dtype == np.asarray(p.classical.total).dtype == np.float32
    np.testing.assert_allclose(prediction.hull.upper_entropy(), at_once.hull.upper_entropy(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(prediction.classical.total, at_once.classical.total, rtol=0, atol=1e-6)


def test_the_hull_under_autocast():
    wrapper = CredalWrapper([Soft(seed) for seed in range(3)], outputs="probabilities", hull=True)
    prediction = wrapper.predict(X, autocast=torch.bfloat16, progress=False)
    exact = wrapper(X).hull.upper_entropy()
    np.testing.assert_allclose(prediction.hull.upper_entropy(), exact, rtol=0, atol=5e-2)


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_inputs_pick_from_the_batch(wrapper):
    batches = [{"image": X, "id": 7}]
    assert_same(wrapper.predict(batches, inputs=lambda batch: batch["image"], progress=False), wrapper(X))
    two = CredalWrapper([lambda x, scale: x * scale])
    picked = two.predict(batches, inputs=lambda batch: (batch["image"], batch["id"]), progress=False)
    assert_same(picked, two(X, 7))


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_nothing_is_recorded_even_for_a_wrapper_with_gradients():
    wrapper = CredalWrapper([network()], gradients=True)
    assert not wrapper.predict(X, progress=False, returns="torch").total.requires_grad


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_mixed_precision_runs_the_members_in_it():
    seen = []
    member = network()
    member[-1].register_forward_hook(lambda layer, args, out: seen.append(out.dtype))
    exact, mixed = (CredalWrapper([member]).predict(X, progress=False, autocast=a) for a in (None, torch.bfloat16))
    assert seen == [torch.float32, torch.bfloat16]
    assert mixed.total.dtype == np.float32
    assert 0 < np.abs(exact.total - mixed.total).max() < 0.05
    np.testing.assert_allclose(mixed.probability.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("progress", [True, False])
def test_the_progress_bar_goes_to_stderr_and_only_if_wanted(wrapper, capsys, progress):
    wrapper.predict(loader(), progress=progress)
    said = capsys.readouterr()
    assert said.out == ""
    assert ("credal prediction" in said.err) == progress


def test_batches_go_to_the_members_device(wrapper):
    seen = []
    wrapper.to("meta").members[0].register_forward_pre_hook(lambda layer, args: seen.append(args[0].device.type))
    with pytest.raises(TypeError, match="meta"):  # which has no numbers
        wrapper.predict(loader(), progress=False)
    assert seen == ["meta"]


def test_a_seed_fixes_the_draws_of_every_batch_and_leaves_torch_alone():
    wrapper = CredalWrapper(network(), samples=10)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = wrapper.predict(X, batch_size=3, seed=1, progress=False)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert_same(wrapper.predict(X, batch_size=3, seed=1, progress=False), first, atol=0)
    assert np.abs(wrapper.predict(X, batch_size=3, seed=2, progress=False).total - first.total).max() > 1e-3
    same_rows = wrapper.predict(X[:1].repeat(2, 1), batch_size=1, seed=1, progress=False)
    assert same_rows.total[0] != same_rows.total[1]


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (7, {}, TypeError, "data must be a tensor or an iterable of batches, such as a DataLoader; got int"),
        ("abc", {}, TypeError, "data must be a tensor or an iterable of batches, such as a DataLoader; got str"),
        ({"x": torch.ones(2, 4)}, {}, TypeError, r"data is a dictionary, which is one batch.* predict\(\[batch\]\)"),
        ([torch.ones(2, 4)], {"inputs": "x"}, TypeError, "inputs must be a function of a batch.* got 'x'"),
        ([], {}, ValueError, "there were no batches"),
        (X, {"batch_size": 0}, ValueError, "batch_size must be at least 1"),
        (X, {"returns": "jax"}, ValueError, "returns must be one of 'numpy', 'torch'"),
        (X, {"autocast": True}, TypeError, "autocast must be a dtype such as torch.bfloat16"),
        ([X[0]], {}, ValueError, r"members must return \(batch, ..., classes\); got shape \(4,\)"),
    ],
)
def test_bad_input(wrapper, data, options, error, message):
    with pytest.raises(error, match=message):
        wrapper.predict(data, progress=False, **options)


# Interrupted


def interrupted(after):
    """A loader that fails before the batch with this index."""
    for index, batch in enumerate(loader()):
        if index == after:
            raise KeyboardInterrupt
        yield batch


def counted(wrapper):
    """The wrapper, and a list that grows with each pass of its first member."""
    passes = []
    wrapper.members[0].register_forward_hook(lambda *_: passes.append(1))
    return wrapper, passes


def test_a_run_interrupted_between_batches_resumes(wrapper, tmp_path):
    wrapper, passes = counted(wrapper)
    with pytest.raises(KeyboardInterrupt):
        wrapper.predict(interrupted(2), output=tmp_path / "run", progress=False)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "part-000000.npz",
        "part-000001.npz",
        "predictions.json",
    ]
    assert_same(load_prediction(tmp_path / "run", partial=True), wrapper(X[:6]))
    with pytest.raises(ValueError, match=r"2 batches so far; repeat the call of predict"):
        load_prediction(tmp_path / "run")
    passes.clear()
    resumed = wrapper.predict(loader(), output=tmp_path / "run", progress=False)
    assert len(passes) == 2
    assert_same(resumed, wrapper(X))
    assert_same(load_prediction(tmp_path / "run"), resumed, atol=0)
    assert load_prediction(tmp_path / "run", returns="torch").total.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_a_run_that_a_member_breaks_resumes(tmp_path):
    broken = [True]

    def member(x):
        if broken and bool((x == X[6]).any()):
            raise RuntimeError("out of memory")
        return x

    wrapper = CredalWrapper([member])
    with pytest.raises(RuntimeError, match="out of memory"):
        wrapper.predict(X, batch_size=3, output=tmp_path, progress=False)
    broken.clear()
    assert_same(wrapper.predict(X, batch_size=3, output=tmp_path, progress=False), wrapper(X))


def test_a_finished_run_is_not_run_again(wrapper, tmp_path):
    wrapper, passes = counted(wrapper)
    first = wrapper.predict(loader(), output=tmp_path, progress=False)
    passes.clear()
    assert_same(wrapper.predict(loader(), output=tmp_path, progress=False), first, atol=0)
    assert not passes


def test_with_a_seed_an_interruption_changes_nothing(tmp_path):
    wrapper = CredalWrapper(network(), samples=10, hull=True)
    with pytest.raises(KeyboardInterrupt):
        wrapper.predict(interrupted(1), output=tmp_path, seed=3, progress=False)
    resumed = wrapper.predict(loader(), output=tmp_path, seed=3, progress=False)
    assert_same(resumed, wrapper.predict(loader(), seed=3, progress=False), atol=0)


KILLED = """
import os, signal, sys
import torch
from torch import nn
from credalens.torch import CredalWrapper, load_prediction
from tests.torch.agreement import FIELDS, assert_same

when, folder = sys.argv[1:]
torch.set_num_threads(1)
x = torch.arange(60.0).reshape(10, 6).sin()

def kill(*args):
    os.kill(os.getpid(), signal.SIGKILL)

def member(scale):
    def call(batch):
        if when == "computing" and bool((batch == x[6]).all(-1).any()):
            kill()
        return batch * scale
    return call

if when == "writing":  # the third part is written, but does not have its name yet
    import pathlib
    plain = pathlib.Path.replace
    pathlib.Path.replace = lambda self, to: kill() if "part-000002" in str(to) else plain(self, to)

wrapper = CredalWrapper([member(1.0), member(2.0)])
wrapper.predict(x, batch_size=3, output=folder, progress=False)
"""


@pytest.mark.parametrize("when", ["computing", "writing"])
def test_a_run_that_was_killed_resumes(tmp_path, when):
    done = subprocess.run([sys.executable, "-c", KILLED, when, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert sorted(path.name for path in tmp_path.glob("part-*")) == ["part-000000.npz", "part-000001.npz"]
    assert len(list(tmp_path.glob(".part*"))) == (when == "writing")
    x = torch.arange(60.0).reshape(10, 6).sin()
    passes = []
    members = [lambda x: passes.append(1) or x, lambda x: x * 2]
    resumed = CredalWrapper(members).predict(x, batch_size=3, output=tmp_path, progress=False)
    assert len(passes) == 2
    assert not list(tmp_path.glob(".*"))
    assert_same(resumed, CredalWrapper(members)(x))


# Results of different runs never mix


def test_other_weights_or_settings_are_refused(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, progress=False)
    with torch.no_grad():
        wrapper.members[2][0].bias[0] += 1e-6
    with pytest.raises(ValueError, match=r"the members' weights differ\. Give a new folder"):
        wrapper.predict(loader(), output=tmp_path, progress=False)
    with pytest.raises(ValueError, match=r"base was 2\.0 and is now 10.0; n_members was 3 and is now 1"):
        CredalWrapper([network()], base=10).predict(loader(), output=tmp_path, progress=False)
    with pytest.raises(ValueError, match=r"autocast was None and is now 'torch.bfloat16'"):
        wrapper.predict(loader(), output=tmp_path, progress=False, autocast=torch.bfloat16)


def test_a_folder_from_before_there_was_a_budget_goes_on_with_the_one_of_then(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, progress=False)
    manifest = json.loads((tmp_path / "predictions.json").read_text())
    for key in ("max_nodes", "tolerance"):
        del manifest["settings"][key]
    (tmp_path / "predictions.json").write_text(json.dumps({**manifest, "batches": None}))
    (tmp_path / "part-000002.npz").unlink()
    other = CredalWrapper(wrapper.each_member, max_nodes=7)
    with pytest.raises(ValueError, match=r"max_nodes was 20000 and is now 7\. Give"):
        other.predict(loader(), output=tmp_path, progress=False)
    of_then = CredalWrapper(wrapper.each_member, max_nodes=20_000)
    assert_same(of_then.predict(loader(), output=tmp_path, progress=False), wrapper(X))
    assert_same(load_prediction(tmp_path), wrapper(X))


def test_other_inputs_are_refused(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, progress=False)
    with pytest.raises(ValueError, match=r"part-000001.npz .* batch 1.*turn off shuffling"):
        wrapper.predict([X[:3], X[3:6] + 1e-6, X[6:]], output=tmp_path, progress=False)
    with pytest.raises(ValueError, match="contains results of more batches than the 2"):
        wrapper.predict([X[:3], X[3:6]], output=tmp_path, progress=False)


def test_two_runs_do_not_write_into_one_folder(wrapper, tmp_path):
    def batches():
        yield X[:3]
        with pytest.raises(ValueError, match="another run is writing into"):
            wrapper.predict(loader(), output=tmp_path, progress=False)
        yield X[3:]

    first = wrapper.predict(batches(), output=tmp_path, progress=False)
    assert_same(load_prediction(tmp_path), first)


def test_a_file_in_place_of_the_folder_is_refused(wrapper, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="it is a file; name a folder"):
        wrapper.predict(loader(), output=tmp_path / "file")


def test_a_folder_with_other_files_is_refused(wrapper, tmp_path):
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(ValueError, match=r"thesis.txt.* name a new or empty folder"):
        wrapper.predict(loader(), output=tmp_path, progress=False)
    with pytest.raises(ValueError, match="holds no predictions"):
        load_prediction(tmp_path)


def test_damaged_files_are_named(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, progress=False)
    part = tmp_path / "part-000001.npz"
    part.write_bytes(part.read_bytes()[:100])
    for call in (load_prediction, lambda folder: wrapper.predict(loader(), output=folder, progress=False)):
        with pytest.raises(ValueError, match=r"part-000001.npz cannot be read .*delete it and run again"):
            call(tmp_path)
    part.unlink()
    assert_same(wrapper.predict(loader(), output=tmp_path, progress=False), wrapper(X))
    (tmp_path / "predictions.json").write_text("{")
    with pytest.raises(ValueError, match=r"predictions.json is damaged"):
        load_prediction(tmp_path)


def test_pickled_parts_are_never_loaded(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, progress=False)
    np.savez(tmp_path / "part-000000.npz", inputs=np.array([object()], dtype=object))
    with pytest.raises(ValueError, match=r"cannot be read .*allow_pickle=False"):
        load_prediction(tmp_path)


def test_the_manifest_says_how_it_was_made(wrapper, tmp_path):
    wrapper.predict(loader(), output=tmp_path, seed=4, progress=False)
    manifest = json.loads((tmp_path / "predictions.json").read_text())
    assert manifest["batches"] == 4
    assert manifest["settings"]["n_members"] == 3
    assert manifest["settings"]["seed"] == 4
