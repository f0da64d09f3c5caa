"""Jobs: requests that were read and checked, which of them may be joined, and how their tensors are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from credalens.serve.protocol.infer_request import WantedOutput


@dataclass(frozen=True, eq=False)
class Job:
    """The tensors of one request, how many rows they have, and the outputs that it wants."""

    id: str | None
    inputs: dict[str, NDArray]
    rows: int
    outputs: tuple[WantedOutput, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs that have to be computed."""
        return tuple(output.name for output in self.outputs)

    def kind(self, row_axis: int, /) -> Hashable:
        """What jobs of one batch have in common: the outputs, and all of their tensors but the number of rows."""
        tensors = ((name, x.dtype.str, x.shape[:row_axis], x.shape[row_axis + 1 :]) for name, x in self.inputs.items())
        return frozenset(self.names), frozenset(tensors)


@dataclass(frozen=True, eq=False)
class JoinedJobs:
    """Jobs of one kind."""

    jobs: Sequence[Job]
    row_axis: int

    @cached_property
    def inputs(self) -> dict[str, NDArray]:
        """The tensors of all, one after the other along the rows."""
        first = self.jobs[0].inputs
        if len(self.jobs) == 1:
            return first
        return {name: np.concatenate([job.inputs[name] for job in self.jobs], axis=self.row_axis) for name in first}

    @cached_property
    def rows(self) -> int:
        """Of all."""
        return sum(job.rows for job in self.jobs)

    def piece(self, start: int, most: int, /) -> dict[str, NDArray]:
        """The tensors of at most so many rows from ``start`` on."""
        if start == 0 and self.rows <= most:
            return self.inputs
        place = (*(slice(None),) * self.row_axis, slice(start, start + most))
        return {name: x[place] for name, x in self.inputs.items()}

    @cached_property
    def slices(self) -> list[slice]:
        """Where the rows of each are."""
        ends = accumulate(job.rows for job in self.jobs)
        return [slice(end - job.rows, end) for job, end in zip(self.jobs, ends, strict=True)]
