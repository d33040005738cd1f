"""The process that serves for ``segue dev``: ``python -m segue.cli.dev_child``.

Its standard input has one line of JSON, a `Plan`, and ends when the process has to end.
The process writes reports as lines of JSON to the descriptor `Plan.report`:

    {"event": "ready", "url": ..., "files": [...]}    clients can connect
    {"event": "failed", "files": [...]}               the file cannot be loaded
    {"event": "files", "files": [...]}                more modules were imported
    {"event": "shut", "files": []}                    no new connections are taken
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

import segue
from segue.cli.codes import Exit, UsageError
from segue.cli.loading import LoadError, Source, files_of, load
from segue.cli.screen import Screen
from segue.cli.serving import guarded, show_failure
from segue.server.running import run

__all__ = ["Plan", "main"]

_LOOK = 0.5  # seconds between two looks at the imported modules


class Plan(msgspec.Struct):
    """What to serve.

    Attributes:
        file, name, words: the source, and the arguments that it sees.
        http: the address.
        options: options of `Server.run`.
        store: the store of a server that names none.
        seal_key: the key that all processes of one ``segue dev`` share.
        tokens_file: the tokens of callers, for a server that has no principals.
        report: the descriptor for reports.
    """

    file: str
    name: str | None
    words: list[str]
    http: str
    options: dict[str, Any]
    store: str
    seal_key: bytes
    tokens_file: str | None
    report: int


def main() -> None:
    """Serves until the parent process says so, or ends."""
    plan = msgspec.json.decode(_read_line(), type=Plan)
    os.set_inheritable(plan.report, False)
    sys.path[:] = [one for one in sys.path if one != os.getcwd()]
    # Python takes the compiled form of a file that was changed within one second and has
    # kept its size.
    sys.dont_write_bytecode = True
    screen = Screen()
    try:
        server = load(Source(Path(plan.file), plan.name), plan.words)
    except (LoadError, UsageError) as error:
        if isinstance(error, LoadError):
            show_failure(screen, error)
        else:
            screen.error(error)
        _report(plan, event="failed", files=files_of(error))
        sys.exit(int(Exit.USAGE))
    guarded(screen, lambda: _serve(server, plan))


def _serve(server: segue.Server, plan: Plan) -> None:
    options = dict(plan.options)
    if server.store is None:
        options.setdefault("store", plan.store)
    if plan.tokens_file is not None and server.principal is None:
        options["tokens_file"] = plan.tokens_file
    # The next process listens on the port before this one ends.
    options["options"] = {"reuse_port": True, **options.get("options", {})}
    of_server = server._options.copy()
    of_server.setdefault("seal_key", plan.seal_key)
    server._options = of_server

    def started(_: object, serving: Any) -> None:
        _report(plan, event="ready", url=serving.url, files=files_of())
        threading.Thread(target=_attend, args=[plan], daemon=True).start()
        serving._on_shut = lambda: _report(plan, event="shut", files=[])

    run(server, server.serving(plan.http, **options), started)


def _attend(plan: Plan) -> None:
    """Reports new imports, and ends the process when standard input ends."""
    known = len(sys.modules)
    while True:
        readable, _, _ = select.select([0], [], [], _LOOK)
        if readable and not os.read(0, 1024):
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if len(sys.modules) != known:
            known = len(sys.modules)
            _report(plan, event="files", files=files_of())


def _report(plan: Plan, **told: Any) -> None:
    try:
        os.write(plan.report, msgspec.json.encode(told) + b"\n")
    except OSError:
        pass  # the parent has ended; the end of standard input says so, too


def _read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            sys.exit(int(Exit.USAGE))
        line += piece
    return line


if __name__ == "__main__":
    main()
