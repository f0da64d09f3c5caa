"""What is skipped on some systems exists, and nothing is skipped here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.platforms import LINUX_ONLY, POSIX_ONLY, reason_to_skip

ROOT = Path(__file__).parents[1]
NAMES = [name for table in (LINUX_ONLY, POSIX_ONLY) for names in table.values() for name in names]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_that_of_a_test(name):
    file, _, test = name.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"\ndef {test}(" in (ROOT / file).read_text("utf-8")


def test_each_system_skips_what_it_lacks():
    names = (
        "tests/storage/test_lock.py::test_a_killed_holder_is_followed_at_once",
        "tests/engines/test_x.py::test_y[1]",
    )
    skipped = {
        system: [bool(reason_to_skip(name, system)) for name in names] for system in ("linux", "darwin", "win32")
    }
    assert skipped == {"linux": [False, False], "darwin": [False, True], "win32": [True, True]}
