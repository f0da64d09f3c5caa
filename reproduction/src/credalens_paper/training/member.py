"""One network in training: everything that changes from step to step, and the step."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from credalens.bayes import use_generator
from credalens_paper.training.devices import mixed
from credalens_paper.training.images import DeviceImages
from credalens_paper.training.objectives import Objective, cross_entropy, distillation, evidence_bound
from credalens_paper.training.optimizers import load_optimizer, make_optimizer, optimizer_tensors, set_learning_rate
from credalens_paper.training.randomness import Randomness, epoch_order
from credalens_paper.training.schedules import Schedule
from credalens_paper.training.spec import TrainSpec
from credalens_paper.training.tally import Reading, Tally, check_finite, diverged


@dataclass(frozen=True)
class EpochRecord:
    """Averages over the augmented training images of one epoch."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float
    seconds: float


@final
class Member:
    """A network, its optimiser, its random numbers and its place in the schedule.

    ``advance`` does one step and waits for the device only at the end of an epoch; ``read`` and ``state`` wait.
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
    ):
        self.spec, self.schedule, self.model = spec, schedule, model.train()
        self.step, self.history = 0, list[EpochRecord]()
        self.steps_per_epoch = schedule.steps_per_epoch(len(images))
        self._images, self._device = images, images.device
        self._mixed = partial(mixed, precision, images.device)
        self._randomness = Randomness(spec.seed, images.device)
        self._optimizer = make_optimizer(model, schedule, images.device)
        # Random weights are drawn outside of what can be compiled. A graph's output would not outlive the next teacher's.
        self._apply = _compiled(model, graph=True) if compile and not spec.bayesian else model
        self._objective = self._choose_objective(tuple(_compiled(one) if compile else one for one in teachers))
        self._tally = Tally(images.device)
        self._order: Tensor | None = None
        self._carried, self._since = 0.0, time.perf_counter()

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
        epoch, place = divmod(self.step, self.steps_per_epoch)
        if self._order is None:
            self._order, self._since = self._open(epoch, place), time.perf_counter()
        start = place * self.schedule.batch
        with self._randomness.active():
            self._learn(self._order[start : start + self.schedule.batch])
        self.step += 1
        if place + 1 == self.steps_per_epoch:
            self._close(epoch)

    def read(self) -> Reading:
        """Loss and accuracy of the epoch so far; an error where the loss is not a number."""
        steps = self.step % self.steps_per_epoch or self.steps_per_epoch
        images = steps * min(self.schedule.batch, len(self._images))
        loss, correct, bad = self._tally.read()
        if bad >= 0:
            raise diverged(self.spec, f"the loss is not a number at step {bad} of {self.steps}")
        return Reading(loss / steps, correct / images)

    def latest(self) -> Reading:
        """The averages of the epoch so far, or of the last one where none has begun."""
        if self.step % self.steps_per_epoch or not self.history:
            return self.read()
        return Reading(self.history[-1].loss, self.history[-1].accuracy)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything needed to go on exactly from here: tensors, and a note for JSON."""
        if self.step % self.steps_per_epoch:
            self.read()
        check_finite(self.model, self.spec, self.step)
        tensors = {
            **_prefixed("model", self.model.state_dict()),
            **_prefixed("optimizer", optimizer_tensors(self._optimizer)),
            **_prefixed("random", self._randomness.state()),
            **_prefixed("tally", self._tally.state()),
        }
        history = [asdict(record) for record in self.history]
        return tensors, {"step": self.step, "history": history, "seconds": self._seconds()}

    def restore(self, tensors: dict[str, Tensor], note: dict[str, Any], /) -> None:
        """Go on from a state."""
        self.model.load_state_dict(_below("model", tensors))
        load_optimizer(self._optimizer, _below("optimizer", tensors))
        self._randomness.restore(_below("random", tensors))
        self._tally.restore(_below("tally", tensors))
        self.step, self.history = note["step"], [EpochRecord(**record) for record in note["history"]]
        self._order, self._carried = None, note["seconds"]

    def _choose_objective(self, teachers: tuple[nn.Module, ...]) -> Objective:
        if self.spec.bayesian:
            use_generator(self.model, self._randomness.generator)
            return evidence_bound(self.model, self.schedule, len(self._images))
        if self.spec.distilled:
            return distillation(teachers, self.schedule, len(self._images), self._mixed)
        return cross_entropy

    def _open(self, epoch: int, place: int) -> Tensor:
        """The order of an epoch that begins, or goes on in the middle after a checkpoint."""
        view = self.schedule.view(epoch)
        if self.spec.distilled and self.schedule.views is not None and place == 0:
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

    def _close(self, epoch: int) -> None:
        reading = self.read()
        rate = self.schedule.learning_rate(self.step / self.steps_per_epoch - 1 / self.steps_per_epoch)
        self.history.append(EpochRecord(epoch + 1, *reading, rate, self._seconds()))
        self._tally.clear()
        self._order, self._carried = None, 0.0

    def _seconds(self) -> float:
        return self._carried if self._order is None else self._carried + time.perf_counter() - self._since


def _compiled(network: nn.Module, *, graph: bool = False) -> nn.Module:
    """Fused, one compilation for all networks of a kind, of kernels that are not chosen by their speed at the moment.

    A ``graph`` of CUDA is replayed: launching many small kernels takes longer than running them.
    """
    return torch.compile(network, options=_options(graph), dynamic=False)  # type: ignore[return-value]


def _options(graph: bool) -> dict[str, Any]:
    """As far as this torch knows them: an older one's compiler still chooses some kernels by their speed."""
    wanted = {"triton.cudagraphs": graph, "deterministic": True}
    known = torch._inductor.list_options()
    return {name: value for name, value in wanted.items() if name in known}


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): t for name, t in tensors.items() if name.startswith(f"{prefix}/")}
