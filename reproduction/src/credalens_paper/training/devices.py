"""Where, in which precision and with which random numbers a network runs, and the images there.

Each member draws from generators of its own. Images are bytes that stay on the device, augmented and normalised there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

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
    """The device of that name, whether this machine has it or not; Ray's workers may have what this one lacks."""
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


ROOM: Final = 0.5
"""The share of a GPU's free memory that the images may take; larger sets stay on the host."""

_SAMPLED: Final = 1024  # images that enter the fingerprint


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Images (n, h, w, 3) of bytes, labels (n,), and mean and deviation of the channels on the scale [0, 1].

    Features (n, size) of texts in float32 may stand in their place, and are neither augmented nor normalised.

    ``images`` may be a memory map: sets that do not fit on the device are read batch by batch.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        check_images(self.images)
        check_statistics(self.mean, self.std)
        labels, count = self.labels, len(self.images)
        if not isinstance(labels, np.ndarray) or labels.dtype != np.int64 or labels.shape != (count,):
            is_array = isinstance(labels, np.ndarray)
            got = f"{labels.dtype} of shape {labels.shape}" if is_array else type(labels).__name__
            raise ValueError(f"labels must be a NumPy array of int64 of shape ({count},), got {got}.")
        wrong = np.flatnonzero(labels < 0)
        if wrong.size:
            raise ValueError(f"labels must not be negative; the first is {labels[wrong[0]]} at index {wrong[0]}.")

    def __len__(self) -> int:
        return len(self.labels)

    def fingerprint(self) -> dict[str, Any]:
        """What tells this set from another: shape, statistics, and a digest of labels and some of the images."""
        sampled = np.unique(np.linspace(0, len(self) - 1, _SAMPLED).astype(np.intp))
        digest = hashlib.sha256(self.labels.tobytes())
        digest.update(self.images[sampled].tobytes())
        return {
            "shape": list(self.images.shape),
            "mean": [float(value) for value in self.mean],
            "std": [float(value) for value in self.std],
            "digest": digest.hexdigest()[:16],
        }


@final
class DeviceImages:
    """A training set as batches on a device. Two moments of waiting for the device: the start and each epoch's order."""

    def __init__(self, data: TrainingData, device: torch.device, /, *, resident: bool | None = None):
        self._host, self.device = data, device
        if resident is None and device.type == "cuda":
            resident = data.images.nbytes < ROOM * torch.cuda.mem_get_info(device)[0]
        self.resident = not isinstance(data.images, np.memmap) if resident is None else resident
        self._labels = torch.from_numpy(np.array(data.labels, np.int64)).to(device)
        self._images = on_device(data.images, device) if self.resident else None
        self._scale = Normalization(data.mean, data.std, device)

    def __len__(self) -> int:
        return len(self._host)

    def batch(
        self, chosen: Tensor, generator: torch.Generator, /, *, padding: float, flip: bool, size: int
    ) -> tuple[Tensor, Tensor]:
        """The chosen examples (indices on the CPU for sets on the host), augmented: images and labels."""
        labels = self._labels[chosen.to(self.device)]
        images, rows = self._images, chosen
        if images is None:
            images = on_device(self._host.images[chosen.numpy()], self.device)
            rows = torch.arange(len(chosen), device=self.device)
        if images.ndim == 2:  # features of texts are as they should be
            return images[rows], labels
        shift = round(padding * min(images.shape[1:3]))
        cropped = crop_and_flip(images, rows, generator, padding=shift, flip=flip)
        return self._scale(cropped, size=size), labels

    def order(self, order: Tensor, /) -> Tensor:
        """An epoch's order, moved to where the images are."""
        return order.to(self.device) if self.resident else order


@final
class Normalization:
    """Bytes (n, h, w, 3) to floats (n, 3, h, w), channels last in memory: less the mean, over the deviation."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], device: torch.device, /):
        check_statistics(mean, std)
        self.device = device
        self._mean, self._std = (torch.tensor(values, dtype=torch.float32, device=device) for values in (mean, std))

    def __call__(self, images: Tensor, /, *, size: int | None = None) -> Tensor:
        """The images at ``size`` pixels (None: as they are); features of texts, (n, size), stay what they are."""
        if images.ndim == 2:
            return images
        x = ((images.float() / 255 - self._mean) / self._std).permute(0, 3, 1, 2)
        if size is None or x.shape[-2:] == (size, size):
            return x
        smaller = size < min(x.shape[-2:])
        return functional.interpolate(x, (size, size), mode="bilinear", antialias=smaller)


def crop_and_flip(images: Tensor, chosen: Tensor, generator: torch.Generator, /, *, padding: int, flip: bool) -> Tensor:
    """Some of the images (n, h, w, 3), each shifted by up to ``padding`` pixels and flipped with chance one half.

    The same as padding by reflection and a random crop, in one gather out of the whole set.
    """
    count, (height, width), device = len(chosen), images.shape[1:3], images.device
    draw = partial(torch.randint, generator=generator, device=device)
    down, right = draw(-padding, padding + 1, (2, count, 1))
    mirrored = draw(0, 2, (count, 1)).bool() & flip
    columns = torch.arange(width, device=device)
    columns = torch.where(mirrored, width - 1 - columns, columns)
    rows = _reflected(torch.arange(height, device=device) + down, height)
    columns = _reflected(columns + right, width)
    return images[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


def on_device(images: NDArray[np.uint8], device: torch.device, /) -> Tensor:
    """The bytes as they are, on the device."""
    return torch.from_numpy(np.require(images, requirements=["C", "W"])).to(device)


def check_images(images: Any, /) -> None:
    """Refuse what is neither bytes (n, h, w, 3) nor features (n, size) of texts in float32."""
    if isinstance(images, np.ndarray) and images.dtype == np.float32 and images.ndim == 2 and images.size:
        return
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        kind = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise TypeError(f"images must be a NumPy array of uint8, 0 to 255, got {kind}. They are normalised here.")
    if images.ndim != 4 or images.shape[-1] != 3 or images.size == 0:
        raise ValueError(f"images must have the shape (n, height, width, 3) with n > 0, got {images.shape}.")


def check_statistics(mean: Sequence[float], std: Sequence[float], /) -> None:
    """Refuse channel statistics that are not three finite numbers, or deviations that are not positive."""
    for name, values in (("mean", mean), ("std", std)):
        if np.shape(values) != (3,) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be three finite numbers, one for each channel, got {values!r}.")
    if not np.all(np.asarray(std) > 0):
        raise ValueError(f"std must be positive, got {std!r}.")


def _reflected(index: Tensor, size: int) -> Tensor:
    return (size - 1) - ((size - 1) - index.abs()).abs()
