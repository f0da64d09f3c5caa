"""A sentence of advice, and the plain words for networks and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.index import file_name
from credalens_paper.experiments.tables import BAYESIAN

WORDS: Final = {
    "efficientnet_b2": "EfficientNet-B2",
    "vit_base": "ViT-Base",
    "efficientnet_lite0": "EfficientNet-Lite0",
    "mlp": "text networks",
    "cifar10n": "CIFAR-10 with wrong labels",
}


@dataclass(frozen=True)
class Advice:
    """What to do, why, and where the evidence is: headings of the findings, or other pages."""

    do: str
    because: str
    evidence: tuple[str, ...]

    @property
    def text(self) -> str:
        """Markdown: the instruction on a line of its own, then the rest."""
        return f"**{self.do}.**\\\n{self.because} → {', '.join(self.evidence)}"


def section(title: str, /) -> str:
    """A link to a heading of the findings.

    >>> section("The paper's claims")
    "[the paper's claims](#the-papers-claims)"
    """
    anchor = title.lower().replace(" ", "-").replace("'", "")
    return f"[{title[0].lower()}{title[1:]}](#{anchor})"


def page(label: str, folder: str = "tables", /) -> str:
    """A link to the page of a result."""
    return f"[`{label}`](../results/{folder}/{file_name(label)}.md)"


class Network(NamedTuple):
    """A kind of network and the data that it was trained on, in plain words."""

    kind: str
    data: str

    @classmethod
    def of(cls, keys: CellKey, /) -> Network:
        """The network of a cell."""
        bayesian = "Bayesian " if keys.method in BAYESIAN else ""
        return cls(f"{bayesian}{_plain(keys.backbone)}", _plain(keys.id_set))


def _plain(value: str | None) -> str:
    return WORDS.get(str(value)) or display_name(value)


def networks_text(networks: Iterable[Network], /) -> str:
    """Networks in a sentence, those of the same data together.

    >>> networks_text([Network("VGG16", "CIFAR-10"), Network("MLP", "texts"), Network("ViT", "CIFAR-10")])
    'VGG16 and ViT on CIFAR-10, and MLP on texts'
    """
    kinds: dict[str, list[str]] = {}
    for network in networks:
        kinds.setdefault(network.data, []).append(network.kind)
    *most, last = [f"{listed(names)} on {data}" for data, names in kinds.items()]
    return f"{', '.join(most)}, and {last}" if most else last


def listed(names: Iterable[str], /) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def ends(values: Sequence[float], form: str, /) -> str:
    """The least and the greatest of some values, once where they read the same.

    >>> ends([0.5, 2.25], ".1f"), ends([0.5], ".1f")
    ('0.5 to 2.2', '0.5')
    """
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in (min(values), max(values))))
