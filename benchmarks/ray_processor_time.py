"""Who uses the processor while Ray scores: `python benchmarks/ray_processor_time.py`, on a machine with nothing else to do.

Scores the folder of `ray_scaling.py` with one worker and with two, and adds up the processor time of the workers, of the
driver, of the actors that Ray Data starts and of Ray's services; then many parts of one row, for what a part costs the
driver. Linux only. Writes results/ray_processor_time.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from ray_scaling import WRITE, python

ROWS, PARTS, MEMBERS, CLASSES, SMALL = 10_000_000, 40, 5, 10, 300

RUN = """
import json, os, sys, time
from pathlib import Path
from credalens.engines import score_folder_on_ray
from credalens.engines.cluster import ray_cluster

def seconds():
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes().replace(bytes(1), b" ").decode()
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        kind = (
            "driver" if int(process.name) == os.getpid()
            else "actors" if name.startswith("ray::_")
            else "workers" if name.startswith("ray::")
            else "services" if "/ray/" in name
            else None
        )
        if kind:
            found[process.name] = kind, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found

with ray_cluster(workers=int(sys.argv[3])):
    before, begin = seconds(), time.perf_counter()
    score_folder_on_ray(sys.argv[1], sys.argv[2])
    wall, after = time.perf_counter() - begin, seconds()
sums = dict.fromkeys(("workers", "driver", "actors", "services"), 0.0)
for process, (kind, spent) in after.items():
    sums[kind] += spent - before.get(process, (kind, 0.0))[1]
print(json.dumps({"wall_seconds": wall, **sums}))
"""


def main() -> None:
    """Measure, write the result file and print it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python(WRITE, folder / "in", ROWS, PARTS, MEMBERS, CLASSES)
        python(WRITE, folder / "few", PARTS, 1, MEMBERS, CLASSES)
        python(WRITE, folder / "small", SMALL, SMALL, MEMBERS, CLASSES)
        found = {}
        for key, source, workers in (
            ("warm", "few", 2),
            ("one_worker", "in", 1),
            ("two_workers", "in", 2),
            ("one_part", "few", 1),
            ("small_parts", "small", 1),
        ):
            os.sync()
            found[key] = json.loads(python(RUN, folder / source, folder / f"out-{key}", workers))
    del found["warm"]
    driver = (found["small_parts"]["driver"] - found["one_part"]["driver"]) / (SMALL - 1)
    result = {"rows": ROWS, "parts": PARTS, "members": MEMBERS, "classes": CLASSES, "small_parts_count": SMALL, **found}
    target = Path("results/ray_processor_time.json")
    target.write_text(json.dumps({**result, "driver_seconds_a_part": driver}, indent=1) + "\n")
    sys.stdout.write(target.read_text())


if __name__ == "__main__":
    main()
