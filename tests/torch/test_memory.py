"""Memory: a thousand members leave behind the state of one summary, and nothing else."""

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from credalens.bayes import to_bayesian
from credalens.torch import CredalWrapper

BATCH, CLASSES = 16, 10
PROBABILITIES = BATCH * CLASSES * 8  # bytes of one float64 array (batch, classes)
STATE = 3 * PROBABILITIES + BATCH * 8  # lower, upper, sum of p; sum of H(p)


class Ledger(TorchDispatchMode):
    """Knows every storage that an operation made and that is still alive, except those that were there before."""

    def __init__(self, before=()):
        super().__init__()
        self.before = {x.untyped_storage()._cdata for x in before}
        self.alive = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, list | tuple) else (out,):
            if isinstance(x, torch.Tensor):
                storage = x.untyped_storage()
                if storage._cdata not in self.before:
                    self.alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.bytes)
        return out

    @property
    def bytes(self):
        self.alive = {key: value for key, value in self.alive.items() if not value[0].expired()}
        return sum(size for _, size in self.alive.values())


def test_the_ledger_sees_what_lives_and_what_dies():
    with Ledger() as ledger:
        a = torch.ones(10, dtype=torch.float64)
        b = a + 1
        assert ledger.bytes == 160
        view = b[:2]
        del b
        assert ledger.bytes == 160
        del view
        assert ledger.bytes == 80
        assert ledger.peak == 160


def run(n, **options):
    """Peak bytes, and the bytes alive whenever a member begins."""
    at_start = []
    weight = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(0))
    x = torch.ones(BATCH, 8)
    with Ledger() as ledger:

        def member(scale):
            def call(x):
                at_start.append(ledger.bytes)
                return x @ (weight * scale)

            return call

        wrapper = CredalWrapper([member(1 + 0.01 * i) for i in range(n)], **options)
        prediction = wrapper(x)
    assert prediction.n_members == n
    assert float(prediction.epistemic.max()) > 0
    return ledger.peak, at_start


def test_a_thousand_members_hold_one_copy_of_the_state():
    _, at_start = run(1000)
    assert len(at_start) == 1000
    assert at_start[0] == 0
    assert set(at_start[2:]) == {STATE}


def test_the_peak_does_not_grow_with_the_members():
    peak, _ = run(1000)
    assert peak == run(10)[0]
    assert peak < 10 * PROBABILITIES


def test_the_hull_keeps_the_members():
    _, at_start = run(100, hull=True)
    assert at_start == [n * BATCH * CLASSES * 4 for n in range(100)]


@pytest.mark.parametrize("kind", ["dropout", "bayesian"])
def test_a_thousand_samples_hold_one_copy_of_the_state(kind):
    network = nn.Sequential(nn.Linear(8, 16), nn.Dropout(), nn.Linear(16, CLASSES)).eval()
    if kind == "bayesian":
        network = to_bayesian(network)
    at_start = []
    x = torch.ones(BATCH, 8)
    torch.manual_seed(0)
    with Ledger(before=network.parameters()) as ledger:
        network.register_forward_pre_hook(lambda *_: at_start.append(ledger.bytes))
        prediction = CredalWrapper(network, samples=1000)(x)
    assert prediction.n_members == len(at_start) == 1000
    assert at_start[0] == 0
    assert set(at_start[2:]) == {STATE}
