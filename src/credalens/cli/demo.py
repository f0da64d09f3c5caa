"""``credalens demo``: the whole way on an example that comes along."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from credalens.checks.control_characters import escaped
from credalens.cli.evaluate import print_evaluation
from credalens.cli.progress import progress_bar


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write the report and the predictions.")
    ] = Path("credalens-report"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the split and of the images.")] = 0,
) -> None:
    """Train five small networks on digits and see how well they notice images that are no digits.

    The networks learn from one half of scikit-learn's digits. They are tested on the other half and on letters, pieces
    of photos, textures and corrupted digits, none of which they have seen. Takes well under a minute. At the end the
    same question is asked of five real networks, whose predictions come along.

    **Examples**

        credalens demo
        credalens demo -o my-report
    """
    from rich.console import Console

    from credalens.demo import run_demo
    from credalens.demo.real_networks import real_networks_text
    from credalens.demo.run import check_seed
    from credalens.storage.targets import check_folder

    check_folder(output)
    check_seed(seed)
    begin = time.perf_counter()
    typer.echo("Training five small networks on digits and testing them on digits and on other images ...", err=True)
    with progress_bar() as progress:
        result = run_demo(output, seed=seed, progress=progress)
    print_evaluation(result.evaluation, output)
    Console(highlight=False).print(f"\n{real_networks_text()}\n", markup=False)
    typer.echo(f"Done in {time.perf_counter() - begin:.0f} s. The same from the saved predictions, as for your own:")
    typer.echo(f"  {escaped(result.command)}")
