"""The folder of one network: spec.json, history.json and model.safetensors, and a checkpoint until these are there.

The network is written last: where it is, the training is finished. Both safetensors files carry a JSON note with the
configuration (spec, schedule, fingerprint of the data), which is compared before anything in the folder is used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from credalens.storage.provenance import provenance
from credalens.storage.run_folder import RunFolder, check_settings
from credalens_paper.training.devices import device_name
from credalens_paper.training.epoch_counts import check_finite
from credalens_paper.training.learner import EpochRecord, Learner
from credalens_paper.training.recipes.schedules import Schedule

Note = dict[str, Any]

MODEL: Final = "model.safetensors"
CHECKPOINT: Final = "checkpoint.safetensors"
REMEDY: Final = "Ask for the stored settings, train into another folder, or delete that of the network to begin again."


@final
class NetworkFolder:
    """The files of one network.

    ``configuration`` is what was asked for, ``rounding`` what decides the last digits: device, precision, compilation.
    """

    def __init__(self, path: Path, configuration: Note, rounding: Note, /):
        self.path, self._configuration, self._rounding = path, configuration, rounding
        self._files, self._held = RunFolder(path), ExitStack()

    def is_finished(self) -> bool:
        """Whether the trained network is there; an error where it has another configuration."""
        return is_finished(self.path, self._configuration)

    def check_resumable(self) -> None:
        """Refuse to go on from a checkpoint of another configuration, kind of device or precision."""
        path = self.path / CHECKPOINT
        if path.is_file():
            check_configuration(path, self._configuration)
            check_settings(read_note(path)["rounding"], self._rounding, path, REMEDY)

    def begin(self, learner: Learner, device: torch.device, /) -> None:
        """Lock the folder, restore the learner from its checkpoint, record where it starts and with which versions."""
        self._lock = self._held.enter_context(self._files.locked())
        self._files.remove_partial_files()
        if (self.path / CHECKPOINT).is_file():
            tensors, note = read_tensors(self.path / CHECKPOINT)
            learner.restore(tensors, note["state"])
        earlier = self._earlier_starts() if learner.step else []
        start = {"step": learner.step, **_versions(), "seed": learner.spec.seed, **self._rounding}
        start["device"] = device_name(device)
        self._files.write_json("spec.json", {**self._configuration, "provenance": start, "earlier": earlier})

    def save(self, learner: Learner, /) -> None:
        """Write a checkpoint."""
        self._lock.check()
        tensors, state = learner.state()
        self._write(CHECKPOINT, tensors, {"rounding": self._rounding, "state": state})

    def finish(self, learner: Learner, /) -> None:
        """Write the history, then the network, then delete the checkpoint; another run may enter then."""
        self._lock.check()
        check_finite(learner.model, learner.spec, learner.step)
        self._files.write_json("history.json", [asdict(record) for record in learner.history])
        self._write(MODEL, learner.model.state_dict(), {})
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Unlock the folder, where this run has locked it."""
        self._held.close()

    def history(self) -> tuple[EpochRecord, ...]:
        """The epochs of a finished training."""
        return tuple(EpochRecord(**record) for record in self._files.read_json("history.json"))

    def _write(self, name: str, tensors: dict[str, Tensor], note: Note) -> None:
        note = {"configuration": self._configuration, **note}
        with self._files.writing(name) as file:
            file.write(to_bytes(tensors, note))

    def _earlier_starts(self) -> list[Note]:
        if not (self.path / "spec.json").is_file():
            return []
        note = self._files.read_json("spec.json")
        return [*note["earlier"], note["provenance"]]


def is_finished(folder: Path, asked: Note, /) -> bool:
    """Whether the folder holds a trained network; an error where it differs in a part that ``asked`` names."""
    path = folder / MODEL
    if path.is_file():
        check_configuration(path, asked)
    return path.is_file()


def check_configuration(path: Path, asked: Note, /) -> None:
    """Compare the spec, the schedule or the data of a stored network with those asked for, as far as these are named."""
    stored = read_note(path)["configuration"]
    stored["schedule"] = Schedule.completed(stored["schedule"])
    check_settings({part: stored[part] for part in asked}, asked, path, REMEDY)


def to_bytes(tensors: dict[str, Tensor], note: Note, /) -> bytes:
    """Tensors and a JSON note as the content of one safetensors file."""
    copies = {name: _on_host(tensor) for name, tensor in tensors.items()}
    return save(copies, metadata={"note": json.dumps(note)})


def read_tensors(path: Path, /) -> tuple[dict[str, Tensor], Note]:
    """The tensors (on the CPU) and the note of a file that no training replaces meanwhile."""
    with _opened(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
        return tensors, _note(file, path)


def read_note(path: Path, /) -> Note:
    """The note alone, without reading the tensors; a training may replace the file meanwhile."""
    with _opened(path, "np") as file:  # for "pt" it would be opened twice, and may be two files
        return _note(file, path)


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[Any]:
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except SafetensorError as error:
        raise ValueError(f"{path} cannot be read ({error}). Delete it, and the training begins again.") from error


def _note(file: Any, path: Path) -> Note:
    note = (file.metadata() or {}).get("note")
    if note is None:
        raise ValueError(f"{path} was not written by credalens: it carries no note on its training.")
    return dict(json.loads(note))


def _on_host(tensor: Tensor) -> Tensor:
    # A copy always: safetensors refuses tensors that share memory, as tied weights do.
    return tensor.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)


def _versions() -> Note:
    made = provenance(("torch", "safetensors"))
    return {
        **{name: made.versions[name] for name in ("credalens", "torch", "numpy", "safetensors", "python")},
        "commit": made.commit,
        "cuda": torch.version.cuda,
        "system": made.system,
        "threads": torch.get_num_threads(),
        "time": made.date,
    }
