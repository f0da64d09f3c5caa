r"""Bayesian neural networks: convert a plain network, train it with the ELBO, sample its predictions.

The two baselines of the paper are mean-field Gaussian posteriors that differ in how they are sampled: BNNR
(``estimator="reparameterization"``, the local reparameterisation trick) and BNNF (``estimator="flipout"``).

>>> import torch
>>> from credalens.bayes import elbo_loss, mean_network, to_bayesian
>>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
>>> bnn = to_bayesian(network, estimator="flipout")
>>> x, labels = torch.randn(16, 4), torch.randint(3, (16,))
>>> loss = elbo_loss(bnn(x), labels, bnn, kl_weight=1 / 16)  # 1 / number of training examples
>>> loss.backward()
>>> with torch.no_grad():
...     members = torch.stack([bnn(x) for _ in range(10)])  # (members, batch, classes) for wrap_logits
>>> with mean_network(bnn):
...     bool(torch.equal(bnn(x), network(x)))
True

Other posteriors need no special support: a member is any callable from inputs to logits, so a function
that draws weights and applies them is enough. A Laplace or SWAG posterior, given a mean and a standard
deviation for each weight:

>>> means = {name: weight.detach() for name, weight in network.named_parameters()}
>>> deviations = {name: 0.1 * mean.abs() for name, mean in means.items()}
>>> def draw(x):
...     weights = {name: torch.normal(mean, deviations[name]) for name, mean in means.items()}
...     return torch.func.functional_call(network, weights, (x,))
>>> torch.stack([draw(x) for _ in range(10)]).shape
torch.Size([10, 16, 3])

MC-dropout is such a posterior as well: :func:`activate_dropout` switches its layers on, and nothing else.
"""

from credalens.checks.options import needing

with needing("torch", part="credalens.bayes", extra="torch"):
    from credalens.bayes.conversion import elbo_loss, kl, to_bayesian
    from credalens.bayes.layers import BayesianLayer
    from credalens.bayes.switches import Switch, activate_dropout, mean_network, use_generator

__all__ = [
    "BayesianLayer",
    "Switch",
    "activate_dropout",
    "elbo_loss",
    "kl",
    "mean_network",
    "to_bayesian",
    "use_generator",
]
