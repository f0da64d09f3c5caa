"""Sizes of the same reproduction: smoke (minutes on a laptop), fast (CIFAR on one GPU), scratch (large networks on small
images from random weights), text (small networks for texts, on a CPU), full (the paper's)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from credalens.checks.options import check_choice
from credalens_paper.backbones import BACKBONES, IMAGE, LARGE, LITE, TEXT
from credalens_paper.corruptions import CORRUPTIONS, SEVERITIES
from credalens_paper.data import DATA_SETS
from credalens_paper.data.texts import FEATURES
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.json_records import optional

METHODS: Final = ("DE", "BNNR", "BNNF", "EDD", "EDD-Fair")
COUNTS: Final = (
    "members", "many_members", "runs", "bnn_runs", "edd_runs", "long_runs", "draws", "keep", "repeats", "solver_samples"
)  # fmt: skip
Substitutes = Mapping[str, Mapping[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What the paper leaves to the reader's machine: schedule, sizes, numbers of models and runs.

    :ivar members: networks trained for the deep ensembles of N = 5, of which the runs are distinct combinations.
    :ivar many_members: networks trained for the ablation on N.
    :ivar substitutes: for a key of the paper's cells what stands in its place, such as ResNet-18 for ResNet-50.
    :ivar image_sizes: pixels of single backbones, where they differ from `image_size`.
    :ivar few_corrupted: whether every fifth image of a corrupted set is enough; None means all images.
    :ivar left_out: backbones, sets and methods that this preset does not measure, with the reason.
    :ivar focus: the methods, backbones and training sets to train, predict and evaluate now; empty for all.
    :ivar draws: samples of a Bayesian network drawn at a time under one seed.
    :ivar keep: beyond this number of samples only their summary is stored.
    :ivar long_runs: runs of a Bayesian network with so many samples.
    :ivar first_run: the number, from 0, of the first run to measure, if those before it are measured elsewhere.
    :ivar repeats: measurements of a time, random halves that guards learn from; a fiftieth of the resamples of inputs.
    """

    name: str
    schedule: str
    members: int = 15
    many_members: int = 30
    runs: int = 15
    bnn_runs: int = 15
    edd_runs: int = 15
    long_runs: int = 15
    first_run: int | None = optional()
    width: float = 1.0
    image_size: int | None = None
    image_sizes: Mapping[str, int] | None = optional()
    train_images: int | None = None
    test_images: int | None = None
    corruptions: tuple[str, ...] = CORRUPTIONS
    severities: tuple[int, ...] = SEVERITIES
    few_corrupted: bool | None = optional()
    substitutes: Substitutes = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    focus: tuple[str, ...] = ()
    draws: int = 5
    keep: int = 100
    repeats: int = 20
    solver_samples: int = 500
    formats: tuple[str, ...] = ("png", "svg")
    dpi: int = 200

    def __post_init__(self) -> None:
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of preset {self.name!r} must be at least 1, got {getattr(self, name)}")
        if self.first_run is not None and self.first_run < 0:
            raise ValueError(f"runs are counted from 0, got first_run={self.first_run} in preset {self.name!r}")

    def substitute(self, key: str, value: Any, /) -> Any:
        """What this preset measures where the paper has `value`."""
        return self.substitutes.get(key, {}).get(value, value)

    def substituted(self, key: CellKey, /) -> CellKey:
        """The cell as this preset measures it."""
        return replace(key, **{name: self.substitute(name, value) for name, value in key.as_dict().items()})

    def pixels(self, backbone: str, /) -> int:
        """The image size a backbone works at; for texts the number of their features."""
        usual = FEATURES if backbone == TEXT else 224 if backbone in (*LARGE, LITE) else 32
        return (self.image_sizes or {}).get(backbone) or self.image_size or usual

    def sampled_runs(self, N: int, /) -> int:
        """How many Bayesian networks are trained for runs of N samples.

        >>> [get_preset("fast").sampled_runs(N) for N in (5, 1000)]
        [5, 1]
        """
        return self.bnn_runs if self.keep >= N else self.long_runs

    def only(self, names: Iterable[str], /) -> Preset:
        """The preset with some of the methods, backbones or training sets, such as DE or vgg16, to work on; none means all.

        Numbers of the others are shown where they are in the store, and otherwise left out.
        """
        return replace(
            self, focus=tuple(check_choice(name, (*METHODS, *BACKBONES, *DATA_SETS), "only") for name in names)
        )

    def changed(self, **options: int | None) -> Preset:
        """The preset with some numbers replaced; None leaves one as it is."""
        return replace(self, **{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


_SMOKE_SETS: Final = {
    **dict.fromkeys(("cifar10", "cifar10n", "cifar100", "imagenet"), "digits"),
    "clinc150": "requests",
}
_SMOKE_OOD: Final = {
    "svhn": "textures", "tiny-imagenet": "photos", "imagenet-o": "textures", "cifar10": "textures", "cifar100": "photos",
    "cifar10-c": "digits-c", "cifar100-c": "digits-c", "clinc150-oos": "babble",
}  # fmt: skip

PRESETS: Final[Mapping[str, Preset]] = {
    "smoke": Preset(
        name="smoke", schedule="smoke", members=4, many_members=4, runs=3, bnn_runs=2, edd_runs=2, long_runs=1,
        width=1 / 16, image_size=8, image_sizes={TEXT: 64}, test_images=120,
        corruptions=("gaussian_noise", "contrast"), severities=(1, 5),
        substitutes={
            "backbone": {LITE: "resnet18"},  # there are no weights to start from
            "id_set": _SMOKE_SETS,
            "ood_set": _SMOKE_OOD,
            "N": {3: 2, 5: 3, 10: 3, 15: 3, 20: 4, 25: 4, 50: 5, 100: 6, 1000: 8},
            "J": {10: 3, 20: 5, 50: 5, 100: 10},
        },
        draws=2, keep=6, repeats=2, solver_samples=10, formats=("png",), dpi=72,
    ),
    "fast": Preset(
        name="fast", schedule="fast", many_members=26, bnn_runs=5, edd_runs=3, long_runs=1,
        substitutes={"backbone": {"resnet50": "resnet18"}},
        left_out={
            "efficientnet_b2": "EfficientNet-B2 at 224 pixels is left to the full preset",
            "vit_base": "ViT-Base at 224 pixels is left to the full preset",
            "imagenet": "ImageNet is left to the full preset",
        },
    ),
    "scratch": Preset(
        name="scratch", schedule="fast", members=6, many_members=10,
        image_sizes={"resnet50": 64, "efficientnet_b2": 64, "vit_base": 32}, few_corrupted=True,
        left_out={"imagenet": "ImageNet is left to the full preset"},
    ),
    "text": Preset(
        name="text", schedule="fast", many_members=26, bnn_runs=3, draws=25, keep=1000,
        left_out=dict.fromkeys(IMAGE, "images are left to the other presets"),
    ),
    "full": Preset(name="full", schedule="paper"),
}  # fmt: skip


def get_preset(name: str | Preset, /) -> Preset:
    """The preset of that name; a `Preset` is handed back as it is."""
    if isinstance(name, Preset):
        return name
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]
