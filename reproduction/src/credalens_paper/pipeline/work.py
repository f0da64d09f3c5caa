"""What stands between a cell and its number: the runs it needs, what is in the way, and the work that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from credalens_paper.backbones import BACKBONES
from credalens_paper.experiments.cells import CellKey, Ensemble, EvaluationSet, ensembles, evaluation_sets
from credalens_paper.experiments.presets import METHODS, Preset
from credalens_paper.measures.scores import number_name
from credalens_paper.pipeline.engine import Crew
from credalens_paper.pipeline.evaluate import Evaluation, Evaluator
from credalens_paper.pipeline.images import Images
from credalens_paper.pipeline.models import Models
from credalens_paper.results.rendering.names import shown
from credalens_paper.training.spec import TrainSpec

__all__ = ["LEFT_OUT", "Need", "StopHere", "Workbench"]

Wanted = dict[TrainSpec, dict[EvaluationSet, int]]
LEFT_OUT: Final = "is left out of this run"
NOT_STORED: Final = "no predictions of these networks are stored, and no data folder is given to make them from"


class StopHere(Exception):  # noqa: N818  (not an error: the caller asked for the first stages only)
    """The stages that were asked for are done."""


@dataclass(frozen=True)
class Need:
    """One number of one run: by its name, averaged over some sets."""

    evaluation: Evaluation
    sets: tuple[EvaluationSet, ...]
    name: str


@dataclass(frozen=True, eq=False)
class Workbench:
    """Everything at hand to fill in cells.

    :ivar stop_after: "train" or "predict" to end after that stage.
    :ivar pretrained: the folder of ResNet-50 weights that the ImageNet entries start from.
    """

    models: Models
    evaluator: Evaluator
    pretrained: str | None = None
    stop_after: str | None = None
    _touched: dict[Evaluation, None] = field(default_factory=dict)
    _reasons: dict[tuple[str, tuple[EvaluationSet, ...]], str | None] = field(default_factory=dict)

    @property
    def preset(self) -> Preset:
        """The sizes of this reproduction."""
        return self.models.preset

    @property
    def crew(self) -> Crew | None:
        """Who does the work, where that is not this process."""
        return self.models.engine.crew

    @property
    def images(self) -> Images:
        """The image sets."""
        return self.models.images

    def runs(self, cell: CellKey, /, *, many: bool = False, regime: str = "") -> list[Evaluation]:
        """The runs of a cell's model, each measured as the cell says."""
        pool = self.preset.many_members if many else self.preset.members
        own = cell.measured(self.preset)
        found = ensembles(cell, self.preset, pool=pool, pretrained=self.pretrained)
        runs = [Evaluation(ensemble, str(own.id_set), own.J, regime) for ensemble in found]
        self._touched.update(dict.fromkeys(runs))
        return runs

    def take_touched(self) -> list[Evaluation]:
        """All runs that were looked at since the last call."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    def needs(self, cell: CellKey, /, *, many: bool = False, regime: str = "") -> list[Need]:
        """The numbers a cell is the mean of, run by run."""
        name = number_name(cell.variant, cell.measure, cell.metric)
        runs = self.runs(cell, many=many, regime=regime)
        if cell.ood_set is None:
            return [Need(run, (run.inside,), name) for run in runs]
        sets = evaluation_sets(cell.ood_set, self.preset)
        return [Need(run, sets, name) for run in runs]

    def excluded(self, cell: CellKey, /, *, many: bool = False) -> str | None:
        """Why this preset does not measure a cell at all; None where it does."""
        for part in (str(cell.backbone), str(cell.id_set), str(cell.method)):
            if part in self.preset.left_out:
                return self.preset.left_out[part]
        own = cell.measured(self.preset)
        if own.id_set == "imagenet" and self.pretrained is None:
            return "ImageNet needs the folder of a pretrained ResNet-50; pass --pretrained FOLDER"
        pool = self.preset.many_members if many else self.preset.members
        if own.method == "DE" and (own.N or 1) > pool:
            return f"ensembles of N = {own.N} need as many trained members, this run trains {pool}"
        return None

    def obstacle(self, needs: Iterable[Need], /) -> str | None:
        """What is missing on this machine; None where everything is made or can be."""
        for need in needs:
            missing = self._unmeasured(need)
            if missing:
                reason = self._in_the_way(need.evaluation.ensemble, (need.evaluation.inside, *missing))
                if reason is not None:
                    return reason
        return None

    def make(self, needs: Iterable[Need], /) -> None:
        """Train, predict and evaluate what is missing."""
        pending: dict[Evaluation, dict[EvaluationSet, set[str]]] = {}
        for need in needs:
            for one in self._unmeasured(need):
                pending.setdefault(need.evaluation, {}).setdefault(one, set()).add(need.name)
        self.predict([(run.ensemble, (run.inside, *sets)) for run, sets in pending.items()])
        wanted = [
            (run, sorted(sets), frozenset().union(*sets.values()))
            for run, sets in pending.items()
            if self.whole(run.ensemble)
        ]
        if self.crew is not None:
            threads = self.evaluator.threads or self.crew.threads
            self.crew.each(self.models, partial(_evaluate, threads=threads), wanted, on_device=False)
            for run, _, _ in wanted:
                self.evaluator.reread(run)
            return
        for done, (run, sets, names) in enumerate(wanted, start=1):
            self.models.log(f"evaluating {run.key} ({done} of {len(wanted)})")
            self.evaluator.evaluate(run, sets, names)

    def predict(self, wanted: Iterable[tuple[Ensemble, Iterable[EvaluationSet]]], /) -> None:
        """Train what is missing and store the predictions of these ensembles on these sets."""
        missing = self._unpredicted(wanted)
        self._train(missing)
        self._stop("train")
        trained = [(spec, sets) for spec, sets in missing.items() if not self.models.diverged(spec)]
        if self.crew is not None:
            self.crew.each(self.models, _predict, trained, on_device=True)
        else:
            for spec, sets in trained:
                self.models.predict(spec, sets)
        self._stop("predict")

    def ready(
        self,
        wanted: Sequence[tuple[CellKey, tuple[EvaluationSet, ...]]],
        /,
        *,
        many: bool = False,
        most: int | None = None,
    ) -> list[tuple[list[Evaluation], str | None]]:
        """For models and sets the runs whose predictions are stored now, or what is in the way. `most` limits the runs."""
        plans: list[tuple[list[Evaluation], str | None]] = []
        for model, sets in wanted:
            reason = self.excluded(model, many=many)
            runs = [] if reason else self.runs(model, many=many)[:most]
            reason = reason or self.obstacle(Need(run, (run.inside, *sets), "") for run in runs)
            plans.append(([] if reason else runs, reason))
        pairs = zip(plans, wanted, strict=True)
        self.predict([(run.ensemble, (run.inside, *sets)) for (runs, _), (_, sets) in pairs for run in runs])
        return [self._whole_runs(runs, reason) for runs, reason in plans]

    def _train(self, specs: Iterable[TrainSpec]) -> None:
        """All at once where there is a crew, students after all others."""
        if self.crew is None:
            return self.models.train(specs)
        wanted = {one: None for spec in specs for one in (*spec.teacher_specs(), spec)}
        missing = [spec for spec in wanted if not self.models.diverged(spec) and not self.models.trained(spec)]
        for students in (False, True):
            own = [spec for spec in missing if spec.distilled == students]
            self.crew.each(self.models, _train, own, on_device=True)
        return None

    def _whole_runs(self, runs: list[Evaluation], reason: str | None) -> tuple[list[Evaluation], str | None]:
        whole = [run for run in runs if self.whole(run.ensemble)]
        return whole, reason or (None if whole else f"all {len(runs)} runs diverged")

    def whole(self, ensemble: Ensemble, /) -> bool:
        """Whether all its networks could be trained."""
        return not any(map(self.models.diverged, ensemble.specs))

    def value(self, need: Need, /) -> float | None:
        """The number of a run, or None where it diverged."""
        found = [self.evaluator.numbers(need.evaluation, one, [need.name]) for one in need.sets]
        values = [numbers[need.name] for numbers in found if numbers is not None]
        return float(np.mean(values)) if len(values) == len(need.sets) else None

    def _unmeasured(self, need: Need) -> tuple[EvaluationSet, ...]:
        run = need.evaluation
        return tuple(one for one in need.sets if self.evaluator.numbers(run, one, [need.name]) is None)

    def _unpredicted(self, wanted: Iterable[tuple[Ensemble, Iterable[EvaluationSet]]]) -> Wanted:
        missing: Wanted = {}
        for ensemble, sets in wanted:
            for spec in ensemble.specs:
                for one in sets:
                    if not self.models.predicted(spec, one, ensemble.samples):
                        known = missing.setdefault(spec, {})
                        known[one] = max(known.get(one, 0), ensemble.samples)
        return missing

    def _in_the_way(self, ensemble: Ensemble, sets: tuple[EvaluationSet, ...]) -> str | None:
        """Looked up once for all cells of an ensemble: what data there are does not change during a run."""
        key = (ensemble.key, sets)
        if key not in self._reasons:
            self._reasons[key] = self._left_out(ensemble) or self._no_data(ensemble, sets)
        return self._reasons[key]

    def _left_out(self, ensemble: Ensemble) -> str | None:
        """Whether this run is about other methods or backbones."""
        for kind, own in ((METHODS, ensemble.method), (BACKBONES, ensemble.specs[0].backbone)):
            asked = set(self.preset.focus) & set(kind)
            if asked and own not in asked:
                return f"{shown(own)} {LEFT_OUT}, which is about {', '.join(map(shown, sorted(asked)))}"
        return None

    def _no_data(self, ensemble: Ensemble, sets: Iterable[EvaluationSet]) -> str | None:
        for spec, missing in self._unpredicted([(ensemble, sets)]).items():
            needed = [(name, "test") for name in sorted({one.name for one in missing})]
            if not self.models.diverged(spec) and not self.models.trained(spec):
                needed.append((spec.data, "train"))
            for name, split in needed:
                reason = self.images.reason(name, split=split, pixels=spec.image_size)
                if reason is not None:
                    return NOT_STORED if self.images.known(spec.data) else reason
        return None

    def _stop(self, stage: str) -> None:
        if self.stop_after == stage:
            raise StopHere(stage)


def _train(models: Models, spec: TrainSpec) -> None:
    models.train([spec])


def _predict(models: Models, wanted: tuple[TrainSpec, dict[EvaluationSet, int]]) -> None:
    models.predict(*wanted)


def _evaluate(
    models: Models, wanted: tuple[Evaluation, list[EvaluationSet], frozenset[str]], *, threads: int | None
) -> None:
    models.log(f"evaluating {wanted[0].key}")
    Evaluator(models, threads).evaluate(*wanted)
