"""Members of NumPy, of torch and on a GPU keep one contract: whatever holds them, a prediction gets the same answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from credalens import wrap, wrap_logits
from credalens.core.classical import classical_of, pairwise_kl_of
from credalens.core.options import Options
from credalens.cuda.gpu_members import GpuMembers
from credalens.torch.member_outputs import TensorMembers

OPTIONS = Options(base=3.0)
KEY = (np.array([0, 3, 1]), np.array([4, 0, 2]))


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_kind_of_members_gives_the_same(kind, dtype):
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.ones(6), (5, 4, 5)) if kind == "probs" else rng.normal(size=(5, 4, 5, 6))
    x = torch.tensor(values, dtype=dtype)
    prediction = (wrap_logits if kind == "logits" else wrap)(x, base=3)
    # The kernels need a device, what is asked of the members later does not.
    on_gpu = GpuMembers(x.reshape(5, 20, 6), (4, 5), kind)
    for members in (on_gpu, TensorMembers(x, logits=kind == "logits"), prediction._members):
        for chosen, expected in ((members, prediction), (members.take(KEY), prediction[KEY])):
            classical = classical_of(chosen, OPTIONS)
            for name, value in vars(expected.classical).items():
                torch.testing.assert_close(getattr(classical, name), value, rtol=0, atol=1e-6)
            divergence = pairwise_kl_of(chosen, OPTIONS)
            torch.testing.assert_close(divergence, expected.score("mean_pairwise_kl"), rtol=1e-5, atol=1e-6)
            assert chosen.to_cpu().accepted
            assert chosen.to_cpu().array.shape == expected.hull._members.array.shape
