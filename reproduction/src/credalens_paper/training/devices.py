"""Where, in which precision and with which random numbers a network runs: each member draws from generators of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor, nn

from credalens.checks.options import check_choice

PRECISIONS: Final = ("auto", "float32", "bfloat16")


def find_device(device: str | torch.device | None = None, /) -> torch.device:
    """The device asked for, by default a GPU of CUDA where there is one and the CPU elsewhere."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    asked = named_device(device)
    if asked.type == "cuda" and (asked.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={str(device)!r} was asked for and torch sees {torch.cuda.device_count()} CUDA devices; use "
            "device='cpu', or install a torch build for your GPU."
        )
    try:  # each kind of device fails in its own way
        torch.zeros(1, device=asked).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ValueError(
            f"device={str(device)!r} was asked for and this torch cannot compute there; use device='cpu', or install a "
            "torch build for that device."
        ) from error
    return asked


def named_device(device: str | torch.device, /) -> torch.device:
    """The device of that name, whether this machine has it or not; Ray's workers may have what this one lacks.

    >>> named_device("cuda:7")
    device(type='cuda', index=7)
    """
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device must be 'cpu', 'cuda', 'cuda:1' or another name that torch knows; got {str(device)!r}. Leave it "
            "out to use CUDA where there is some and the CPU elsewhere."
        ) from error


def find_precision(precision: str, device: torch.device, /) -> str:
    """ "float32" or "bfloat16"; "auto" is bfloat16 on GPUs of CUDA and float32 elsewhere."""
    if check_choice(precision, PRECISIONS, "precision") != "auto":
        return precision
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


def placed(model: nn.Module, device: torch.device, /) -> nn.Module:
    """The network on the device, its filters channels last in memory as the images are."""
    return model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def mixed(precision: str, device: torch.device, /) -> AbstractContextManager[object]:
    """The context in which networks are applied: weights stay float32, large products may be bfloat16."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


@contextmanager
def fast_math(device: torch.device, /) -> Iterator[None]:
    """TF32 products while the context lasts, and convolutions that give the same digits every time.

    The quickest ones are found by trying, and which is quickest changes from run to run.
    """
    if device.type != "cuda":
        yield
        return
    cudnn, precision = torch.backends.cudnn, torch.get_float32_matmul_precision()
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before
        torch.set_float32_matmul_precision(precision)


def compile_network(network: nn.Module, /, *, graph: bool = False) -> nn.Module:
    """Fused by torch.compile, once for all networks of a kind, into kernels that are not chosen by their speed.

    A ``graph`` of CUDA is replayed: launching many small kernels takes longer than running them. Options that an older
    torch lacks are left out.
    """
    wanted = {"triton.cudagraphs": graph, "deterministic": True}
    available = torch._inductor.list_options()
    options: dict[str, Any] = {name: value for name, value in wanted.items() if name in available}
    return torch.compile(network, options=options, dynamic=False)  # type: ignore[return-value]


def device_name(device: torch.device, /) -> str:
    """What the device is called by its maker."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


INITIAL, ORDER, DRAWS, HIDDEN = range(4)
"""Purposes of random numbers, so that none shares its stream with another."""


def derived_seed(*numbers: int) -> int:
    """A seed that depends on all the numbers, and for different numbers is unrelated; zeros at the end do not count."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def epoch_order(seed: int, epoch: int, examples: int, /) -> Tensor:
    """The order of the examples in an epoch, on the CPU: equal on all devices and known without the past.

    >>> epoch_order(0, 0, 5)
    tensor([1, 4, 0, 3, 2])
    """
    generator = torch.Generator().manual_seed(derived_seed(seed, ORDER, epoch))
    return torch.randperm(examples, generator=generator)


@final
class Randomness:
    """All random numbers of one member after its first weights.

    ``generator`` is for what can be told which generator to use: augmentation and the noise of Bayesian weights.
    Dropout and its like draw from torch's global generators; within ``active()`` these stand where the member left
    them, and afterwards where the caller did.
    """

    def __init__(self, seed: int, device: torch.device, /):
        self.generator = torch.Generator(device).manual_seed(derived_seed(seed, DRAWS))
        self._seed = seed
        self._owners = [torch.device("cpu"), *([] if device.type == "cpu" else [device])]
        self._hidden = [
            torch.Generator(owner).manual_seed(derived_seed(seed, HIDDEN)).get_state() for owner in self._owners
        ]

    def begin_view(self, view: int, /) -> None:
        """Augment from here on as the last time this view began."""
        self.generator.manual_seed(derived_seed(self._seed, DRAWS, view))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let torch's global generators go on where this member left them."""
        before = self._swap(self._hidden)
        try:
            yield
        finally:
            self._hidden = self._swap(before)

    def state(self) -> dict[str, Tensor]:
        """Where all generators stand."""
        hidden = {f"hidden{i}": state for i, state in enumerate(self._hidden)}
        return {"generator": self.generator.get_state(), **hidden}

    def restore(self, state: dict[str, Tensor], /) -> None:
        """Go on from a state; only one of the same kind of device fits."""
        self.generator.set_state(state["generator"])
        self._hidden = [state[f"hidden{i}"] for i in range(len(self._hidden))]

    def _swap(self, states: list[Tensor]) -> list[Tensor]:
        generators = [_global_generator(owner) for owner in self._owners]
        before = [generator.get_state() for generator in generators]
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        return before


def _global_generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    torch.cuda.init()  # type: ignore[no-untyped-call]  # the generators exist from then on
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
