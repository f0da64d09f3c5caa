"""Local engine against Ray with one and two workers, on the same folder, in turn: `python benchmarks/ray_scaling.py`.

Every run is a process of its own that scores the folder from nothing. Reported are seconds of work, seconds that workers
spent on parts, and the ratios within each round, so that a busy machine moves both sides alike. The work of a Ray run is
the whole call of `score_folder_on_ray` on a Ray that has as many CPUs as there are workers and was started just before:
planning, importing Ray Data, its actors, loading credalens on the workers, all parts, the summary. Starting that Ray is
reported apart. Two local processes at once on half of the parts each show what two cores of the machine can give. The same
parts several times over show what remains of the seconds that do not grow with the rows; so does the same job, by address,
on a cluster that is running and has run one before. Writes results/ray_scaling.json.
Workers of Ray are nice to other processes: measure with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

SHAPES = ((5, 10, 1_000_000), (20, 10, 400_000), (5, 100, 200_000), (5, 1000, 20_000))

RUN = """
import json, sys, time
source, target, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
address = sys.argv[4] if sys.argv[4:] else None
from credalens.scoring import score_folder
begin = time.perf_counter()
if workers == 0:
    summary = score_folder(source, target, threads=1)
    started = begin
else:
    from credalens.engines import score_folder_on_ray
    from credalens.engines.cluster import ray_cluster
    with ray_cluster(address, workers=workers):
        started = time.perf_counter()
        summary = score_folder_on_ray(source, target)
        ended = time.perf_counter()
ended = time.perf_counter() if workers == 0 else ended
print(json.dumps({"start": started - begin, "work": ended - started, "busy": summary.scores.rows / summary.rows_a_second}))
"""

WRITE = """
import sys
from pathlib import Path
import numpy as np
from credalens.storage import save_predictions
folder, rows, parts, members, classes = Path(sys.argv[1]), *map(int, sys.argv[2:])
folder.mkdir()
for part in range(parts):
    rng = np.random.default_rng(part)
    logits = rng.normal(size=(1, rows // parts, classes)) * 3 + rng.normal(size=(members, rows // parts, classes))
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    save_predictions(folder / f"part-{part:04d}.parquet", (odds / odds.sum(-1, keepdims=True)).astype(np.float32))
"""


def python(code: str, *args: object) -> str:
    """Run a piece of Python in a process of its own."""
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True
    )
    return done.stdout


@contextmanager
def running_cluster(folder: Path, workers: int) -> Iterator[str]:
    """The address of a cluster of one machine that has run a job of Ray Data's before, whose actors stay with it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": workers, "include_dashboard": False})
    try:
        python(RUN, folder / "few", folder / "first", workers, cluster.address)
        yield cluster.address
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
        shutil.rmtree(folder / "first", ignore_errors=True)


def two_at_once(folder: Path) -> float:
    """Seconds of two local runs side by side, each on half of the parts: what two cores of this machine give at best."""
    runs = [
        subprocess.Popen(  # noqa: S603  (our own code)
            [sys.executable, "-c", RUN, folder / half, folder / f"out-{half}", "0"], stdout=subprocess.PIPE, text=True
        )
        for half in ("even", "odd")
    ]
    return max(json.loads(run.communicate()[0])["work"] for run in runs)


def halve(folder: Path) -> None:
    """The parts of the input in two folders, without a copy."""
    for number, path in enumerate(sorted((folder / "in").glob("*.parquet"))):
        half = folder / ("odd" if number % 2 else "even")
        half.mkdir(exist_ok=True)
        (half / path.name).hardlink_to(path)


def repeat(folder: Path, times: int) -> None:
    """The parts of the input, each under several names, in one folder, without a copy."""
    (folder / "longer").mkdir()
    for turn in range(times):
        for path in (folder / "in").glob("*.parquet"):
            (folder / "longer" / f"{turn}-{path.name}").hardlink_to(path)


def size_of(folder: Path) -> int:
    """Bytes of all Parquet files."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def main() -> None:
    """Measure, print the ratios, write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=3, help="how often the longer input repeats the parts")
    parser.add_argument("--out", type=Path, default=Path("results/ray_scaling.json"))
    asked = parser.parse_args()
    shape = {name: getattr(asked, name) for name in ("rows", "parts", "members", "classes")}
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), asked.rounds, asked.times, **shape)
    asked.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(asked.out.read_text())


def measure(folder: Path, rounds: int, times: int, *, rows: int, parts: int, members: int, classes: int) -> dict:
    """All rounds on one input, after one on a small part of it that compiles and warms what is to be warm."""
    python(WRITE, folder / "in", rows, parts, members, classes)
    (folder / "few").mkdir()
    shutil.copy(next((folder / "in").glob("*.parquet")), folder / "few")
    for workers in (0, 1, 2):
        python(RUN, folder / "few", folder / f"warm-{workers}", workers)
    halve(folder)
    repeat(folder, times)
    found: list[dict] = []
    engines = [("local", 0), ("ray_1", 1), ("ray_2", 2)]
    for turn in range(rounds):
        one = {"load": os.getloadavg()[0]}
        for name, workers in engines[turn % 3 :] + engines[: turn % 3]:  # nobody is always first
            os.sync()
            one[name] = json.loads(python(RUN, folder / "in", folder / "out", workers))
            bytes_out = size_of(folder / "out")
            shutil.rmtree(folder / "out")
        for workers in (1, 2) if turn % 2 else (2, 1):
            os.sync()
            one[f"longer_{workers}"] = json.loads(python(RUN, folder / "longer", folder / "out", workers))
            shutil.rmtree(folder / "out")
        for workers in (1, 2) if turn % 2 else (2, 1):
            with running_cluster(folder, workers) as address:
                os.sync()
                one[f"running_{workers}"] = json.loads(python(RUN, folder / "in", folder / "out", workers, address))
            shutil.rmtree(folder / "out")
        os.sync()
        one["two_processes"] = two_at_once(folder)
        for half in ("even", "odd"):
            shutil.rmtree(folder / f"out-{half}")
        found.append(one)
        sys.stderr.write(json.dumps(one) + "\n")
    shape = {"rows": rows, "parts": parts, "members": members, "classes": classes}
    sizes = {"bytes_in": size_of(folder / "in"), "bytes_out": bytes_out}
    longer = {"rows": times * rows, **speed_up(found, "longer")}
    running = {"rows": rows, **speed_up(found, "running")}
    return {
        **shape, **sizes, **ratios(rows, found), "longer": longer, "running": running, "other_shapes": rates(folder),
    }  # fmt: skip


def speed_up(found: list[dict], name: str) -> dict:
    """Two workers over one in the runs of this name."""
    by_round = [one[f"{name}_1"]["work"] / one[f"{name}_2"]["work"] for one in found]
    return {"speed_up_two_workers": median(by_round), "least": min(by_round), "most": max(by_round)}


def rates(folder: Path) -> list[dict]:
    """Rows a second of the local engine on one thread for other shapes, files read and written."""
    found = []
    for members, classes, rows in SHAPES:
        name = f"{members}x{classes}"
        python(WRITE, folder / name, rows, 4, members, classes)
        python(RUN, folder / name, folder / f"warm-{name}", 0)
        busy = json.loads(python(RUN, folder / name, folder / f"out-{name}", 0))["busy"]
        shape = {"members": members, "classes": classes, "rows": rows}
        found.append({**shape, "rows_a_second": rows / busy, "bytes_in_a_second": size_of(folder / name) / busy})
    return found


def ratios(rows: int, found: list[dict]) -> dict:
    """Medians over the rounds of what was asked for."""
    return {
        "cores": os.cpu_count(),
        "overhead_one_worker": median(one["ray_1"]["work"] / one["local"]["work"] - 1 for one in found),
        "overhead_one_worker_with_start": median(
            (one["ray_1"]["work"] + one["ray_1"]["start"]) / one["local"]["work"] - 1 for one in found
        ),
        "speed_up_two_workers": median(one["ray_1"]["work"] / one["ray_2"]["work"] for one in found),
        "seconds_not_on_parts": {
            name: median(one[name]["work"] - one[name]["busy"] / workers for one in found)
            for name, workers in (("ray_1", 1), ("ray_2", 2))
        },
        "speed_up_two_workers_at_work": median(2 * one["ray_1"]["busy"] / one["ray_2"]["busy"] for one in found),
        "speed_up_two_processes": median(one["local"]["work"] / one["two_processes"] for one in found),
        "rows_a_second_local": median(rows / one["local"]["work"] for one in found),
        "seconds_to_start_ray": median(one["ray_1"]["start"] for one in found),
        "rounds": found,
    }


if __name__ == "__main__":
    main()
