"""From a cell to its numbers: which runs it needs, which of them lack an input, and the work that makes the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from credalens_paper.backbones import BACKBONES, Pretrained
from credalens_paper.data import DATA_SETS
from credalens_paper.experiments.cell_keys import CellKey, display_name
from credalens_paper.experiments.ensembles import (
    Ensemble,
    EvaluationSet,
    ensembles,
    evaluation_sets,
    needs_pretrained,
)
from credalens_paper.experiments.presets import METHODS
from credalens_paper.measures.assessment import TRIM, number_name
from credalens_paper.origin import Hardware
from credalens_paper.pipeline import engines
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.runs import Evaluator, Run, evaluate_all
from credalens_paper.results.records import RUNS, Panel, Part, Provenance, TrainedModels, status_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL: Final = "all runs"
LEFT_OUT: Final = "is left out of this run"
NOT_STORED: Final = "no predictions of these networks are stored, and no data folder is given to make them from"


class StopHere(Exception):  # noqa: N818  (not an error: the caller asked for the first stages only)
    """The stages that were asked for are done."""


@dataclass(frozen=True)
class Plan:
    """What a cell takes: its runs, the sets that it averages over, and the name of its number.

    :ivar name: empty where the predictions are all that is needed.
    :ivar available: the runs that are stored or can be made.
    :ivar missing: for the other runs the reason, by how many of them it concerns.
    """

    runs: tuple[Run, ...] = ()
    sets: tuple[EvaluationSet, ...] = ()
    name: str = ""
    available: tuple[Run, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Why there is no number at all, where there is none."""
        return next(iter(self.missing.values()), f"all {len(self.available)} runs diverged")


Measured = tuple[Sequence[Plan], Sequence[Panel], "Figure | None"]
"""The plans of a figure, what it shows, and its picture; None where nothing can be shown."""


@dataclass(frozen=True, eq=False)
class Workbench:
    """Plans what cells need, and makes it.

    :ivar stop_after: "train" or "predict" to end after that stage.
    :ivar pretrained: weights of ResNet-50 for the ImageNet entries, or of EfficientNet-Lite0 for those of fine-tuning.
    """

    job: Job
    evaluator: Evaluator
    pretrained: Pretrained | None = None
    stop_after: str | None = None
    _reasons: dict[tuple[str, tuple[EvaluationSet, ...]], str | None] = field(default_factory=dict)

    def plan(
        self,
        cell: CellKey,
        /,
        *,
        sets: tuple[EvaluationSet, ...] | None = None,
        many: bool = False,
        regime: str = "",
        most: int | None = None,
    ) -> Plan:
        """What a cell needs, and what is missing for it. `most` limits the runs that are made."""
        preset = self.job.preset
        pool = preset.many_members if many else preset.members
        if (excluded := self._excluded(cell, pool)) is not None:
            return Plan(missing={ALL: excluded})
        measured = preset.substituted(cell)
        chosen = ensembles(cell, preset, pool=pool, pretrained=self.pretrained)
        if not chosen:
            return Plan(missing={ALL: f"there are no runs from number {preset.first_run} on, counted from 0"})
        runs = tuple(Run(ensemble, str(measured.id_set), measured.J, regime) for ensemble in chosen)
        if sets is None and cell.ood_set is None:
            sets = (replace(runs[0].inside, preparation=cell.preparation or ""),)
        elif sets is None:
            sets = evaluation_sets(str(cell.ood_set), preset, preparation=cell.preparation or "")
        name = number_name(cell.variant, cell.measure, cell.metric) if cell.metric else ""
        reasons = {run: self._missing_input(run, sets, name) for run in runs[:most]}
        counts = Counter(reason for reason in reasons.values() if reason is not None)
        missing = {ALL if n == len(reasons) else f"{n} of {len(reasons)}{RUNS}": why for why, n in counts.items()}
        return Plan(runs, sets, name, tuple(run for run, reason in reasons.items() if reason is None), missing)

    def make(self, plans: Iterable[Plan], /) -> None:
        """Train, predict and evaluate what is available and not stored yet, stage by stage."""
        names: dict[Run, dict[EvaluationSet, set[str]]] = {}
        for plan in plans:
            for run in plan.available:
                for images in self._unmeasured(run, plan.sets, plan.name):
                    names.setdefault(run, {}).setdefault(images, set()).add(plan.name)
        missing = engines.missing_predictions(
            self.job, [(run.ensemble, (run.inside, *sets)) for run, sets in names.items()]
        )
        for stage, work in {"train": engines.train, "predict": engines.predict}.items():
            work(self.job, missing)
            if self.stop_after == stage:
                raise StopHere(stage)
        wanted = [
            (run, sorted(images for images, asked in sets.items() if any(asked)), frozenset().union(*sets.values()))
            for run, sets in names.items()
            if any(map(any, sets.values())) and engines.is_whole(self.job, run.ensemble)
        ]
        evaluate_all(self.evaluator, wanted)

    def values(self, plan: Plan, /, sets: tuple[EvaluationSet, ...] | None = None) -> dict[str, float]:
        """The number of every run that did not diverge, averaged over the plan's sets or some of them."""
        values = {}
        for run in plan.available:
            by_set = [self.evaluator.numbers(run, images, [plan.name]) for images in sets or plan.sets]
            if all(by_set):
                values[run.ensemble.key] = float(np.mean([numbers[plan.name] for numbers in by_set if numbers]))
        return values

    def whole_runs(self, plan: Plan, /) -> list[Run]:
        """The available runs that did not diverge."""
        return [run for run in plan.available if engines.is_whole(self.job, run.ensemble)]

    def substitutes(self, cell: CellKey, /) -> dict[str, Any]:
        """The keys of a cell that the preset puts something else in the place of."""
        keys, measured = cell.as_dict(), self.job.preset.substituted(cell).as_dict()
        return {key: value for key, value in measured.items() if value != keys[key]}

    def closing(self, plans: Iterable[Plan], parts: tuple[Part, ...], /) -> dict[str, Any]:
        """The last fields of every result: the networks behind it, whether all is measured, where it was put together."""
        stored: dict[Ensemble, Run] = {}
        for run in dict.fromkeys(run for plan in plans for run in plan.runs):
            predicted = (
                engines.is_predicted(self.job, spec, run.inside, run.ensemble.samples) for spec in run.ensemble.specs
            )
            if (
                not engines.is_whole(self.job, run.ensemble)
                or "training" in self.evaluator.record(run)
                or all(predicted)
            ):
                stored[run.ensemble] = run
        kinds: dict[tuple[str, str, str, int], list[Run]] = {}
        for ensemble, run in stored.items():
            first = ensemble.specs[0]
            kinds.setdefault((first.data, first.backbone, ensemble.method, ensemble.N), []).append(run)
        described = (self._describe(kind, runs) for kind, runs in kinds.items())
        return {
            "models": tuple(models for models in described if models.trained),
            "status": status_of(parts),
            "provenance": Provenance.here(self.job.preset, self.job.engine.about()),
        }

    def _describe(self, kind: tuple[str, str, str, int], runs: Sequence[Run]) -> TrainedModels:
        """Seeds of every run (of the teachers, for distilled networks) and what the training loop wrote down."""
        records: dict[str, dict[str, Any]] = {}
        for run in runs:
            specs = run.ensemble.specs
            stored = self.evaluator.record(run).get("training") or [None] * len(specs)
            for spec, record in zip(specs, stored, strict=True):  # from beside the predictions where none is stored
                records |= {spec.key: found} if (found := record or engines.training_record(self.job, spec)) else {}
        first, whole = next(iter(records.values()), {}), sum(engines.is_whole(self.job, run.ensemble) for run in runs)
        machines = (self.evaluator.record(run).get("hardware") for run in runs)
        data, backbone, method, N = kind
        return TrainedModels(
            data=data,
            backbone=backbone,
            method=method,
            N=N,
            runs=whole,
            diverged=len(runs) - whole,
            seeds=tuple(run.ensemble.specs[0].teachers or tuple(run.ensemble.seeds) for run in runs),
            trained=len(records),
            seconds=round(sum(record["seconds"] for record in records.values()), 3),
            schedule=first.get("schedule"),
            provenance=first.get("provenance"),
            evaluated=tuple(dict.fromkeys(Hardware(**machine) for machine in machines if machine)) or None,
        )

    def _excluded(self, cell: CellKey, pool: int) -> str | None:
        """Why this preset does not measure a cell at all."""
        preset = self.job.preset
        for name in map(str, (cell.backbone, cell.id_set, cell.method)):
            if name in preset.left_out:
                return preset.left_out[name]
        measured = preset.substituted(cell)
        start = needs_pretrained(measured)
        if start is not None and (self.pretrained is None or self.pretrained.backbone != start):
            return f"{display_name(start)} starts from weights of ImageNet; pass their folder as --pretrained FOLDER"
        if measured.method == "DE" and (measured.N or 1) > pool:
            return f"ensembles of N = {measured.N} need as many trained members, this run trains {pool}"
        if str(measured.variant).startswith(TRIM) and measured.method != "DE" and (measured.N or 1) > preset.keep:
            return f"trimming N = {measured.N} samples needs all of them, this run keeps sums beyond {preset.keep}"
        return None

    def _unmeasured(self, run: Run, sets: tuple[EvaluationSet, ...], name: str) -> tuple[EvaluationSet, ...]:
        return tuple(images for images in sets if not name or self.evaluator.numbers(run, images, [name]) is None)

    def _missing_input(self, run: Run, sets: tuple[EvaluationSet, ...], name: str) -> str | None:
        """Which input of a run's number is missing; None where the number is stored or can be made."""
        unmeasured = self._unmeasured(run, sets, name)
        if not unmeasured:
            return None
        key = (run.ensemble.key, (run.inside, *unmeasured))
        if key not in self._reasons:  # what data there are does not change during a run
            self._reasons[key] = self._out_of_focus(run.ensemble) or self._missing_data(run.ensemble, key[1])
        return self._reasons[key]

    def _out_of_focus(self, ensemble: Ensemble) -> str | None:
        """Whether this run is about other methods, backbones or training sets."""
        first = ensemble.specs[0]
        for kind, name in ((METHODS, ensemble.method), (BACKBONES, first.backbone), (DATA_SETS, first.data)):
            focus = set(self.job.preset.focus) & set(kind)
            if focus and name not in focus:
                return f"{display_name(name)} {LEFT_OUT}, which is about {', '.join(map(display_name, sorted(focus)))}"
        return None

    def _missing_data(self, ensemble: Ensemble, sets: Iterable[EvaluationSet]) -> str | None:
        job = self.job
        for spec, missing in engines.missing_predictions(job, [(ensemble, sets)]).items():
            needed = [(name, "test") for name in sorted({images.name for images in missing})]
            if not engines.is_diverged(job, spec) and not job.engine.trained(spec, job.store.models):
                needed.append((spec.data, "train"))
            for name, split in needed:
                reason = job.images.reason(name, split=split, pixels=spec.image_size)
                if reason is not None:
                    return NOT_STORED if job.images.was_available(spec.data) else reason
        return None
