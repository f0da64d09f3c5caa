"""Networks of torch without a pickle: weights in a safetensors file, the architecture from a function that builds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from credalens.core.recalibration import Recalibration
from credalens.mlflow.folder import DESCRIPTION, OPTIONS, WEIGHTS, Description
from credalens.torch import CredalWrapper
from credalens.torch.calling import CallableModule, member_name


def describe(model: Any, scores: tuple[str, ...], factory: str, factory_options: dict[str, Any], /) -> Description:
    """Describe how to build a wrapper again. Gradients are for training and threads a machine's: neither is kept."""
    if not isinstance(model, CredalWrapper):
        raise TypeError(f"model must be a CredalWrapper or a list of ONNX files; got {type(model).__name__}.")
    for n, member in enumerate(model.each_member):
        if isinstance(member, CallableModule):
            raise TypeError(
                f"{member_name(n, member)} is a plain callable without weights to save; pass a torch.nn.Module, or ONNX files."
            )
    options = {name: getattr(model, name) for name in OPTIONS["torch"]}
    return Description("torch", scores, options, len(model.members), factory, factory_options)


def input_dtype(wrapper: CredalWrapper, /) -> np.dtype:
    """The dtype of the columns of a data frame as inputs: the precision of the weights, at least float32."""
    first = next((x.dtype for x in wrapper.parameters() if x.is_floating_point()), torch.float32)
    return np.dtype(np.float64 if first == torch.float64 else np.float32)


def write_weights(wrapper: CredalWrapper, description: Description, factory: Callable, folder: Path, /) -> None:
    """Write the weights, after a check that the factory builds members that take all of them."""
    weights = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in wrapper.state_dict().items()}
    _build(description, factory, weights)
    save_file(weights, folder / WEIGHTS)


def read_wrapper(
    description: Description, factory: Callable[..., Any], folder: Path, recalibration: Recalibration | None = None, /
) -> CredalWrapper:
    """The wrapper around members from the factory with the weights of the file, ready to predict."""
    path = folder / WEIGHTS
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is no file of safetensors, or damaged: {error}") from error
    saved = {name.split(".")[1] for name in weights if name.startswith("members.")}
    try:
        if saved and len(saved) != description.members:  # members without any weights have none there
            raise ValueError(f"members is {description.members}, and the file has the weights of {len(saved)}.")
        return _build(description, factory, weights, recalibration).eval()
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder / DESCRIPTION} and {WEIGHTS} beside it give no model: {error}") from error


def _build(
    description: Description, factory: Callable, weights: dict[str, Any], recalibration: Recalibration | None = None
) -> CredalWrapper:
    """A wrapper of new members, each from one call of the factory, with these weights."""
    members = [factory(**description.factory_options) for _ in range(description.members)]
    for member in members:
        if not isinstance(member, nn.Module):
            raise TypeError(
                f"{description.factory} must build one member, a torch.nn.Module; it returned {type(member).__name__}."
            )
    wrapper = CredalWrapper(members, recalibration=recalibration, **description.options)
    try:
        wrapper.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise ValueError(f"what {description.factory} builds does not take the weights: {error}") from error
    return wrapper
