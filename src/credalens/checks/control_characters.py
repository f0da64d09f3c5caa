"""Text that others wrote, made harmless for a terminal: names of files, data sets, columns and classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

T = TypeVar("T")
# Control characters, marks that reverse the direction of text, line separators, and halves of characters, which are what
# Python makes of bytes in a file's name that are no text; and what XML forbids, on which the drawing of a chart aborts.
UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def escaped(text: object, /, *, keep: str = "") -> str:
    r"""``text`` with every character that would steer a terminal, but those of ``keep``, written out as in JSON.

    >>> print(escaped("red \x1b[31m"))
    red \u001b[31m
    """
    return UNSAFE.sub(lambda found: _written_out(found[0], keep), str(text))


def _written_out(character: str, keep: str) -> str:
    return character if character in keep else f"\\u{ord(character):04x}"


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
