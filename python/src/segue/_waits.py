"""Lets a task continue in the same turn of the loop in which its event arrives.

asyncio wakes a task one turn after its future is done, and polls for input between the
two turns. Polling costs time for each of many calls in a row. So the runtime collects the
tasks that a batch of events wakes, and continues these tasks in the same turn, as soon as
the whole batch has been handled. The output of the tasks is held back until all of them
have run, so that it is sent in one write. The runtime continues tasks in this way only
from the loop itself, while no task runs. Otherwise tasks are woken in the usual way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from . import _segue, errors

__all__ = ["Wait", "go_on"]


class Wait(asyncio.Future[None]):
    """A future for one task. The task must await the future at once."""

    _going_on: tuple[Callable[[Any], object], Context | None] | None = None

    def add_done_callback(
        self, fn: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        if self._going_on is None and context is not None and not self.done():
            self._going_on = fn, context
        else:
            super().add_done_callback(fn, context=context)

    def cancel(self, msg: Any = None) -> bool:
        cancelled = super().cancel(msg)
        self._later()
        return cancelled

    def _later(self) -> None:
        going_on, self._going_on = self._going_on, None
        if going_on is not None:
            self.get_loop().call_soon(going_on[0], self, context=going_on[1])

    def wake(self) -> None:
        """Wakes the task in the next turn of the loop."""
        if not self.done():
            self.set_result(None)
            self._later()

    def wake_now(self) -> None:
        """Runs the task at once. No other task may be running."""
        if self.done():
            return
        self.set_result(None)
        going_on, self._going_on = self._going_on, None
        if going_on is not None and going_on[1] is not None:
            going_on[1].run(going_on[0], self)


def go_on(runtime: _segue.Runtime, waits: list[Wait]) -> None:
    """Wakes the tasks of these waits at once. Must be called from the loop."""
    # A task is running now, because this event loop is nested in a task. So no other task
    # may run at once, and these tasks run in the next turn.
    if asyncio.current_task() is not None:
        for wait in waits:
            wait.wake()
        return
    is_corked = len(waits) > 1
    at = 0
    try:
        if is_corked:
            _segue.runtime_cork(runtime)
    except errors.ClosedError:
        # the runtime has ended; each task notices the end when it continues
        is_corked = False
    try:
        for wait in waits:
            at += 1
            wait.wake_now()
    # wakes the other tasks even if a task raises KeyboardInterrupt or SystemExit
    finally:
        for wait in waits[at:]:
            wait.wake()
        if is_corked:
            try:
                _segue.runtime_uncork(runtime)
            except errors.ClosedError:  # one of the tasks has ended the runtime
                pass
