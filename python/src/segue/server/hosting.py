"""A server at work in one event loop: the handle of C, the calls that run, and its end.

    Server ── one for each (loop, store) ──> Hosting ──> _segue.Server
                                               |
                        Servings: listeners, standard input and output, attached ends

A hosting lives as long as it has servings. When the last one has gone its connections are
ended, which cancels plain calls. Handlers of tasks are cancelled, too, for nobody could
hear of their results here; what is stored of the tasks is let go: the next server on the
store, of this process or another, runs them again, or fails them.

When a loop comes to its end without all that, they are let go with the runtime.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .. import _runtime, _segue, errors, schema

if TYPE_CHECKING:
    from .context import Context
    from .item import Item
    from .pool import Pool
    from .server import Server

__all__ = ["Hosting"]


class _Task(asyncio.Task[None]):
    """Knows whether it was asked to end, where `cancelling` is not there yet."""

    was_asked = False

    def cancel(self, msg: Any = None) -> bool:
        self.was_asked = True
        return super().cancel(msg)


class Hosting:
    """A server in one loop.

    Attributes:
        running: contexts of the calls that run.
        pool: where plain functions run.
        max_calls: how many calls run at once, at most.
    """

    def __init__(
        self, server: Server, runtime: _runtime.Runtime, store: _segue.Store | None
    ) -> None:
        self.server = server
        self.runtime = runtime
        self.loop = asyncio.get_running_loop()
        self.running: set[Context] = set()
        self.pool: Pool = server._pool
        self.max_calls = server.max_calls
        self.is_closed = False
        self.is_draining = False
        self.users = 0
        self.store: object = None  # held as long as this is
        self.own: object = None
        self.on_idle: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._abandoned: list[_segue.Call] = []
        # Of tasks that were taken over, and for which there is no room yet, and what
        # begins them. As many as the store has at most. Freed before the end they would
        # fail.
        self._waiting: dict[Context, Callable[[], None]] = {}
        self._quiet: asyncio.Event | None = None
        options = server._server_options()
        if store is not None:
            options["store"] = store
        self.handle = _segue.server_new(
            runtime.handle, options, self._on_event, server._principal_hook()
        )
        for item in server._items.values():
            self.add(item)

    def _on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.IDLE:
            for tell in list(self.on_idle):
                tell()

    # ---- items

    def add(self, item: Item) -> None:
        raw = schema.encode(item.describe())
        handler = item.handler(self)
        try:
            _segue.server_add(
                self.handle, item.item, raw, item.options(), handler, item.completes
            )
        except errors.ExistsError:
            raise ValueError(f"there is a {item.what} {item.key!r} already") from None

    def remove(self, item: Item) -> None:
        _segue.server_remove(self.handle, item.item, item.key)

    # ---- tasks of asyncio

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine; whoever begins it holds the task. Where Python can, it starts
        at once, and needs no turn of the loop if it never waits."""
        if sys.version_info >= (3, 12):
            task = asyncio.Task(work, loop=self.loop, eager_start=True)
        elif sys.version_info >= (3, 11):
            task = self.loop.create_task(work)
        else:
            task = _Task(work, loop=self.loop)
        return task

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine that nobody else holds."""
        task = self.begin(work)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return task

    def ended(self, context: Context) -> None:
        """A handler has come to its end, on whatever thread."""
        self.running.discard(context)
        context._room.end()
        quiet = self._quiet
        try:
            if self._waiting:
                self.loop.call_soon_threadsafe(self._advance)
            if quiet is not None and not self.running:
                self.loop.call_soon_threadsafe(quiet.set)
        except RuntimeError:  # the loop has closed before a thread was done
            pass

    # ---- tasks that were taken over

    def wait(self, context: Context, begin: Callable[[], None]) -> None:
        """A task begins when there is room for it, or is left to the next server on the
        store when this one is closed."""
        self._waiting[context] = begin
        if self.is_closed:
            self.dismiss(context)
        self._advance()  # threads end calls meanwhile

    def dismiss(self, context: Context) -> None:
        """It need not begin any more."""
        if self._waiting.pop(context, None) is not None:
            context._leave()

    def _advance(self) -> None:
        """Begins what waits, as far as there is room."""
        while self._waiting and not self.is_draining and not self.is_closed:
            if len(self.running) >= self.max_calls:
                return
            self._waiting.pop(next(iter(self._waiting)))()

    def is_ending(self, context: Context) -> bool:
        """Whether a handler was cancelled because all ends, and not by its own doing."""
        if self.is_closed:
            return True
        task = context._task
        if sys.version_info >= (3, 11):
            return task is not None and task.cancelling() > 0
        return isinstance(task, _Task) and task.was_asked

    def abandon(self, call: _segue.Call) -> None:
        """Leaves a call as it is. While the server is open it is not freed before the
        runtime is, since that would be its end."""
        if self.is_closed:
            _segue.call_free(call)
            return
        if not self._abandoned:
            self.runtime.on_close(self._release)
        self._abandoned.append(call)

    def _release(self) -> None:
        """The runtime is gone, and with it what a free would have ended."""
        for call in self._abandoned:
            _segue.call_free(call)
        self._abandoned.clear()

    # ---- the end

    async def drain(self) -> None:
        """Takes no more calls, and waits until none runs."""
        self.is_draining = True
        if self._quiet is None:
            self._quiet = asyncio.Event()  # before the look: threads end calls meanwhile
        if self.running:
            await self._quiet.wait()

    def close(self) -> None:
        """Ends the connections after what is queued has been sent, and plain calls with
        them."""
        if self.is_closed:
            return
        self.is_closed = True
        for end in (_segue.server_close, _segue.server_free):
            try:
                end(self.handle)
            except errors.ClosedError:  # the runtime was first
                pass
        for context in list(self._waiting):
            self.dismiss(context)

    async def cancel(self, patience: float = 1.0) -> None:
        """Cancels what still runs after `close`, and waits a moment for it to see to its
        end. What has none then, or is a plain function, which cannot be stopped, goes on
        without its call."""
        me = asyncio.current_task()
        calls = [context._task for context in list(self.running)]
        tasks = [
            task
            for task in (*self._tasks, *calls)
            if task and task is not me and not task.done()
        ]
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=patience)
        finally:
            for context in list(self.running):
                context._leave()
