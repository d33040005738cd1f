"""A running server in one event loop: the C handle, the running calls, and the end.

    Server ── one for each (loop, store) ──> Hosting ──> _segue.Server
                                               |
                        Servings: listeners, standard input and output, attached ends

A hosting lives as long as it has servings. When its last serving ends, its connections
are closed, which cancels plain calls. Handlers of tasks are cancelled, too, because no
client could fetch their results from this hosting. The tasks are released in the store:
the next server on the store, in this process or another, runs the tasks again or fails
them.

If the loop ends without closing the server, the tasks are released together with the
runtime.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .. import _runtime, _segue, errors, schema
from .lists import Listers
from .session import Sessions

if TYPE_CHECKING:
    from .context import Context
    from .item import Item
    from .pool import Pool
    from .server import Server

__all__ = ["Hosting"]


class _Task(asyncio.Task[None]):
    """An asyncio task that records whether it was cancelled, for versions of Python
    without `Task.cancelling`."""

    was_asked = False

    def cancel(self, msg: Any = None) -> bool:
        self.was_asked = True
        return super().cancel(msg)


class Hosting:
    """A running server in one event loop.

    Attributes:
        running: the contexts of the running calls.
        sessions: the sessions of the clients.
        pool: the threads for plain functions.
        max_calls: the maximum number of running calls.
        is_draining: the server is about to end. Tasks that it takes over wait for the
            next server.
        refuses: the handlers of new calls do not begin, because the server is about to
            end.
    """

    def __init__(
        self,
        server: Server,
        runtime: _runtime.Runtime,
        store: _segue.Store | None,
        own: object = None,
    ) -> None:
        self.server = server
        self.runtime = runtime
        self.loop = asyncio.get_running_loop()
        self.running: set[Context] = set()
        self.sessions = Sessions(self.loop)
        self.pool: Pool = server._pool
        self.max_calls = server.max_calls
        self.is_closed = False
        self.is_draining = False
        self.refuses = False
        self.users = 0
        self.store: object = None  # keeps the store open as long as this object exists
        self.own = own
        self.on_idle: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._abandoned: list[_segue.Call] = []
        # Tasks that were taken over from another server and wait until fewer than
        # max_calls calls run. The value of each context is the function that begins its
        # task. The store bounds the number of these tasks. A waiting call must not be
        # freed while the server is open, because its task would fail.
        self._waiting: dict[Context, Callable[[], None]] = {}
        self._quiet: asyncio.Event | None = None
        options = server._server_options()
        if store is not None:
            options["store"] = store
        self.handle = _segue.server_new(
            runtime.handle,
            options,
            self._on_event,
            server._principal_hook(has_one_caller=own is not None),
        )
        _segue.server_watch_clients(self.handle, self._on_event)
        self._listers = Listers(server)
        self.refresh_lists()
        for item in server._items.values():
            self.add(item)

    def _on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.IDLE:
            for tell in list(self.on_idle):
                tell()
        elif kind == _segue.CLIENT_OPEN and not self.is_closed:
            self.sessions.opened(a, b, c)
        elif kind == _segue.CLIENT_CLOSED:
            self.sessions.closed(a)

    # ---- items

    def add(self, item: Item) -> None:
        raw = schema.encode(item.describe())
        handler = item.handler(self)
        try:
            _segue.server_add(
                self.handle, item.item, raw, item.options(), handler, item.completes
            )
        except errors.ExistsError:
            raise ValueError(
                f"the server already has a {item.what} {item.key!r}"
            ) from None

    def refresh_lists(self) -> None:
        """Lets the lists depend on the middlewares that the server has now."""
        self._listers.refresh(self)

    def remove(self, item: Item) -> None:
        _segue.server_remove(self.handle, item.item, item.key)

    # ---- asyncio tasks

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine. The caller must keep the returned task alive. Since Python
        3.12 the coroutine starts at once, and finishes in the same turn of the loop if it
        never waits."""
        if sys.version_info >= (3, 12):
            task = asyncio.Task(work, loop=self.loop, eager_start=True)
        elif sys.version_info >= (3, 11):
            task = self.loop.create_task(work)
        else:
            task = _Task(work, loop=self.loop)
        return task

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine and keeps its task alive."""
        task = self.begin(work)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return task

    def ended(self, context: Context) -> None:
        """Records that a handler has ended. Called on any thread."""
        self.running.discard(context)
        context._end()
        quiet = self._quiet
        try:
            if self._waiting:
                self.loop.call_soon_threadsafe(self._advance)
            if quiet is not None and not self.running:
                self.loop.call_soon_threadsafe(quiet.set)
        except RuntimeError:  # the loop was closed before a thread was done
            pass

    # ---- tasks that were taken over from another server

    def wait(self, context: Context, begin: Callable[[], None]) -> None:
        """Lets a task that was taken over wait until fewer calls run. If this native
        server is closed, the task is left to the next server that uses the store.
        """
        self._waiting[context] = begin
        if self.is_closed:
            self.dismiss(context)
        self._advance()  # a thread may have ended a call just now

    def dismiss(self, context: Context) -> None:
        """Removes a waiting task, so that it never begins."""
        if self._waiting.pop(context, None) is not None:
            context._leave()

    def _advance(self) -> None:
        """Begins waiting tasks while fewer than max_calls calls run."""
        while self._waiting and not self.is_draining and not self.is_closed:
            if len(self.running) >= self.max_calls:
                return
            self._waiting.pop(next(iter(self._waiting)))()

    def is_ending(self, context: Context) -> bool:
        """Returns whether the handler was cancelled because the server ends, and not by
        the handler's own code.
        """
        if self.is_closed:
            return True
        task = context._task
        if sys.version_info >= (3, 11):
            return task is not None and task.cancelling() > 0
        return isinstance(task, _Task) and task.was_asked

    def abandon(self, call: _segue.Call) -> None:
        """Leaves a call without an answer. Freeing a call while the server is open ends
        the call, so the call is freed only after the runtime has ended.
        """
        if self.is_closed:
            _segue.call_free(call)
            return
        if not self._abandoned:
            self.runtime.on_close(self._release)
        self._abandoned.append(call)

    def _release(self) -> None:
        """Frees the abandoned calls. Called when the runtime has ended: then freeing a
        call does not end its task.
        """
        for call in self._abandoned:
            _segue.call_free(call)
        self._abandoned.clear()

    # ---- closing

    async def drain(self, refuses: bool) -> None:
        """Waits until no call runs.

        Args:
            refuses: True = new calls are refused here. A listener that closes refuses new
                calls itself. A call that still comes from there was accepted before, and
                must begin: its store may know it already, and would keep the refusal as
                its result.
        """
        self.is_draining = True
        self.refuses = refuses
        if self._quiet is None:
            self._quiet = asyncio.Event()
        # the event is cleared before `running` is read, because a thread may end a call
        # between the two steps
        self._quiet.clear()
        while self.running:
            await self._quiet.wait()
            self._quiet.clear()

    def close(self) -> None:
        """Closes the connections after all queued output was sent. Closing a connection
        ends its plain calls.
        """
        if self.is_closed:
            return
        self.is_closed = True
        for end in (_segue.server_close, _segue.server_free):
            try:
                end(self.handle)
            except errors.ClosedError:  # the runtime has ended and freed the handle
                pass
        for context in list(self._waiting):
            self.dismiss(context)
        self.sessions.close()

    def crash(self) -> None:
        """Ends the server as a crash does: the calls that run are freed at once, so
        whatever their handlers still do reaches neither the store nor a client."""
        self.close()
        for context in list(self.running):
            context._leave()

    async def cancel(self, patience: float = 1.0) -> None:
        """Cancels the handlers that still run after `close`, and waits up to `patience`
        seconds for them. Handlers that still run after that time, and plain functions,
        which cannot be stopped, continue without their calls."""
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
            await self.sessions.wait(patience)
