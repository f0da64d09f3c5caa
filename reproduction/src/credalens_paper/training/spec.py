"""What is trained: one network of one method on one data set from one seed; how long and how fast."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from credalens.checks.options import check_choice
from credalens_paper.backbones import LITE, TEXT
from credalens_paper.json_records import to_json

METHODS: Final = ("snn", "bnnr", "bnnf", "edd", "edd_fair")
"""Standard network, Bayesian by local reparameterisation and by flipout, and two ways to distil an ensemble."""

ESTIMATORS: Final = {"bnnr": "reparameterization", "bnnf": "flipout"}
DISTILLED: Final = ("edd", "edd_fair")
SCHEDULES: Final = ("paper", "fast", "smoke")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class TrainSpec:
    """One network to train; equal specs give equal networks.

    ``teachers`` are the seeds of the standard networks that an EDD student distils, ``pretrained`` the digest of
    the weights to start from. ``weights`` is the folder of these on this machine, and no part of what a spec is.

    >>> spec = TrainSpec("cifar10", "resnet18", "snn", seed=0, schedule="fast", classes=10)
    >>> spec.key
    'cifar10-resnet18-snn-fast-seed0-552f89c5'
    """

    data: str
    backbone: str
    method: str
    seed: int
    schedule: str
    classes: int
    width: float = 1.0
    image_size: int = 32
    teachers: tuple[int, ...] = ()
    pretrained: str | None = None
    weights: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", float(self.width))  # 1 and 1.0 are one network, also in its key
        object.__setattr__(self, "teachers", tuple(self.teachers))
        check_choice(self.method, METHODS, "method")
        check_choice(self.schedule, SCHEDULES, "schedule")
        for name in ("data", "backbone"):
            if not _NAME.fullmatch(getattr(self, name)):
                raise ValueError(
                    f"{name} becomes part of a folder name: letters, digits and _ . - only, got {getattr(self, name)!r}."
                )
        for name, least in (("seed", 0), ("classes", 2), ("image_size", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
        if not self.width > 0:
            raise ValueError(f"width multiplies the number of channels and must be positive, got {self.width!r}.")
        if self.distilled and len(set(self.teachers)) < 2:
            raise ValueError(
                f"{self.method} learns from at least two teachers, whose disagreement is what a Dirichlet describes; got "
                f"teachers={self.teachers}. Give the seeds of trained standard networks (method 'snn')."
            )
        if len(set(self.teachers)) < len(self.teachers):
            raise ValueError(f"teachers must be different seeds, got {self.teachers}.")
        if self.teachers and not self.distilled:
            raise ValueError(
                f"{self.method} has no teachers, got teachers={self.teachers}; they belong to edd and edd_fair."
            )

    @cached_property
    def key(self) -> str:
        """A folder name that says what it holds; its last part tells all fields apart."""
        width = "" if self.width == 1 else f"-w{self.width:g}"
        distinctive = {name: value for name, value in self.as_dict().items() if value != _DEFAULTS.get(name, MISSING)}
        digest = hashlib.sha256(json.dumps(distinctive, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.data}-{self.backbone}{width}-{self.method}-{self.schedule}-seed{self.seed}-{digest}"

    @property
    def bayesian(self) -> bool:
        """Whether the weights are distributions (BNNR, BNNF)."""
        return self.method in ESTIMATORS

    @property
    def distilled(self) -> bool:
        """Whether the network learns from teachers (EDD, EDD-Fair)."""
        return self.method in DISTILLED

    def teacher_specs(self) -> tuple[TrainSpec, ...]:
        """The standard networks that this one learns from."""
        return tuple(replace(self, method="snn", seed=seed, teachers=()) for seed in self.teachers)

    def as_dict(self) -> dict[str, Any]:
        """All fields but for the place of the weights, as JSON has them."""
        return {name: value for name, value in to_json(self).items() if name != "weights"}


_DEFAULTS: Final[dict[str, Any]] = {
    entry.name: [] if entry.name == "teachers" else entry.default
    for entry in fields(TrainSpec)
    if entry.default is not MISSING
}


LARGE: Final = {"resnet50": (15, 20), "efficientnet_b2": (15, 20), "vit_base": (25, 25)}
"""The 224-pixel backbones and their epochs on CIFAR-10 and CIFAR-100 (paper, App. ExperimentDetails)."""

SMALL_IMAGES: Final = 64
"""Pixels up to which an epoch of a large network takes about a second on one GPU, so that more of them are affordable."""

ONE_WAY: Final = ("digits", "svhn")  # sets that are not mirrored: a mirrored two is no two

LITTLE: Final = ("digits", "textures", "photos", "requests")
"""Sets of about a thousand inputs, for which a batch of 512 leaves no steps."""

COLD: Final = 1e-3
"""The temperature of the Bayesian posterior, a factor on the KL divergence. The paper states none, but reports the
accuracy of a cold one: at 1 a network of ten million weights pays hundreds of nats for each image, and underfits."""

INITIAL_STD: Final = 0.01
"""Deviations that start about as large as the weights of a wide layer; much larger ones drown them."""

CYCLE: Final = 2 / 3
"""Share of the training that the cycle of EDD takes: 60 of 90 epochs in the original experiments."""

POLICIES: Final = ("steps", "one_cycle", "distillation")


@dataclass(frozen=True)
class Schedule:
    """All numbers of a training, in epochs; goes into the records of the trained network.

    ``rate`` is the base learning rate of the policies "steps" (a tenth of it after each milestone) and "distillation"
    (linearly up to ten times the rate and back within the share CYCLE of the training, then down to a thousandth) and the
    peak of "one_cycle" (linearly up during ``warmup``, a share of the training, then linearly to zero). Weight decay
    leaves biases and normalisation alone. The weight of the KL divergence is ``kl_scale`` / number of training images,
    after a linear rise over ``kl_warmup`` epochs; the deviations of Bayesian weights start at ``initial_std``. Students
    start at ``temperature``, which after half of the share ``cooled`` of the training sinks, and is 1 from its end on;
    ``limit`` is the longest gradient of an image with respect to their logits. ``padding`` is the largest shift as a share
    of the image: 4 pixels of 32. ``most_steps`` cuts an epoch short. Of ``views`` epochs of a student each has its order
    and augmentation, which come back in turn, so that its teachers are asked about every batch once; None draws all
    epochs anew.
    """

    optimizer: str
    epochs: int
    batch: int
    rate: float
    policy: str
    milestones: tuple[float, ...] = ()
    warmup: float = 0.2
    momentum: float = 0.9
    weight_decay: float = 0.0
    kl_scale: float = 1.0
    kl_warmup: float = 0.0
    initial_std: float | None = None
    temperature: float = 1.0
    cooled: float = CYCLE
    limit: float | None = None
    padding: float = 0.125
    flip: bool = True
    most_steps: int | None = None
    views: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.optimizer, ("adam", "sgd"), "optimizer")
        check_choice(self.policy, POLICIES, "policy")
        if not 0 < self.cooled <= 1:
            raise ValueError(f"cooled must be a share of the training, above 0 and at most 1, got {self.cooled!r}.")
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"limit must be a length above 0, or None, got {self.limit!r}.")
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise ValueError(f"temperature must be a positive, finite number, got {self.temperature!r}.")
        for name in ("epochs", "batch", "views"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}.")

    def learning_rate(self, epoch: float, /) -> float:
        """The learning rate at a moment of the training, for example 2.5 in the middle of the third epoch."""
        if self.policy == "steps":
            return self.rate * 0.1 ** sum(epoch >= milestone for milestone in self.milestones)
        if self.policy == "one_cycle":
            corners = (0, self.warmup * self.epochs, self.epochs)
            return float(np.interp(epoch, corners, (0.1 * self.rate, self.rate, 0.0)))
        half = CYCLE * self.epochs / 2
        return self.rate * _interpolate(epoch, (0, 1.0), (half, 10.0), (2 * half, 1.0), (self.epochs, 1e-3))

    def kl_weight(self, epoch: float, examples: int, /) -> float:
        """The weight of the KL divergence in the loss of one example."""
        share = min(1.0, epoch / self.kl_warmup) if self.kl_warmup else 1.0
        return share * self.kl_scale / examples

    def heat(self, epoch: float, /) -> float:
        """The temperature of teachers and student: constant for half of the share ``cooled``, then linearly down to 1."""
        half = self.cooled * self.epochs / 2
        return _interpolate(epoch, (half, self.temperature), (2 * half, 1.0))

    def steps_per_epoch(self, examples: int, /) -> int:
        """Full batches in an epoch; what is left over comes up in another epoch's order."""
        steps = max(1, examples // self.batch)
        return steps if self.most_steps is None else min(steps, self.most_steps)

    def view(self, epoch: int, /) -> int:
        """Which order and augmentation an epoch has.

        >>> [Schedule("adam", 5, 128, 1e-3, "steps", views=2).view(epoch) for epoch in range(5)]
        [0, 1, 0, 1, 0]
        """
        return epoch if self.views is None else epoch % self.views

    def lasting(self, epochs: int, /) -> Schedule:
        """The same schedule stretched or shortened to so many epochs, milestones and warm-ups with it."""
        factor = epochs / self.epochs
        milestones = tuple(factor * milestone for milestone in self.milestones)
        return replace(self, epochs=epochs, milestones=milestones, kl_warmup=factor * self.kl_warmup)

    def as_dict(self) -> dict[str, Any]:
        """All numbers, as JSON has them."""
        return dict(to_json(self))

    @staticmethod
    def completed(stored: dict[str, Any], /) -> dict[str, Any]:
        """The numbers of an older record, with those that came later as they are when nobody asks for them.

        >>> Schedule.completed({"epochs": 22})["views"] is None
        True
        """
        later = {field.name: field.default for field in fields(Schedule) if field.default is not MISSING}
        return {**later, **stored}


def _interpolate(epoch: float, *corners: tuple[float, float]) -> float:
    """The piecewise linear function through the corners, constant before the first and after the last."""
    if epoch <= corners[0][0]:
        return corners[0][1]
    for (start, low), (end, high) in pairwise(corners):
        if epoch < end:
            return low + (high - low) * (epoch - start) / (end - start)
    return corners[-1][1]


STUDENT: Final = Schedule("adam", 40, 256, 3e-3, "one_cycle", temperature=10.0, cooled=0.9, limit=10.0, views=8)
"""The fast schedule of EDD. Near temperature 1 a few images on which a confident student errs have gradients thousands of
times as long as the others', and at a large rate it forgets those for these: so their gradients are limited, and it cools
late, when the rate is small."""


def schedule_for(spec: TrainSpec, /, *, epochs: int | None = None) -> Schedule:
    """The schedule that a spec names, for its method, backbone and data; ``epochs`` stretches or shortens it."""
    schedule = {"paper": _paper, "fast": _fast, "smoke": _smoke}[spec.schedule](spec)
    schedule = replace(schedule, flip=spec.data not in ONE_WAY)
    if spec.backbone == TEXT:  # features cannot be shifted or mirrored
        schedule = replace(schedule, padding=0.0, flip=False)
    if spec.bayesian:
        schedule = replace(schedule, kl_scale=COLD, initial_std=INITIAL_STD)
    return schedule if epochs is None else schedule.lasting(epochs)


def _paper(spec: TrainSpec) -> Schedule:
    """App. ExperimentDetails; the batch size of the large networks is not stated there and taken as the same 128."""
    if spec.backbone == LITE:  # none of the paper's
        return _fast(spec)
    if spec.data == "imagenet":
        return Schedule("adam", epochs=3, batch=128, rate=1e-6, policy="steps")
    if spec.backbone in LARGE:
        epochs = LARGE[spec.backbone][spec.data == "cifar100"]
        return _distilling(spec, Schedule("adam", epochs, 128, 1e-3, "steps", milestones=(epochs - 5,)))
    epochs = 150 if spec.bayesian else 100
    return _distilling(spec, Schedule("adam", epochs, 128, 1e-3, "steps", milestones=(80, 120)))


def _fast(spec: TrainSpec) -> Schedule:
    """Few epochs with one cycle of large rates: plain cross-entropy, so that calibration is not distorted."""
    if spec.backbone == LITE:  # a few epochs of all weights at a small rate: they start from those of ImageNet
        epochs = 4 if spec.data == "cifar100" else 3
        return _distilling(spec, _smaller(spec, Schedule("sgd", epochs, 128, 0.02, "one_cycle", weight_decay=1e-4)))
    if spec.data == "imagenet":
        return _paper(spec)
    if spec.method == "edd":
        return _smaller(spec, STUDENT)
    if spec.distilled:
        return _smaller(spec, _distilling(spec, Schedule("adam", 16, 256, 1e-3, "steps", milestones=(13,))))
    if spec.backbone == TEXT:
        epochs, warmup = (20, 5.0) if spec.bayesian else (10, 0.0)
        return Schedule("adam", epochs, 128, 3e-3, "one_cycle", kl_warmup=warmup)
    if spec.bayesian:
        return _smaller(spec, Schedule("adam", 30, 512, 3e-3, "one_cycle", kl_warmup=7.5))
    if spec.backbone == "vit_base":
        return Schedule("adam", 10, 256, 3e-4, "one_cycle")
    if spec.backbone in LARGE:
        epochs = 10 if spec.image_size > SMALL_IMAGES else 20
        if spec.backbone == "efficientnet_b2":  # SGD does not leave chance within the first epochs
            return Schedule("adam", epochs, 256, 2e-3, "one_cycle")
        return Schedule("sgd", epochs, 256, 0.1, "one_cycle", weight_decay=5e-4)
    epochs, decay = (30, 1e-3) if spec.backbone == "vgg16" else (22, 5e-4)  # without shortcuts it takes longer
    return _smaller(spec, Schedule("sgd", epochs, 512, 0.2, "one_cycle", weight_decay=decay))


def _smoke(spec: TrainSpec) -> Schedule:
    """Sixteen steps at most: every part of the training runs, nothing is learnt well."""
    plain = Schedule("adam", epochs=2, batch=64, rate=3e-3, policy="one_cycle", kl_warmup=1, most_steps=8)
    return _distilling(spec, replace(plain, views=1) if spec.distilled else plain)


def _distilling(spec: TrainSpec, plain: Schedule) -> Schedule:
    """Both students anneal the temperature; EDD has its cyclic learning rate too, EDD-Fair the plain one."""
    if not spec.distilled:
        return plain
    heated = replace(plain, temperature=10.0)
    return heated if spec.method == "edd_fair" else replace(heated, rate=1e-3, policy="distillation", milestones=())


def _smaller(spec: TrainSpec, schedule: Schedule) -> Schedule:
    """Batches of 64 for little sets, with rates of SGD in proportion."""
    if spec.data not in LITTLE:
        return schedule
    factor = 64 / schedule.batch if schedule.optimizer == "sgd" else 1.0
    return replace(schedule, batch=64, rate=factor * schedule.rate)
