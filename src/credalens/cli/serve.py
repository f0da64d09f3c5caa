"""``credalens serve``: credal predictions over HTTP, by the Open Inference Protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from credalens.checks.options import needing
from credalens.cli.shared_options import Address, Engine, File, RecalibrationFile, check_engine, parse_base

Name: Final = partial(typer.Option, metavar="NAME")
Load: Final = partial(typer.Option, metavar="N", min=1, rich_help_panel="Under load")
SEEN, ACCESS = "Seen from outside", "Who may ask"


def serve(
    models: Annotated[list[Path] | None, typer.Argument(
        metavar="MODELS", show_default=False,
        help="ONNX files, one for each member; without any, requests bring the members' outputs.",
    )] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(
        metavar="N", min=0, max=65535, help="Port to listen on; 0 chooses a free one.",
    )] = 8000,
    guard: Annotated[Path | None, File(help="Guard that decides about every row, made by credalens guard fit.")] = None,
    recalibration: RecalibrationFile = None,
    logits: Annotated[bool, typer.Option("--logits", help="Members predict logits, not probabilities.")] = False,
    output: Annotated[str | None, Name(
        help="Name of the ONNX output that holds the prediction.", show_default="the only output of floats",
    )] = None,
    name: Annotated[str | None, Name(
        help="Name of the model in requests.", show_default="credal, with MODELS: model",
    )] = None,
    model_version: Annotated[str, typer.Option(metavar="TEXT", help="Version of the model.")] = "1",
    base: Annotated[float | None, typer.Option(
        parser=parse_base, metavar="NUMBER|e", help="Base of the logarithm.",
        show_default="that of the guard, or 2: bits",
    )] = None,
    workers: Annotated[int, Load(help="Processes that answer; replicas on Ray.")] = 1,
    batch_rows: Annotated[int, Load(
        help="Most rows in a batch: small requests are joined, large ones are split.",
    )] = 1024,
    batch_delay: Annotated[float, Load(
        metavar="MS", min=0, help="Milliseconds that an idle worker waits for more requests.",
    )] = 0.0,
    queue: Annotated[int, Load(help="Most requests that are not yet answered; others get 503.")] = 128,
    timeout: Annotated[float, Load(metavar="SECONDS", min=0.001, help="Most seconds for a request.")] = 60.0,
    max_body: Annotated[int, Load(metavar="BYTES", help="Most bytes in a request.")] = 32 << 20,
    max_rows: Annotated[int, Load(help="Most rows in a request.")] = 10_000,
    max_classes: Annotated[int, Load(min=2, help="Most classes in members' outputs.")] = 10_000,
    max_values: Annotated[int, Load(help="Most values in an answer, and most rows times classes.")] = 10_000_000,
    json_logs: Annotated[bool, typer.Option(
        "--json-logs", help="Log every request and event as a line of JSON; not on Ray.", rich_help_panel=SEEN,
    )] = False,
    token_file: Annotated[Path | None, File(
        help="File with one bearer token per line; every request needs one of them.", rich_help_panel=ACCESS,
    )] = None,
    allow_host: Annotated[list[str] | None, Name(
        help="Host name that clients may use for this server, and from which web pages may call it; repeatable.",
        show_default="any name from other machines, loopback names from this one", rich_help_panel=ACCESS,
    )] = None,
    ssl_certfile: Annotated[Path | None, File(help="Certificate for TLS.", rich_help_panel=ACCESS)] = None,
    ssl_keyfile: Annotated[Path | None, File(help="Private key for TLS.", rich_help_panel=ACCESS)] = None,
    engine: Engine = "local",
    address: Address = None,
) -> None:  # fmt: skip
    """Serve credal predictions over HTTP: the Open Inference Protocol v2, JSON and binary tensors.

    Without MODELS requests contain the members' predictions, members x rows x classes, made by any other server. With
    MODELS, ONNX files, requests contain the inputs of these files, and this server runs them.

    **Examples**

        credalens serve
        credalens serve a.onnx b.onnx c.onnx --logits --guard guard.json
        credalens serve --host 0.0.0.0 --token-file tokens.txt --workers 4
        credalens serve a.onnx b.onnx c.onnx --engine ray --address head:6379 --workers 8
    """
    on_ray = check_engine(engine, address=address)
    names = {"part": "credalens serve", "extra": "serve"}
    with needing("uvicorn", **names), needing("httptools", **names):
        from credalens.serve.access import is_loopback
        from credalens.serve.running import run, run_on_ray
        from credalens.serve.settings import Limits, Settings

    settings = Settings(
        models=tuple(str(path) for path in models or ()),
        guard=None if guard is None else str(guard),
        recalibration=None if recalibration is None else str(recalibration),
        logits=logits,
        output=output,
        base=base,
        name=name,
        version=model_version,
        token_file=None if token_file is None else str(token_file),
        allowed_hosts=tuple(allow_host or ()),
        limits=Limits(max_body, max_rows, max_classes, queue, batch_rows, batch_delay / 1000, timeout, max_values),
    )
    if token_file is None and not is_loopback(host):
        typer.echo(f"Anyone who can reach {host} can use this server: pass --token-file to ask for tokens.", err=True)
    listen: dict[str, Any] = {"host": host, "port": port, "ssl_certfile": ssl_certfile, "ssl_keyfile": ssl_keyfile}
    if on_ray:
        run_on_ray(settings, address=address, replicas=workers, **listen)
    else:
        run(settings, workers=workers, json_logs=json_logs, **listen)
