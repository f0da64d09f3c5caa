"""The look of every chart: two themes, one colour-blind-safe palette, and the colour and dashes of each score.

The hues follow Okabe and Ito; lightness is tuned so that every colour has a contrast of at least 3:1 with its
background and any two differ by at least 18 in CIELAB for normal, protan, deutan and tritan vision. What belongs to the
credal set is blue, the intersection probability orange, the averaged one green; dashes tell apart what shares a colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final, NamedTuple

Dash = tuple[float, ...]
DASHES: Final[tuple[Dash, ...]] = ((), (5.0, 1.8), (1.2, 1.4), (6.0, 1.6, 1.2, 1.6), (9.0, 2.2))
"""Lengths of strokes and gaps; the first is solid."""
MARKERS: Final[tuple[str, ...]] = ("o", "s", "^", "D", "v", "P", "X")
ROLES: Final = ("credal", "intersection", "averaged", "hull", "spare", "text")


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by role, for ``theme=`` of every plot; ``palette`` is the order in which named series take theirs."""

    name: str
    background: str
    text: str
    muted: str
    grid: str
    palette: tuple[str, ...]

    @property
    def credal(self) -> str:
        """The colour of the credal set and its bounds."""
        return self.palette[0]

    @property
    def intersection(self) -> str:
        """The colour of the intersection probability (red in the paper)."""
        return self.palette[1]

    @property
    def averaged(self) -> str:
        """The colour of the averaged probability."""
        return self.palette[2]

    @property
    def hull(self) -> str:
        """The colour of the convex hull of the members."""
        return self.palette[3]

    def color(self, order: int, /) -> str:
        """The colour of the series at place ``order``."""
        return self.palette[order % len(self.palette)]

    def colors_of(self, names: Sequence[str], /) -> list[str]:
        """The colours of named series: those of what they stand for, and for the others what is left of the palette.

        >>> LIGHT.colors_of(["Averaged probability", "EDD"]) == [LIGHT.averaged, LIGHT.credal]
        True
        """
        roles = [NAMED.get(name.split()[0].lower()) if name.strip() else None for name in names]
        free = [color for color, role in zip(self.palette, ROLES, strict=True) if role not in roles] or list(
            self.palette
        )
        others = cycle(free)
        return [next(others) if role is None else self.palette[ROLES.index(role)] for role in roles]


NAMED: Final = {role: role for role in ROLES[:3]} | dict.fromkeys(("averaging", "classical"), "averaged")
"""The first word of a series -> the role whose colour it has."""
LIGHT: Final = Theme(
    name="light",
    background="#FFFFFF",
    text="#1B1F24",
    muted="#5F6670",
    grid="#E3E6EA",
    palette=("#1F4E9E", "#D55E00", "#009E6A", "#93306E", "#6A86EA", "#1B1F24"),
)
DARK: Final = Theme(
    name="dark",
    background="#14181F",
    text="#E8EBEF",
    muted="#9AA4B2",
    grid="#2B323C",
    palette=("#58B7FD", "#F2793A", "#79F2AA", "#DD95C4", "#7A6FEA", "#E8EBEF"),
)
PAGE: Final = Theme(
    name="page",
    background="transparent",
    text="var(--text)",
    muted="var(--muted)",
    grid="var(--line)",
    palette=tuple(f"var(--{role})" for role in ROLES),
)
"""Colours that the style sheet of a page sets, so that charts follow light and dark."""
THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in (LIGHT, DARK)}


def dash_of(order: int, /) -> Dash:
    """The dashes of the series at place ``order``."""
    return DASHES[order % len(DASHES)]


def get_theme(theme: str | Theme, /) -> Theme:
    """The theme of that name; a ``Theme`` is handed back as it is.

    >>> get_theme("dark").background
    '#14181F'
    """
    if isinstance(theme, Theme):
        return theme
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {sorted(THEMES)} or a Theme, got {theme!r}.")
    return THEMES[theme]


def css_variables() -> dict[str, str]:
    """The variables that :data:`PAGE` names, each for light and dark."""
    roles = {"background": "background", "text": "text", "muted": "muted", "line": "grid"}
    pairs = {variable: (getattr(LIGHT, name), getattr(DARK, name)) for variable, name in roles.items()}
    pairs |= {role: (LIGHT.palette[k], DARK.palette[k]) for k, role in enumerate(ROLES) if role != "text"}
    return {name: f"light-dark({light.lower()}, {dark.lower()})" for name, (light, dark) in pairs.items()}


class Stroke(NamedTuple):
    """The line of a series: the role of its colour, and its dashes."""

    role: str
    dash: Dash

    def color(self, theme: Theme, /) -> str:
        """The colour in a theme."""
        return theme.palette[ROLES.index(self.role)]


STROKES: Final = {
    "total": Stroke("credal", DASHES[0]),
    "epistemic": Stroke("spare", DASHES[4]),
    "aleatoric": Stroke("credal", DASHES[2]),
    "hartley": Stroke("hull", DASHES[0]),
    "imprecision": Stroke("hull", DASHES[1]),
    "entropy": Stroke("intersection", DASHES[0]),
    "least_confidence": Stroke("intersection", DASHES[1]),
    "set_size": Stroke("text", DASHES[2]),
    "mean_total": Stroke("averaged", DASHES[1]),
    "mean_epistemic": Stroke("averaged", DASHES[2]),
    "mean_aleatoric": Stroke("averaged", DASHES[3]),
    "mean_least_confidence": Stroke("averaged", DASHES[4]),
    "mean_pairwise_kl": Stroke("averaged", DASHES[0]),
    "credal": Stroke("intersection", DASHES[0]),
    "averaged": Stroke("averaged", DASHES[1]),
    "recalibrated": Stroke("hull", DASHES[0]),
}
"""Score of the catalogue, or method of a point prediction -> its line in every chart."""
