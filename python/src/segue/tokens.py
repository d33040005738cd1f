"""Keeps the tokens of a program's tasks in one private file.

Another process needs only the token (``task.token``) to use a task, so the token is
protected like a password. Only the owner can read the file and its directory (modes 0600,
0700). A change replaces the file in one step, and a lock keeps two processes from writing
at the same time.

The command line uses this file, and a program may use the file too::

    tokens = segue.tokens.TokenFile()
    saved = tokens.put(target=url, tool="report", token=task.token)
    ...
    saved = tokens.get(saved.id)

All methods block for a few milliseconds of file access: call them from a coroutine with
``asyncio.to_thread``. Threads and processes may share the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["SavedTask", "TokenFile", "TokenFileError", "default_path"]

Target = str | list[str]

_MAX_BYTES = 16 * 1024 * 1024
_LOCK_SECONDS = 5.0
_FORMAT = 1


class TokenFileError(OSError):
    """The file cannot be used: damaged, full, locked for too long, or owned by another
    user."""


class SavedTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved task.

    Attributes:
        id: A short name, unique in the file.
        token: The token for ``segue.resume``. It is a secret and not part of the
            ``repr``.
        target: The URL of the server, or the command that starts it.
        tool: The name of the tool that was called.
        created: When the task was saved, in seconds since 1970.
        task_id: The server's id of the task, if it has one.
        era: The protocol era in which the task was made. A task of one era is unknown in
            the other era.
        status: The last known status: ``working``, ``completed``, ...
        updated: When the entry was last changed, in seconds since 1970.
    """

    id: str
    token: str
    target: Target
    tool: str
    created: float
    task_id: str | None = None
    era: Literal["auto", "modern", "legacy"] = "auto"
    status: str = "working"
    updated: float = 0.0

    def __repr__(self) -> str:
        return f"SavedTask(id={self.id!r}, tool={self.tool!r}, status={self.status!r})"


class _File(msgspec.Struct):
    format: int
    tasks: list[SavedTask]


def default_path() -> Path:
    """Returns the path of the file that the command line uses.

    The path is ``$SEGUE_TOKENS``, or else ``segue/tasks.json`` in ``$XDG_STATE_HOME``,
    whose default is ``~/.local/state``.
    """
    chosen = os.environ.get("SEGUE_TOKENS")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "segue" / "tasks.json"


class TokenFile:
    """A private file of saved tasks.

    Args:
        path: The path of the file; by default `default_path`. The file and its directory
            are created with the first task.
        limit: Maximum number of tasks. When the file is full, the oldest ended tasks are
            removed. If no task has ended, `put` fails.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, limit: int = 1000
    ) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.limit = limit

    def all(self) -> list[SavedTask]:
        """All saved tasks, oldest first.

        Raises:
            TokenFileError: The file is damaged or belongs to another user.
        """
        return self._read()

    def get(self, name: str) -> SavedTask:
        """Returns the saved task that `name` identifies: `name` is its id, the beginning
        of its id, or the server's task id.

        Raises:
            KeyError: No task matches, or several match; the message names them.
        """
        return _find(self._read(), name)

    def put(
        self,
        *,
        target: Target,
        tool: str,
        token: str,
        task_id: str | None = None,
        era: Literal["auto", "modern", "legacy"] = "auto",
        status: str = "working",
    ) -> SavedTask:
        """Saves a task under a new id.

        Args:
            target: The URL or the command of the server.
            tool: Name of the tool.
            token: The token, a secret.
            task_id: Id of the task.
            era: The era of the protocol in which the task was made.
            status: The state of the task.

        Returns:
            The saved task, with its id.

        Raises:
            TokenFileError: The file is full, damaged, or locked for 5 seconds.
        """
        now = time.time()

        def change(tasks: list[SavedTask]) -> SavedTask:
            taken = {task.id for task in tasks}
            name = _new_id()
            while name in taken:
                name = _new_id()
            saved = SavedTask(
                id=name,
                token=token,
                target=target,
                tool=tool,
                created=now,
                task_id=task_id,
                era=era,
                status=status,
                updated=now,
            )
            self._make_room(tasks)
            tasks.append(saved)
            return saved

        return self._change(change)

    def update(
        self,
        name: str,
        *,
        token: str | None = None,
        task_id: str | None = None,
        status: str | None = None,
    ) -> SavedTask:
        """Updates a saved task. A value of None stays unchanged.

        Args:
            name: The name of the saved task.
            token: The new token.
            task_id: The new id of the task.
            status: The new state.

        Raises:
            KeyError: There is no such task.
        """

        def change(tasks: list[SavedTask]) -> SavedTask:
            old = _find(tasks, name)
            new = msgspec.structs.replace(
                old,
                token=old.token if token is None else token,
                task_id=old.task_id if task_id is None else task_id,
                status=old.status if status is None else status,
                updated=time.time(),
            )
            tasks[tasks.index(old)] = new
            return new

        return self._change(change)

    def remove(self, name: str) -> SavedTask:
        """Removes a task from the file. The task itself continues on the server.

        Raises:
            KeyError: There is no such task.
        """

        def change(tasks: list[SavedTask]) -> SavedTask:
            old = _find(tasks, name)
            tasks.remove(old)
            return old

        return self._change(change)

    def _make_room(self, tasks: list[SavedTask]) -> None:
        ended = [task for task in tasks if task.status in ENDED]
        while len(tasks) >= self.limit:
            if not ended:
                raise TokenFileError(
                    f"{self.path} is full: none of its {self.limit} tasks has ended"
                )
            tasks.remove(ended.pop(0))

    def _read(self) -> list[SavedTask]:
        try:
            # Symbolic links are not followed, because a link could point to a file of
            # another user.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TokenFileError(f"{self.path}: {error.strerror}") from error
        with open(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise TokenFileError(f"{self.path} is not a file")
            if status.st_uid != os.geteuid():
                raise TokenFileError(f"{self.path} belongs to another user")
            if status.st_mode & 0o077:
                os.fchmod(file.fileno(), 0o600)
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise TokenFileError(f"{self.path} is larger than {_MAX_BYTES} bytes")
        try:
            content = msgspec.json.decode(data, type=_File)
        except msgspec.DecodeError as error:
            raise TokenFileError(
                f"{self.path} is damaged ({error}); "
                "move it away to start with an empty file"
            ) from error
        if content.format != _FORMAT:
            raise TokenFileError(
                f"{self.path} was written by a newer version of segue: update segue"
            )
        return content.tasks

    def _change(self, change: Callable[[list[SavedTask]], SavedTask]) -> SavedTask:
        with self._locked():
            tasks = self._read()
            changed = change(tasks)
            self._write(tasks)
        return changed

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # The lock is a file of its own beside the token file, because each change
        # replaces the token file.
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(self.path.with_name(self.path.name + ".lock"), flags, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise TokenFileError(
                            f"{self.path} is locked by another process"
                        ) from None
                    time.sleep(0.01)
            yield
        finally:
            os.close(lock)

    def _write(self, tasks: list[SavedTask]) -> None:
        data = msgspec.json.format(
            msgspec.json.encode(_File(format=_FORMAT, tasks=tasks)), indent=1
        )
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open(os.open(beside, flags, 0o600), "wb") as file:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


ENDED = frozenset({"completed", "failed", "cancelled", "lost"})
"""States in which a task has nothing more to tell."""


def _new_id() -> str:
    # Makes a short id that is easy to read aloud and to type, without letters that look
    # like digits.
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(6))


def _find(tasks: list[SavedTask], name: str) -> SavedTask:
    for task in tasks:
        if name in (task.id, task.task_id):
            return task
    near = [task for task in tasks if name and task.id.startswith(name)]
    if len(near) == 1:
        return near[0]
    if near:
        raise KeyError(f"{name!r} is ambiguous: {', '.join(task.id for task in near)}")
    raise KeyError(f"no saved task {name!r}: it has never been saved, or it has ended")
