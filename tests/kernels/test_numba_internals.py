"""The patches of Numba: all of them work here, and kernels give the same numbers without any."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys

import numba
import pytest

from credalens.kernels.simd.jit import FINGERPRINT, OPTIONS
from credalens.kernels.simd.numba_internals import APPLIED
from credalens.kernels.simd.phi import phi_into

POINT = """
import numpy as np
from credalens.kernels.bounds import intersection_rows
low, high, point = np.array([[0.2, 0.3, 0.1]]), np.array([[0.6, 0.5, 0.3]]), np.empty((1, 3))
intersection_rows(low, high, point)
values = [x.tobytes().hex() for x in (low, high, point)]
"""

BOUNDS_AND_LEVEL = """
import numpy as np
from credalens.kernels.bounds import bounds_rows
from credalens.kernels.upper import upper_entropy_rows
p = np.random.default_rng(0).dirichlet(np.ones(11), (3, 7))
low, high, mean = np.empty((3, 7, 11))
assert bounds_rows(p, 0, 7, 1e-5, low, high, mean)
entropy, distribution = np.empty(7), np.empty((7, 11))
upper_entropy_rows(low, high, entropy, distribution)
values = [x.tobytes().hex() for x in (low, high, mean, entropy, distribution)]
"""

REPORT = """
from credalens.kernels.simd.numba_internals import APPLIED
print(len(APPLIED), *values)
"""

REFUSES_NRT = """
import numba
accepting = numba.njit
def njit(*function, **options):
    if "_nrt" in options:
        raise KeyError("Unrecognized options: _nrt")
    return accepting(*function, **options)
numba.njit = njit
"""


def patched(code):
    """The values to the last bit, from kernels of this process, which are compiled with every patch."""
    names = {}
    exec(code, names)  # noqa: S102 - ours
    return names["values"]


def numbers(cache, code, **environment):
    """(number of patches, values to the last bit) from a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", code + REPORT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | environment,
    )
    assert result.returncode == 0, result.stderr
    count, *values = result.stdout.split()
    return int(count), values


def test_every_patch_works_with_this_numba():
    assert {"no_reference_counts", "no_wrappers", "short_pipeline", "stamped_cache", "bare_load"} == APPLIED - {
        "deferred_blas"
    }
    assert OPTIONS["_nrt"] is False
    assert FINGERPRINT in phi_into._cache._cache_file._source_stamp


def test_plain_numba_gives_the_same_numbers_and_caches_nothing(tmp_path):
    assert numbers(tmp_path, BOUNDS_AND_LEVEL, CREDALENS_PLAIN_NUMBA="1") == (0, patched(BOUNDS_AND_LEVEL))
    assert not list(tmp_path.rglob("*.nbi"))


NO_CACHE_FILE = "import numba.core.caching as caching; del caching.IndexDataCacheFile.__init__"


@pytest.mark.parametrize("gone", [NO_CACHE_FILE, REFUSES_NRT], ids=["cache", "_nrt"])
def test_what_numba_no_longer_has_is_done_without(gone, tmp_path):
    count, values = numbers(tmp_path, gone + "\n" + POINT)
    assert count < 6
    assert values == patched(POINT)


def test_a_cache_of_another_version_is_not_unpickled(tmp_path):
    """Its classes may have moved: Numba compares the version first, and data files of another version are not named."""
    assert numbers(tmp_path, POINT) == (6, patched(POINT))
    names = {path.name for path in tmp_path.rglob("*.nbc")}
    for index in tmp_path.rglob("*.nbi"):
        index.write_bytes(pickle.dumps(numba.__version__) + b"cnowhere\nGone\n.")
    for data in tmp_path.rglob("*.nbc"):
        data.rename(data.with_name(re.sub(r"\.[0-9a-f]{12}\.", ".", data.name)))
    assert numbers(tmp_path, POINT) == (6, patched(POINT))
    assert names <= {path.name for path in tmp_path.rglob("*.nbc")}
