"""The folder of one member: what was asked for, how far it is, what came out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

import torch

from credalens_paper.training.checkpoints import (
    Note,
    check_same,
    read_note,
    read_tensors,
    remove_scratch,
    write_json,
    write_tensors,
)
from credalens_paper.training.member import EpochRecord, Member
from credalens_paper.training.networks import MODEL
from credalens_paper.training.provenance import provenance
from credalens_paper.training.schedules import Schedule
from credalens_paper.training.tally import check_finite


@final
class MemberFolder:
    """``spec.json``, ``history.json`` and ``model.safetensors`` of a member, and its checkpoint until they are there.

    The network is written last: where it is, the training is finished.
    """

    def __init__(self, folder: Path, asked: Note, rounding: Note, /):
        self.path, self._asked, self._rounding = folder, asked, rounding
        self._checkpoint, self._model = folder / "checkpoint.safetensors", folder / MODEL

    def finished(self) -> bool:
        """Whether the trained network is there; an error where it is that of another configuration."""
        if not self._model.is_file():
            return False
        check_same(configuration_of(read_note(self._model)), self._asked, self._model)
        return True

    def check_resumable(self) -> None:
        """Refuse to go on from a checkpoint of another configuration, kind of device or precision."""
        if self._checkpoint.is_file():
            stored = read_note(self._checkpoint)
            check_same(configuration_of(stored), self._asked, self._checkpoint)
            check_same(stored["rounding"], self._rounding, self._checkpoint)

    def begin(self, member: Member, device: torch.device, /) -> None:
        """Put the member where its checkpoint is, and write down what begins or goes on."""
        remove_scratch(self.path)
        if self._checkpoint.is_file():
            tensors, note = read_tensors(self._checkpoint)
            member.restore(tensors, note["state"])
        start = {"step": member.step, **provenance(device, seed=member.spec.seed, **self._rounding)}
        before = self._starts() if member.step else []
        write_json(self.path / "spec.json", {**self._asked, "provenance": start, "earlier": before})

    def save(self, member: Member, /) -> None:
        """Write a checkpoint."""
        tensors, state = member.state()
        note = {"configuration": self._asked, "rounding": self._rounding, "state": state}
        write_tensors(self._checkpoint, tensors, note)

    def finish(self, member: Member, /) -> None:
        """Write the history, then the network, then forget the checkpoint."""
        check_finite(member.model, member.spec, member.step)
        write_json(self.path / "history.json", [asdict(record) for record in member.history])
        write_tensors(self._model, member.model.state_dict(), {"configuration": self._asked})
        self._checkpoint.unlink(missing_ok=True)

    def history(self) -> tuple[EpochRecord, ...]:
        """The epochs of a finished training."""
        return tuple(EpochRecord(**record) for record in _read(self.path / "history.json"))

    def _starts(self) -> list[Note]:
        path = self.path / "spec.json"
        if not path.is_file():
            return []
        note = _read(path)
        return [*note["earlier"], note["provenance"]]


def configuration_of(note: Note, /) -> Note:
    """Spec, schedule and data of a network or checkpoint, its schedule with the fields of today."""
    stored = note["configuration"]
    return {**stored, "schedule": Schedule.completed(stored["schedule"])}


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
