"""The lifespan of a server: what the application opens before the first call, and closes
after the last one.

A server has one lifespan in each event loop. It begins before the first transport is
served, and ends when the last `Serving` has ended and its handlers have been cancelled.
An asyncio task of its own enters and leaves the application's context manager, because
some context managers must be left in the task that entered them.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from .docstring import named

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Life", "Lifespan", "Lives"]

Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Life:
    """The lifespan of a server in one event loop.

    Attributes:
        value: the value that the context manager has yielded.
    """

    def __init__(self, server: Server, lifespan: Lifespan) -> None:
        self.value: Any = None
        self._server = server
        self._lifespan = lifespan
        self._users = 0
        self._turn = asyncio.Lock()  # one transport begins or ends at a time
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Begins the lifespan for its first user. Raises what the context manager raises
        when it is entered."""
        async with self._turn:
            if self._task is None:
                await self._begin()
            self._users += 1

    async def leave(self) -> None:
        """Ends the lifespan after its last user. Raises what the context manager raises
        when it is left."""
        async with self._turn:
            self._users -= 1
            task = self._task
            if self._users or task is None:
                return
            self._task = None
            self._stop.set()
            await task

    async def _begin(self) -> None:
        self._stop.clear()
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(entered))
        try:
            await asyncio.wait([task, entered], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        if not entered.done():
            task.result()  # raises what the context manager has raised
        self._task = task

    async def _run(self, entered: asyncio.Future[None]) -> None:
        manager = self._lifespan(self._server)
        if inspect.iscoroutine(manager):
            manager.close()
            raise TypeError(
                f"the lifespan {named(self._lifespan)} is an async function, which is "
                "not supported here: let it yield once, and decorate it with "
                "contextlib.asynccontextmanager"
            )
        if not hasattr(manager, "__aenter__"):
            raise TypeError(
                f"lifespan has to return an async context manager, not "
                f"{type(manager).__name__}: decorate the function with "
                "contextlib.asynccontextmanager"
            )
        try:
            async with manager as self.value:
                entered.set_result(None)
                # The end of the loop cancels this task. The context manager is then left
                # in good order, too.
                with contextlib.suppress(asyncio.CancelledError):
                    await self._stop.wait()
        finally:
            self.value = None


class Lives:
    """The lifespans of a server and of the servers that are mounted in it. They begin in
    this order, and end in the opposite order."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self._lives = lives
        self._stack = contextlib.AsyncExitStack()

    async def enter(self) -> None:
        """Begins all of them. If one cannot begin, those that began before end, and its
        exception is raised."""
        async with contextlib.AsyncExitStack() as stack:
            for life in self._lives:
                await life.enter()
                stack.push_async_callback(life.leave)
            self._stack = stack.pop_all()

    async def leave(self) -> None:
        """Ends all of them, also if one raises."""
        await self._stack.aclose()
