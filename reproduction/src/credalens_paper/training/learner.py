"""One network in training: everything that changes from step to step, and the step."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from credalens.bayes import use_generator
from credalens_paper.training.devices import DeviceImages, Randomness, compile_network, epoch_order, mixed
from credalens_paper.training.losses import Objective, cross_entropy, distillation, evidence_bound, widest_float
from credalens_paper.training.spec import Schedule, TrainSpec


@dataclass(frozen=True)
class EpochRecord:
    """Averages over the augmented training images of one epoch."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float
    seconds: float


class DivergedError(FloatingPointError, ValueError):
    """The loss or the weights are no longer numbers."""


def diverged(spec: TrainSpec, what: str, /) -> DivergedError:
    """The error that names the member, says what is lost (nothing) and what to try."""
    return DivergedError(
        f"Training of {spec.key} diverged: {what}. Checkpoints made before that are kept, and so are the other "
        "members. Train this one from another seed, with a lower learning rate (another schedule), or with "
        "precision='float32'; delete its folder to begin again."
    )


def check_finite(model: nn.Module, spec: TrainSpec, step: int, /) -> None:
    """Refuse to store weights that are not numbers: the loss shows them one step later."""
    finite = torch.stack([torch.isfinite(weight).all() for weight in model.parameters()])
    if not finite.all():
        names = [name for name, _ in model.named_parameters()]
        first = names[int((~finite).nonzero()[0])]
        raise diverged(spec, f"the weights {first!r} are no longer numbers after step {step}")


@final
class Tally:
    """Sums over the steps of an epoch, kept on the device, and the first step whose loss was not a number."""

    def __init__(self, device: torch.device, /):
        zeros = torch.zeros(2, device=device)
        self.sums = zeros.to(widest_float(zeros))
        self._bad = torch.full((), -1, dtype=torch.int64, device=device)

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor, step: int, /) -> None:
        """Count one batch, without waiting for the device."""
        correct = (logits.argmax(-1) == labels).sum()
        self.sums += torch.stack([loss.to(self.sums.dtype), correct.to(self.sums.dtype)])
        self._bad = torch.where((self._bad < 0) & ~torch.isfinite(loss), step, self._bad)

    def read(self) -> tuple[float, float, int]:
        """Sum of the losses, number of correct images and first bad step (or -1); waits for the device."""
        loss, correct, bad = torch.cat([self.sums, self._bad[None].to(self.sums.dtype)]).tolist()
        return loss, correct, int(bad)

    def clear(self) -> None:
        """Begin another epoch."""
        self.sums.zero_()
        self._bad.fill_(-1)


def make_optimizer(model: nn.Module, schedule: Schedule, device: torch.device, /) -> torch.optim.Optimizer:
    """Adam, or SGD with Nesterov momentum; matrices and filters decay, biases and normalisation do not."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": schedule.weight_decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    fused = device.type == "cuda"  # one kernel for all weights instead of some for each
    if schedule.optimizer == "adam":
        return torch.optim.Adam(groups, lr=schedule.rate, fused=fused)
    return torch.optim.SGD(groups, lr=schedule.rate, momentum=schedule.momentum, nesterov=True, fused=fused)


def optimizer_tensors(optimizer: torch.optim.Optimizer, /) -> dict[str, Tensor]:
    """The state of the optimiser: '<weight>.<name>' to tensor. Its settings follow from the schedule."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value
        for index, entries in state.items()
        for name, value in entries.items()
        if isinstance(value, Tensor)
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], /) -> None:
    """Put a state back, each tensor in the memory format of its weight, as fused updates need it."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        weight, copy = weights[int(index)], value.clone()
        if value.shape == weight.shape:
            copy = torch.empty_like(weight, dtype=value.dtype, requires_grad=False).copy_(value)
        state.setdefault(int(index), {})[name] = copy
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@final
class Learner:
    """A network, its optimiser, its random numbers and its place in the schedule.

    ``advance`` does one step and waits for the device only at the end of an epoch; ``averages`` and ``state`` wait.
    """

    def __init__(
        self,
        spec: TrainSpec,
        schedule: Schedule,
        model: nn.Module,
        images: DeviceImages,
        /,
        *,
        precision: str = "float32",
        teachers: tuple[nn.Module, ...] = (),
        compile: bool = False,  # noqa: A002  (torch's word for it)
        graphs: bool = True,
    ):
        self.spec, self.schedule, self.model = spec, schedule, model.train()
        self.step, self.history = 0, list[EpochRecord]()
        self.steps_per_epoch = schedule.steps_per_epoch(len(images))
        self._images, self._device = images, images.device
        self._mixed = partial(mixed, precision, images.device)
        self._randomness = Randomness(spec.seed, images.device)
        self._optimizer = make_optimizer(model, schedule, images.device)
        self._apply = compile_network(model, graph=graphs and not spec.bayesian) if compile else model
        if compile:  # without a graph, whose output would not outlive the next teacher's
            teachers = tuple(compile_network(teacher) for teacher in teachers)
        self._objective: Objective = cross_entropy
        if spec.bayesian:  # compiled code draws from torch's global generators, which `active` sets
            use_generator(model, None if compile else self._randomness.generator)
            self._objective = evidence_bound(model, schedule, len(images))
        elif spec.distilled:
            self._objective = distillation(teachers, schedule, len(images), self._mixed)
        self._tally = Tally(images.device)
        self._order: Tensor | None = None
        self._earlier_seconds, self._since = 0.0, time.perf_counter()

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.schedule.epochs * self.steps_per_epoch

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.steps

    def advance(self) -> None:
        """One step. The first of an epoch, or after a checkpoint in its middle, finds out the order of the images."""
        epoch, step_of_epoch = divmod(self.step, self.steps_per_epoch)
        if self._order is None:
            view = self.schedule.view(epoch)
            if self.spec.distilled and self.schedule.views is not None and step_of_epoch == 0:
                self._randomness.begin_view(view)
            self._order = self._images.order(epoch_order(self.spec.seed, view, len(self._images)))
            self._since = time.perf_counter()
        start = step_of_epoch * self.schedule.batch
        with self._randomness.active():
            self._learn(self._order[start : start + self.schedule.batch])
        self.step += 1
        if step_of_epoch + 1 == self.steps_per_epoch:
            rate = self.schedule.learning_rate(self.step / self.steps_per_epoch - 1 / self.steps_per_epoch)
            self.history.append(EpochRecord(epoch + 1, *self._read_tally(), rate, self._seconds()))
            self._tally.clear()
            self._order, self._earlier_seconds = None, 0.0

    def averages(self) -> tuple[float, float]:
        """Loss and accuracy of the epoch so far, or of the last one where none has begun."""
        if self.step % self.steps_per_epoch or not self.history:
            return self._read_tally()
        return self.history[-1].loss, self.history[-1].accuracy

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on exactly from here: tensors, and a note for JSON."""
        if self.step % self.steps_per_epoch:
            self._read_tally()
        check_finite(self.model, self.spec, self.step)
        parts = {
            "model": self.model.state_dict(),
            "optimizer": optimizer_tensors(self._optimizer),
            "random": self._randomness.state(),
            "tally": {"sums": self._tally.sums},  # a state with a bad step is never stored
        }
        tensors = {f"{part}/{name}": tensor for part, state in parts.items() for name, tensor in state.items()}
        history = [asdict(record) for record in self.history]
        return tensors, {"step": self.step, "history": history, "seconds": self._seconds()}

    def restore(self, tensors: dict[str, Tensor], note: dict[str, Any], /) -> None:
        """Go on from a state."""
        parts: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            parts.setdefault(part, {})[name] = tensor
        self.model.load_state_dict(parts["model"])
        load_optimizer(self._optimizer, parts.get("optimizer", {}))
        self._randomness.restore(parts["random"])
        self._tally.clear()
        self._tally.sums.copy_(parts["tally"]["sums"])
        self.step, self.history = note["step"], [EpochRecord(**record) for record in note["history"]]
        self._order, self._earlier_seconds = None, note["seconds"]

    def _learn(self, chosen: Tensor) -> None:
        schedule, epoch = self.schedule, self.step / self.steps_per_epoch
        augmented: dict[str, Any] = {"padding": schedule.padding, "flip": schedule.flip, "size": self.spec.image_size}
        images, labels = self._images.batch(chosen, self._randomness.generator, **augmented)
        for group in self._optimizer.param_groups:
            group["lr"] = schedule.learning_rate(epoch)
        with self._mixed():
            logits = self._apply(images)
        loss = self._objective(logits.float(), images, labels, self.step)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._tally.add(loss.detach(), logits.detach(), labels, self.step)

    def _read_tally(self) -> tuple[float, float]:
        """Loss and accuracy of the steps of this epoch; an error where the loss is not a number."""
        steps = self.step % self.steps_per_epoch or self.steps_per_epoch
        images = steps * min(self.schedule.batch, len(self._images))
        loss, correct, bad_step = self._tally.read()
        if bad_step >= 0:
            raise diverged(self.spec, f"the loss is not a number at step {bad_step} of {self.steps}")
        return loss / steps, correct / images

    def _seconds(self) -> float:
        """Of this epoch, without those between two runs."""
        running = 0.0 if self._order is None else time.perf_counter() - self._since
        return self._earlier_seconds + running
