"""Where a number stands: the keys that tell the cells of tables apart, and the words that readers know for them.

One key is how test images are given to a network: as in training, or by a mistake that would lower its accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import CORRUPTED, DATA_SETS
from credalens_paper.json_records import optional, to_json

Pixels = NDArray[np.uint8]
Numbers = tuple[float, ...]
Statistics = tuple[Numbers, Numbers]
TRAINED: Final = "trained"
SEVEREST: Final = "severest"
EVERY: Final = 5  # of a set that is given in one of these ways, every fifth image is enough


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Preparation:
    """A way in plain words, by what it does to bytes (n, h, w, 3), and to the mean and deviation they are normalised by.

    Scales are statistics too: bytes that are not divided by 255 have a mean and a deviation 255 times smaller.
    """

    words: str
    statistics: Callable[[Statistics], Statistics] = _same
    arrange: Callable[[Pixels], Pixels] = _same


def _fixed(mean: float, std: float) -> Callable[[Statistics], Statistics]:
    return lambda statistics: ((mean,) * 3, (std,) * 3)


def _normalised_twice(statistics: Statistics) -> Statistics:
    """((x - m) / s - m) / s is (x - m - m s) / s^2."""
    pairs = list(zip(*statistics, strict=True))
    return tuple(m + m * s for m, s in pairs), tuple(s * s for _, s in pairs)


def _in_steps(images: Pixels) -> Pixels:
    """Every fifth image, then those behind them: their labels stay in the order of the file."""
    return images[np.argsort(np.arange(len(images)) % 5, kind="stable")]


PREPARATIONS: Final = {
    TRAINED: Preparation("as in training"),
    "unit": Preparation("0 to 1, not normalised", _fixed(0, 1)),
    "bytes": Preparation("0 to 255, not normalised", _fixed(0, 1 / 255)),
    "normalised_twice": Preparation("normalised twice", _normalised_twice),
    "signed": Preparation("-1 to 1", _fixed(0.5, 0.5)),
    "bgr": Preparation("blue for red", arrange=lambda images: images[..., ::-1]),
    "swapped": Preparation("height and width swapped", arrange=lambda images: images.swapaxes(1, 2)),
    "labels": Preparation("labels of other images", arrange=_in_steps),
    SEVEREST: Preparation("severest corruptions alone"),
}
"""By name; the severest corruptions alone are a mistake of the average, with images given as in training."""


TURNED_AWAY: Final = ("turned_away", "halved_turned_away")
HIGHER: Final = frozenset({"ACC", "AUROC", "AUPRC", "accepted_ACC", "halved_accepted", *TURNED_AWAY})
"""Metrics of which more is better; of the others less is."""
DIGITS: Final = 12  # of a mean difference, so that runs which cancel each other are a tie
ALARM_METRICS: Final = ("false_alarms", "accepted_ACC")
ERROR_METRICS: Final = ("halved_accepted", "halved_left", "halved_broken")
SET_METRICS: Final = ("coverage", "classes_in_set")
GUARD_METRICS: Final = frozenset({*ALARM_METRICS, *ERROR_METRICS, *SET_METRICS, *TURNED_AWAY})
"""What guards and sets keep of their promises: `measures.guarding`."""
MEAN: Final = "mean"  # the mean uncertainty of a test set, in bits
NEUTRAL: Final = frozenset({MEAN, "coverage"})  # metrics of which neither more nor less is better


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """The keys of a cell; None where one does not apply.

    `id_set` is the set that a model was trained on; `ood_set` is the other set it was tested with (None: the test split of
    `id_set`), and `preparation` is how its images are given to the networks (None: all of them, as in training).
    "Baseline" of the paper is the variant "classical" and "Ours" is "credal"; EDD is neither.
    """

    backbone: str | None = optional()
    method: str | None = optional()
    variant: str | None = optional()
    N: int | None = optional()
    J: int | None = optional()
    C: int | None = optional()
    measure: str | None = optional()
    id_set: str | None = optional()
    ood_set: str | None = optional()
    preparation: str | None = optional()
    metric: str

    def get(self, key: str, /) -> Any:
        """The value of a key by its name; None where it does not apply or is not a key of the paper's cells."""
        return getattr(self, key, None)

    def as_dict(self) -> dict[str, Any]:
        """The keys that apply."""
        return dict(to_json(self))

    @property
    def baseline(self) -> CellKey:
        """The classical cell that a credal one is compared with: no PIA, and mutual information as its EU."""
        measure = "EU" if self.measure == "GH" else self.measure
        return replace(self, variant="classical", J=None, measure=measure)


KEYS: Final = tuple(CellKey.__dataclass_fields__)


def cells(**axes: Any) -> tuple[CellKey, ...]:
    """The cells of all combinations of the keys' values, each a value or a tuple of them."""
    values = [value if isinstance(value, tuple) else (value,) for value in axes.values()]
    return tuple(CellKey(**dict(zip(axes, combination, strict=True))) for combination in product(*values))


def is_better(metric: str, difference: float, /) -> bool:
    """Whether a difference of this metric is on the better side."""
    return difference > 0 if metric in HIGHER else difference < 0


def better_side(metric: str, difference: float, /) -> str:
    """Which side a difference credal - classical speaks for: "credal", "classical" or "equal"."""
    return "equal" if difference == 0 else "credal" if is_better(metric, difference) else "classical"


_NAMES: Final = {
    "vgg16": "VGG16", "resnet18": "ResNet-18", "resnet50": "ResNet-50", "efficientnet_b2": "EffB2", "vit_base": "ViT-B",
    "efficientnet_lite0": "EffLite0", "mlp": "MLP",
    **{name: data_set.title for name, data_set in DATA_SETS.items()},
    **{name: title for name, (title, _) in CORRUPTED.items()},
    "clinc150-oos": "OOS requests", "tiny-imagenet": "Tiny-ImageNet",
    "backbone": "Backbone", "method": "Method", "id_set": "ID", "ood_set": "Set", "measure": "Measure", "metric": "Metric",
    "variant": "Variant", "preparation": "Images",
    "mean": "mean (bit)", "false_alarms": "false alarms (%)", "turned_away": "turned away (%)",
    "accepted_ACC": "accuracy of accepted (%)",
    "halved_accepted": "error rate halved: accepted (%)",
    "halved_left": "error rate halved: rate left (%)",
    "halved_broken": "error rate halved: halves above it (%)",
    "halved_turned_away": "error rate halved: turned away (%)",
    "coverage": "sets with the true class (%)", "classes_in_set": "classes in a set",
    "time_ms": "time (ms)", "cpu_ms": "CPU (ms)", "gpu_ms": "GPU (ms)", "uncertainty_ms": "uncertainty (ms)",
    "model_size_mb": "size (MB)",
    **{name: preparation.words for name, preparation in PREPARATIONS.items()},
}  # fmt: skip


def display_name(value: Any, /) -> str:
    """A key or value as readers know it.

    >>> display_name("resnet18"), display_name(5), display_name("digits")
    ('ResNet-18', '5', 'digits')
    """
    return _NAMES.get(str(value), str(value))
