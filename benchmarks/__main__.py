"""Time the credal decomposition against averaging and against the paper's solver, and write the numbers as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numba
import numpy as np
import scipy
from rich.console import Console
from rich.progress import track
from rich.table import Table

import credalens
from benchmarks.contenders import classical_numpy, slsqp
from benchmarks.predictions import realistic
from benchmarks.timing import best_seconds
from credalens import lower_entropy, probability_intervals, wrap

CLASSES = (3, 10, 20, 100, 1000)
SOLVER_ROWS = {3: 200, 10: 200, 20: 100, 100: 20, 1000: 1}
MEMBERS = 5
WRONG = 1e-3  # bits


def measure(classes: int, *, solver_rows: int) -> dict[str, float]:
    """One row of the table: microseconds a sample for three contenders, two ratios, the solver's errors."""
    rows = max(200, 200_000 // classes)
    probs = realistic(MEMBERS, rows, classes)
    seconds = best_seconds(
        {
            "classical": lambda: classical_numpy(probs),
            "ours": lambda: wrap(probs, threads=1),
            "ours_two_threads": lambda: wrap(probs, threads=2),
        }
    )
    lower, upper = probability_intervals(probs.astype(np.float64)[:, :solver_rows])
    start = time.perf_counter()
    found = np.array([slsqp(a, b) for a, b in zip(lower, upper, strict=True)])
    solver_seconds = time.perf_counter() - start
    exact = lower_entropy(lower, upper)
    errors = found[:, 1] - exact
    micro = {name: 1e6 * value / rows for name, value in seconds.items()}
    micro["slsqp"] = 1e6 * solver_seconds / len(exact)
    return {
        "classes": classes,
        "rows": rows,
        "solver_rows": len(exact),
        **{f"{name}_us": value for name, value in micro.items()},
        "ours_over_classical": micro["ours"] / micro["classical"],
        "two_threads_over_classical": micro["ours_two_threads"] / micro["classical"],
        "slsqp_over_ours": micro["slsqp"] / micro["ours"],
        "slsqp_wrong_share": float((np.abs(errors) > WRONG).mean()),
        "slsqp_worst_error_bits": float(np.abs(errors).max()),
    }


def provenance() -> dict[str, str]:
    """What the numbers were measured with."""
    return {
        "credalens": credalens.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "processor": processor(),
    }


def processor() -> str:
    """The processor's name where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def show(results: list[dict[str, float]], console: Console) -> None:
    """The table people read."""
    table = Table(title=f"Uncertainty of one sample, N = {MEMBERS} members, one core")
    for column in (
        "C",
        "classical\n[us]",
        "ours\n[us]",
        "SLSQP\n[us]",
        "ours /\nclassical",
        "SLSQP /\nours",
        "SLSQP wrong\n> 1e-3 bit",
    ):
        table.add_column(column, justify="right")
    for row in results:
        table.add_row(
            f"{row['classes']}", f"{row['classical_us']:.2f}", f"{row['ours_us']:.2f}", f"{row['slsqp_us']:,.0f}",
            f"{row['ours_over_classical']:.2f}", f"{row['slsqp_over_ours']:,.0f}", f"{100 * row['slsqp_wrong_share']:.0f} %",
        )  # fmt: skip
    console.print(table)


def main() -> None:
    """Parse, measure, show, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmark.json"), help="where the JSON goes")
    parser.add_argument(
        "--quick", action="store_true", help="leave out C = 1000, where the solver needs a minute a row"
    )
    options = parser.parse_args()
    console = Console()
    classes = CLASSES[:-1] if options.quick else CLASSES
    results = [measure(c, solver_rows=SOLVER_ROWS[c]) for c in track(classes, description="measuring", console=console)]
    show(results, console)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"members": MEMBERS, "provenance": provenance(), "decomposition": results}, indent=2)
    options.out.write_text(text + "\n")
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
