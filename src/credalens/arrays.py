"""The only place that asks which array library this is: NumPy, torch, JAX, CuPy or the array API; results come back in it.

And how results that hold arrays are shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sized
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

NARROW_FLOATS = ("float16", "bfloat16", "float32")
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}  # relative
FINEST = 2.0**-52  # of all other dtypes
ROUNDINGS = 4  # of a dtype: what two equal numbers that were computed alike may differ by
LOGITS = 3  # times the rounding of a dtype: with ROUNDINGS, what that of logits up to about 20 does to probabilities and scores
SEVERAL = 17 / 16  # so that the rounding of members in several dtypes is that of no dtype
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
NUMPYS = (np.ndarray, np.generic, list, tuple, float, int)  # what becomes an array of NumPy's
LONGEST = 120  # characters of one field of a result that is shown
SLACK = {dtype: ROUNDINGS * float(np.finfo(dtype).eps) for dtype in (FLOAT32, FLOAT64)}


@dataclass(frozen=True)
class ArrayKind:
    """The library, device and dtype of a caller's array: what results need to come back as the same kind of array.

    :ivar least_rounding: of members that had fewer digits before, as logits or where others were merged with them.
    """

    library: str
    device: Any
    dtype: str
    least_rounding: float = 0.0

    @property
    def result_dtype(self) -> np.dtype:
        """float32 for inputs of float32 or narrower, float64 for everything else."""
        return FLOAT32 if self.dtype in NARROW_FLOATS else FLOAT64

    @property
    def rounding(self) -> float:
        """How far, relatively, probabilities may be from what they were rounded from."""
        return max(self.least_rounding, rounding(self.dtype))

    def rounded_by(self, least: float, /) -> ArrayKind:
        """The same kind of values that were rounded by at least so much before."""
        return replace(self, least_rounding=least) if least > self.rounding else self

    def of_softmax(self) -> ArrayKind:
        """The kind of probabilities that were computed in float64 from logits of this kind."""
        return replace(self, dtype=self.result_dtype.name).rounded_by(rounding(self.dtype, logits=True))

    def wider(self, other: ArrayKind, /) -> ArrayKind:
        """The kind whose results keep more digits, of values that are as rough as those of the rougher one."""
        kind = other if other.result_dtype.itemsize > self.result_dtype.itemsize else self
        return kind.rounded_by(rounding_of_all(self.rounding, other.rounding))

    def restore(self, array: NDArray, /) -> Any:
        """Hand ``array`` back as the caller's kind of array, without a copy where the library allows it."""
        if self.library == "numpy":
            return array
        if self.library == "torch":
            return sys.modules["torch"].from_numpy(np.asarray(array, order="C")).to(self.device)
        if self.library == "jax":
            return sys.modules["jax"].device_put(array, self.device)
        if self.library == "cupy":
            return sys.modules["cupy"].asarray(array)
        return sys.modules[self.library].asarray(array, device=self.device)

    def restore_rows(self, array: NDArray, batch: tuple[int, ...], /) -> Any:
        """Hand ``array`` (rows, ...) back in the caller's batch shape, precision and library."""
        shaped = array if array.shape[:1] == batch else array.reshape(batch + array.shape[1:])
        if shaped.dtype.kind == "f" and shaped.dtype != self.result_dtype:
            shaped = shaped.astype(self.result_dtype)
        return self.restore(shaped)


def rounding(dtype: str, /, *, logits: bool = False) -> float:
    """How far, relatively, probabilities of this dtype, or from logits of it, may be from what they were rounded from.

    That is the distance from one to the next number. An error of a logit is one of its probability relative to that, and grows
    with the logit: a few times that distance for those that networks have.
    """
    return ROUNDING.get(dtype, FINEST) * (LOGITS if logits else 1)


def rounding_of_all(*roundings: float) -> float:
    """That of members which were rounded by so much each: the largest, and a little more where half precision met another.

    Each grouping and order of the members gives the same.
    """
    most = max(roundings)
    differ = min(roundings) < most and most >= ROUNDING["float16"]
    return most * SEVERAL if differ and is_of_one_dtype(most) else most


def is_of_one_dtype(rounded: float, /) -> bool:
    """Whether it is what `rounding` gives: members that are alike were rounded alike."""
    return any(rounded in (one, one * LOGITS) for one in (*ROUNDING.values(), FINEST))


NUMPY = ArrayKind("numpy", "cpu", "float64")


@cache
def _numpy_kind(dtype: np.dtype) -> ArrayKind:
    """Kept, since NumPy takes 2 us to name a dtype."""
    return ArrayKind("numpy", "cpu", dtype.name)


def to_numpy(x: Any, /) -> tuple[NDArray, ArrayKind]:
    """``x`` as a NumPy array, a view where possible, and the kind of array it is.

    Float16 stays float16; bfloat16, which NumPy does not have, becomes float32. Raises ValueError if the entries of a list
    do not fit together, TypeError if ``x`` has no values that NumPy can read. Values are not checked.
    """
    x = x if type(x) is np.ndarray else in_own_library(x)
    array_kind = array_kind_of(x)
    if array_kind.library == "torch":
        try:
            x = x.detach()
            return (x.float() if array_kind.dtype == "bfloat16" else x).cpu().resolve_neg().numpy(), array_kind
        except (RuntimeError, NotImplementedError) as error:  # such as a tensor without values, on the meta device
            raise TypeError(str(error)) from error
    if array_kind.library == "cupy":
        return x.get(), array_kind
    array = np.asarray(x) if array_kind.library in ("numpy", "jax") else np.from_dlpack(x)
    return (array.astype(np.float32) if array_kind.dtype == "bfloat16" else array), array_kind


def in_own_library(x: Any, /) -> Any:
    """``x`` as an array of its library: a list of arrays is stacked, and what belongs to no library becomes NumPy's."""
    if isinstance(x, list | tuple):
        x = _stacked(x)
    return np.asarray(x) if _library_of(x) == "numpy" else x


def _library_of(x: Any) -> str:
    """The library whose array ``x`` is, subclasses included; "numpy" for lists, numbers, data frames and the like."""
    if isinstance(x, NUMPYS):
        return "numpy"
    if isinstance(x, getattr(sys.modules.get("torch"), "Tensor", ())):
        return "torch"
    if isinstance(x, getattr(sys.modules.get("jax"), "Array", ())):
        return "jax"
    if type(x).__module__.partition(".")[0] == "cupy":
        return "cupy"
    return x.__array_namespace__().__name__ if hasattr(x, "__array_namespace__") else "numpy"


def _stacked(x: Any) -> Any:
    """A list of arrays of one library, nested or not, as one array of it; anything else unchanged."""
    first = x
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if (library := _library_of(first)) == "numpy":
        return x
    parts = [_stacked(part) if isinstance(part, list | tuple) else part for part in x]
    if any(_library_of(part) != library for part in parts):
        return x
    try:
        return namespace(library).stack(parts)
    except RuntimeError as error:  # torch's, for shapes that differ
        raise ValueError(str(error)) from error


def gpu_tensor(x: Any, /) -> Any:
    """``x`` if it is a CUDA tensor of torch (a list of them is stacked), else None."""
    first = x[0] if isinstance(x, list | tuple) and x else x
    torch = sys.modules.get("torch")
    if torch is None or not torch.version.cuda or not isinstance(first, torch.Tensor) or not first.is_cuda:
        return None
    try:
        x = in_own_library(x)
    except ValueError:
        return None
    return x.resolve_neg() if isinstance(x, torch.Tensor) and x.layout == torch.strided else None


def array_kind_of(x: Any, /) -> ArrayKind:
    """Library, device and dtype of ``x``. Lists and numbers count as NumPy's."""
    library = _library_of(x)
    if library == "numpy":
        return _numpy_kind(np.asarray(x).dtype)
    if library == "jax" and isinstance(x, sys.modules["jax"].core.Tracer):
        raise TypeError("JAX is tracing it, as in jit, grad or vmap; call this outside of the transformed function")
    if library == "torch" and x.is_meta:
        raise TypeError(
            "it is a tensor on the meta device, which has no values; compute it on a real one, such as the CPU"
        )
    if library == "torch" and x.layout != sys.modules["torch"].strided:
        raise TypeError(f"it is a tensor of layout {x.layout}; .to_dense() makes it dense")
    if library == "jax":
        return ArrayKind("jax", next(iter(x.devices())), str(x.dtype))
    if library not in ("torch", "cupy") and not hasattr(x, "__dlpack__"):
        raise TypeError(f"it is an array of {library} without __dlpack__, by which libraries hand over values")
    return ArrayKind(library, x.device, str(x.dtype).rpartition(".")[2])


def namespace(library: str, /) -> Any:
    """The module with ``stack``, ``minimum``, ``where``, ``log2``, ... for arrays of this library."""
    if library == "numpy":
        return np
    return sys.modules["jax"].numpy if library == "jax" else sys.modules[library]


def entries(x: Any, key: Any, /) -> Any:
    """Entries of ``x`` along its first axes; strict libraries ask for an ellipsis where an index leaves out the others."""
    parts = key if isinstance(key, tuple) else (key,)
    masked = any(str(getattr(part, "dtype", "")).endswith("bool") for part in parts)
    axes = sum(part is not None for part in parts)
    return x[key] if masked or axes >= len(x.shape) or any(part is Ellipsis for part in parts) else x[(*parts, ...)]


def take_inputs(members: Any, key: Any, /) -> Any:
    """Members (members, *batch, classes) of the inputs that an index of the batch chooses; a tuple has an array an axis."""
    if not isinstance(key, tuple):
        return members[:, key]
    if _library_of(members) == "torch":
        key = tuple(sys.modules["torch"].as_tensor(places, device=members.device) for places in key)
    return members[(slice(None), *key)]


def places_of(key: tuple[Any, ...], batch: tuple[int, ...], array_kind: ArrayKind, /) -> tuple[NDArray, ...]:
    """The places that an index of several axes of a batch chooses, an array each: libraries differ in mixed indices."""
    numbers = array_kind.restore(np.arange(math.prod(batch)).reshape(batch))
    chosen: NDArray = to_numpy(entries(numbers, key))[0]
    return np.unravel_index(chosen, batch)


def top_class(p: Any, /, *, ties: Any) -> Any:
    """The index of the largest value on the last axis; among those equal up to rounding, the one with the largest ``ties``.

    Of several that are equal in both, it is the first, in every precision.
    """
    kind = array_kind_of(p)
    xp, nearly = namespace(kind.library), 1 - SLACK[kind.result_dtype]
    tied = p >= largest(p)[..., None] * nearly
    ties = xp.where(tied, ties, -1 if xp is np else xp.zeros_like(ties) - 1)
    at_top = ties >= largest(ties)[..., None] * nearly
    return xp.argmax(at_top if xp is np else xp.where(at_top, xp.ones_like(ties), xp.zeros_like(ties)), axis=-1)


def largest(p: Any, /) -> Any:
    """The largest value on the last axis."""
    library = _library_of(p)
    return p.amax(-1) if library == "torch" else namespace(library).max(p, axis=-1)


def count_true(mask: Any, /) -> Any:
    """How many entries of the last axis are true."""
    library = _library_of(mask)
    if library in ("numpy", "torch", "jax", "cupy"):
        return mask.sum(-1)
    xp = namespace(library)  # the array API has no sums of booleans
    return xp.sum(xp.astype(mask, xp.int64), axis=-1)


def smallest(x: Any, y: Any, count: int, /) -> Any:
    """The ``count`` smallest values of both along the first axis, in rising order; all of them where there are fewer."""
    library = _library_of(x)
    if library == "torch":
        return sys.modules["torch"].cat([x, y]).sort(0).values[:count]
    xp = namespace(library)
    joined = xp.concatenate([x, y]) if library in ("numpy", "cupy", "jax") else xp.concat([x, y])
    return xp.sort(joined, axis=0)[:count]


def not_negative(x: Any, /) -> Any:
    """Zero where rounding made a number negative."""
    xp = namespace(_library_of(x))
    return xp.where(x > 0, x, xp.zeros_like(x))


def astype(x: Any, dtype: str, /) -> Any:
    """``x`` in a floating dtype, on its device; JAX has "float64" only with 64-bit enabled."""
    library = _library_of(x)
    if library == "torch":
        return x.to(getattr(sys.modules["torch"], dtype))
    xp = namespace(library)
    if library not in ("numpy", "cupy", "jax"):
        return xp.astype(x, getattr(xp, dtype))
    if library == "jax" and not sys.modules["jax"].config.jax_enable_x64:
        dtype = "float32"
    with np.errstate(invalid="ignore"):  # a NaN that signals
        return x.astype(dtype)


def all_reduce(x: Any, operation: str, /, *, group: Any = None) -> Any:
    """``x`` combined elementwise over the processes of a torch.distributed group: "MIN", "MAX" or "SUM".

    Every process must pass the same shape and precision. The result has the library and device of ``x``; what is exchanged
    is a copy, on the GPU for NCCL and on the CPU otherwise.
    """
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        raise RuntimeError(
            "all_reduce() needs a process group; call torch.distributed.init_process_group(...) in every process first."
        )
    array_kind = array_kind_of(x)
    tensor = x.detach() if array_kind.library == "torch" else sys.modules["torch"].from_numpy(np.array(to_numpy(x)[0]))
    on_gpu = "nccl" in distributed.get_backend(group)
    device = ("cuda" if tensor.device.type == "cpu" else tensor.device) if on_gpu else "cpu"
    exchanged = tensor.to(device, copy=True).contiguous()
    distributed.all_reduce(exchanged, op=getattr(distributed.ReduceOp, operation), group=group)
    return exchanged.to(tensor.device) if array_kind.library == "torch" else array_kind.restore(exchanged.cpu().numpy())


def short_repr(x: Any, /) -> str:
    """The ``repr`` of a dataclass with each array as its dtype and shape, and anything else that is long by its size.

    To use it, write ``__repr__ = short_repr`` in the class.
    """
    shown = (f"{field.name}={_shown(getattr(x, field.name))}" for field in fields(x) if field.repr)
    return f"{type(x).__name__}({', '.join(shown)})"


def _shown(value: Any) -> str:
    kind, shape, dtype = type(value).__name__, getattr(value, "shape", ()), getattr(value, "dtype", None)
    if shape != () and dtype is not None:
        return f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    return f"{kind} of {len(value)}" if isinstance(value, Sized) else f"{kind}(...)"
