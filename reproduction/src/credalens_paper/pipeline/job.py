"""What every step of a reproduction works with: store, preset, images, engine, deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from credalens_paper.experiments.presets import Preset
from credalens_paper.pipeline.stored_images import Images
from credalens_paper.results.store import Store

if TYPE_CHECKING:
    from credalens_paper.pipeline.torch_engine import TorchEngine


class TimeIsUp(Exception):  # noqa: N818  (not an error: the run stops where it can go on)
    """The time limit has passed; everything so far is stored."""


@dataclass(frozen=True)
class Deadline:
    """Checked between two units of work, so that a run ends with whole ones; by the time of day, which all machines share."""

    seconds: float | None = None
    begun: float = field(default_factory=lambda: time.time())

    def check(self) -> None:
        """Stop here if the time is up."""
        if self.seconds is not None and time.time() - self.begun > self.seconds:
            raise TimeIsUp(f"the time limit of {self.seconds:g} s has passed; run the same command again to go on")


@dataclass(frozen=True, eq=False)
class Job:
    """One reproduction: where it stores what it makes, how large it is, and what it makes it with.

    :ivar threads: of the measures; None for all cores.
    """

    store: Store
    preset: Preset
    data_folder: str | Path | None
    engine: TorchEngine
    threads: int | None = None
    deadline: Deadline = field(default_factory=Deadline)
    log: Callable[[str], None] = print
    images: Images = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", Images(self.store, self.preset, self.data_folder))
