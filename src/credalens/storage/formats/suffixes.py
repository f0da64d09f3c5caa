"""Which format a file has, by its suffix, and how to word what is wrong with one."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

from credalens.checks.control_characters import escaped

ALL_FORMATS = (".npy", ".npz", ".parquet", ".safetensors")
# What the readers of the four formats raise at bytes that are not theirs.
BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    AttributeError,
    SyntaxError,
    TokenError,
    BadZipFile,
    zlib.error,
    struct.error,
)


class UnsuitableError(ValueError):
    """A file that is whole but does not hold what is wanted; ``readable`` adds its name."""


def format_of(path: Path, /, formats: Iterable[str] = ALL_FORMATS) -> str:
    """The suffix of ``path`` in lower case, one of ``formats``."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise ValueError(f"{path}: unknown format {suffix or '(no suffix)'!r}; the name must end in {_or(formats)}.")
    return suffix


def _or(choices: Iterable[str]) -> str:
    *rest, last = choices
    return f"{', '.join(rest)} or {last}" if rest else last


def source_file(path: str | os.PathLike[str], /) -> Path:
    """A file that exists and has one of the formats."""
    path = Path(path)
    format_of(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a file.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    return path


@contextmanager
def readable(path: Path, /) -> Iterator[None]:
    """Word whatever a reader says about a broken file as one sentence that names the file."""
    try:
        yield
    except UnsuitableError as error:
        raise ValueError(escaped(f"{path}: {error}")) from error
    except BROKEN as error:
        raise _broken(path, error) from error
    except OSError as error:
        _raise_faults_of_disks(error)
        raise _broken(path, error) from error
    except MemoryError as error:  # a few changed bytes can ask for gigabytes; so can a good file
        advice = "if the file is whole, read fewer rows at a time (--chunk-rows)"
        message = f"{path}: needs more memory than there is ({_reason(error)}); {advice}."
        raise OSError(errno.ENOMEM, escaped(message)) from error


@contextmanager
def restoring(path: str | os.PathLike[str], what: str, /) -> Iterator[None]:
    """Word whatever a reader says about a file that is no saved ``what``, or a damaged one, as a sentence that names it."""
    try:
        yield
    except KeyError as error:
        raise ValueError(escaped(f"{path} is not a saved {what}: {error} is missing.")) from error
    except BROKEN as error:
        raise ValueError(escaped(f"{path} is not a saved {what}: {_reason(error)}")) from error
    except OSError as error:
        _raise_faults_of_disks(error)
        raise ValueError(escaped(f"{path} is not a saved {what}: {_reason(error)}")) from error
    except MemoryError as error:  # a few changed bytes can ask for gigabytes
        raise ValueError(escaped(f"{path} is not a saved {what}: it asks for more memory than there is.")) from error


def _raise_faults_of_disks(error: OSError) -> None:
    """Where it is not an offset or bytes that make no sense."""
    if error.errno not in (None, errno.EINVAL):
        raise error


def _broken(path: Path, error: Exception) -> ValueError:
    return ValueError(
        escaped(f"{path}: cannot be read: it is damaged, cut short or of another format ({_reason(error)}).")
    )


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
