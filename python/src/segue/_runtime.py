"""Runs one background runtime of the library for each event loop.

The library does its input and output on a thread of its own, which runs no Python. When
the library has events, a descriptor becomes readable. The loop then calls
``_segue.runtime_dispatch``, which returns a batch of events, and the handlers of the
events run on the loop's thread. While many messages arrive over pipes,
``runtime_dispatch`` also reads the messages (``lend_input``), which saves a switch of
threads for each message. If the loop has no ``add_reader``, a thread waits for the
descriptor and wakes the loop with ``call_soon_threadsafe``.

States::

    open ---- aclose, end of the loop, end of the program ---> closed

A runtime ends with its loop. The runtime registers an asynchronous generator with the
loop, and ``asyncio.run`` closes this generator at the end, which ends the runtime.
``atexit`` ends the runtimes of all other loops. When a runtime ends, its threads are
joined, the last events (COMPLETE and CLOSED of everything open) are delivered, and
everything is freed.

After a fork the child process has no runtime. The parent's handles raise ``ClosedError``
in the child, and a new loop gets a new runtime.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import select
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from . import _segue, errors
from ._waits import Wait, go_on

__all__ = ["Runtime", "configure", "current"]

_segue.set_error_factory(errors.make)

_LOG = logging.getLogger("segue")
# The Python log level of each library level: debug, info, warning, error.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
# Maximum number of library callbacks in one turn of the loop, so that other work of the
# loop can run. The descriptor stays readable while events are left.
_BUDGET = 256

_dispatch = _segue.runtime_dispatch
_lock = threading.Lock()
_open: dict[int, Runtime] = {}  # the open runtimes, by the id of their loop
# the limits for all runtimes that are made from now on; `configure` sets them
_limits: _segue.RuntimeOptions = {}
# the handler of events, with its options; None = nobody observes
_observer: tuple[_segue.Handler, _segue.ObserverOptions] | None = None
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class Runtime:
    """The runtime of one event loop; :func:`current` returns it.

    All methods must be called on the loop's thread.

    Attributes:
        handle: The handle for the functions of ``_segue``.
    """

    handle: _segue.Runtime

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: _segue.RuntimeOptions | None = None,
        *,
        track: bool = False,
        use_reader: bool = True,
    ) -> None:
        told: _segue.RuntimeOptions = {
            "log_level": _log_level(),
            "lend_input": use_reader,
        }
        told.update(options or {})
        self._loop = weakref.ref(loop)
        self._closed = False
        self._is_quiet = False
        self._left: Iterator[_segue.Event] | None = None
        self._woken: list[Wait] | None = None
        self._context = contextvars.copy_context()
        self._before_close: list[Callable[[], object]] = []
        self._on_close: list[Callable[[], object]] = []
        self._kept: list[object] = []
        self._end: AsyncGenerator[None, None] | None = None
        self._waiter: _Waiter | None = None
        self.handle = _segue.runtime_new(told, _log, track)
        _segue.runtime_start(self.handle)
        self._fds = (
            _segue.runtime_fd(self.handle),
            _segue.runtime_side_fd(self.handle),
        )
        try:
            if not use_reader:
                raise NotImplementedError
            for fd in self._fds:
                loop.add_reader(fd, self._drain)
        except NotImplementedError:
            self._waiter = _Waiter(self, loop, self._fds)

    @classmethod
    def current(cls) -> Runtime:
        """Returns the runtime of the running loop; see :func:`current`."""
        return current()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Returns the loop. Raises RuntimeError when the loop no longer exists."""
        loop = self._loop()
        if loop is None:
            raise RuntimeError("the event loop is closed")
        return loop

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the runtime is the one of this loop, and has not ended."""
        return self._loop() is loop and not self._closed

    @property
    def is_closed(self) -> bool:
        """Whether the runtime has ended."""
        return self._closed

    @property
    def is_delivering(self) -> bool:
        """Whether the handlers of a batch run now. During this time the library counts
        all events of the batch as delivered, even events whose handlers have not run yet.
        """
        return self._left is not None

    def on_close(self, callback: Callable[[], object]) -> None:
        """Registers a callback that runs once, when the runtime has ended and delivered
        its last events."""
        self._on_close.append(callback)

    def before_close(self, callback: Callable[[], object]) -> None:
        """Registers a callback that runs once, shortly before the runtime ends. Such a
        callback frees a server, because the library releases the handlers of a server
        only when the server is freed.
        """
        self._before_close.append(callback)

    def keep(self, thing: object) -> None:
        """Keeps an object alive until the runtime has been freed."""
        self._kept.append(thing)

    async def aclose(self) -> None:
        """Ends the runtime: threads are joined, and everything open gets its last event.

        A second call does nothing. To end sessions and servers in good order, close them
        before this call.
        """
        if self._closed:
            return
        self._leave()
        end, self._end = self._end, None
        # runtime_free joins threads and may wait for a store that writes, so it runs on
        # another thread.
        events = await asyncio.get_running_loop().run_in_executor(
            None, _segue.runtime_free, self.handle
        )
        self._finish(events)
        if end is not None:
            await end.aclose()

    def close(self) -> None:
        """Ends the runtime as :meth:`aclose` does, but blocks until the end. Used when
        the loop no longer runs.
        """
        if not self._closed:
            self._leave()
            self._finish(_segue.runtime_free(self.handle))

    def _leave(self) -> None:
        self._call(self._before_close)
        self._closed = True
        loop = self._loop()
        with _lock:
            if loop is not None and _open.get(id(loop)) is self:
                del _open[id(loop)]
        if self._waiter is not None:
            # stopping the runtime makes the descriptor readable, which wakes the thread
            _segue.runtime_stop(self.handle)
            self._waiter.join()
        elif loop is not None and not loop.is_closed():
            for fd in self._fds:
                loop.remove_reader(fd)

    def _finish(self, events: list[_segue.Event]) -> None:
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            if self._left is not None:
                self._run(self._left)
            self._run(iter(events))
        self._kept.clear()
        self._call(self._on_close)

    def _call(self, callbacks: list[Callable[[], object]]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception as exception:
                self._report(exception, "on_close")
        callbacks.clear()

    # ---- events ----

    def wake(self, wait: Wait) -> None:
        """Wakes a task that waits for an event. The task continues when the whole batch
        has been handled.
        """
        if self._woken is None:
            wait.wake()
        else:
            self._woken.append(wait)

    def deliver(self) -> None:
        """Handles the events that are due, in place of the next turn of the loop. Does
        nothing while the handlers of a batch run.

        The handlers run in the context of the runtime and not in that of the caller,
        because a batch has events of others.
        """
        if self._left is None:
            self._context.run(self._drain)

    def _drain(self) -> None:
        """Handles a batch of events. The loop calls this method once each time the
        descriptor is readable."""
        if self._closed:
            return
        if self._left is not None:
            self._run(self._left)
        try:
            events = _dispatch(self.handle, 0, _BUDGET)
        except errors.ClosedError:  # the runtime was stopped, and no events are left
            self._quiet()
            return
        woken: list[Wait] = []
        self._woken = woken
        try:
            self._run(iter(events))
        finally:
            self._woken = None
            if woken:
                go_on(self.handle, woken)

    def _run(self, events: Iterator[_segue.Event]) -> None:
        self._left = events
        for handler, kind, a, b, c in events:
            try:
                if handler is None:
                    self._report(a, b)
                else:
                    handler(kind, a, b, c)
            except Exception as exception:
                self._report(exception, handler)
            except BaseException:
                # A KeyboardInterrupt or SystemExit of a handler ends the loop, as in any
                # other callback of the loop. If the loop runs again, the loop handles the
                # rest of the batch.
                loop = self._loop()
                if loop is not None and not self._closed:
                    loop.call_soon(self._drain)
                raise
        self._left = None

    def _report(self, exception: Any, where: Any) -> None:
        loop = self._loop()
        if isinstance(exception, (KeyboardInterrupt, SystemExit)):
            raise exception
        context = {
            "message": f"Exception in a callback of segue: {where}",
            "exception": exception,
        }
        if loop is None:
            _LOG.error("%s", context["message"], exc_info=exception)
        else:
            loop.call_exception_handler(context)

    def _quiet(self) -> None:
        """Stops watching the descriptor of a stopped runtime, because the descriptor
        stays readable for ever.
        """
        loop = self._loop()
        if self._waiter is None and loop is not None and not loop.is_closed():
            loop.remove_reader(self._fds[0])
        self._is_quiet = True

    def _loop_reads(self) -> bool:
        """Returns whether the loop still watches the descriptor of the runtime."""
        return not self._closed and not self._is_quiet


class _Waiter(threading.Thread):
    """A thread that waits for the descriptors of a runtime whose loop cannot watch
    them."""

    def __init__(
        self, runtime: Runtime, loop: asyncio.AbstractEventLoop, fds: tuple[int, ...]
    ) -> None:
        super().__init__(name="segue-waiter", daemon=True)
        self._runtime = weakref.ref(runtime)
        self._loop = weakref.ref(loop)
        self._fds = fds
        self._done = threading.Event()
        self._ended = False
        self.start()

    def run(self) -> None:
        poll = select.poll()
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        while not self._ended:
            poll.poll()
            self._done.clear()
            loop = self._loop()
            if self._ended or loop is None:
                return
            try:
                loop.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop was closed in the meantime
                return
            del loop
            self._done.wait()

    def _drain(self) -> None:
        runtime = self._runtime()
        try:
            if runtime is not None:
                runtime._drain()
        finally:
            self._done.set()

    def join(self, timeout: float | None = None) -> None:
        self._ended = True
        self._done.set()
        super().join(timeout)


def _log(kind: int, level: int, text: str, _: None) -> None:
    _LOG.log(_LEVELS[min(max(level, 0), 3)], "%s", text)


def _log_level() -> int:
    wanted = _LOG.getEffectiveLevel()
    for number, level in enumerate(_LEVELS):
        if wanted <= level:
            return number
    return len(_LEVELS) - 1


def observe(handler: _segue.Handler | None, options: _segue.ObserverOptions) -> None:
    """Gives the events of all runtimes, also of later ones, to a handler."""
    global _observer
    with _lock:
        _observer = (handler, options) if handler is not None else None
        for runtime in _open.values():
            _segue.runtime_observe(runtime.handle, handler, options)


def configure(
    *,
    max_message_bytes: int | None = None,
    max_depth: int | None = None,
    max_queue_bytes: int | None = None,
) -> None:
    """Sets the limits that all sessions and servers of this process share.

    Call this function before the first session or server of an event loop. Each call
    replaces all limits of an earlier call.

    Args:
        max_message_bytes: Maximum size of one message that is received, in bytes;
            default 64 MiB.
        max_depth: Maximum nesting of JSON; default 512.
        max_queue_bytes: Maximum number of unsent bytes of one connection, beyond which
            senders wait; default 1 MiB.

    Raises:
        StateError: An event loop uses the library already.
        ValueError: A limit is below 1 or too large.
    """
    global _limits
    limits: _segue.RuntimeOptions = {}
    if max_message_bytes is not None:
        limits["max_message_bytes"] = _checked("max_message_bytes", max_message_bytes)
    if max_depth is not None:
        limits["max_depth"] = _checked("max_depth", max_depth, _INT32_MAX)
    if max_queue_bytes is not None:
        limits["max_queue_bytes"] = _checked("max_queue_bytes", max_queue_bytes)
    _sweep()
    with _lock:
        if _open:
            raise errors.StateError(
                "an event loop uses the library already, and its limits cannot change: "
                "call segue.configure before the first session or server"
            )
        _limits = limits


def _checked(name: str, value: int, most: int = _INT64_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be from 1 to {most}, not {value}")
    return value


def current() -> Runtime:
    """Returns the runtime of the running loop. The first call in a loop makes the
    runtime.

    Raises:
        RuntimeError: No loop of asyncio runs in this thread.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(_no_loop()) from None
    runtime = _open.get(id(loop))
    if runtime is not None and runtime._loop() is loop:
        return runtime
    _sweep()
    runtime = Runtime(loop, _limits)
    with _lock:
        _open[id(loop)] = runtime
        if _observer is not None:
            _segue.runtime_observe(runtime.handle, *_observer)
    runtime._end = _close_with_loop(runtime)
    _first_step(runtime._end)
    return runtime


def _no_loop() -> str:
    """Returns what to do in a thread in which no loop of asyncio runs."""
    sniffio = sys.modules.get("sniffio")  # trio imports it
    other = getattr(getattr(sniffio, "thread_local", None), "name", None)
    if other:
        return (
            f"segue needs an event loop of asyncio, and this thread runs {other}: use "
            "segue.sync on a thread, or run asyncio in place of "
            f"{other}"
        )
    return (
        "segue needs a running event loop of asyncio: call it inside asyncio.run(), or "
        "use segue.sync"
    )


async def _close_with_loop(runtime: Runtime) -> AsyncGenerator[None, None]:
    """Ends the runtime when the loop closes this generator (loop.shutdown_asyncgens)."""
    try:
        yield
    finally:
        runtime._end = None
        await runtime.aclose()


def _first_step(generator: AsyncGenerator[None, None]) -> None:
    """Runs the first step of a generator. In this step the generator registers itself
    with the running loop.
    """
    try:
        generator.asend(None).send(None)
    except StopIteration:
        pass


def _sweep() -> None:
    """Ends the runtimes of loops that were closed without closing their generators."""
    with _lock:
        runtimes = list(_open.items())
    for key, runtime in runtimes:
        loop = runtime._loop()
        if loop is None or loop.is_closed():
            with _lock:
                _open.pop(key, None)
            runtime.close()


def _end_all() -> None:
    """Ends all runtimes at the end of the program, because the threads of a runtime must
    not run while the process unloads its libraries.
    """
    with _lock:
        runtimes = list(_open.values())
        _open.clear()
    for runtime in runtimes:
        runtime.close()


def _forget() -> None:
    """Forgets all runtimes in the child process of a fork, because the runtimes belong to
    the parent.
    """
    global _lock
    _lock = threading.Lock()
    for runtime in _open.values():
        runtime._closed = True
    _open.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget)
