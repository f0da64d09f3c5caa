"""``credalens recalibrate``: labelled predictions in, temperatures for the members out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalens.checks.options import count_text, escaped
from credalens.cli.evaluate import labels_of
from credalens.cli.shared_options import PREDICTION_FILES, Count, File, Logits, MaxBytes, MemberAxis

if TYPE_CHECKING:
    from credalens import Recalibration


def recalibrate(
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", show_default=False,
        help=f"Members' predictions for labelled data, {PREDICTION_FILES}. Members "
        "must not be trained on these data.",
    )],
    output: Annotated[Path, File("--output", "-o", help="Where to write the temperatures, as JSON.")],
    labels: Annotated[Path | None, File(
        help="True classes of the rows; not needed if the file of predictions contains labels.",
    )] = None,
    through: Annotated[str, typer.Option(metavar="credal|averaged|members",
        help="What gets the lowest negative log-likelihood: the intersection probability, the mean, or each member by itself.",
    )] = "credal",
    logits: Logits = False,
    member_axis: MemberAxis = None,
    threads: Annotated[int | None, Count(help="Threads.", show_default="all cores")] = None,
    max_bytes: MaxBytes = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:  # fmt: skip
    """Find the temperature that the members need, from labelled data, for every later prediction of theirs.

    One temperature for all members is fitted through the prediction that is used. Pass the file as --recalibration to score,
    evaluate, guard fit and serve; a guard that was fitted with it applies it by itself.

    **Examples**

        credalens recalibrate cal.npz -o r.json
        credalens recalibrate cal_logits.npy --labels y.npy --logits -o r.json
        credalens guard fit other.npz --recalibration r.json --max-error 0.02 -o guard.json
    """
    from credalens import Recalibration
    from credalens.storage import open_predictions
    from credalens.storage.atomic import check_file, check_no_input

    check_no_input([check_file(output)], [predictions, labels])
    stored = open_predictions(predictions, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    truth = labels_of(labels, stored, max_bytes)
    if truth is None:
        raise ValueError(f"{predictions} holds no labels, which a temperature is fitted on; pass --labels FILE.")
    members = stored.read(0, stored.rows)
    fitted = Recalibration.fit(members, truth, logits=stored.logits, through=through, threads=threads)
    fitted.save(output)
    if as_json:
        plain = {name: getattr(value, "tolist", lambda value=value: value)() for name, value in vars(fitted).items()}
        typer.echo(json.dumps({"recalibration": str(output), **plain}))
        return
    _print(fitted)
    typer.echo(escaped(f"Written to {output}"))


def _print(fitted: Recalibration) -> None:
    what = {"credal": "the intersection probability", "averaged": "the mean", "members": "each member by itself"}
    if fitted.through == "members":
        listed = ", ".join(f"{t:.3g}" for t in fitted.temperatures)
        typer.echo(f"A temperature for each of {count_text(len(fitted.temperatures), 'member')}: {listed}.")
    else:
        low, high = fitted.ranges[0]
        typer.echo(f"One temperature for all members: {fitted.temperatures[0]:.4g} ({low:.4g} to {high:.4g}, 95 %).")
    typer.echo(
        f"It lowers the negative log-likelihood of {what[fitted.through]} from {fitted.nll_before:.4f} to "
        f"{fitted.nll_after:.4f} on the {count_text(fitted.n, 'labelled input')} that it was fitted on."
    )
