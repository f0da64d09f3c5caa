"""Commands on input that somebody else made: files that unfold, names that are no names."""

from __future__ import annotations

import numpy as np
import pytest

from credalens.cli import main
from credalens.storage import save_predictions
from tests.strategies import batch_of

VALUES = batch_of("mixed", 3, 40, 4)


def run(capsys, *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return left.value.code, out, err


@pytest.fixture
def compressed(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", probs=VALUES, labels=np.arange(40) % 4)
    return tmp_path / "m.npz"


def test_a_file_that_unfolds_to_more_than_the_limit(capsys, tmp_path, compressed):
    evaluate = ("evaluate", "--id", compressed, "-o", tmp_path / "report")
    score = ("score", compressed, "-o", tmp_path / "scored.npz")
    for command in (evaluate, score):
        code, out, err = run(capsys, *command, "--max-bytes", VALUES.nbytes - 1)
        assert (code, out) == (2, "")
        assert f"m.npz: its {compressed.stat().st_size:,} bytes unfold to {VALUES.nbytes:,}" in err
        assert f"--max-bytes {VALUES.nbytes})" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.npz"]
    assert run(capsys, *score, "--max-bytes", VALUES.nbytes)[0] == 0


def test_a_part_that_unfolds_to_more_than_the_limit(capsys, tmp_path):
    (tmp_path / "in").mkdir()
    save_predictions(tmp_path / "in" / "a.parquet", VALUES)
    command = ("score", tmp_path / "in", "-o", tmp_path / "out", "--max-bytes")
    code, _, err = run(capsys, *command, VALUES.nbytes - 1)
    assert code == 2
    assert f"a.parquet: its {(tmp_path / 'in' / 'a.parquet').stat().st_size:,} bytes unfold to {VALUES.nbytes:,}" in err
    assert run(capsys, *command, VALUES.nbytes)[0] == 0
