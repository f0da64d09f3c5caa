"""The goals, each beside what was measured: reached or not, or not measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Goal", "compare_with_goals"]


@dataclass(frozen=True)
class Goal:
    """One number and the bound it should keep."""

    name: str
    unit: str
    bound: float
    value: float | None
    at_least: bool = False
    proven: bool = True

    @property
    def reached(self) -> bool | None:
        """Whether the value keeps the bound and its certificate was reached; None where it was not measured."""
        if self.value is None:
            return None
        return self.proven and (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def as_json(self) -> dict[str, Any]:
        """The fields and ``reached``."""
        return {**asdict(self), "reached": self.reached}


def compare_with_goals(measured: dict[str, Any], /) -> list[Goal]:
    """All goals, with the values found in what the benchmark measured."""
    return [*_speed(measured), *_hard(measured), *_growth(measured), *_around(measured), *_device(measured)]


def _speed(measured: dict[str, Any]) -> list[Goal]:
    rows = measured.get("decomposition", [])
    goals = [Goal("ours / classical, C = 3", "", 1.25, _row(rows, classes=3).get("ours_over_classical"))]
    for classes, one, two in ((10, 1.0, 0.6), (100, 1.0, 0.6), (1000, 2.0, 1.2)):
        row = _row(rows, classes=classes)
        goals.append(Goal(f"ours / classical, C = {classes}", "", one, row.get("ours_over_classical")))
        goals.append(Goal(f"the same on two threads, C = {classes}", "", two, row.get("two_threads_over_classical")))
    single = _row(rows, classes=10).get("float32_ours_over_classical")
    goals.append(Goal("ours / classical in float32, C = 10", "", 0.8, single))
    calls = _row(measured.get("calls", []), classes=100).get("sum_us")
    goals.append(Goal("wrap, classical and predict_set, C = 100", "us", 2.5, calls))
    for classes in (10, 100):
        row = _row(measured.get("decide", []), classes=classes)
        goals.append(
            Goal(f"decide with p-value / wrap, C = {classes}", "", 0.1, row.get("decide_with_p_value_over_wrap"))
        )
    for classes, least in ((10, 5e3), (100, 5e4)):
        row = _row(rows, classes=classes)
        goals.append(Goal(f"SLSQP / ours, C = {classes}", "", least, row.get("slsqp_over_ours"), at_least=True))
    return goals


def _hard(measured: dict[str, Any]) -> list[Goal]:
    goals = []
    for tolerance, most in ((1e-3, 200.0), (1e-6, 5000.0)):
        row = _row(measured.get("flat", []), tolerance_bits=tolerance)
        proven = row.get("widest_bracket_bits", 0.0) <= tolerance * (1 + 1e-6)
        goals.append(Goal(f"flat, C = 1000, to {tolerance:g} bit", "us", most, row.get("us"), proven=proven))
    for classes, most in ((10, 5.0), (100, 1e3), (1000, 3e4)):
        times = [r["us"] for r in measured.get("hartley", []) if r["classes"] == classes]
        goals.append(Goal(f"Hartley, C = {classes}", "us", most, max(times, default=None)))
    return goals


def _growth(measured: dict[str, Any]) -> list[Goal]:
    exponents = measured.get("growth", {}).get("exponents", {})
    names = {"rows": "rows", "members": "members", "classes_log_classes": "C log C"}
    return [Goal(f"exponent of {label}", "", 1.05, exponents.get(key)) for key, label in names.items()]


def _around(measured: dict[str, Any]) -> list[Goal]:
    startup = measured.get("startup", {})
    return [
        Goal("peak memory / outputs", "", 1.2, measured.get("memory", {}).get("peak_over_outputs")),
        Goal("score of a file / writing its output", "", 2.5, measured.get("score", {}).get("score_over_write")),
        Goal("import credalens", "s", 0.15, startup.get("import_seconds")),
        Goal("first call on a fresh install", "s", 10.0, startup.get("first_ever_seconds")),
        Goal("first call of a later process", "s", 0.4, startup.get("later_process_seconds")),
        *(
            Goal(
                f"CredalWrapper's overhead, {name}", "", 0.05, measured.get("wrapper", {}).get(name, {}).get("overhead")
            )
            for name in ("cpu", "cuda")
        ),
    ]


def _device(measured: dict[str, Any]) -> list[Goal]:
    rows = measured.get("device", [])
    goals = []
    for classes in (10, 100, 1000):
        row = _row(rows, classes=classes)
        goals.append(Goal(f"GPU: ours / classical, C = {classes}", "", 2.0, row.get("ours_over_classical")))
    share = _row(rows, classes=1000).get("kernel_over_copy")
    return [
        *goals,
        Goal("GPU: bandwidth of bounds and upper entropy / a copy's, C = 1000", "", 0.5, share, at_least=True),
    ]


def _row(rows: list[dict[str, Any]], **wanted: float) -> dict[str, Any]:
    """The first row with the wanted entries, or an empty one."""
    return next((row for row in rows if wanted.items() <= row.items()), {})
