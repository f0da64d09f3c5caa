"""Scoring on Ray: the same bytes as on one machine, every row exactly once whatever is lost on the way."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credalens import wrap
from credalens.engines import score_folder_on_ray
from credalens.guard import Guard
from credalens.scoring import score_folder, tables
from tests.engines.quiet import RAY_WARNINGS
from tests.engines.waiting import PATIENCE, wait_until
from tests.scoring.tables import spoil_row, write_model, write_part, write_table
from tests.strategies import batch_of

pytest.importorskip("ray", reason="Ray is not installed: pip install 'credalens[ray]'")
pytestmark = RAY_WARNINGS

VALUES = batch_of("mixed", 3, 60, 4)
SIZES = (25, 20, 15)
LONG = {"id_column": "id", "chunk_rows": 1}
MANY = 24


LOCAL = """
import json, sys
from credalens.scoring import score_folder
sources, target, options = map(json.loads, sys.argv[1:])
print(json.dumps(score_folder(sources, target, threads=1, **options).as_dict()))
"""


def score_apart(sources, target, **options) -> dict:
    """The local engine in a process of its own, as the workers of Ray are."""
    given = [json.dumps(value, default=str) for value in (sources, target, options)]
    done = subprocess.run([sys.executable, "-c", LOCAL, *given], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def parts(folder) -> list:
    return sorted(folder.glob("part-*.parquet"))


def assert_same_bytes(folder, expected) -> None:
    assert [path.name for path in parts(folder)] == [path.name for path in parts(expected)]
    for path in parts(folder):
        assert path.read_bytes() == (expected / path.name).read_bytes(), path.name
    assert not list(folder.glob(".*"))


@pytest.fixture(scope="module")
def long_table(tmp_path_factory, compiled):
    """Four parts that take about a second each when scored row by row, and their output."""
    folder = tmp_path_factory.mktemp("long")
    values = batch_of("mixed", 3, 100, 4).repeat(40, axis=1)
    write_table(folder / "in", values, [1000] * 4, ids=pa.array(np.arange(4000)))
    score_apart(folder / "in", folder / "expected", **LONG)
    return folder / "in", folder / "expected"


def test_the_same_bytes_as_on_one_machine(tmp_path, machine):
    write_table(tmp_path / "in", VALUES, SIZES)
    options = {"base": 10, "rule": "interval_dominance", "chunk_rows": 7}
    expected = score_apart(tmp_path / "in", tmp_path / "expected", **options)
    heard = []
    summary = score_folder_on_ray(tmp_path / "in", tmp_path / "out", **options, progress=lambda *x: heard.append(x))
    assert_same_bytes(tmp_path / "out", tmp_path / "expected")
    assert summary.scores.means == expected["means"]
    assert (summary.parts, summary.scores.rows, summary.retries, summary.skipped) == (3, 60, 0, ())
    assert summary.workers == 1
    assert summary.rows_a_second > 0
    assert heard == [("parts", done, 3) for done in range(4)]
    again = score_folder_on_ray(tmp_path / "in", tmp_path / "out", **options)
    assert (again.resumed_parts, again.workers) == (3, 0)


def test_a_large_file_and_a_guard_give_the_same_bytes_too(tmp_path, machine, monkeypatch):
    """The driver cuts the file at its row groups, here of seven rows."""
    monkeypatch.setattr(tables, "PART_BYTES", VALUES[:, :20].nbytes)
    write_part(tmp_path / "in.parquet", VALUES.transpose(1, 0, 2))
    options = {"threads": 1, "guard": Guard.fit(wrap(VALUES), score="mean_total")}
    score_folder(tmp_path / "in.parquet", tmp_path / "expected", **options)
    assert score_folder_on_ray(tmp_path / "in.parquet", tmp_path / "out", **options).parts == 3
    for path in sorted((tmp_path / "expected").glob("in-*.parquet")):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("workers", [None, 1])
def test_the_cluster_is_the_limit_where_none_is_asked_for(tmp_path, monkeypatch, machine, workers):
    import ray.data

    context, asked = ray.data.DataContext.get_current(), []
    pool = ray.data.TaskPoolStrategy
    monkeypatch.setattr("ray.data.TaskPoolStrategy", lambda size: asked.append(size) or pool(size=size))
    monkeypatch.setattr(context, "op_resource_reservation_enabled", True)
    monkeypatch.setattr(context, "execution_no_progress_timeout_s", 17.0)
    write_table(tmp_path / "in", VALUES, SIZES)
    summary = score_folder_on_ray(tmp_path / "in", tmp_path / "out", workers=workers)
    assert (summary.parts, asked) == (3, [workers])
    assert (context.op_resource_reservation_enabled, context.execution_no_progress_timeout_s) == (True, 17.0)


def test_several_tables_and_bad_parts(tmp_path, machine):
    ids = pa.array(np.arange(60))
    cut = np.split(np.arange(60), 3)
    for number, places in enumerate([cut, cut, [np.arange(60)[::-1]]]):
        write_model(tmp_path / f"model-{number}", VALUES[number], ids, places)
    models = [tmp_path / f"model-{number}" for number in range(3)]
    score_apart(models, tmp_path / "expected")
    score_folder_on_ray(models, tmp_path / "out")
    assert_same_bytes(tmp_path / "out", tmp_path / "expected")

    write_table(tmp_path / "in", VALUES, SIZES)
    spoil_row(tmp_path / "in" / "part-1.parquet", 11)
    damaged = tmp_path / "in" / "part-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-30])
    with pytest.raises(
        ValueError, match=r"part-1.parquet: row 11, member 0: it sums to 2|part-2.parquet: cannot be read"
    ):
        score_folder_on_ray(tmp_path / "in", tmp_path / "strict", on_error="fail")
    summary = score_folder_on_ray(tmp_path / "in", tmp_path / "lenient", on_error="skip")
    assert [skipped.error.split(" ")[0].rpartition("/")[2] for skipped in summary.skipped] == [
        "part-1.parquet:",
        "part-2.parquet:",
    ]
    assert "row 11" in summary.skipped[0].error
    assert [path.name for path in parts(tmp_path / "lenient")] == ["part-0.parquet"]


def test_what_was_handed_over_is_taken_back_after_an_error(tmp_path, machine, long_table):
    shutil.copytree(long_table[0], tmp_path / "in")
    for more in range(4, MANY):
        shutil.copy(tmp_path / "in" / "part-1.parquet", tmp_path / "in" / f"part-{more}.parquet")
    spoil_row(tmp_path / "in" / "part-0.parquet", 3)
    with pytest.raises(ValueError, match=r"part-0.parquet: row 3"):
        score_folder_on_ray(tmp_path / "in", tmp_path / "strict", **LONG)
    done = len(parts(tmp_path / "strict"))  # few, unless the driver heard late of the error
    write_table(tmp_path / "other", VALUES, SIZES)
    score_folder_on_ray(tmp_path / "other", tmp_path / "out")  # on the only CPU, after all that still waited for it
    assert len(parts(tmp_path / "strict")) <= max(done + 1, MANY - 2)  # one was at work


def test_a_full_disk_ends_the_job_whatever_is_skipped(tmp_path, machine):
    write_table(tmp_path / "in", VALUES, SIZES)
    score_folder(tmp_path / "in", tmp_path / "out")
    (tmp_path / "out" / "part-1.parquet").unlink()
    (tmp_path / "out" / "part-1.parquet").mkdir()  # a file cannot take this name, on any worker
    with pytest.raises(OSError, match=r"scoring .*part-1.parquet.*2 of 3 parts are kept"):
        score_folder_on_ray(tmp_path / "in", tmp_path / "out", on_error="skip")


def test_a_machine_lost_at_work_costs_no_row_and_doubles_none(tmp_path, doomed, long_table):
    source, expected = long_table
    out, found = tmp_path / "out", []
    job = threading.Thread(target=lambda: found.append(score_folder_on_ray(source, out, **LONG)), daemon=True)
    job.start()
    wait_until(lambda: parts(out) and any(out.glob(".*.partial")))
    doomed()
    assert len(parts(out)) < 4
    job.join(PATIENCE)
    [summary] = found
    assert_same_bytes(out, expected)
    ids = pa.concat_tables(pq.read_table(path, columns=["id"]) for path in parts(out))["id"]
    assert ids.to_pylist() == list(range(4000))
    assert (summary.scores.rows, summary.parts) == (4000, 4)
    assert summary.retries >= 1


def command(source, target, *options: object) -> list[str]:
    fixed = ["--id", "id", "--chunk-rows", "1", "--json", "--engine", "ray"]
    return [sys.executable, "-m", "credalens.cli", "score", source, "-o", target, *fixed, *map(str, options)]


def test_a_killed_driver_goes_on_from_the_complete_parts(tmp_path, cluster, machine, long_table):
    source, expected = long_table
    run = command(source, tmp_path / "out", "--address", cluster.address)
    driver = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: parts(tmp_path / "out") or driver.poll() is not None)
    driver.send_signal(signal.SIGKILL)
    assert driver.wait(PATIENCE) == -signal.SIGKILL
    done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=PATIENCE)
    summary = json.loads(done.stdout)
    assert done.stderr == ""
    assert 1 <= summary["resumed_parts"] < 4
    assert (summary["rows"], summary["parts"]) == (4000, 4)
    assert_same_bytes(tmp_path / "out", expected)


def test_a_ray_of_its_own_is_quiet_and_gone_afterwards(tmp_path):
    write_table(tmp_path / "in", VALUES, SIZES, ids=pa.array(np.arange(60)))
    score_apart(tmp_path / "in", tmp_path / "expected", **LONG)
    run = command(tmp_path / "in", tmp_path / "out", "--workers", 1)
    done = subprocess.run(run, capture_output=True, text=True, check=True, timeout=PATIENCE)
    summary = json.loads(done.stdout)
    assert done.stderr == ""
    assert (summary["rows"], summary["workers"], summary["retries"]) == (60, 1, 0)
    assert_same_bytes(tmp_path / "out", tmp_path / "expected")


@pytest.mark.parametrize(("address", "message"), [("127.0.0.1:1", "no Ray cluster answers at"), ("mars", "HOST:PORT")])
def test_a_wrong_address_is_an_error_at_once(tmp_path, monkeypatch, address, message):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises((ConnectionError, ValueError), match=message):
        score_folder_on_ray(tmp_path, tmp_path / "out", address=address)


def test_more_threads_than_any_machine_has_are_refused_at_once(tmp_path, machine):
    write_table(tmp_path / "in", VALUES, SIZES)
    with pytest.raises(ValueError, match=r" 99 CPUs for --threads; the largest has 1\."):
        score_folder_on_ray(tmp_path / "in", tmp_path / "out", threads=99)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [{"workers": 0}, {"threads": 0}])
def test_bad_options_are_refused_before_ray_is_asked(tmp_path, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be at least 1"):
        score_folder_on_ray(tmp_path, tmp_path / "out", **options)
