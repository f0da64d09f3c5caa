"""How many bytes a compressed file may unfold to: a few can stand for any number, more than there is memory."""

from __future__ import annotations

from typing import Final

from credalens.storage.formats.suffixes import UnsuitableError

ANY_FILE: Final = 1 << 30
TIMES_ITS_SIZE: Final = 100


def check_unfolded(needed: int, size: int, max_bytes: int | None, /) -> None:
    """Refuse a file of ``size`` bytes whose values take ``needed`` bytes in memory, before any of them is read.

    The limit is ``max_bytes``; by default one GiB, or 100 times the size of the file where that is more.
    """
    limit = max(ANY_FILE, TIMES_ITS_SIZE * size) if max_bytes is None else max_bytes
    if needed > limit:
        raise UnsuitableError(
            f"its {size:,} bytes unfold to {needed:,}, and the limit is {limit:,}: such a file can be made to fill the memory. "
            f"If you trust it, read it with max_bytes={needed} (--max-bytes {needed})."
        )
