"""The only place that asks which array library this is: NumPy, torch, JAX, CuPy or any array-API array in, the same out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUMPY", "Origin", "to_numpy"]

NARROW_FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Origin:
    """Where an array came from: enough to hand a result back in the caller's library, device and precision."""

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
            tensor = sys.modules["torch"].from_numpy(np.ascontiguousarray(array))
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
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        return _from_torch(x)
    if library in ("jax", "jaxlib"):
        return _widen(np.asarray(x)), Origin("jax", next(iter(x.devices())), str(x.dtype))
    if library == "cupy":
        return x.get(), Origin("cupy", x.device, str(x.dtype))
    if not isinstance(x, np.ndarray) and hasattr(x, "__array_namespace__") and hasattr(x, "__dlpack__"):
        namespace = x.__array_namespace__().__name__
        return np.from_dlpack(x), Origin(namespace, x.device, str(x.dtype).rpartition(".")[2])
    array = np.asarray(x)
    return _widen(array), Origin("numpy", "cpu", array.dtype.name)


def _from_torch(x: Any) -> tuple[NDArray, Origin]:
    origin = Origin("torch", x.device, str(x.dtype).removeprefix("torch."))
    x = x.detach().cpu()
    return (x.float() if origin.dtype == "bfloat16" else x).numpy(), origin


def _widen(array: NDArray) -> NDArray:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
