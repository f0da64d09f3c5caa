"""ResNet-50, EfficientNet-B2 and ViT-Base for 224-pixel images: transformers' networks, plain logits out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from torch import Tensor, nn

from credalens.checks.options import count_text
from credalens_paper.backbones import FAMILIES, read_configuration
from credalens_paper.backbones.lite import use_own_depthwise


class Logits(nn.Module):
    """A network of transformers that returns its logits instead of an output record."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes) of images (n, 3, h, w)."""
        logits: Tensor = self.network(pixel_values=x).logits
        return logits


def build_large(name: str, classes: int, width: float, image_size: int, /) -> nn.Module:
    """The network with random weights."""
    family = _FAMILIES[name]
    settings = {**family.settings(width, image_size), **family.training, "num_labels": classes}
    network = _transformers(name, "ForImageClassification")(_transformers(name, "Config")(**settings))
    if name == "efficientnet_b2":
        _repair_efficientnet(network)
        _initialise_efficientnet(network)
    return Logits(network)


def _repair_efficientnet(network: Any) -> None:
    """The same function in modules that train quickly, and rightly when compiled.

    transformers averages over windows larger than the image, and torch.compile divides the gradient of that by the size of
    the window: nothing below the head would learn.
    """
    use_own_depthwise(network)
    network.efficientnet.pooler = nn.AdaptiveAvgPool2d(1)


def _initialise_efficientnet(network: nn.Module) -> None:
    """First weights that keep the variance of the signal.

    transformers draws every weight with deviation 0.02, the scales of the batch normalisations too, and the
    signal is down to 1e-10 before the head.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()


def load_large(name: str, classes: int, width: float, image_size: int, folder: Path, /) -> nn.Module:
    """The network with the safetensors weights of a local folder; a head of another size starts at random."""
    stored, family = read_configuration(folder, name), _FAMILIES[name]
    settings = family.settings(width, image_size)
    for key in family.shape:
        if key in stored and stored[key] != settings[key]:
            raise ValueError(f"{folder} does not fit {name}: {key} is {stored[key]}, expected {settings[key]}")
    with _quiet():
        network, report = _transformers(name, "ForImageClassification").from_pretrained(
            folder,
            num_labels=classes,
            local_files_only=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **family.training,
        )
    # Only the head may start at random: a body that silently did would look like a bad result.
    keys = [*report["missing_keys"], *(key[0] for key in report["mismatched_keys"])]
    body = sorted(key for key in keys if not key.startswith("classifier"))
    if body:
        raise ValueError(
            f"{folder} lacks {count_text(len(body), 'weight')} of {name} in the shape that it needs, the first: {body[0]}; "
            f"was it saved from another network?"
        )
    if name == "efficientnet_b2":
        _repair_efficientnet(network)
    return Logits(network.train())


class _Family(NamedTuple):
    settings: Callable[[float, int], dict[str, Any]]
    shape: tuple[str, ...]  # the settings that stored weights must share
    training: dict[str, Any]  # settings that a training run wants and weights do not care about


def _resnet50(width: float, image_size: int) -> dict[str, Any]:
    # A bottleneck narrows the channels of its stage to a quarter: keep them divisible.
    stages = [4 * max(1, round(count * width)) for count in (64, 128, 256, 512)]
    return {"embedding_size": stages[0] // 4, "hidden_sizes": stages, "depths": [3, 4, 6, 3]}


def _efficientnet_b2(width: float, image_size: int) -> dict[str, Any]:
    channels = 1280 * 1.1 * width
    rounded = max(8, int(channels + 4) // 8 * 8)  # the nearest multiple of eight that loses at most a tenth
    return {
        "width_coefficient": 1.1 * width,
        "depth_coefficient": 1.2,
        "hidden_dim": rounded + 8 if rounded < 0.9 * channels else rounded,
        "image_size": image_size,
        # Symmetric padding in all 23 blocks; the default, made for other weights, fails on maps of one pixel.
        "depthwise_padding": list(range(23)),
    }


def _vit_base(width: float, image_size: int) -> dict[str, Any]:
    heads = max(1, round(12 * width))
    return {
        "hidden_size": 64 * heads,
        "num_hidden_layers": 12,
        "num_attention_heads": heads,
        "intermediate_size": 256 * heads,
        "image_size": image_size,
        "patch_size": max(4, image_size // 14),
    }


_FAMILIES: Final = {
    "resnet50": _Family(_resnet50, ("depths", "hidden_sizes"), {}),
    "efficientnet_b2": _Family(
        _efficientnet_b2,
        ("width_coefficient", "depth_coefficient"),
        # The default 0.99 is the share that TensorFlow keeps, but torch takes it for the share to replace, and
        # the running statistics become those of the last batch.
        {"batch_norm_momentum": 0.1, "dropout_rate": 0.3},
    ),
    "vit_base": _Family(_vit_base, ("hidden_size", "num_hidden_layers", "patch_size", "image_size"), {}),
}


def _transformers(name: str, kind: str) -> Any:
    return getattr(import_module("transformers"), f"{FAMILIES[name]}{kind}")


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers reports every replaced head at length; what matters is checked."""
    logging: Any = import_module("transformers.utils.logging")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
