"""One background runtime of the library for each event loop.

The library does its input and output on a thread of its own, which knows nothing of
Python. When it has something to tell, a descriptor becomes readable; the loop then calls
``_segue.runtime_dispatch``, which returns a batch of events, and their handlers run here,
on the loop's thread. While messages come often over pipes, dispatch reads them itself,
which saves a change of threads for each (``lend_input``). A loop without ``add_reader``
gets a thread that waits for the descriptor instead and rings by
``call_soon_threadsafe``.

States::

    open ---- aclose, end of the loop, end of the program ---> closed

A runtime ends with its loop: an asynchronous generator that it leaves with the loop is
closed by ``asyncio.run`` at the end, and takes the runtime along; what is left when the
program ends is ended by ``atexit``. Ending means: threads are joined, the last events
(COMPLETE and CLOSED of all that was open) are delivered, everything is freed.

After a fork the child has no runtime: the parent's handles raise ``ClosedError`` there,
and a new loop gets a new runtime.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import select
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from . import _segue, errors
from ._waits import Wait, go_on

__all__ = ["Runtime", "current"]

_segue.set_error_factory(errors.make)

_LOG = logging.getLogger("segue")
# By the library's levels: debug, info, warning, error.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
# Callbacks of the library in one turn of the loop. Whoever else waits for the loop has
# his turn after so many; the descriptor stays readable meanwhile.
_BUDGET = 256

_dispatch = _segue.runtime_dispatch
_lock = threading.Lock()
_open: dict[int, Runtime] = {}  # by the id of the loop


class Runtime:
    """The runtime of one event loop; :func:`current` gives it.

    All methods are for the loop's thread.

    Attributes:
        handle: What the functions of ``_segue`` take.
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
        """As the function :func:`current`."""
        return current()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, which must exist."""
        loop = self._loop()
        if loop is None:
            raise RuntimeError("the event loop is gone")
        return loop

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    @property
    def is_delivering(self) -> bool:
        """Whether a batch of events is being handled: the library counts all of it as
        delivered, also what no handler has seen yet."""
        return self._left is not None

    def on_close(self, callback: Callable[[], object]) -> None:
        """Has something called once when the runtime has ended, after its last events."""
        self._on_close.append(callback)

    def before_close(self, callback: Callable[[], object]) -> None:
        """Has something called once when the runtime is about to end: the last moment to
        free a server, whose handlers the library lets go of only then."""
        self._before_close.append(callback)

    def keep(self, thing: object) -> None:
        """Keeps something alive until the runtime has been freed."""
        self._kept.append(thing)

    async def aclose(self) -> None:
        """Ends the runtime: threads are joined, what was open gets its last event.

        Idempotent. Sessions and servers that shall end in good order are to be closed
        before.
        """
        if self._closed:
            return
        self._leave()
        end, self._end = self._end, None
        # Joins threads, and a store may have something to write.
        events = await asyncio.get_running_loop().run_in_executor(
            None, _segue.runtime_free, self.handle
        )
        self._finish(events)
        if end is not None:
            await end.aclose()

    def close(self) -> None:
        """As :meth:`aclose`, blocking, for where no loop runs any more."""
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
            _segue.runtime_stop(self.handle)  # its descriptor wakes the thread
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
        """An event has come that a task waits for: it goes on when all of the batch has
        been handled."""
        if self._woken is None:
            wait.wake()
        else:
            self._woken.append(wait)

    def _drain(self) -> None:
        """Runs what is due, once for each time a descriptor was found readable."""
        if self._closed:
            return
        if self._left is not None:
            self._run(self._left)
        try:
            events = _dispatch(self.handle, 0, _BUDGET)
        except errors.ClosedError:  # it was stopped and has said all
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
                # KeyboardInterrupt and SystemExit end the loop, as in any callback; what
                # is left of the batch runs when the loop does so again.
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
        """A runtime that was stopped would have its descriptor readable for ever."""
        loop = self._loop()
        if self._waiter is None and loop is not None and not loop.is_closed():
            loop.remove_reader(self._fds[0])
        self._is_quiet = True

    def _loop_reads(self) -> bool:
        """Whether the loop still waits for callbacks of the library."""
        return not self._closed and not self._is_quiet


class _Waiter(threading.Thread):
    """Waits for the descriptors where the loop cannot."""

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
            except RuntimeError:  # the loop is closed
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


def current() -> Runtime:
    """Gives the runtime of the running loop; makes it at the first use.

    Raises:
        RuntimeError: No loop runs in this thread.
    """
    loop = asyncio.get_running_loop()
    runtime = _open.get(id(loop))
    if runtime is not None and runtime._loop() is loop:
        return runtime
    _sweep()
    runtime = Runtime(loop)
    with _lock:
        _open[id(loop)] = runtime
    runtime._end = _close_with_loop(runtime)
    _first_step(runtime._end)
    return runtime


async def _close_with_loop(runtime: Runtime) -> AsyncGenerator[None, None]:
    """Closed by whoever ends the loop (loop.shutdown_asyncgens)."""
    try:
        yield
    finally:
        runtime._end = None
        await runtime.aclose()


def _first_step(generator: AsyncGenerator[None, None]) -> None:
    """Has the loop know the generator: it does so when the first step is made."""
    try:
        generator.asend(None).send(None)
    except StopIteration:
        pass


def _sweep() -> None:
    """Ends the runtimes of loops that were closed in another way."""
    with _lock:
        runtimes = list(_open.items())
    for key, runtime in runtimes:
        loop = runtime._loop()
        if loop is None or loop.is_closed():
            with _lock:
                _open.pop(key, None)
            runtime.close()


def _end_all() -> None:
    """At the end of the program: no thread may run while libraries are torn down."""
    with _lock:
        runtimes = list(_open.values())
        _open.clear()
    for runtime in runtimes:
        runtime.close()


def _forget() -> None:
    """In the child of a fork: its runtimes are the parent's."""
    global _lock
    _lock = threading.Lock()
    for runtime in _open.values():
        runtime._closed = True
    _open.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget)
