"""The extra ``torch``: a list of networks made credal, and a Bayesian one."""

from __future__ import annotations

import torch
from torch import nn

from credalens.bayes import to_bayesian
from credalens.torch import CredalWrapper

if __name__ == "__main__":
    x = torch.rand(7, 5)
    networks = [nn.Linear(5, 3) for _ in range(4)]
    assert CredalWrapper(networks)(x).total.shape == (7,)
    bayesian = to_bayesian(networks[0])
    assert CredalWrapper([bayesian, bayesian])(x).total.shape == (7,)
