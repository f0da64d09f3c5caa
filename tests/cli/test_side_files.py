"""Files beside the predictions: whatever is in them, a sentence that names the file, or what they hold; and little memory."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credalens.checks.arrays import read_columns
from credalens.cli.side_files import read_class_names, read_groups, read_images, without_folders

PICTURES = {"id": np.arange(48, dtype=np.uint8).reshape(4, 3, 4), "ood": np.zeros((2, 3, 4, 3), np.float32)}
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_pictures_come_back(tmp_path, save):
    save(tmp_path / "p.NPZ.npz", **PICTURES)
    found = read_images(tmp_path / "p.NPZ.npz")
    assert found.keys() == PICTURES.keys()
    assert all(np.array_equal(found[name], PICTURES[name]) for name in PICTURES)
    np.save(tmp_path / "p.npy", np.asfortranarray(PICTURES["id"]))
    assert np.array_equal(read_images(tmp_path / "p.npy"), PICTURES["id"])


def write_bomb(path, rows):
    """A few megabytes that unfold to so many of zeros, and say so truly."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("id.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (rows, 1 << 10, 1 << 10)}
        )
        for _ in range(rows):
            file.write(bytes(1 << 20))


def test_pictures_that_unfold_to_more_than_the_limit_are_refused_before_they_are_read(tmp_path):
    write_bomb(tmp_path / "bomb.npz", 1025)
    script = """
import resource, sys
from pathlib import Path
from credalens.cli.side_files import read_images
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), taken + (1 << 30)))
try:
    read_images(Path(sys.argv[1]))
except ValueError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "bomb.npz"], capture_output=True, text=True, check=True
    )
    said = run.stdout
    assert said.startswith(f"--images {tmp_path / 'bomb.npz'}: its ")
    assert f"unfold to {1025 << 20:,}, and the limit is {1 << 30:,}" in said
    np.savez_compressed(tmp_path / "p.npz", **PICTURES)
    with pytest.raises(ValueError, match="--max-bytes 336"):
        read_images(tmp_path / "p.npz", max_bytes=335)
    read_images(tmp_path / "p.npz", max_bytes=336)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: it is damaged"),
        (b"site\xff\na\n", "is not UTF-8 text"),
        (b"site\n" + b"a" * 131_073 + b"\n", r"line 2 cannot be read \(field larger than field limit \(131072\)\)"),
        (b'site\n"' + b"a\n" * 70_000, "cannot be read .* is a quotation mark open"),
        (b"site,site\na,b\n", "must name every column, each once"),
        (b"site\na,b\n", "line 2 has 2 values for 1 column"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(tmp_path, content, message):
    path = tmp_path / ("g.csv" if content else "g.parquet")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"--groups .*{path.name}: .*{message}"):
        read_groups(path)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "g.parquet"
    table = pa.table(
        {
            "site": ["a", "b", None, "a"],
            "n": [1, 2, 3, None],
            "share": [0.5, 1.0, 2.0, 3.0],
            "raw": [b"a", b"\xff", None, b""],
        }
    )
    pq.write_table(table, path, write_page_checksum=True)
    return path, table.to_pydict()


def test_columns_come_back_as_python_has_them(parquet):
    path, columns = parquet
    assert read_groups(path) == columns
    assert {name: list(of) for name, of in read_columns(read_groups(path), 4).items()} == {
        "site": ["a", "b", "None", "a"],
        "n": ["1", "2", "3", "None"],
        "share": ["0.5", "1.0", "2.0", "3.0"],
        "raw": ["a", r"\xff", "None", ""],
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255), cut=st.booleans())
def test_any_damage_to_a_table_gives_its_columns_or_an_error_that_names_it(
    parquet, tmp_path_factory, place, change, cut
):
    content = bytearray(parquet[0].read_bytes())
    at = int(place * len(content))
    if cut:
        del content[at:]
    else:
        content[at] ^= change
    path = tmp_path_factory.mktemp("damaged") / "damaged.parquet"
    path.write_bytes(content)
    try:
        columns = read_groups(path)
    except ValueError as error:
        assert f"--groups {path}: " in str(error)  # noqa: PT017
    else:
        assert isinstance(columns, dict)


def test_a_table_that_unfolds_to_more_than_the_limit_is_refused(tmp_path):
    pq.write_table(pa.table({"site": pa.array(np.zeros(30_000_000, np.int8))}), tmp_path / "g.parquet")
    with pytest.raises(ValueError, match=r"--groups .*g\.parquet: its .* the limit is"):
        read_groups(tmp_path / "g.parquet")


def test_lists_are_no_values(tmp_path):
    pq.write_table(pa.table({"site": [["a"], ["b", "c"]]}), tmp_path / "g.parquet")
    with pytest.raises(ValueError, match=r"g\.parquet: column 'site' holds lists"):
        read_groups(tmp_path / "g.parquet")


def test_a_long_text_that_repeats_is_kept_once(tmp_path):
    text = "a" * 100_000
    pq.write_table(pa.table({"site": [text, "b"] * 2000}), tmp_path / "g.parquet")
    values = read_groups(tmp_path / "g.parquet")["site"]
    assert len({id(value) for value in values}) == 2
    assert read_columns({"site": values}, 4000)["site"].nbytes == 4000 * 8


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_byte_order_mark_belongs_to_no_name(tmp_path, end):
    (tmp_path / "c.txt").write_bytes(end.join([f"{BOM}cat", "dog", ""]).encode())
    assert read_class_names(tmp_path / "c.txt", 2) == ["cat", "dog"]
    (tmp_path / "g.csv").write_bytes(end.join([f"{BOM}site,month", "a,1", ""]).encode())
    assert read_groups(tmp_path / "g.csv") == {"site": ["a"], "month": ["1"]}


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["--id", "/home/me/t.npz", "-o", "out"], ["--id", "t.npz", "-o", "out"]),
        (["--ood", "svhn=/data/s.npz", "--model=a=b/c/"], ["--ood", "svhn=s.npz", "--model=a=c"]),
        (["--title", "1/2 a=b/c", "--name=x/y"], ["--title", "1/2 a=b/c", "--name=x/y"]),
        (["-o/home/me/out", "--seed", "3", "../..", "/"], ["-oout", "--seed", "3", "..", "/"]),
    ],
)
def test_a_command_is_told_without_folders(typed, kept):
    assert without_folders(typed) == kept
