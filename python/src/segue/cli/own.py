"""The commands for a server of your own: ``run``, ``dev`` and ``install``, with their
options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from segue.cli import installing, running, serving
from segue.cli.codes import Exit, UsageError
from segue.cli.dev import dev
from segue.cli.hosts import HOSTS
from segue.cli.loading import Source, parse_source
from segue.cli.screen import Screen

__all__ = ["add_to"]

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE.py[:NAME]",
        help="The file, and the name of the server in it if it has several. NAME may "
        "also be a function that makes the server.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments that the file sees."),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="The store of the tasks: a SQLite file, or a URL of Redis or PostgreSQL.",
    ),
]
PathOption = Annotated[
    str | None,
    typer.Option("--path", metavar="PATH", help="Path of the endpoint. Default: /mcp."),
]
MetricsPath = Annotated[
    str | None,
    typer.Option(
        "--metrics-path",
        metavar="PATH",
        help="Path of the metrics for Prometheus. Default: none.",
    ),
]
BoardPath = Annotated[
    str | None,
    typer.Option(
        "--board-path",
        metavar="PATH",
        help="Path of the task board, a web page. Default: none.",
    ),
]
Tokens = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="Require a token of this file. A line is a principal and the SHA-256 of "
        "its token.",
    ),
]
HostNames = Annotated[
    list[str] | None,
    typer.Option(
        "--host", metavar="NAME", help="Allowed name in Host; may be repeated; * = any."
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin", metavar="ORIGIN", help="Web page that may call; may be repeated."
    ),
]
Cert = Annotated[
    Path | None, typer.Option("--cert", metavar="FILE", help="Certificate for TLS (PEM).")
]
Key = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Key of the certificate.")
]
Drain = Annotated[
    float | None,
    typer.Option(
        "--drain",
        min=0,
        metavar="SECONDS",
        help="How long running calls may continue at the end. Default: 10.",
    ),
]

Log = Annotated[
    Literal["json"] | None,
    typer.Option("--log", help="Log events to standard error, as lines of JSON."),
]


def _source(screen: Screen, text: str) -> Source:
    try:
        return parse_source(text)
    except UsageError as error:
        screen.error(error)
        raise typer.Exit(int(Exit.USAGE)) from None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def run_command(
    file: File,
    words: Words = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve HTTP there; also unix:PATH. Default: standard input and output.",
        ),
    ] = None,
    store: Store = None,
    path: PathOption = None,
    metrics_path: MetricsPath = None,
    board_path: BoardPath = None,
    tokens: Tokens = None,
    host: HostNames = None,
    origin: Origins = None,
    cert: Cert = None,
    key: Key = None,
    drain: Drain = None,
    log: Log = None,
    or_program: Annotated[bool, typer.Option("--or-program", hidden=True)] = False,
) -> None:
    """Serve the server of a file, over stdio or HTTP."""
    screen = Screen()
    wish = serving.Wish(
        http,
        store=store,
        path=path,
        metrics_path=metrics_path,
        board_path=board_path,
        tokens_file=_text(tokens),
        hosts=host,
        origins=origin,
        cert_file=_text(cert),
        key_file=_text(key),
        drain=drain,
        log=log,
    )
    serving.serve(screen, _source(screen, file), words or [], wish, or_program=or_program)


def dev_command(
    file: File,
    words: Words = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve HTTP there; default: 127.0.0.1:8000.",
        ),
    ] = None,
    stdio: Annotated[
        bool,
        typer.Option(
            "--stdio",
            help="Serve standard input and output instead, for a host that starts "
            "this command.",
        ),
    ] = False,
    store: Store = None,
    path: PathOption = None,
    drain: Drain = None,
) -> None:
    """Serve the server of a file, and reload it when the file or an import changes.

    Clients stay connected, running calls end in the old process, and tasks continue in
    the new one. A file that cannot be loaded leaves the old server running. Without
    --store, and without a store in the file, tasks are kept until this command ends.
    """
    screen = Screen()
    if stdio and http is not None:
        screen.error(UsageError("--stdio and --http cannot both be given"))
        raise typer.Exit(int(Exit.USAGE))
    address = "127.0.0.1:0" if stdio else http or "127.0.0.1:8000"
    wish = serving.Wish(address, store=store, path=path, drain=drain)
    source = _source(screen, file)
    running.run(screen, dev(screen, source, words or [], wish, stdio=stdio))


def install_command(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help=f"One of: {', '.join(HOSTS)}.")
    ],
    file: File,
    words: Words = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name in the configuration. Default: the server's."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="KEY[=VALUE]",
            help="Environment variable of the server; without VALUE it is copied from "
            "here. May be repeated.",
        ),
    ] = None,
    store: Store = None,
    project: Annotated[
        bool,
        typer.Option("--project", help="Write the file of this directory's project."),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Write this file instead."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the change and write nothing.")
    ] = False,
) -> None:
    """Enter the server of a file into the configuration of a host."""
    screen = Screen()
    wish = installing.Wish(
        source=_source(screen, file),
        words=words or [],
        name=name,
        env=env or [],
        store=store,
        is_project=project,
        config=config,
        is_dry=dry_run,
    )
    running.run_plain(screen, lambda: installing.install(screen, host, wish))


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("run")(run_command)
    app.command("dev")(dev_command)
    app.command("install")(install_command)
