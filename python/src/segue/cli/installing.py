"""Implements ``segue install``: enters a server into the configuration of a host."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

import segue
from segue.cli.codes import Exit, UsageError
from segue.cli.hosts import HOSTS, Host
from segue.cli.jsontext import TextError, get_member, set_member
from segue.cli.loading import LoadError, Source, load
from segue.cli.screen import Screen
from segue.cli.serving import quiet_output, show_failure
from segue.names import nearest

__all__ = ["Wish", "install"]


@dataclasses.dataclass
class Wish:
    """What to install: the options of the command line."""

    source: Source
    words: list[str]
    name: str | None
    env: list[str]
    store: str | None
    is_project: bool
    config: Path | None
    is_dry: bool


def install(screen: Screen, host_name: str, wish: Wish) -> Exit:
    """Enters the server of a file into the configuration of a host. The file is loaded
    first, so a server that cannot start is not entered.

    Raises:
        UsageError: The host is unknown, or its configuration cannot be changed.
    """
    host = _host(host_name)
    env = dict(_variable(text) for text in wish.env)
    path = _place(host, host_name, wish)
    try:
        with quiet_output(True):
            server = load(wish.source, wish.words)
    except LoadError as error:
        show_failure(screen, error)
        return Exit.USAGE
    name = wish.name or _name(server, wish.source)
    command = _command(wish)
    before = _read(path)
    try:
        had = get_member(
            before or "", [host.member, name], has_comments=host.has_comments
        )
        after = _changed(host, before or "", name, command, env)
    except TextError as error:
        raise UsageError(
            f"{path} is not changed, because it is broken: {error}"
        ) from None
    if after == before:
        screen.text(f"{host.title} has the server {name} already: {path}")
        return Exit.OK
    if wish.is_dry:
        _show_difference(screen, path, before or "", after)
        return Exit.OK
    backup = _write(path, before, after)
    done = "Changed" if had is not None else "Added"
    screen.text(f"{done} the server {name} of {host.title}: {path}")
    screen.text(f"It runs: {shlex.join(command)}")
    if backup is not None:
        screen.text(f"The file before the change: {backup}")
    screen.text(host.next)
    return Exit.OK


def _host(name: str) -> Host:
    if name in HOSTS:
        return HOSTS[name]
    meant = nearest(name, HOSTS)
    hint = f"did you mean {meant}?" if meant else f"there are {', '.join(HOSTS)}"
    raise UsageError(f"unknown host {name!r}; {hint}")


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        raise UsageError(f"{text!r} is not of the form KEY=VALUE")
    if equals:
        return name, value
    if name not in os.environ:
        raise UsageError(f"--env {name}: there is no such environment variable here")
    return name, os.environ[name]


def _place(host: Host, host_name: str, wish: Wish) -> Path:
    """Returns the file to change. If it is a link, this is the file to which it leads."""
    if wish.config is not None:
        path = wish.config
    elif not wish.is_project:
        path = host.place()
    elif host.project is not None:
        path = Path(host.project)
    else:
        raise UsageError(f"{host_name} has no configuration for one project")
    return Path(os.path.realpath(path))


def _name(server: segue.Server, source: Source) -> str:
    name = source.path.stem if server.name == "segue" else server.name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "server"


def _command(wish: Wish) -> list[str]:
    """Returns the command for the host. A host has its own PATH and its own working
    directory, so all paths are absolute."""
    script = Path(sys.executable).with_name("segue")
    begin = (
        [str(script)]
        if os.access(script, os.X_OK)
        else [sys.executable, "-m", "segue.cli"]
    )
    command = [*begin, "run", str(wish.source)]
    if wish.store is not None:
        is_url = "://" in wish.store
        command += ["--store", wish.store if is_url else os.path.abspath(wish.store)]
    return [*command, "--", *wish.words] if wish.words else command


def _changed(
    host: Host, text: str, name: str, command: list[str], env: dict[str, str]
) -> str:
    """Returns the configuration with the entry. Of an entry that has a command, other
    members and variables stay."""
    place = [host.member, name]
    members = host.members(command)
    merged = get_member(text, [*place, "command"], has_comments=host.has_comments)
    if merged is None:
        entry = {**members, **({host.env: env} if env else {})}
        return set_member(text, place, entry, has_comments=host.has_comments)
    for member, value in members.items():
        text = set_member(text, [*place, member], value, has_comments=host.has_comments)
    for key, value in env.items():
        at = [*place, host.env, key]
        text = set_member(text, at, value, has_comments=host.has_comments)
    return text


# ---- the file


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not changed, because it is not UTF-8") from None


def _show_difference(screen: Screen, path: Path, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), lineterm=""
    )
    screen.text("\n".join(lines))
    screen.note("Nothing was written (--dry-run).")


def _write(path: Path, before: str | None, after: str) -> Path | None:
    """Writes the file in one step, so that nobody sees a part of it. Returns the path of
    the copy of the file before, which keeps its mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        backup = None if before is None else _copy(path)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(after.encode())
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                shutil.copymode(path, name)
            if _read(path) != before:
                raise UsageError(f"{path} was changed meanwhile: try again")
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}") from None
    return backup


def _copy(path: Path) -> Path:
    """Copies the file to a name that is new."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        more = f"-{number}" if number else ""
        backup = path.with_name(f"{path.name}.{stamp}{more}.bak")
        try:
            os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
            continue
        shutil.copy2(path, backup)
        return backup
