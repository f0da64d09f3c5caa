"""One spec on its way from its folder to the device and back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from credalens_paper.training.checkpoints import Note
from credalens_paper.training.images import DeviceImages
from credalens_paper.training.loop import Lane
from credalens_paper.training.member import Member
from credalens_paper.training.networks import MODEL, Build, load_model, make_network
from credalens_paper.training.records import MemberFolder
from credalens_paper.training.schedules import Schedule, schedule_for
from credalens_paper.training.spec import TrainSpec


@dataclass(frozen=True)
class Setting:
    """What all jobs of a call share."""

    folder: Path
    build: Build
    device: torch.device
    precision: str
    compile: bool
    epochs: int | None
    data: Note  # the fingerprint of the training set

    @property
    def rounding(self) -> Note:
        """What decides the last digits; a checkpoint goes on exactly only under the same."""
        return {"device": self.device.type, "precision": self.precision, "compile": self.compile}


@dataclass(frozen=True)
class Job:
    """One network to train, or to find trained."""

    spec: TrainSpec
    setting: Setting

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule of the spec, with as many epochs as the call asked for."""
        return schedule_for(self.spec, epochs=self.setting.epochs)

    @cached_property
    def records(self) -> MemberFolder:
        """The folder of this network."""
        asked = {"spec": self.spec.as_dict(), "schedule": self.schedule.as_dict(), "data": self.setting.data}
        return MemberFolder(self.setting.folder / self.spec.key, asked, self.setting.rounding)

    def check(self, others: Collection[TrainSpec], /) -> None:
        """Refuse before any work: a checkpoint of another configuration, a teacher that nobody trains."""
        self.records.check_resumable()
        for teacher in self.spec.teacher_specs():
            if teacher not in others and not (self.setting.folder / teacher.key / MODEL).is_file():
                raise FileNotFoundError(
                    f"{self.spec.key} learns from {teacher.key}, which is not in {self.setting.folder} and not among "
                    "the specs: train its teachers first, or in the same call."
                )

    def lane(self, images: DeviceImages, /) -> Lane:
        """A place on the device where it trains."""
        return Lane(lambda: self._start(images), self.records.save, self.records.finish, self.setting.device)

    def _start(self, images: DeviceImages) -> Member:
        setting = self.setting
        member = Member(
            self.spec,
            self.schedule,
            make_network(self.spec, setting.build, setting.device, initial_std=self.schedule.initial_std),
            images,
            precision=setting.precision,
            teachers=self._teachers(),
            compile=setting.compile,
        )
        self.records.begin(member, setting.device)
        return member

    def _teachers(self) -> tuple[nn.Module, ...]:
        setting = self.setting
        return tuple(
            load_model(teacher, setting.folder, build=setting.build, device=setting.device)
            for teacher in self.spec.teacher_specs()
        )
