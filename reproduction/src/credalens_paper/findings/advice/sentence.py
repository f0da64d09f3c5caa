"""A sentence of advice, and the plain words for networks and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
        """Markdown."""
        return f"**{self.do}.** {self.because} → {', '.join(self.evidence)}"


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


def network_words(keys: Any, /) -> str:
    """A network and its data in plain words, from the keys of a cell."""
    kind = "Bayesian " if keys.method in BAYESIAN else ""
    return f"{kind}{plain(keys.backbone)} on {plain(keys.id_set)}"


def plain(value: str, /) -> str:
    """A name without abbreviations."""
    return WORDS.get(value) or display_name(value)


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
