"""The only place that asks which array library this is: NumPy, torch, JAX, CuPy, array API in, the same out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "NUMPY",
    "Origin",
    "all_reduce",
    "gpu_tensor",
    "namespace",
    "origin_of",
    "to_numpy",
    "widen",
]

NARROW_FLOATS = ("float16", "bfloat16", "float32")
NAMES = {np.dtype(name): name for name in ("float16", "float32", "float64")}  # NumPy takes 2 us to name a dtype


@dataclass(frozen=True)
class Origin:
    """Where an array came from: enough to hand results back in the caller's library, device and precision."""

    library: str
    device: Any
    dtype: str

    @property
    def result_dtype(self) -> np.dtype:
        """float32 for inputs of float32 or narrower, float64 for everything else."""
        return np.dtype(np.float32 if self.dtype in NARROW_FLOATS else np.float64)

    def restore(self, array: NDArray, /) -> Any:
        """Hand ``array`` back as the caller's kind of array, without a copy where the library allows it."""
        if self.library == "numpy":
            return array
        if self.library == "torch":
            tensor = sys.modules["torch"].from_numpy(np.asarray(array, order="C"))
            return tensor.to(self.device)
        if self.library == "jax":
            return sys.modules["jax"].device_put(array, self.device)
        if self.library == "cupy":
            return sys.modules["cupy"].asarray(array)
        return sys.modules[self.library].asarray(array, device=self.device)


NUMPY = Origin("numpy", "cpu", "float64")


def to_numpy(x: Any, /) -> tuple[NDArray, Origin]:
    """View ``x`` as a NumPy array and remember its origin.

    Float16 stays float16; bfloat16, which NumPy does not have, becomes float32. Nothing is validated here.
    """
    x = _stacked(x)
    if isinstance(x, list | tuple):
        x = np.asarray(x)
    origin = origin_of(x)
    if origin.library == "torch":
        x = x.detach().cpu()
        return (x.float() if origin.dtype == "bfloat16" else x).numpy(), origin
    if origin.library == "cupy":
        return x.get(), origin
    array = np.asarray(x) if origin.library in ("numpy", "jax") else np.from_dlpack(x)
    return (array.astype(np.float32) if origin.dtype == "bfloat16" else array), origin


def _stacked(x: Any) -> Any:
    """A list of tensors as one tensor, so that it comes back in kind; everything else as it is."""
    if not isinstance(x, list | tuple) or not x:
        return x
    library = type(x[0]).__module__.partition(".")[0]
    if library == "torch" and all(isinstance(one, type(x[0])) for one in x):
        try:
            return sys.modules["torch"].stack(list(x))
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    return sys.modules["jax"].numpy.stack(x) if library in ("jax", "jaxlib") else x


def gpu_tensor(x: Any, /) -> Any:
    """``x`` if it is a CUDA tensor of torch (a list of them is stacked), else None."""
    first = x[0] if isinstance(x, list | tuple) and x else x
    torch = sys.modules.get("torch")
    if torch is None or not torch.version.cuda or not isinstance(first, torch.Tensor) or not first.is_cuda:
        return None
    try:
        x = _stacked(x)
    except ValueError:
        return None
    return x if isinstance(x, torch.Tensor) else None


def origin_of(x: Any, /) -> Origin:
    """Library, device and dtype of ``x``. Lists and numbers count as NumPy's."""
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        return Origin("torch", x.device, str(x.dtype).removeprefix("torch."))
    if library in ("jax", "jaxlib"):
        return Origin("jax", next(iter(x.devices())), str(x.dtype))
    if library == "cupy":
        return Origin("cupy", x.device, str(x.dtype))
    if not isinstance(x, np.ndarray | np.generic) and hasattr(x, "__array_namespace__"):
        return Origin(x.__array_namespace__().__name__, x.device, str(x.dtype).rpartition(".")[2])
    dtype = np.asarray(x).dtype
    return Origin("numpy", "cpu", NAMES.get(dtype) or dtype.name)


def namespace(origin: Origin, /) -> Any:
    """The module with ``minimum``, ``maximum``, ``where`` and ``log2`` for arrays of this origin."""
    if origin.library == "numpy":
        return np
    if origin.library == "jax":
        return sys.modules["jax"].numpy
    return sys.modules[origin.library]


def widen(x: Any, origin: Origin, /) -> Any:
    """``x`` in float64 where its library has it (JAX only with 64-bit enabled), on its device."""
    if origin.library == "torch":
        return x.double()
    if origin.library == "jax":
        return x.astype(namespace(origin).float64 if sys.modules["jax"].config.jax_enable_x64 else "float32")
    if origin.library in ("numpy", "cupy"):
        return x.astype(np.float64)
    return namespace(origin).astype(x, namespace(origin).float64)


def all_reduce(x: Any, operation: str, /, *, group: Any = None) -> Any:
    """``x`` combined elementwise over the processes of a torch.distributed group: "MIN", "MAX" or "SUM".

    Every process must come with the same shape and precision. The result is what and where ``x`` was; the copy that
    travels is on the GPU for NCCL and on the CPU otherwise.
    """
    torch, distributed = sys.modules["torch"], _distributed()
    origin = origin_of(x)
    tensor = x.detach() if origin.library == "torch" else torch.from_numpy(np.array(to_numpy(x)[0]))
    on_gpu = "nccl" in distributed.get_backend(group)
    device = ("cuda" if tensor.device.type == "cpu" else tensor.device) if on_gpu else "cpu"
    travelling = tensor.to(device, copy=True).contiguous()
    distributed.all_reduce(travelling, op=getattr(distributed.ReduceOp, operation), group=group)
    return travelling.to(tensor.device) if origin.library == "torch" else origin.restore(travelling.cpu().numpy())


def _distributed() -> Any:
    """torch.distributed in a process that has joined a group, which it can only have done with torch loaded."""
    module = getattr(sys.modules.get("torch"), "distributed", None)
    if module is None or not module.is_available() or not module.is_initialized():
        raise RuntimeError(
            "all_reduce() needs a process group; call torch.distributed.init_process_group(...) in every process first."
        )
    return module
