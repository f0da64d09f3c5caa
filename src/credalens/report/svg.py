"""A small plotting surface that writes SVG: colours and dashes come from the style sheet, so it follows light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from credalens.report.elements import tag

WIDTH, HEIGHT = 300, 214
LEFT, RIGHT, TOP, BOTTOM = 40, 15, 22, 36


def clipped(text: str, length: int, /) -> str:
    """A name short enough for its place.

    >>> clipped("Tiny-ImageNet", 8)
    'Tiny-Im…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def nice_ticks(low: float, high: float, /, count: int = 5) -> list[float]:
    """Round numbers that divide the range into about ``count`` steps.

    >>> nice_ticks(0, 3.2)
    [0.0, 1.0, 2.0, 3.0]
    """
    raw = (high - low) / count
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Axis:
    """A range with a name; ``percent`` shows fractions as percentages."""

    low: float
    high: float
    name: str
    percent: bool = False
    ticks: Sequence[float] | None = None
    root: bool = False
    """Draw the square root, so that small values can be seen next to large ones."""

    def place(self, value: float, /) -> float:
        """Where a value lies between the ends, from 0 to 1."""
        share = (value - self.low) / (self.high - self.low)
        return math.sqrt(max(share, 0.0)) if self.root else share

    def marks(self) -> list[tuple[float, str]]:
        """Where the ticks are and what they say."""
        ticks = nice_ticks(self.low, self.high) if self.ticks is None else self.ticks
        return [(value, f"{100 * value:g} %" if self.percent else f"{value:g}") for value in ticks]


@dataclass
class Plot:
    """A frame with two axes, drawn into part by part, 300 units wide: legible at the width of a phone."""

    x: Axis
    y: Axis
    height: int = HEIGHT
    parts: list[str] = field(default_factory=list)

    def at(self, x: float, y: float, /) -> tuple[float, float]:
        """Data to drawing coordinates."""
        bottom = self.height - BOTTOM
        across, up = self.x.place(x) * (WIDTH - RIGHT - LEFT), self.y.place(y) * (bottom - TOP)
        return LEFT + across, bottom - up

    def add(self, part: str, /) -> None:
        """Draw something."""
        self.parts.append(part)

    def path(self, xs: Iterable[float], ys: Iterable[float], /) -> str:
        """Points of a polyline."""
        return " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in zip(xs, ys, strict=True))

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str, name: str, /) -> None:
        """A line that can be read off: the page finds its values by its name."""
        self.add(tag("polyline", points=self.path(xs, ys), class_=f"line {style}", data_name=name))

    def area(self, xs: Sequence[float], ys: Sequence[float], style: str, /) -> None:
        """The area between a line and the bottom."""
        floor = self.y.low
        self.add(tag("polygon", points=self.path([xs[0], *xs, xs[-1]], [floor, *ys, floor]), class_=f"area {style}"))

    def guide(self, start: tuple[float, float], end: tuple[float, float], /) -> None:
        """A reference line, such as the diagonal of chance."""
        (x1, y1), (x2, y2) = self.at(*start), self.at(*end)
        self.add(tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="guide"))

    def svg(self, label: str, /) -> str:
        """The drawing, with ``label`` for those who cannot see it."""
        (x1, y1), (x2, y2) = self.at(self.x.low, self.y.low), self.at(self.x.high, self.y.high)
        return tag(
            "svg",
            self._frame() + "".join(self.parts),
            viewBox=f"0 0 {WIDTH} {self.height}",
            class_="plot",
            role="img",
            aria_label=label,
            data_x=f"{self.x.low:g} {self.x.high:g} {x1:g} {x2:g}",
            data_y=f"{self.y.low:g} {self.y.high:g} {y1:g} {y2:g}",
            data_xname=self.x.name,
            data_xunit="%" if self.x.percent else "",
            data_yunit="%" if self.y.percent else "",
            data_root="" if self.y.root else None,
        )

    def _frame(self) -> str:
        bottom, right = self.height - BOTTOM, WIDTH - RIGHT
        drawn = []
        for value, text in self.x.marks():
            x, _ = self.at(value, self.y.low)
            drawn.append(tag("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid"))
            drawn.append(tag("text", text, x=x, y=bottom + 13, class_="tick", text_anchor="middle"))
        for value, text in self.y.marks():
            _, y = self.at(self.x.low, value)
            drawn.append(tag("line", x1=LEFT, x2=right, y1=y, y2=y, class_="grid"))
            drawn.append(tag("text", text, x=LEFT - 5, y=y + 3.5, class_="tick", text_anchor="end"))
        middle = (LEFT + right) / 2
        drawn.append(tag("text", escape(self.x.name), x=middle, y=self.height - 5, class_="axis", text_anchor="middle"))
        drawn.append(tag("text", escape(self.y.name), x=4, y=10, class_="axis"))
        return "".join(drawn)
