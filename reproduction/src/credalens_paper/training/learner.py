"""One network in training: everything that changes from step to step, and the step."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, final

from torch import Tensor, nn

from credalens.bayes import use_generator
from credalens_paper.training.device_images import DeviceImages
from credalens_paper.training.devices import compile_network, mixed
from credalens_paper.training.epoch_counts import Averages, Tally, check_finite, diverged
from credalens_paper.training.randomness import Randomness, epoch_order
from credalens_paper.training.recipes.objectives import Objective, cross_entropy, distillation, evidence_bound
from credalens_paper.training.recipes.optimizers import (
    load_optimizer,
    make_optimizer,
    optimizer_tensors,
    set_learning_rate,
)
from credalens_paper.training.recipes.schedules import Schedule
from credalens_paper.training.spec import TrainSpec


@dataclass(frozen=True)
class EpochRecord:
    """Averages over the augmented training images of one epoch."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float
    seconds: float


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
        if spec.bayesian:  # compiled code draws from torch's global generators, which `active` sets
            use_generator(model, None if compile else self._randomness.generator)
        self._objective = self._choose_objective(teachers)
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
        """One step."""
        epoch, step_of_epoch = divmod(self.step, self.steps_per_epoch)
        if self._order is None:
            self._order, self._since = self._begin_epoch(epoch, step_of_epoch), time.perf_counter()
        start = step_of_epoch * self.schedule.batch
        with self._randomness.active():
            self._learn(self._order[start : start + self.schedule.batch])
        self.step += 1
        if step_of_epoch + 1 == self.steps_per_epoch:
            self._end_epoch(epoch)

    def averages(self) -> Averages:
        """Loss and accuracy of the epoch so far, or of the last one where none has begun."""
        if self.step % self.steps_per_epoch or not self.history:
            return self._read_tally()
        return Averages(self.history[-1].loss, self.history[-1].accuracy)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on exactly from here: tensors, and a note for JSON."""
        if self.step % self.steps_per_epoch:
            self._read_tally()
        check_finite(self.model, self.spec, self.step)
        tensors = {
            **_with_prefix("model", self.model.state_dict()),
            **_with_prefix("optimizer", optimizer_tensors(self._optimizer)),
            **_with_prefix("random", self._randomness.state()),
            **_with_prefix("tally", self._tally.state()),
        }
        history = [asdict(record) for record in self.history]
        return tensors, {"step": self.step, "history": history, "seconds": self._seconds()}

    def restore(self, tensors: dict[str, Tensor], note: dict[str, Any], /) -> None:
        """Go on from a state."""
        self.model.load_state_dict(_without_prefix("model", tensors))
        load_optimizer(self._optimizer, _without_prefix("optimizer", tensors))
        self._randomness.restore(_without_prefix("random", tensors))
        self._tally.restore(_without_prefix("tally", tensors))
        self.step, self.history = note["step"], [EpochRecord(**record) for record in note["history"]]
        self._order, self._earlier_seconds = None, note["seconds"]

    def _choose_objective(self, teachers: tuple[nn.Module, ...]) -> Objective:
        if self.spec.bayesian:
            return evidence_bound(self.model, self.schedule, len(self._images))
        if self.spec.distilled:
            return distillation(teachers, self.schedule, len(self._images), self._mixed)
        return cross_entropy

    def _begin_epoch(self, epoch: int, step_of_epoch: int) -> Tensor:
        """The order of an epoch that begins, or goes on in the middle after a checkpoint."""
        view = self.schedule.view(epoch)
        if self.spec.distilled and self.schedule.views is not None and step_of_epoch == 0:
            self._randomness.begin_view(view)
        return self._images.order(epoch_order(self.spec.seed, view, len(self._images)))

    def _learn(self, chosen: Tensor) -> None:
        schedule, epoch = self.schedule, self.step / self.steps_per_epoch
        images, labels = self._images.batch(
            chosen,
            self._randomness.generator,
            padding=schedule.padding,
            flip=schedule.flip,
            size=self.spec.image_size,
        )
        set_learning_rate(self._optimizer, schedule.learning_rate(epoch))
        with self._mixed():
            logits = self._apply(images)
        loss = self._objective(logits.float(), images, labels, self.step)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._tally.add(loss.detach(), logits.detach(), labels, self.step)

    def _end_epoch(self, epoch: int) -> None:
        averages = self._read_tally()
        rate = self.schedule.learning_rate(self.step / self.steps_per_epoch - 1 / self.steps_per_epoch)
        self.history.append(EpochRecord(epoch + 1, *averages, rate, self._seconds()))
        self._tally.clear()
        self._order, self._earlier_seconds = None, 0.0

    def _read_tally(self) -> Averages:
        """Loss and accuracy of the steps of this epoch; an error where the loss is not a number."""
        steps = self.step % self.steps_per_epoch or self.steps_per_epoch
        images = steps * min(self.schedule.batch, len(self._images))
        loss, correct, bad_step = self._tally.read()
        if bad_step >= 0:
            raise diverged(self.spec, f"the loss is not a number at step {bad_step} of {self.steps}")
        return Averages(loss / steps, correct / images)

    def _seconds(self) -> float:
        return (
            self._earlier_seconds if self._order is None else self._earlier_seconds + time.perf_counter() - self._since
        )


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def _without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): t for name, t in tensors.items() if name.startswith(f"{prefix}/")}
