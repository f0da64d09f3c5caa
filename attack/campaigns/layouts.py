"""The same numbers in other dtypes, memory layouts and array libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect, expect_close, expect_same
from attack.ensembles import ensemble

FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
NARROW = {"float16": 2.0**-11, "float32": 2.0**-24, "bfloat16": 2.0**-9}
TOLERANCE = 2.0**-20  # of a float32 result


def attack(case: Case) -> None:
    """Dtypes, strides, byte orders, read-only memory, threads, torch and array_api_strict give the same numbers."""
    probs = ensemble(case, rows=case.between(1, 6), classes=(2, case.choose(6, 40)))
    dtype = case.choose("float64", "float32", "float16", "bfloat16")
    if dtype == "bfloat16":
        return _check_bfloat16(case, probs)
    narrow = probs.astype(dtype)
    plain = credalens.wrap(narrow, threads=1)
    _check_precision(plain, narrow)
    names = [name for name in LAYOUTS if dtype != "float16" or "strict" not in name]  # the standard has no float16
    for name in case.rng.choice(names, 3, replace=False):
        given, options = LAYOUTS[str(name)](narrow)
        _check_same(str(name), plain, given, options)
    _check_batches(case, plain, narrow)
    return _check_torch(case, plain, narrow)


def _strided(p: NDArray) -> NDArray:
    wide = np.full(tuple(2 * size for size in p.shape), np.nan, p.dtype)
    wide[::2, 1::2, ::2] = p
    return wide[::2, 1::2, ::2]


def _reversed(p: NDArray) -> NDArray:
    return np.ascontiguousarray(p[::-1, ::-1, ::-1])[::-1, ::-1, ::-1]


def _read_only(p: NDArray) -> NDArray:
    copy = p.copy()
    copy.flags.writeable = False
    return copy


def _unaligned(p: NDArray) -> NDArray:
    memory = np.zeros(p.nbytes + 1, np.uint8)
    view = memory[1:].view(p.dtype).reshape(p.shape)
    view[...] = p
    return view


def _strict(p: NDArray) -> Any:
    import array_api_strict

    return array_api_strict.asarray(p)


Layout = Callable[[NDArray], tuple[Any, dict[str, Any]]]
LAYOUTS: dict[str, Layout] = {
    "Fortran order": lambda p: (np.asfortranarray(p), {}),
    "strides": lambda p: (_strided(p), {}),
    "negative strides": lambda p: (_reversed(p), {}),
    "read-only": lambda p: (_read_only(p), {}),
    "unaligned": lambda p: (_unaligned(p), {}),
    "other byte order": lambda p: (p.astype(p.dtype.newbyteorder()), {}),
    "member_axis=1": lambda p: (np.moveaxis(p, 0, 1), {"member_axis": 1}),
    "member_axis=-2": lambda p: (np.ascontiguousarray(np.moveaxis(p, 0, 1)), {"member_axis": -2}),
    "a list of members": lambda p: (list(p), {}),
    "two threads": lambda p: (p, {"threads": 2}),
    "array_api_strict": lambda p: (_strict(p), {}),
}


def _check_same(name: str, plain: Any, given: Any, options: dict[str, Any]) -> None:
    before = np.array(given, copy=True) if isinstance(given, np.ndarray) else None
    result = credalens.wrap(given, **options)
    for field in FIELDS:
        value = getattr(result, field)
        expect_same(f"{name}: {field}", np.from_dlpack(value) if "strict" in name else value, getattr(plain, field))
    for part in ("total", "aleatoric", "epistemic"):
        value, truth = np.asarray(getattr(result.classical, part)), np.asarray(getattr(plain.classical, part))
        expect_close(
            f"{name}: classical.{part}", value, truth, tolerance=TOLERANCE * 1e-6 if value.dtype == float else TOLERANCE
        )
    expect_close(f"{name}: hartley", np.asarray(result.hartley), np.asarray(plain.hartley), tolerance=TOLERANCE)
    if before is not None:
        expect_same(f"{name}: the input was changed", given, before)


def _check_precision(plain: Any, narrow: NDArray) -> None:
    """Narrow input is computed in float64 and rounded once."""
    p = narrow.astype(np.float64)
    exact = credalens.wrap(p / p.sum(axis=-1, keepdims=True))
    wanted = np.dtype(np.float64 if narrow.dtype == np.float64 else np.float32)
    for field in FIELDS:
        value = getattr(plain, field)
        expect(value.dtype == wanted, f"{field} of {narrow.dtype} has dtype {value.dtype}")
        tolerance = 1e-11 if wanted == np.float64 else TOLERANCE
        expect_close(f"{narrow.dtype}: {field}", value, getattr(exact, field), tolerance=tolerance)


def _check_batches(case: Case, plain: Any, narrow: NDArray) -> None:
    """Other batch shapes, none among them, give the same rows."""
    members, rows, classes = narrow.shape
    batch = case.choose((rows, 1), (1, rows, 1), (1, 1, 1, rows))
    result, empty = credalens.wrap(narrow.reshape(members, *batch, classes)), credalens.wrap(narrow[:, :0])
    for field in FIELDS:
        value, truth = getattr(result, field), getattr(plain, field)
        expect_same(f"batch {batch}: {field}", value, truth.reshape(*batch, *truth.shape[1:]))
        expect_same(f"no rows: {field}", getattr(empty, field), truth[:0])
    row = credalens.wrap(narrow[:, 0])
    for field in FIELDS:
        expect_same(f"no batch: {field}", getattr(row, field), getattr(plain, field)[0])


def _check_torch(case: Case, plain: Any, narrow: NDArray) -> None:
    import torch

    tensor = torch.from_numpy(narrow)
    if case.between(0, 1):
        tensor = tensor.transpose(0, 2).contiguous().transpose(0, 2).requires_grad_()
    result = credalens.wrap(tensor)
    for field in FIELDS:
        value = getattr(result, field)
        expect(isinstance(value, torch.Tensor), f"torch: {field} is {type(value).__name__}")
        expect_same(f"torch: {field}", value.detach().numpy(), getattr(plain, field))


def _check_bfloat16(case: Case, probs: NDArray) -> None:
    import torch

    tensor = torch.from_numpy(probs).to(torch.bfloat16)
    p = tensor.double().numpy()
    exact = credalens.wrap(p / p.sum(axis=-1, keepdims=True))
    result = credalens.wrap(tensor)
    for field in FIELDS:
        value = getattr(result, field)
        expect(value.dtype == torch.float32, f"bfloat16: {field} has dtype {value.dtype}")
        expect_close(f"bfloat16: {field}", value.numpy(), getattr(exact, field), tolerance=TOLERANCE)
