"""The pickles of CIFAR, read without running them.

A pickle is a program: it may name any function and call it. This reader knows three names, those by which NumPy
arrays are written, replaces them by stand-ins that only keep what they are given, and refuses every other.
"""

from __future__ import annotations

import pickle  # only its parser, with every global replaced or refused
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray


class _Stub:
    """Keeps the arguments of a call in the pickle; cannot be changed from inside the pickle."""

    __slots__ = ("arguments", "state")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Stub):
    """Stands for numpy.ndarray and for the function that makes an empty one."""

    def array(self) -> NDArray[Any]:
        _, shape, dtype, fortran, raw = self.state
        if not isinstance(dtype, _DType) or not isinstance(raw, bytes):
            raise TypeError("an array of objects")
        return np.frombuffer(raw, dtype.plain()).reshape(shape, order="F" if fortran else "C")


class _DType(_Stub):
    """Stands for numpy.dtype."""

    def plain(self) -> np.dtype[Any]:
        code, order = _text(self.arguments[0]), _text(self.state[1])
        if code[:1] not in tuple("biuf"):
            raise TypeError(f"an array of dtype {code!r}")
        return np.dtype(code).newbyteorder(order)  # type: ignore[arg-type]


class _Latin1(bytes):
    """Stands for the codec by which Python 3 writes bytes into an old pickle."""

    def __new__(cls, text: str = "", encoding: str = "latin1") -> _Latin1:
        return super().__new__(cls, text.encode("latin1"))

    def __setstate__(self, state: Any) -> NoReturn:
        raise TypeError("bytes have no state")


_STAND_INS: Final = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("_codecs", "encode"): _Latin1,
}


class _RefusedError(ValueError):
    pass


class _PlainUnpickler(pickle.Unpickler):
    """Builds dictionaries, lists, numbers, strings and arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise _RefusedError(f"it asks for {module}.{name}, which plain arrays do not need")
        return _STAND_INS[module, name]


def read_pickle(path: Path, /) -> dict[str, Any]:
    """The dictionary of a CIFAR pickle: arrays, lists and numbers under text keys. No code of the file runs."""
    with path.open("rb") as file:
        try:
            content = _PlainUnpickler(file, encoding="bytes").load()
            return {_text(key): _plain(value) for key, value in content.items()}
        except _RefusedError as refusal:
            raise ValueError(
                f"{path} was not read: {refusal}. The original CIFAR files hold arrays only; download the file again "
                f"from its official page"
            ) from None
        except Exception as error:
            raise ValueError(f"{path} is not a CIFAR pickle or is damaged ({error}); download it again") from error


def _text(key: Any) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)


def _plain(value: Any) -> Any:
    return value.array() if isinstance(value, _Array) else value
