"""The commands and their options. The other modules of this package implement them."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from segue.cli import arguments, calling, listing, own, running, tasks
from segue.cli.codes import Exit, UsageError
from segue.cli.proxy import become_proxy
from segue.cli.screen import Screen
from segue.cli.target import Access, parse_access, parse_target
from segue.cli.target import Era as TargetEra
from segue.tokens import Target, TokenFile, TokenFileError

__all__ = ["app"]

app = typer.Typer(
    name="segue",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Serve MCP servers, look at them, call their tools and resume their tasks.",
    epilog=(
        "SERVER is a URL or, in quotes, a command that starts a server: "
        "'python server.py'. Exit codes: 0 done, 1 the tool reports an error, 2 wrong "
        "usage, 3 the server answers with an error, 4 no connection, 5 not authorized, "
        "6 timeout, 7 the task is gone, 8 internal, 130 Ctrl-C."
    ),
)
task_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tasks that were left running; their tokens are in a private file "
    "($SEGUE_TOKENS, by default ~/.local/state/segue/tasks.json).",
)
own.add_to(app)
app.add_typer(task_app, name="task")

Server = Annotated[str, typer.Argument(metavar="SERVER", help="URL or 'command'.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only failures.")]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="'NAME: VALUE'", help="Header of HTTP requests."
    ),
]
Bearer = Annotated[
    str | None,
    typer.Option(
        "--bearer",
        envvar="SEGUE_BEARER",
        show_envvar=True,
        metavar="TOKEN",
        help="Bearer token, or @file with the token.",
    ),
]
Login = Annotated[
    bool,
    typer.Option(
        "--login",
        help="Log in with a browser when the server requires it; the tokens are "
        "kept in a private directory ($SEGUE_LOGINS, by default "
        "~/.local/state/segue/logins).",
    ),
]
Era = Annotated[
    Literal["auto", "modern", "legacy"],
    typer.Option(
        "--era", help="modern: only 2026-07-28; legacy: only the older revisions."
    ),
]
Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="KEY=VALUE",
        help="Answer to a field of a form that the tool asks for.",
    ),
]


def _saved_ids(incomplete: str) -> list[tuple[str, str]]:
    """Lists the ids and tools of saved tasks, for completion in the shell."""
    try:
        found = TokenFile().all()
    except TokenFileError:
        return []
    return [(saved.id, saved.tool) for saved in found if saved.id.startswith(incomplete)]


TaskName = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A task of 'segue task ls'.", autocompletion=_saved_ids
    ),
]
TaskServer = Annotated[
    str | None,
    typer.Option("--server", metavar="SERVER", help="With a server, ID may be a token."),
]


def _go(screen: Screen, command: Coroutine[Any, Any, Exit]) -> None:
    running.run(screen, command)


def _usage(screen: Screen, error: UsageError) -> typer.Exit:
    screen.error(error)
    return typer.Exit(int(Exit.USAGE))


def _access(
    screen: Screen,
    headers: list[str] | None,
    bearer: str | None,
    login: bool,
    era: TargetEra,
) -> Access:
    try:
        return parse_access(headers or [], bearer, era, login)
    except UsageError as error:
        raise _usage(screen, error) from None


def _target(screen: Screen, text: str) -> Target:
    try:
        return parse_target(text)
    except UsageError as error:
        raise _usage(screen, error) from None


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        import segue

        print(f"segue {segue.__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of all commands."""


@app.command("tools")
def tools_command(
    server: Server,
    name: Annotated[
        str | None, typer.Argument(help="Show the schemas of this tool only.")
    ] = None,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """List the tools of a server, or show one."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(screen, listing.tools(screen, _target(screen, server), access, name=name))


@app.command("call")
def call_command(
    server: Server,
    tool: Annotated[str, typer.Argument(help="Name of the tool.")],
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="An argument of the tool: KEY=VALUE, KEY=@file or KEY:=json.",
        ),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(
            "--args",
            "-a",
            metavar="JSON",
            help="All arguments, as JSON, @file or - (stdin).",
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", "-s", help="Show segments as they arrive.")
    ] = False,
    detach: Annotated[
        bool,
        typer.Option("--detach", "-d", help="Leave the task running and print its id."),
    ] = False,
    no_task: Annotated[
        bool, typer.Option("--no-task", help="Make a plain call, not a task.")
    ] = False,
    response_mode: Annotated[
        list[str] | None,
        typer.Option(
            "--response-mode",
            metavar="MODE",
            help="How a server of 2025-11-25 may answer a call that it can run as a "
            "task: task, immediate or streaming. Repeat the option for each mode. "
            "Default: all.",
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", "-t", min=0.001, help="Seconds.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="LEVEL", help="Show log messages from LEVEL on."),
    ] = None,
    answer: Answers = None,
    as_json: Json = False,
    quiet: Quiet = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """Call a tool. Ctrl-C leaves a durable task running and says how to resume it."""
    screen = Screen(as_json=as_json, is_quiet=quiet)
    access = _access(screen, header, bearer, login, era)
    try:
        base = arguments.read_json(args) if args is not None else None
        modes = calling.response_modes(response_mode)
    except UsageError as error:
        raise _usage(screen, error) from None
    _go(
        screen,
        calling.call(
            screen,
            _target(screen, server),
            access,
            tool,
            pairs or [],
            base=base,
            is_streamed=stream,
            is_detached=detach,
            may_be_task=not no_task,
            response_modes=modes,
            timeout=timeout,
            answers=answer or [],
            log_level=log,
        ),
    )


@app.command("resources")
def resources_command(
    server: Server,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """List the resources of a server and its resource templates."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(screen, listing.resources(screen, _target(screen, server), access))


@app.command("read")
def read_command(
    server: Server,
    uri: Annotated[str, typer.Argument(metavar="URI")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the bytes to this file.")
    ] = None,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """Read a resource."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(screen, listing.read(screen, _target(screen, server), access, uri, output))


@app.command("prompts")
def prompts_command(
    server: Server,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """List the prompts of a server."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(screen, listing.prompts(screen, _target(screen, server), access))


@app.command("prompt")
def prompt_command(
    server: Server,
    name: Annotated[str, typer.Argument(help="Name of the prompt.")],
    pairs: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE")] = None,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """Fill in a prompt."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(
        screen, listing.prompt(screen, _target(screen, server), access, name, pairs or [])
    )


@app.command("inspect")
def inspect_command(
    server: Server,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
    era: Era = "auto",
) -> None:
    """Show the protocol revisions of a server, what it can do, and its tools."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, era)
    _go(screen, listing.inspect(screen, _target(screen, server), access))


@app.command(
    "proxy",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def proxy_command(
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="OPTION...", help="Those of segue-proxy --help."),
    ] = None,
) -> None:
    """Run segue-proxy, which stands in front of a server that exists."""
    become_proxy(options or [])


@app.command(
    "store",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def store_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="Those of segue store --help."),
    ] = None,
) -> None:
    """Look into a store: its tasks, their logs, cancel, answer, verify."""
    become_proxy(["store", *(words or [])])


@app.command(
    "board",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def board_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE...", help="Those of segue board --help."),
    ] = None,
) -> None:
    """Show the tasks of a store in a web page on this machine."""
    become_proxy(["board", *(words or [])])


@app.command(
    "doctor",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def doctor_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="STORE | URL | -- COMMAND...", help="What to examine."),
    ] = None,
) -> None:
    """Say what a store or a server is, what is wrong with it, and how to mend it."""
    become_proxy(["doctor", *(words or [])])


@task_app.command("ls")
def task_ls_command(
    refresh: Annotated[
        bool, typer.Option("--refresh", "-r", help="Ask the servers.")
    ] = False,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
) -> None:
    """List the saved tasks."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, "auto")
    _go(screen, tasks.list_tasks(screen, access, is_refreshed=refresh))


@task_app.command("get")
def task_get_command(
    name: TaskName,
    server: TaskServer = None,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
) -> None:
    """Ask the server for the status of a task."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, "auto")
    target = _target(screen, server) if server else None
    _go(screen, tasks.get(screen, access, name, target))


def _follow(
    name: str,
    server: str | None,
    answer: list[str] | None,
    screen: Screen,
    access: Access,
    *,
    is_from_start: bool,
    is_streamed: bool,
) -> None:
    target = _target(screen, server) if server else None
    _go(
        screen,
        tasks.follow(
            screen,
            access,
            name,
            target,
            is_from_start=is_from_start,
            is_streamed=is_streamed,
            answers=answer or [],
        ),
    )


@task_app.command("watch")
def task_watch_command(
    name: TaskName,
    server: TaskServer = None,
    answer: Answers = None,
    as_json: Json = False,
    quiet: Quiet = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
) -> None:
    """Show a task from its first segment to its end."""
    screen = Screen(as_json=as_json, is_quiet=quiet)
    access = _access(screen, header, bearer, login, "auto")
    _follow(name, server, answer, screen, access, is_from_start=True, is_streamed=True)


@task_app.command("resume")
def task_resume_command(
    name: TaskName,
    server: TaskServer = None,
    result: Annotated[
        bool,
        typer.Option("--result", help="Wait for the end and show only the whole result."),
    ] = False,
    answer: Answers = None,
    as_json: Json = False,
    quiet: Quiet = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
) -> None:
    """Continue showing a task after the last segment that was shown."""
    screen = Screen(as_json=as_json, is_quiet=quiet)
    access = _access(screen, header, bearer, login, "auto")
    _follow(
        name, server, answer, screen, access, is_from_start=result, is_streamed=not result
    )


@task_app.command("cancel")
def task_cancel_command(
    name: TaskName,
    server: TaskServer = None,
    as_json: Json = False,
    header: Headers = None,
    bearer: Bearer = None,
    login: Login = False,
) -> None:
    """Cancel a task on its server."""
    screen = Screen(as_json=as_json)
    access = _access(screen, header, bearer, login, "auto")
    target = _target(screen, server) if server else None
    _go(screen, tasks.cancel(screen, access, name, target))


@task_app.command("rm")
def task_rm_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="ID")] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="Remove all tasks that have ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove tasks from the saved tasks. The tasks continue on their servers."""
    screen = Screen(as_json=as_json)
    if not names and not ended:
        raise _usage(screen, UsageError("name a task, or pass --ended"))
    _go(screen, tasks.remove(screen, names or [], is_all_ended=ended))
