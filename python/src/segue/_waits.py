"""What a task waits for, when it goes on in the turn of the loop that brings it.

asyncio wakes a task in the turn after the one that ends its future, and between two turns
asks for what is readable. Whoever makes one call after the other pays for that with each.
So the tasks that a batch of events wakes are noted, and go on as soon as all of the batch
has been handled: in the same turn. What they send is held back until all of them have had
theirs, so that it leaves in one write, and never for longer: there is no cork that waits
for the loop. Nothing but the loop may do so, with no task under way; else they go on as
ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from . import _segue, errors

__all__ = ["Wait", "go_on"]


class Wait(asyncio.Future[None]):
    """A future of one task, which awaits it at once."""

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
        """The task goes on, in the next turn."""
        if not self.done():
            self.set_result(None)
            self._later()

    def wake_now(self) -> None:
        """The task goes on at once; no other may be under way."""
        if self.done():
            return
        self.set_result(None)
        going_on, self._going_on = self._going_on, None
        if going_on is not None and going_on[1] is not None:
            going_on[1].run(going_on[0], self)


def go_on(runtime: _segue.Runtime, waits: list[Wait]) -> None:
    """Wakes tasks from the loop."""
    if asyncio.current_task() is not None:  # as of loops that were made to nest
        for wait in waits:
            wait.wake()
        return
    is_corked = len(waits) > 1
    at = 0
    try:
        if is_corked:
            _segue.runtime_cork(runtime)
    except errors.ClosedError:  # they hear of it
        is_corked = False
    try:
        for wait in waits:
            at += 1
            wait.wake_now()
    finally:  # KeyboardInterrupt and SystemExit of a task come through
        for wait in waits[at:]:
            wait.wake()
        if is_corked:
            try:
                _segue.runtime_uncork(runtime)
            except errors.ClosedError:  # one of them has ended it
                pass
