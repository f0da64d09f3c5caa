"""What a result file holds, as frozen records: a table, a figure or the entry about exactness, with its provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from credalens.storage.run_folder import RunFolder
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.index import LABELS
from credalens_paper.experiments.paper_numbers import PaperNumber
from credalens_paper.experiments.presets import Preset
from credalens_paper.json_records import from_json, inline, named, optional
from credalens_paper.measures.estimates import Estimate
from credalens_paper.measures.exactness import ReductionEffect, SolverEffect, SolverErrors
from credalens_paper.origin import Hardware, commit, hardware, now, versions

PACKAGES: Final = ("scipy", "scikit-learn", "torch", "transformers", "matplotlib")


@dataclass(frozen=True)
class Provenance:
    """When, at which commit, on what and with which versions and settings a result was put together."""

    date: str
    commit: str | None
    hardware: Hardware
    versions: Mapping[str, str]
    preset: Preset
    engine: Mapping[str, Any] | None

    @classmethod
    def here(cls, preset: Preset, engine: Mapping[str, Any], /) -> Provenance:
        """That of a result that is put together now."""
        return cls(now(), commit(), hardware(), versions(PACKAGES), preset, engine)


@dataclass(frozen=True)
class Addition:
    """Where a result was put together whose runs were added to this one."""

    date: str
    commit: str | None
    preset: str


@dataclass(frozen=True, kw_only=True)
class TrainedModels:
    """The runs of one kind of model: their seeds, how its networks were trained, and the processors that evaluated them."""

    data: str
    backbone: str
    method: str
    N: int
    runs: int
    diverged: int
    seeds: tuple[tuple[int, ...], ...]
    trained: int
    seconds: float
    schedule: Mapping[str, Any] | None
    provenance: Mapping[str, Any] | None
    evaluated: tuple[Hardware, ...] | None = optional()


@dataclass(frozen=True)
class Runs:
    """A number measured in n runs."""

    mean: float
    std: float | None
    n: int
    runs: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of a table: ours, or the reason why there is none, beside the paper's.

    :ivar substitutes: keys of which something else was measured than the paper has.
    :ivar missing: which of the runs lack, with the reason.
    :ivar note: how it was measured, where that is not how the others were.
    """

    keys: CellKey
    substitutes: Mapping[str, Any] = named("measured")
    paper: PaperNumber | None
    ours: Runs | None = inline()
    missing: Mapping[str, str] | None = optional()
    note: str | None = optional()
    reason: str | None = optional()


@dataclass(frozen=True)
class PaperDifference:
    """Credal less classical in the paper's numbers."""

    mean: float
    better: str


@dataclass(frozen=True)
class Difference:
    """Credal less classical over the runs that both have; `wins` counts those in which credal is better."""

    mean: float
    std: float | None
    n: int
    wins: int
    better: str


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """A credal cell compared with its classical one."""

    keys: CellKey
    paper: PaperDifference | None
    ours: Difference | None = inline()


@dataclass(frozen=True, kw_only=True)
class SolverComparison:
    """The paper's solver beside the exact measures on a subsample of one run."""

    keys: Mapping[str, Any]
    run: int
    errors: SolverErrors | None = inline()
    effect: SolverEffect | None = inline()


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """A table of the paper."""

    label: str
    kind: str
    description: str
    layout: tuple[str, ...]
    cells: tuple[Cell, ...]
    improvements: tuple[Improvement, ...]
    solvers: tuple[SolverComparison, ...]
    cpu_threads: int | None = optional()
    paper_runs: int | None
    models: tuple[TrainedModels, ...]
    status: str
    provenance: Provenance
    added: tuple[Addition, ...] | None = optional()

    @property
    def parts(self) -> tuple[Cell, ...]:
        """What was measured or not."""
        return self.cells


@dataclass(frozen=True)
class Line:
    """A metric against corruption severity."""

    name: str
    x: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float | None, ...]
    n: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one pair of axes shows: lines, quantiles, members of single inputs, estimates with intervals; or why nothing.

    :ivar note: how it was measured, where that is not how the others were.
    """

    title: str
    keys: CellKey | None = optional()
    substitutes: Mapping[str, Any] | None = optional("measured")
    metric: str | None = optional()
    measure: str | None = optional()
    n: int | None = optional()
    id_name: str | None = optional()
    quantiles: Mapping[str, Mapping[str, Any]] | None = optional()
    series: tuple[Line, ...] | None = optional()
    missing: Mapping[str, str] | None = optional()
    set: str | None = optional()
    index: int | None = optional()
    true_class: int | None = optional()
    class_names: tuple[str, ...] | None = optional()
    members: tuple[tuple[float, ...], ...] | None = optional()
    estimates: tuple[Estimate, ...] | None = optional()
    note: str | None = optional()
    reason: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class FigureResult:
    """A figure of the paper, with the names of its pictures."""

    label: str
    kind: str
    description: str
    files: tuple[str, ...]
    panels: tuple[Panel, ...]
    models: tuple[TrainedModels, ...]
    status: str
    provenance: Provenance
    added: tuple[Addition, ...] | None = optional()

    @property
    def parts(self) -> tuple[Panel, ...]:
        """What was measured or not."""
        return self.panels


@dataclass(frozen=True)
class SolverRun:
    """The local solver on one ensemble: its errors set by set, its effect on the detection of each OOD set."""

    seeds: tuple[int, ...]
    sets: Mapping[str, SolverErrors]
    pairs: Mapping[str, SolverEffect]


@dataclass(frozen=True)
class ReductionRun:
    """Both forms of PIA on one ensemble, by the number of classes kept and the OOD set."""

    seeds: tuple[int, ...]
    J: Mapping[str, Mapping[str, ReductionEffect]]


@dataclass(frozen=True, kw_only=True)
class ExactnessPart:
    """What exactness changes for one model."""

    keys: CellKey
    substitutes: Mapping[str, Any] = named("measured")
    missing: Mapping[str, str] | None = optional()
    classes: int | None = optional()
    solver: tuple[SolverRun, ...] | None = optional()
    reduction: tuple[ReductionRun, ...] | None = optional()
    reason: str | None = optional()


@dataclass(frozen=True, kw_only=True)
class ExactnessResult:
    """The entry about exactness; an error of the solver counts as wrong from each of the `wrong_sizes` on."""

    label: str
    kind: str
    description: str
    wrong_sizes: tuple[float, ...]
    parts: tuple[ExactnessPart, ...]
    models: tuple[TrainedModels, ...]
    status: str
    provenance: Provenance


Result = TableResult | FigureResult | ExactnessResult
Part = Cell | Panel | ExactnessPart
RUNS: Final = " runs"
"""How a part names the runs that it lacks, such as "5 of 6 runs"; a line that it lacks has another name."""
KINDS: Final[Mapping[str, type[Any]]] = {"table": TableResult, "figure": FigureResult, "ours": ExactnessResult}


def status_of(parts: tuple[Part, ...], /) -> str:
    """Whether all parts are measured, some, or none."""
    if all(part.reason is not None for part in parts):
        return "not measured"
    whole = not any(part.reason is not None or part.missing for part in parts)
    return "measured" if whole else "partly measured"


def read_result(path: Path, /) -> Result | None:
    """The result in a file; None where it holds something else."""
    content = RunFolder(path.parent).read_json(path.name)
    if not isinstance(content, dict) or content.get("label") not in LABELS:
        return None
    result: Result = from_json(KINDS[content["kind"]], content)
    return result


def read_results(*folders: str | Path) -> list[Result]:
    """The result files of some folders in the order of the paper, each label from the first folder that has it.

    A folder without any is an error.
    """
    by_label: dict[str, Result] = {}
    for folder in folders:
        stored = [read_result(path) for path in sorted(Path(folder).glob("*.json"))]
        results = {result.label: result for result in stored if result is not None}
        if not results:
            raise FileNotFoundError(
                f"no result files (<label>.json) in {folder}; measure something first, or name their folder"
            )
        by_label = results | by_label
    return [by_label[label] for label in LABELS if label in by_label]


def declared_label(label: str, /) -> str:
    """The label of the entry that a result is of, also where it is named after its preset.

    >>> declared_label("AblationNTU (scratch)"), declared_label("PIA")
    ('AblationNTU', 'PIA')
    """
    return label.partition(" (")[0]


def read_repeated(*folders: str | Path, labels: Iterable[str] = LABELS) -> list[Result]:
    """What `read_results` leaves out: results of labels that an earlier folder has too, each named after its preset.

    Such as "AblationNTU (scratch)", so that nobody takes them for the result of that label.
    """
    seen: set[str] = set()
    repeated: list[Result] = []
    for folder in map(Path, folders):
        results = [result for result in read_results(folder) if result.label in labels]
        repeated += [
            replace(result, label=f"{result.label} ({result.provenance.preset.name})")
            for result in results
            if result.label in seen
        ]
        seen |= {result.label for result in results}
    return repeated
