"""``credalens demo``: the whole job on included examples."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from credalens.checks.options import escaped
from credalens.cli.evaluate import print_evaluation
from credalens.cli.shared_options import progress_bar


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write the report and the predictions.")
    ] = Path("credalens-report"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the split and of the images.")] = 0,
) -> None:
    """Write a report about five real networks, and one about five small networks that the demo trains.

    The first report is about five ResNet-18 on CIFAR-10, whose predictions are included: how well do they detect SVHN and
    Tiny-ImageNet? For the second, five small networks learn one half of scikit-learn's digits. They are tested on the other
    half, and on letters, pieces of photos, textures and corrupted digits, which they have not seen. Takes about half a minute.

    **Examples**

        credalens demo
        credalens demo -o my-report
    """
    from credalens.cli.side_files import made_by
    from credalens.demo import run_demo
    from credalens.demo.run import check_seed
    from credalens.storage.atomic import check_folder

    check_folder(output, option="--output")
    check_seed(seed)
    begin = time.perf_counter()
    typer.echo("Evaluating five real networks on CIFAR-10, then training five small ones on digits ...", err=True)
    with progress_bar() as progress:
        result = run_demo(output, seed=seed, made=[made_by()], progress=progress)
    typer.echo("\nFive ResNet-18 on CIFAR-10\n")
    print_evaluation(result.real, output)
    typer.echo("\nFive small networks on digits\n")
    print_evaluation(result.digits, output / "digits")
    typer.echo(
        f"\nDone in {time.perf_counter() - begin:.0f} s. To repeat the second report from its saved predictions:"
    )
    typer.echo(f"  {escaped(result.command)}")
