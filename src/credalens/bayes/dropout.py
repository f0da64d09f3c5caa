"""MC-dropout: dropout layers that stay random when the network is evaluated."""

from torch import nn

from credalens.bayes.switches import Switch, check_module, fast_path_off

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def activate_dropout(model: nn.Module, /) -> Switch:
    """Put the dropout layers, and only those, in training mode (Gal and Ghahramani 2016).

    Holds from the call until the end of the ``with`` block, or until ``restore()``. Dropout that is not a layer
    cannot be switched on: ``functional.dropout`` in a forward method, or what ``nn.MultiheadAttention`` does
    to its attention weights and ``nn.LSTM`` between its layers.

    >>> import torch
    >>> network = nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 3)).eval()
    >>> x = torch.ones(2, 4)
    >>> with torch.no_grad(), activate_dropout(network):
    ...     members = torch.stack([network(x) for _ in range(10)])
    >>> bool((members.std(dim=0) > 0).all()), any(module.training for module in network.modules())
    (True, False)
    """
    check_module(model)
    layers = [module for module in model.modules() if isinstance(module, DROPOUT)]
    if not layers:
        raise ValueError(
            f"{type(model).__name__} has no dropout layers to activate, so all samples would be identical. "
            "Dropout called as a function in a forward method cannot be switched; make it an nn.Dropout."
        )
    return Switch([*((layer, "training", True) for layer in layers), *fast_path_off(model)])
