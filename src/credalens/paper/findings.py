"""What the result files say about the paper's claims, in tables: where they hold, where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from credalens.paper.rendering import markdown_table
from credalens.paper.rendering_names import shown

__all__ = ["render_findings"]

Result = Mapping[str, Any]
LESS_IS_BETTER: Final = ("ECE", "NLL")
SCORES: Final = (("classical", "EU"), ("credal", "EU"), ("classical", "TU"), ("credal", "TU"))


def render_findings(results: Sequence[Result], /) -> str:
    """Markdown: wins and losses of credal against classical, every loss, and which score finds OOD best."""
    compared = [entry for result in results for entry in _compared(result)]
    parts = [
        "# Findings",
        "Generated from the result files of this repository (see [results/README.md](../results/README.md)). A comparison is\n"
        "credal less classical on the same runs; it is won where the mean over runs is on the better side.",
        "## Wins and losses",
        markdown_table(["measured by", "metric", "set", "won", "lost"], _tally(compared)),
        "## Every comparison that credal loses",
        _losses(compared),
        "## Which score finds unknown inputs best",
        "AUROC in per cent of deep ensembles of five, the best of each row in bold. Classical EU is mutual information.",
        _best_scores(results),
    ]
    return "\n\n".join(parts) + "\n"


def _compared(result: Result) -> Iterable[dict[str, Any]]:
    """Credal cells of a table with the runs of their classical counterparts."""
    cells = {_place(cell["keys"]): cell for cell in result.get("cells", ()) if "runs" in cell}
    for cell in cells.values():
        keys = cell["keys"]
        if keys.get("variant") != "credal":
            continue
        measure = "EU" if keys.get("measure") == "GH" else keys.get("measure")
        other = cells.get(_place({**keys, "variant": "classical", "measure": measure, "J": None}))
        if other is not None:
            own = {**keys, **cell["measured"]}  # what the preset put in the place of the paper's
            yield {"label": result["label"], "keys": own, "difference": cell["mean"] - other["mean"], "n": cell["n"]}


def _place(keys: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, value) for key, value in keys.items() if value is not None))


def _won(entry: Mapping[str, Any]) -> bool:
    less = entry["keys"]["metric"] in LESS_IS_BETTER
    return bool(entry["difference"] < 0 if less else entry["difference"] > 0)


def _tally(compared: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    counts: dict[tuple[str, str, str], list[int]] = {}
    for entry in compared:
        keys = entry["keys"]
        where = "CIFAR-10-C" if keys.get("ood_set") == "cifar10-c" else "OOD sets" if keys.get("ood_set") else "clean"
        counts.setdefault((keys.get("measure") or "prediction", keys["metric"], where), [0, 0])[not _won(entry)] += 1
    return [[*kind, str(won), str(lost)] for kind, (won, lost) in sorted(counts.items())]


def _losses(compared: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for entry in compared:
        keys = entry["keys"]
        if not _won(entry):
            model = f"{shown(keys.get('backbone'))} {keys.get('method')}, N = {keys.get('N')}"
            where = shown(keys["ood_set"]) if keys.get("ood_set") else "clean"
            digits = 3 if keys["metric"] in LESS_IS_BETTER else 2
            difference = f"{entry['difference']:+.{digits}f}"
            rows.append(
                [entry["label"], model, where, keys.get("measure") or "", keys["metric"], difference, str(entry["n"])]
            )
    return markdown_table(["table", "model", "set", "by", "metric", "difference", "n"], rows) if rows else "None."


def _best_scores(results: Sequence[Result]) -> str:
    means: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for result in results:
        if result["label"] not in ("OODMain", "OODMainTU"):
            continue
        for cell in result["cells"]:
            keys = cell["keys"]
            if keys.get("method") == "DE" and keys["metric"] == "AUROC" and keys.get("ood_set") and "mean" in cell:
                row = means.setdefault((keys["backbone"], keys["ood_set"]), {})
                row[keys["variant"], keys["measure"]] = cell["mean"]
    rows = []
    for (backbone, ood_set), found in means.items():
        best = max(found, key=lambda score: found[score])
        values = [f"{found[s]:.2f}" if s in found else "–" for s in SCORES]
        bold = [f"**{text}**" if score == best else text for score, text in zip(SCORES, values, strict=True)]
        rows.append([shown(backbone), shown(ood_set), *bold])
    return markdown_table(["backbone", "OOD set", *(f"{variant} {measure}" for variant, measure in SCORES)], rows)
