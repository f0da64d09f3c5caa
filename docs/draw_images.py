"""Draw the pictures in docs/images: `python docs/draw_images.py`. The one of the report needs chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from credalens import credal_decision, evaluate, lower_entropy, upper_entropy
from credalens.core.entropy import shannon_entropy
from credalens.core.scores import SCORES
from credalens.datasets import cifar10_ensemble
from credalens.evaluation.single_inputs import CORNERS, Triangle, to_plane
from credalens.plots import new_figure, plot_simplex, save_figure, themed
from credalens.plots.one_input import draw_names, draw_polygon, draw_triangle
from credalens_paper.pages.pictures import DotPanel, draw_dots
from credalens_paper.results.records import FigureResult, Panel, read_result

IMAGES = Path(__file__).parent / "images"
RESULTS = Path(__file__).parents[1] / "results"
RAIN = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
NAMES = ("rain", "sun", "clouds")
INK = "#1B2530"
LEFT_OUT = "#scores, #short ul"
"""Parts of the report that its picture has no room for, as a selector."""


def draw_simplex() -> None:
    """The example of the README."""
    save_figure(plot_simplex(RAIN, labels=NAMES).figure, IMAGES / "simplex.svg")


def draw_entropies() -> None:
    """Entropy over the triangle, the credal set, and where it is highest and lowest."""
    figure = new_figure(size=(5.6, 4.4))
    with themed() as look:
        ax, triangle = figure.add_subplot(), Triangle(RAIN)
        draw_names(ax, triangle, NAMES, look)
        draw_triangle(ax, look)
        draw_polygon(ax, triangle, look)
        _draw_levels(ax)
        ends = {"highest": upper_entropy, "lowest": lower_entropy}
        for marker, (label, find) in zip("^v", ends.items(), strict=True):
            value, p = find(triangle.lower, triangle.upper, return_distribution=True)
            x, y = to_plane(p)
            ax.plot(x, y, marker, color=INK, markersize=9, zorder=7, label=f"{label} entropy, {value:.3f} bits")
        ax.legend(loc="upper right", frameon=False)
    save_figure(figure, IMAGES / "entropies.svg")


def _draw_levels(ax: Axes) -> None:
    grid = np.array([(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]) / 60
    x, y = to_plane(grid).T
    lines = ax.tricontour(
        x, y, shannon_entropy(grid), levels=np.arange(0.2, 1.6, 0.2), colors="#8A97A3", linewidths=0.7
    )
    ax.clabel(lines, fontsize=7, fmt="%.1f")


def draw_decisions() -> None:
    """Where each class is the most probable one, and sets that leave one, two or three classes possible."""
    cases = {
        "one class": [[0.70, 0.18, 0.12], [0.60, 0.22, 0.18], [0.74, 0.10, 0.16]],
        "two classes": [[0.52, 0.40, 0.08], [0.38, 0.50, 0.12], [0.45, 0.47, 0.08]],
        "three classes": RAIN,
    }
    figure = new_figure(size=(8.6, 3.2))
    with themed() as look:
        for place, (title, members) in enumerate(cases.items(), start=1):
            ax, triangle = figure.add_subplot(1, 3, place), Triangle(np.asarray(members))
            draw_names(ax, triangle, NAMES, look)
            draw_triangle(ax, look)
            draw_polygon(ax, triangle, look)
            _draw_borders(ax)
            kept = credal_decision(triangle.lower, triangle.upper, "maximality")
            ax.set_title(f"{title}: {', '.join(np.array(NAMES)[kept])}")
    save_figure(figure, IMAGES / "decisions.svg")


def _draw_borders(ax: Axes) -> None:
    middle = CORNERS.mean(axis=0)
    for first, second in ((0, 1), (1, 2), (0, 2)):
        end = (CORNERS[first] + CORNERS[second]) / 2
        ax.plot(*zip(middle, end, strict=True), color=INK, linewidth=0.9, linestyle=":", zorder=3)


def draw_hull() -> None:
    """The hull of four members within the polygon of their intervals."""
    members = np.array([*RAIN, [0.12, 0.5, 0.38]])
    save_figure(plot_simplex(members, labels=NAMES, points=False).figure, IMAGES / "hull.svg")


def draw_guards() -> None:
    """What a guard that promises few false alarms keeps of it on every data set, and what it turns away by each score."""
    stored = json.loads((RESULTS / "guard" / "decisions.json").read_text())
    rows = {
        f"{data}, {SCORES[row['score']].label}": {
            "false alarms": [100 * row["false_alarms"]],
            **{f"{name}, turned away": [100 * row[name]] for name in ("SVHN", "Tiny-ImageNet")},
        }
        for data, measured in stored["false_alarms"].items()
        for row in measured
    }
    text = next(panel for panel in _panels("TextScores") if panel.title == "MLP DE" and panel.metric == "Guard (%)")
    for one in text.estimates or ():
        what, score = one.name.split(", ")
        series = {"caught": "requests outside all intents, turned away"}.get(what, what)
        rows.setdefault(f"CLINC150, {score}", {})[series] = [one.mean]
    promised = dict.fromkeys(rows, 100 * stored["rate"])
    title = f"A guard that promises at most {stored['rate']:.0%} false alarms"
    panel = DotPanel(title, "Share of the inputs (%); stroke: the promise", rows, promised)
    save_figure(draw_dots([panel]), IMAGES / "guards.svg")


def _panels(label: str) -> tuple[Panel, ...]:
    result = read_result(RESULTS / "text" / f"{label}.json")
    return result.parts if isinstance(result, FigureResult) else ()


def photograph_report() -> None:
    """Two sections of the report on the predictions that come along, as a small PNG."""
    real = cifar10_ensemble()
    evaluation = evaluate(
        real.cifar10, ood={"SVHN": real.svhn[:, :10000], "Tiny-ImageNet": real.tiny_imagenet}, id_name="CIFAR-10"
    )
    with tempfile.TemporaryDirectory() as folder:
        page = evaluation.report(f"{folder}/report") / "report.html"
        page.write_text(page.read_text().replace("</head>", f"<style>{LEFT_OUT} {{ display: none; }}</style></head>"))
        shot = Path(folder) / "report.png"
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1200,1600", f"--screenshot={shot}"]
        subprocess.run([browser, *options, page.resolve().as_uri()], check=True, capture_output=True)  # noqa: S603
        Image.open(shot).convert("RGB").quantize(64).save(IMAGES / "report.png", optimize=True)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for draw in (draw_simplex, draw_entropies, draw_decisions, draw_hull, draw_guards, photograph_report):
        draw()
