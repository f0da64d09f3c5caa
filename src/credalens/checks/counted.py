"""Numbers of things in messages."""

from __future__ import annotations


def count_text(number: int, word: str, plural: str = "", /) -> str:
    """A number of things; ``plural`` where it is not the word and an s.

    >>> count_text(1, "run"), count_text(3000, "run"), count_text(0, "class", "classes")
    ('1 run', '3,000 runs', '0 classes')
    """
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"
