"""PyTorch: make trained models credal, without retraining, rewriting or renaming anything.

>>> import torch
>>> from credalens.torch import CredalWrapper
>>> members = [torch.nn.Linear(4, 3) for _ in range(5)]  # a deep ensemble, trained
>>> prediction = CredalWrapper(members)(torch.ones(8, 4))
>>> prediction.probability.shape, prediction.epistemic.shape
(torch.Size([8, 3]), torch.Size([8]))

A network with dropout, or a Bayesian one, is sampled:

>>> network = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Dropout(), torch.nn.Linear(32, 3)).eval()
>>> CredalWrapper(network, samples=50)(torch.ones(8, 4))
CredalPrediction(members=50, batch=(8,), classes=3, base=2)
"""

from credalens.checks.options import needing

with needing("torch", part="credalens.torch", extra="torch"):
    from credalens.torch.operators import credal_prediction
    from credalens.torch.predicting import load_prediction
    from credalens.torch.wrapper import CredalWrapper

__all__ = ["CredalWrapper", "credal_prediction", "load_prediction"]
