"""``credalens serve``: credal predictions over HTTP, by the Open Inference Protocol."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from credalens.checks.packages import needing
from credalens.cli.engine import Address, Engine, check_engine
from credalens.cli.score import parse_base

LOAD, SEEN, ACCESS = "Under load", "Seen from outside", "Who may ask"


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODELS",
            help="ONNX files, one for each member; without any, requests bring the members' outputs.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0: any free one.")] = 8000,
    guard: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Let this guard decide (credalens guard fit).", show_default=False),
    ] = None,
    logits: Annotated[bool, typer.Option("--logits", help="Members give logits, not probabilities.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The models' output that holds the prediction.", show_default="the only one of floats"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the model.", show_default="credal, with MODELS model"),
    ] = None,
    model_version: Annotated[str, typer.Option(metavar="TEXT", help="Of the model.")] = "1",
    base: Annotated[
        float | None,
        typer.Option(
            parser=parse_base, metavar="NUMBER|e", help="Base of the logarithm.", show_default="the guard's, or 2: bits"
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Processes; with Ray, replicas.", rich_help_panel=LOAD)
    ] = 1,
    batch_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Requests are joined, and predicted, up to so many rows at a time.",
            rich_help_panel=LOAD,
        ),
    ] = 1024,
    batch_delay: Annotated[
        float,
        typer.Option(
            metavar="MS", min=0, help="Milliseconds that an idle worker waits for more.", rich_help_panel=LOAD
        ),
    ] = 0.0,
    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests that wait; more get 503.", rich_help_panel=LOAD)
    ] = 128,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="For a request.", rich_help_panel=LOAD)
    ] = 60.0,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Of one request.", rich_help_panel=LOAD)] = 32
    << 20,
    max_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Of one request.", rich_help_panel=LOAD)] = 10_000,
    max_classes: Annotated[
        int, typer.Option(metavar="N", min=2, help="Of members' outputs.", rich_help_panel=LOAD)
    ] = 10_000,
    json_logs: Annotated[
        bool,
        typer.Option("--json-logs", help="Log as JSON lines, every request too; not on Ray.", rich_help_panel=SEEN),
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Bearer tokens, one on a line; requests need one of them.",
            show_default=False,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    ssl_certfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS.", show_default=False, rich_help_panel=ACCESS)
    ] = None,
    ssl_keyfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS.", show_default=False, rich_help_panel=ACCESS)
    ] = None,
    engine: Engine = "local",
    address: Address = None,
) -> None:
    """Serve credal predictions over HTTP: the Open Inference Protocol v2, JSON and binary tensors.

    Without MODELS the model is called credal and takes what members predict, members x rows x classes, so that it stands
    behind any other server. With MODELS it runs them, and takes what they take.

    **Examples**

        credalens serve
        credalens serve a.onnx b.onnx c.onnx --logits --guard guard.json
        credalens serve --host 0.0.0.0 --token-file tokens.txt --workers 4
        credalens serve a.onnx b.onnx c.onnx --engine ray --address head:6379 --workers 8
    """
    on_ray = check_engine(engine, address=address)
    with needing("uvicorn", part="credalens serve", extra="serve"):
        from credalens.serve.limits import Limits
        from credalens.serve.running import run
        from credalens.serve.settings import Settings

    limits = Limits(max_body, max_rows, max_classes, queue, batch_rows, batch_delay / 1000, timeout)
    settings = Settings(
        models=tuple(str(path) for path in models or ()),
        guard=None if guard is None else str(guard),
        logits=logits,
        output=output,
        base=base,
        name=name,
        version=model_version,
        token_file=None if token_file is None else str(token_file),
        limits=limits,
    )
    if token_file is None and not _is_loopback(host):
        typer.echo(f"Whoever reaches {host} may ask this server: there is no --token-file.", err=True)
    listen: dict[str, Any] = {
        "host": host, "port": port, "ssl_certfile": ssl_certfile, "ssl_keyfile": ssl_keyfile,
    }  # fmt: skip
    if on_ray:
        from credalens.serve.ray_serve import run_on_ray

        run_on_ray(settings, address=address, replicas=workers, **listen)
    else:
        run(settings, workers=workers, json_logs=json_logs, **listen)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
