"""A run: one ensemble measured in one way, and what its stored predictions say about a set."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import approximate_intervals, probability_intervals
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet
from credalens_paper.measures import assessment
from credalens_paper.measures.assessment import NO_EXTRAS, Assessment, Extras
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.predict_missing import is_summed, stored_members, stored_summary

Array = NDArray[Any]


@dataclass(frozen=True)
class Run:
    """One ensemble, with the classes that PIA keeps, or with an overconfident member."""

    ensemble: Ensemble
    id_set: str
    J: int | None = None
    regime: str = ""

    @cached_property
    def key(self) -> str:
        """A readable file name."""
        parts = (self.ensemble.key, "" if self.J is None else f"j{self.J}", self.regime)
        return "-".join(part for part in parts if part)

    @property
    def inside(self) -> EvaluationSet:
        """The test set of the training data."""
        return EvaluationSet(self.id_set)


def members_of(job: Job, run: Run, images: EvaluationSet, /) -> Array:
    """The members' predictions, one of them made overconfident where the run says so."""
    members = stored_members(job, run.ensemble, images)
    if run.regime != "overconfident":
        return members
    rng = np.random.default_rng(zlib.crc32(f"{run.key} {images.key}".encode()))
    return assessment.overconfident(members, rng)


def intervals_of(job: Job, run: Run, images: EvaluationSet, /) -> tuple[Array, Array]:
    """The bounds of the credal sets, of the classes that PIA keeps."""
    lower, upper = probability_intervals(members_of(job, run, images), threads=job.threads)
    if run.J is not None:
        lower, upper = approximate_intervals(lower, upper, run.J)
    return lower, upper


def assess(job: Job, run: Run, images: EvaluationSet, /, *, extras: Extras = NO_EXTRAS) -> Assessment:
    """Scores and point predictions."""
    options: dict[str, Any] = {"extras": extras, "threads": job.threads}
    if run.ensemble.dirichlet:
        return assessment.assess_concentrations(stored_members(job, run.ensemble, images)[0])
    if is_summed(job, run.ensemble):
        return assessment.assess_summary(stored_summary(job, run.ensemble, images), **options)
    return assessment.assess_members(members_of(job, run, images), J=run.J, **options)
