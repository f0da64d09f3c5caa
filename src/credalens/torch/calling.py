"""Members of a CredalWrapper: what may be one, checks before it runs, how it is called, how one is sampled.

And members of one architecture as a single vectorised pass: ``torch.func.stack_module_state`` and ``vmap``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FunctionType
from typing import Any, NoReturn, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from credalens.bayes import BayesianLayer, activate_dropout
from credalens.bayes.switches import DROPOUT

NO_SETTINGS = ("training", "name_or_path")  # checked at every call; where a Hugging Face model was loaded from
PLAIN = (bool, int, float, str, tuple, type(None), torch.dtype)
WITH_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)
Call = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and the keyword arguments of a call."""


@final
class CallableModule(nn.Module):
    """A callable from inputs to outputs as a module. Weights that the callable holds are not registered."""

    def __init__(self, function: Callable[..., Any], /) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def extra_repr(self) -> str:
        """The name of the function, for printing."""
        name = getattr(self.function, "__name__", None)
        return repr(self.function) if name is None else name  # asked for only then: torch.compile cannot trace it


def member_modules(members: Iterable[Callable[..., Any]] | Callable[..., Any], samples: int | None, /) -> nn.ModuleList:
    """The members as a list of modules; other callables become a ``CallableModule``."""
    is_module = isinstance(members, nn.Module) and not isinstance(members, nn.ModuleList)
    if is_module or (callable(members) and not isinstance(members, Iterable)):
        if samples is None:
            raise ValueError(
                f"one {type(members).__name__} is one prediction: pass samples=50 if it is stochastic (dropout, a Bayesian "
                "network), or a list of members."
            )
        members = [members]  # type: ignore[list-item]
    if not isinstance(members, Iterable) or isinstance(members, str | Mapping):
        raise TypeError(f"members must be modules or callables in a list; got {type(members).__name__}.")
    modules = nn.ModuleList()
    for n, member in enumerate(members):
        if isinstance(member, type) or not callable(member):
            given = f"the class {member.__name__}, not an instance" if isinstance(member, type) else repr(member)
            raise TypeError(f"member {n} must be a module or another callable; got {given}.")
        modules.append(member if isinstance(member, nn.Module) else CallableModule(member))
    if not modules:
        raise ValueError("a CredalWrapper needs at least one member; got none.")
    return modules


def member_name(n: int, member: nn.Module, /) -> str:
    """How errors name a member: its position, and its class or function."""
    return f"member {n} ({member.extra_repr() if isinstance(member, CallableModule) else type(member).__name__})"


def check_mode(member: nn.Module, name: str, /, *, sampled: bool) -> None:
    """Refuse a member whose prediction would depend on chance or on the rest of the batch.

    Refused are dropout, batch normalisation and similar layers in training mode; layers that behave the same in both modes
    may be in either. A member that is ``sampled`` may have its dropout on. Dropout called as a function is not detected.
    """
    if not _any_training(member):
        return
    for layer_name, layer in member.named_modules():
        is_dropout = isinstance(layer, DROPOUT)
        if not layer.training or not _differs_in_training(layer) or (sampled and is_dropout):
            continue
        what = f"its layer {layer_name!r} ({type(layer).__name__})" if layer_name else "it"
        advice = " For MC-dropout pass the module with samples=50." if is_dropout else ""
        raise ValueError(
            f"{name} is in the wrong mode: {what} is in training mode, so predictions would change from call to call. "
            f"Call .eval() on the wrapper or the member first.{advice}"
        )


def _any_training(member: nn.Module) -> bool:
    """Whether a layer is in training mode. Runs at every call, and takes a third of the time of ``member.modules()``."""
    layers, seen = [member], {member}
    for layer in layers:
        if layer.training:
            return True
        children = {child for child in layer._modules.values() if child is not None} - seen
        seen |= children
        layers += children
    return False


def _differs_in_training(layer: nn.Module) -> bool:
    if isinstance(layer, DROPOUT):
        return layer.p > 0
    if isinstance(layer, _NormBase):  # batch and instance normalisation: running statistics differ, batch ones do not
        return layer.track_running_stats
    if isinstance(layer, WITH_DROPOUT):
        return layer.dropout > 0
    return isinstance(layer, nn.RReLU)


def check_device(member: nn.Module, device: torch.device | None, name: str, /) -> None:
    """Refuse a member whose weights are all on one device that is not the inputs'."""
    devices = set()
    for tensors in (member.parameters(), member.buffers()):
        for tensor in tensors:
            if device is None or tensor.device == device:
                return  # almost always at the first weight; this runs at every call
            devices.add(tensor.device)
    if len(devices) == 1:
        raise ValueError(
            f"{name} is on {devices.pop()} and the input on {device}; move one of them: wrapper.to({str(device)!r}), "
            "or the input to the members' device."
        )


def member_call(member: nn.Module, call: Call, /) -> Call:
    """The arguments for this member: a lone dictionary becomes keywords if the member accepts all of them.

    A Hugging Face model takes ``{"input_ids": ..., "attention_mask": ...}`` as keywords; a module with
    ``forward(self, batch)`` takes the dictionary itself.
    """
    args, kwargs = call
    if len(args) != 1 or kwargs or not isinstance(args[0], Mapping):
        return call
    try:
        inspect.signature(member.function if isinstance(member, CallableModule) else member.forward).bind(**args[0])
    except (TypeError, ValueError):  # other keywords, or a callable without a signature
        return call
    return (), dict(args[0])


@contextmanager
def naming_member(name: str, call: Call, /) -> Iterator[None]:
    """Name the member that raised an error, and the remedy if it cannot take such a batch."""
    try:
        yield
    except Exception as error:
        error.add_note(f"Raised by {name} of the CredalWrapper.")
        remedy = _remedy(*call) if isinstance(error, TypeError | AttributeError | KeyError) else ""
        if remedy:
            raise TypeError(f"{name} got {remedy} It raised {type(error).__name__}: {error}") from error
        raise


def _remedy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    batch = args[0] if len(args) == 1 and not kwargs else None
    if isinstance(batch, Mapping):
        keys = list(batch)
        return (
            f"the batch itself, a dictionary with the keys {keys}, since it does not take them as keywords. Select its input: "
            f"predict(loader, inputs=lambda batch: batch[{keys[0] if keys else 'name'!r}])."
        )
    if isinstance(batch, np.ndarray):
        return "a NumPy array. Give it a tensor, torch.from_numpy(x), or predict(loader, inputs=torch.as_tensor)."
    if isinstance(batch, str) or (isinstance(batch, list | tuple) and any(isinstance(text, str) for text in batch)):
        return "text. Give it the tensors of its tokenizer: tokenizer(texts, padding=True, return_tensors='pt')."
    return ""


def input_device(x: Any, /) -> torch.device | None:
    """The device of the first tensor in nested dictionaries, lists and tuples, such as the arguments of a call."""
    if isinstance(x, Tensor):
        return x.device
    values = x.values() if isinstance(x, Mapping) else x if isinstance(x, list | tuple) else ()
    return next((device for value in values if (device := input_device(value)) is not None), None)


def moved(x: Any, device: torch.device, /) -> Any:
    """``x`` with every tensor in it on ``device``."""
    if callable(getattr(x, "to", None)):
        return x.to(device)
    if isinstance(x, Mapping):
        return {key: moved(value, device) for key, value in x.items()}
    if isinstance(x, list | tuple):
        values = [moved(value, device) for value in x]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    return x


def sampling(member: nn.Module, /) -> AbstractContextManager[Any]:
    """Switch the dropout layers on; in a Bayesian network only the weights are sampled and dropout stays off."""
    layer_types = {type(layer) for layer in member.modules()}
    has_dropout = any(issubclass(layer_type, DROPOUT) for layer_type in layer_types)
    return activate_dropout(member) if has_dropout and BayesianLayer not in layer_types else nullcontext()


@final
class SampleWatch:
    """Notices when all samples of a member are identical. Keeps the first sample until another one differs."""

    def __init__(self) -> None:
        self.count = 0
        self._first: Tensor | None = None

    def see(self, sample: Tensor, /) -> None:
        """Compare one more sample with the first; a graph has no values to compare."""
        if torch.compiler.is_compiling():
            return
        self.count += 1
        if self.count == 1:
            self._first = sample.detach()
        elif self._first is not None and not torch.equal(self._first, sample):
            self._first = None

    def warn_if_identical(self, name: str, /) -> bool:
        """Warn that sampling this member has no effect, if there were several samples and none differed; whether it did."""
        if self.count < 2 or self._first is None:
            return False
        warnings.warn(
            f"all {self.count} samples of {name} are identical, so epistemic uncertainty will be zero: the module is "
            "deterministic. Pass several members, or a network that was trained with dropout layers, or one that was converted "
            "with credalens.bayes.to_bayesian and trained with elbo_loss since: until then its weights only carry noise, which "
            "costs accuracy.",
            stacklevel=2,
        )
        return True


def vectorised_pass(members: Sequence[nn.Module], call: Call, read: Callable[[Any], Tensor], /) -> Tensor:
    """The outputs of all members, (members, *batch, classes); ``read`` takes the tensor from what a member returns.

    Memory: a stacked copy of all weights (``stacked_bytes``), made at every call so that it is never stale, and the
    activations of all members at once. The code of the first member runs, which must not run elsewhere meanwhile.
    """
    for n, member in enumerate(members):
        if member.training != members[0].training:
            raise ValueError(
                f"a vectorised pass needs all members in one mode; training is {member.training} for member {n} and "
                f"{members[0].training} for member 0. Call .eval() on the wrapper."
            )
    weights, buffers = torch.func.stack_module_state(list(members))
    args, kwargs = member_call(members[0], call)

    def run_member(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return read(torch.func.functional_call(members[0], (weights, buffers), args, kwargs))

    return torch.vmap(run_member)(weights, buffers)


def stacked_bytes(members: Sequence[nn.Module], /) -> int:
    """Bytes that the stacked copy of these members' parameters and buffers takes."""
    return sum(tensor.nbytes for member in members for tensor in (*member.parameters(), *member.buffers()))


def check_same_architecture(members: Sequence[nn.Module], /) -> None:
    """Refuse members that a vectorised pass would not reproduce: layers, settings and shapes must be the same.

    Settings are compared where they are plain values (numbers, text, functions). Anything else that layers hold, besides
    parameters and buffers, is taken from the first member.
    """
    for n, member in enumerate(members):
        if isinstance(member, CallableModule):
            _refuse(n, "is a plain callable, whose weights cannot be stacked")
    first = _architecture(members[0])
    for n, member in enumerate(members[1:], start=1):
        architecture = _architecture(member)
        for key in first | architecture:
            expected, value = first.get(key), architecture.get(key)
            if not _is_same(expected, value):
                _refuse(n, f"has {key}={value!r} where member 0 has {expected!r}")


def _architecture(member: nn.Module) -> dict[str, Any]:
    """The type of every layer, then the settings of every layer, then the form of every tensor."""
    layers = dict(member.named_modules())
    types = {f"layer {name!r}": type(layer) for name, layer in layers.items()}
    settings = {
        f"{name}.{setting}".removeprefix("."): value
        for name, layer in layers.items()
        for setting, value in vars(layer).items()
        if setting[0] != "_" and setting not in NO_SETTINGS and (isinstance(value, PLAIN) or callable(value))
    }
    tensors = dict(member.named_parameters()) | dict(member.named_buffers())
    forms = {name: (tuple(x.shape), x.dtype, str(x.device)) for name, x in tensors.items()}
    return types | settings | forms


def _is_same(value: Any, other: Any) -> bool:
    """Whether two settings are equal. Functions made by the same line of code are, unless they hold variables."""
    if isinstance(value, FunctionType) and isinstance(other, FunctionType):
        return value is other or (value.__code__ is other.__code__ and not (value.__closure__ or other.__closure__))
    return bool(value == other)


def _refuse(n: int, why: str) -> NoReturn:
    raise ValueError(
        f"vectorised=True needs members of identical architecture; member {n} {why}. "
        "Use vectorised=False, which takes any members."
    )
