"""Pickles are read without running what they ask for: every name but those of plain arrays is refused."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens_paper.data import load_images
from credalens_paper.data.layouts import read_pickle
from reproduction.tests.data.image_files import pickled2


class Malicious:
    """Unpickled by the usual reader this runs a command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_pickle_that_runs_code_is_refused_and_not_run(tmp_path, protocol):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    trace = tmp_path / "it_ran"
    harmful = pickle.dumps({b"data": Malicious(f"touch {trace}"), b"labels": []}, protocol=protocol)
    (folder / "test_batch").write_bytes(harmful)
    with pytest.raises(ValueError, match=r"test_batch was not read: it asks for (posix|nt)\.system"):
        load_images("cifar10", tmp_path)
    assert not trace.exists()
    pickle.loads(harmful)  # noqa: S301  # to show that the file would have run
    assert trace.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"cbuiltins\neval\n(S'1+1'\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"ccredalens.paper.data.pickles\nread_pickle\n.",
        b"(ios\nsystem\nS'true'\n.",
        b"cos\nsystem\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    ],
)
def test_every_other_name_is_refused(tmp_path, body):
    (tmp_path / "file").write_bytes(body)
    with pytest.raises(ValueError, match=r"was not read: it asks for [\w.]+"):
        read_pickle(tmp_path / "file")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not a pickle",
        pickled2({b"data": b"x"})[:-4],
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": np.array([{}, None])}, protocol=2),
        pickle.dumps({b"data": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])}, protocol=2),
        b"cnumpy\nndarray\n}b.",  # state for the class itself
        b"c_codecs\nencode\n(Vx\nVhex\ntRN}(S'a'\nK\x01u\x86b.",
        b"\x80\x02}(T\x04\x00\x00\x00datacnumpy\nndarray\n)R(K\x01K\x02tbu.",
    ],
)
def test_damaged_or_strange_pickles_are_refused(tmp_path, body):
    (tmp_path / "file").write_bytes(body)
    with pytest.raises(ValueError, match=r"is not a CIFAR pickle or is damaged .*download it again"):
        read_pickle(tmp_path / "file")


@given(st.binary(max_size=60))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_bytes_give_anything_but_a_dictionary_or_a_value_error(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes(b"\x80\x02}(" + body + b"u.")
    try:
        content = read_pickle(path)
    except ValueError:
        return
    assert isinstance(content, dict)
