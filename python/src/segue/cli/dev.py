"""Implements ``segue dev``: serves the server of a file, and serves it anew when the file
or one of its imports changes.

    change ──> new process loads the file ──(ready)──> old process gets SIGTERM and drains
                       └──(failed)──> the old process goes on

Both processes listen on the same port and use the same store and the same key, so a
client reaches one of them at any time: calls of the old process may end there, tasks
continue in the new one, and sessions are known to both. With ``--stdio`` segue-proxy
stands in front of the port.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec

from segue.cli.codes import Exit, UsageError
from segue.cli.dev_child import Plan
from segue.cli.front import Front
from segue.cli.loading import Source
from segue.cli.screen import Screen
from segue.cli.serving import Wish, check
from segue.cli.watching import Watch
from segue.server.serving import address_of

__all__ = ["dev"]

# A process that ends by itself sooner, in seconds, is not started again before a change.
_SOON = 1.0
_PATIENCE = 3.0  # how long a process may take to end after its drain, in seconds


class _Child:
    """One process that serves."""

    def __init__(self, process: asyncio.subprocess.Process, watch: Watch) -> None:
        self.process = process
        self.url: str | None = None
        self.begun = time.monotonic()
        self.outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.shut = asyncio.Event()  # no new connection reaches the process any more
        self._watch = watch

    reading: asyncio.Future[None]

    @classmethod
    async def start(cls, plan: Plan, watch: Watch) -> _Child:
        read, write = os.pipe()
        plan.report = write
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "segue.cli.dev_child"),
                stdin=asyncio.subprocess.PIPE,
                stdout=2,  # with --stdio, standard output has the protocol
                pass_fds=[write],
                start_new_session=True,  # Ctrl-C reaches only the parent
            )
        finally:
            os.close(write)
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(plan) + b"\n")
        child = cls(process, watch)
        child.reading = asyncio.ensure_future(child._read(read))
        return child

    async def _read(self, descriptor: int) -> None:
        reader = asyncio.StreamReader(limit=1 << 24)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(
            lambda: protocol, os.fdopen(descriptor, "rb")
        )
        try:
            async for line in reader:
                told: dict[str, Any] = msgspec.json.decode(line)
                self._watch.add(told["files"])
                if told["event"] == "shut":
                    self.shut.set()
                elif told["event"] != "files" and not self.outcome.done():
                    self.url = told.get("url")
                    self.outcome.set_result(told["event"] == "ready")
        finally:
            pipe.close()
            await self.process.wait()
            self.shut.set()
            if not self.outcome.done():
                self.outcome.set_result(False)

    def signal(self, number: signal.Signals) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)


class _Dev:
    def __init__(
        self, screen: Screen, source: Source, words: list[str], wish: Wish, drain: float
    ) -> None:
        self._screen = screen
        self._source = source
        self._words = words
        self._wish = wish
        self._drain = drain
        self._watch = Watch()
        self._watch.add([str(source.path)])
        self._child: _Child | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._asked = asyncio.Event()
        self.front: Front | None = None
        self._is_told = False

    async def run(self, plan: Plan) -> Exit:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            if not await self._reload(plan):
                return Exit.CONNECTION
            while not self._asked.is_set():
                await self._next(plan)
            return Exit.OK
        finally:
            await self._end()

    def _on_signal(self) -> None:
        """The first signal asks the processes to end, the second ends them at once."""
        if self._asked.is_set() and self._child is not None:
            self._child.signal(signal.SIGTERM)
        self._asked.set()

    def _say(self, text: str) -> None:
        self._screen.note(f"segue dev: {text}")

    # ---- one round

    async def _next(self, plan: Plan) -> None:
        """Waits for a change or another event, and acts on it."""
        child, front = self._child, self.front
        events: dict[str, Awaitable[Any]] = {
            "change": self._watch.wait(),
            "asked": self._asked.wait(),
        }
        if child is not None:
            events["ended"] = child.process.wait()
        if front is not None:
            events["left"] = front.wait()
        what = await _first(events)
        if "left" in what:
            self._asked.set()
        elif "change" in what:
            names = [os.path.relpath(file) for file in self._watch.take()]
            self._say(f"{', '.join(names[:3])} changed")
            await self._reload(plan)
        elif "ended" in what and child is not None and not self._asked.is_set():
            self._child = None
            lasted = time.monotonic() - child.begun
            self._say(f"the server has ended (exit code {child.process.returncode})")
            if lasted > _SOON:
                await self._reload(plan)
            else:
                self._say("waiting for a change")

    async def _reload(self, plan: Plan) -> bool:
        """Starts a process, and ends the one before it when the new one is ready. A
        change meanwhile starts another one.

        Returns:
            False = the address cannot be used; the reason has been shown.
        """
        while True:
            begun = time.monotonic()
            child = await _Child.start(plan, self._watch)
            what = await _first(
                {
                    "outcome": asyncio.shield(child.outcome),
                    "change": self._watch.wait(),
                    "asked": self._asked.wait(),
                }
            )
            if "outcome" in what:
                break
            child.signal(signal.SIGKILL)
            await child.reading
            if "asked" in what:
                return True
            self._watch.take()
        if child.outcome.result():
            await self._replace(child, time.monotonic() - begun)
            return True
        await child.reading
        return self._failed(child)

    async def _replace(self, child: _Child, seconds: float) -> None:
        before, self._child = self._child, child
        if before is not None:
            self._let(before)
            # From then on all new connections reach the new process.
            await _first({"shut": before.shut.wait(), "late": asyncio.sleep(_PATIENCE)})
        if not self._is_told:
            self._is_told = True
            where = child.url if self.front is None else "standard input and output"
            self._say(f"{where} (watching {len(self._watch)} files; Ctrl-C ends it)")
        else:
            self._say(f"reloaded in {seconds:.1f} s")
        if self.front is not None:
            assert child.url is not None
            await self.front.renew(child.url)

    def _failed(self, child: _Child) -> bool:
        code = child.process.returncode
        if code == Exit.CONNECTION and self._child is None and not self._is_told:
            return False
        # The missing module may be a file that does not exist yet.
        self._watch.add([str(self._source.path.parent)])
        goes_on = "the server before the change goes on; " if self._child else ""
        self._say(f"{goes_on}waiting for a change")
        return True

    # ---- the end

    def _let(self, child: _Child) -> None:
        """Asks a process to end, and ends it by force when it takes too long."""

        async def end() -> None:
            child.signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(child.process.wait(), self._drain + _PATIENCE)
            except asyncio.TimeoutError:
                child.signal(signal.SIGKILL)
            await child.reading

        task = asyncio.ensure_future(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self) -> None:
        if self.front is not None:
            await self.front.end()
        if self._child is not None:
            self._let(self._child)
        while self._ending:
            await asyncio.wait(self._ending)


async def _first(events: dict[str, Awaitable[Any]]) -> set[str]:
    """Waits for the first of several events; returns the names of those that came."""
    tasks = {name: asyncio.ensure_future(one) for name, one in events.items()}
    try:
        await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks.values():
            task.cancel()
    return {name for name, task in tasks.items() if task.done() and not task.cancelled()}


def _address(http: str) -> tuple[str, socket.socket]:
    """Chooses the port, and reserves it as long as the socket is open.

    Raises:
        UsageError: The address is not a host and a port.
        OSError: The address is in use.
    """
    told = address_of(http)
    if "port" not in told:
        raise UsageError(f"{http}: segue dev listens on host:port only")
    host, port = told.get("address", "127.0.0.1"), told["port"]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for reuse in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        # Only the second socket shares the port. The first finds out who has it.
        held = socket.socket(family)
        held.setsockopt(socket.SOL_SOCKET, reuse, 1)
        try:
            held.bind((host, port))
        except OSError as error:
            held.close()
            raise OSError(error.errno, f"{host}:{port}: {error.strerror}") from None
        port = held.getsockname()[1]
        if reuse == socket.SO_REUSEADDR:
            held.close()
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}", held


async def dev(
    screen: Screen, source: Source, words: list[str], wish: Wish, *, stdio: bool
) -> Exit:
    """Serves until Ctrl-C, or until the client at standard input leaves."""
    check(wish)
    assert wish.http is not None
    http, held = _address(wish.http)
    drain = wish.options.get("drain", 10.0)
    with held, tempfile.TemporaryDirectory(prefix="segue-dev-") as directory:
        place = Path(directory)
        made = _Dev(screen, source, words, wish, drain)
        tokens = None
        if stdio:
            made.front = Front(place)
            tokens = made.front.tokens_file
        plan = Plan(
            file=str(source.path),
            name=source.name,
            words=words,
            http=http,
            options=wish.options,
            store=str(place / "tasks.db"),
            seal_key=os.urandom(32),
            tokens_file=tokens,
            report=-1,
        )
        return await made.run(plan)
