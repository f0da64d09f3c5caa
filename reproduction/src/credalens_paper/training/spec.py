"""What is trained: one network of one method on one data set from one seed."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, Final

from credalens.checks.options import check_choice

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
        _check_names(self)
        _check_numbers(self)
        _check_teachers(self)

    @property
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
        stored = {**asdict(self), "teachers": list(self.teachers)}
        del stored["weights"]
        return stored


_DEFAULTS: Final[dict[str, Any]] = {
    entry.name: [] if entry.name == "teachers" else entry.default
    for entry in fields(TrainSpec)
    if entry.default is not MISSING
}


def _check_names(spec: TrainSpec) -> None:
    check_choice(spec.method, METHODS, "method")
    check_choice(spec.schedule, SCHEDULES, "schedule")
    for name in ("data", "backbone"):
        if not _NAME.fullmatch(getattr(spec, name)):
            raise ValueError(
                f"{name} becomes part of a folder name: letters, digits and _ . - only, got {getattr(spec, name)!r}."
            )


def _check_numbers(spec: TrainSpec) -> None:
    for name, least in (("seed", 0), ("classes", 2), ("image_size", 1)):
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if not spec.width > 0:
        raise ValueError(f"width multiplies the number of channels and must be positive, got {spec.width!r}.")


def _check_teachers(spec: TrainSpec) -> None:
    if spec.distilled and len(set(spec.teachers)) < 2:
        raise ValueError(
            f"{spec.method} learns from at least two teachers, whose disagreement is what a Dirichlet describes; got "
            f"teachers={spec.teachers}. Give the seeds of trained standard networks (method 'snn')."
        )
    if len(set(spec.teachers)) < len(spec.teachers):
        raise ValueError(f"teachers must be different seeds, got {spec.teachers}.")
    if spec.teachers and not spec.distilled:
        raise ValueError(
            f"{spec.method} has no teachers, got teachers={spec.teachers}; they belong to edd and edd_fair."
        )
