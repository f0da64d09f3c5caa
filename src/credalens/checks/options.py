"""Options of callers: numbers, names, budgets and packages; and how messages show what came."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np


def count_text(number: int, word: str, plural: str = "", /) -> str:
    """A number of things; ``plural`` where it is not the word and an s.

    >>> count_text(1, "run"), count_text(3000, "run"), count_text(0, "class", "classes")
    ('1 run', '3,000 runs', '0 classes')
    """
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"


T = TypeVar("T")
# Control characters, marks that reverse the direction of text, line separators, and halves of characters, which are what
# Python makes of bytes in a file's name that are no text; and what XML forbids, on which the drawing of a chart aborts.
UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def escaped(text: object, /, *, keep: str = "") -> str:
    r"""``text`` with every character that would steer a terminal, but those of ``keep``, written out as in JSON.

    >>> print(escaped("red \x1b[31m"))
    red \u001b[31m
    """
    return UNSAFE.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", str(text))


def escaped_names(named: Mapping[Any, T], what: str, /) -> dict[str, T]:
    r"""The same under names that are ``escaped``; an error where two names then are one.

    >>> escaped_names({"a\x00": 1, "b": 2}, "a data set")
    {'a\\u0000': 1, 'b': 2}
    """
    names: dict[str, T] = {}
    for name, value in named.items():
        text = escaped(name)
        if text in names:
            raise ValueError(
                f"{text!r} is the name of {what} twice, once control characters are written out; rename one."
            )
        names[text] = value
    return names


TELEMETRY: Final = {"mlflow": ("MLFLOW_DISABLE_TELEMETRY", "true"), "onnxruntime": ("ORT_DISABLE_TELEMETRY", "1")}
"""The environment variable that stops a package from sending statistics, and its value; read when the package is imported."""


@contextmanager
def needing(package: str, /, *, part: str, extra: str) -> Iterator[None]:
    """Reword the error of an import inside the block that fails because ``package``, or a module of it, does not exist.

    The telemetry of the package is switched off before the import.

    >>> with needing("no_such_package", part="credalens.example", extra="example"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: credalens.example needs no_such_package, which is missing or too old: pip install 'credalens[example]'
    """
    if package in TELEMETRY:
        variable, value = TELEMETRY[package]
        os.environ[variable] = value
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f"{part} needs {package}, which is missing or too old: pip install 'credalens[{extra}]'"
        ) from error


MOST_BINS: Final = 10_000
LARGEST = 2**63 - 1  # what kernels count to


def check_real(value: Any, name: str, expected: str, /) -> float:
    """A real number as a float, for which kernels are compiled; infinite if it is too large for one."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be {expected}; got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_text(value: Any, /) -> str:
    """A number in an error message, also if Python refuses to print all its digits."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def check_strings(values: Any, name: str, item: str, /, *, example: str) -> tuple[str, ...]:
    """Strings of a list: a lone string is no list of its letters. Errors do not show the strings, which may be secret."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of strings, such as [{example!r}]; got a {type(values).__name__}.")
    strings = tuple(values)
    for index, value in enumerate(strings):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of strings; {item} {index} is a {type(value).__name__}.")
        faults = {
            "is empty": not value,
            "begins or ends with white space": value != value.strip(),
            "holds a control character": any(ord(character) < 32 or ord(character) == 127 for character in value),
            "is not valid Unicode": any(0xD800 <= ord(character) < 0xE000 for character in value),
        }
        if fault := next((fault for fault, is_so in faults.items() if is_so), ""):
            raise ValueError(f"{name} must be strings that a request can hold; {item} {index} {fault}.")
    return strings


def check_base(base: float, /) -> float:
    """The logarithm's base as a float: finite and above 1."""
    such_as = "such as 2 (bits) or math.e (nats)"
    number = check_real(base, "base", f"a number above 1, {such_as}")
    return _within(1 < number < math.inf, number, base, f"base must be finite and above 1, {such_as}")


def check_same_base(base: float, fitted: float, what: str, /) -> None:
    """Refuse a prediction in ``base`` where ``what`` was fitted in another: information is compared in one unit."""
    if base != fitted:
        raise ValueError(
            f"{what} in base {fitted:g} and the prediction is in base {base:g}; use wrap(..., base={fitted:g})."
        )


def check_threads(threads: int | None, /) -> int | None:
    """A positive number of threads, or None for all cores."""
    return None if threads is None else check_count(threads, "threads")


def check_count(value: Any, name: str, /, *, least: int = 1, most: int = LARGEST) -> int:
    """An integer from ``least`` to ``most``, by default what kernels can count to."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer of at least {least}; got {value!r}.")
    if not least <= value <= most:
        bound = f"least {least}" if value < least else f"most {most}"
        raise ValueError(f"{name} must be at {bound}; got {number_text(value)}.")
    return int(value)


def check_bins(bins: Any, /) -> int:
    """A number of bins that a report can hold; more than that are empty, or hold an input each."""
    return check_count(bins, "bins", most=MOST_BINS)


def check_fraction(value: Any, name: str, /) -> float:
    """A number strictly between 0 and 1."""
    number = check_real(value, name, "a number")
    return _within(0 < number < 1, number, value, f"{name} must lie strictly between 0 and 1")


def check_trim(trim: float, /) -> float:
    """A share of the members to leave out at each end: at least 0 and below one half."""
    number = check_real(trim, "trim", "a share of the members, from 0 to below 0.5")
    rule = "trim is the share of members left out at each end, from 0 to below 0.5"
    return _within(0 <= number < 0.5, number, trim, rule)


def check_tolerance(tolerance: float, /) -> float:
    """A finite tolerance of at least zero."""
    number = check_real(tolerance, "tolerance", "a number of bits, at least 0")
    return _within(0 <= number < math.inf, number, tolerance, "tolerance must be finite and at least 0")


def _within(inside: bool, number: float, value: Any, rule: str) -> float:
    if not inside:
        raise ValueError(f"{rule}; got {number_text(value)}.")
    return number


def check_temperatures(temperatures: Any, /) -> tuple[float, ...]:
    """Positive, finite numbers."""
    values = tuple(check_real(t, "temperatures", "positive numbers") for t in temperatures)
    if not all(0 < t < math.inf for t in values):
        raise ValueError(f"temperatures must be positive and finite; got {temperatures!r}.")
    return values


def check_few_classes(classes: int, most: int, what: str) -> None:
    """Refuse work that is exponential in too many classes."""
    if classes > most:
        raise ValueError(
            f"{what} enumerates cases that grow exponentially and takes at most {most} classes; got {classes}. "
            "Merge classes first, for example with approximate_intervals."
        )


def check_choice(value: str, choices: Iterable[str], name: str) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value
