"""What waits for room: a client, or a store, is slower than the handler.

    take ── nobody waits, and there is room ──> done
      └──> the queue ── DRAIN, for its first ones ──> done
                └── the call has ended ──> an exception

Order is kept: what comes later waits behind what waits already, whichever task or thread
of the handler it comes from. The queue needs no bound: each entry is a task, or a thread,
of the handler, which stands still meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from .. import errors

__all__ = ["Attempt", "Room", "ThreadRoom", "together"]

Attempt = Callable[[], bool]
"""Does something; False while there is no room for it."""
_CANCELLED = errors.RequestCancelledError


def together(attempts: list[Attempt]) -> Attempt:
    """Several as one, between which nothing else comes."""
    if len(attempts) == 1:
        return attempts[0]
    done = 0

    def attempt() -> bool:
        nonlocal done
        while done < len(attempts):
            if not attempts[done]():
                return False
            done += 1
        return True

    return attempt


class Room:
    """The queue of an async handler, on the loop's thread.

    Attributes:
        queue: what waits, and whom to tell; each has a future of its own, so that one
            that is cancelled is nobody else's end.
    """

    __slots__ = ("_is_over", "queue")

    def __init__(self) -> None:
        self.queue: list[tuple[Attempt, asyncio.Future[None]]] = []
        self._is_over = False

    async def take(self, attempt: Attempt) -> None:
        """Does at once what can be done at once, and else when there is room."""
        if self.queue or not attempt():
            await self.wait(attempt)

    async def wait(self, attempt: Attempt) -> None:
        """Waits behind the others, after a refusal."""
        if self._is_over:
            raise _CANCELLED()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (attempt, waiter)
        self.queue.append(entry)
        try:
            await waiter
        except BaseException:
            if entry in self.queue:
                self.queue.remove(entry)
            raise

    def flush(self) -> None:
        """There is room again."""
        queue = self.queue
        while queue:
            attempt, waiter = queue[0]
            if not waiter.done():  # else it was cancelled, and does not know yet
                try:
                    if not attempt():
                        return
                except Exception as error:
                    waiter.set_exception(error)
                else:
                    waiter.set_result(None)
            queue.pop(0)

    def end(self) -> None:
        """The call shall end, or has: nothing waits any more."""
        self._is_over = True
        if self.queue:
            self.flush()
        while self.queue:
            _, waiter = self.queue.pop(0)
            if not waiter.done():
                waiter.set_exception(_CANCELLED())


class ThreadRoom:
    """The queue of a plain function, whose threads it blocks.

    Attributes:
        bell: is notified of whatever may let somebody go on.
    """

    __slots__ = ("_is_over", "_queue", "_rings", "bell")

    def __init__(self) -> None:
        self.bell = threading.Condition(threading.Lock())
        self._queue: list[object] = []
        self._rings = 0  # so far: whoever was refused before one may try again
        self._is_over = False

    def take(self, attempt: Attempt) -> None:
        """Does it, on this thread, when it is its turn and there is room."""
        heard = -1
        if not self._queue:
            heard = self._rings  # one that rings from here on is not missed
            if attempt():
                return
        ticket = object()
        with self.bell:
            self._queue.append(ticket)
        try:
            while True:
                self._wait(ticket, heard)
                heard = self._rings
                if attempt():
                    return
                if self._is_over:
                    raise _CANCELLED()
        finally:
            with self.bell:
                self._queue.remove(ticket)
                self.bell.notify_all()

    def _wait(self, ticket: object, heard: int) -> None:
        with self.bell:
            while self._queue[0] is not ticket or (
                self._rings == heard and not self._is_over
            ):
                self.bell.wait()

    def flush(self) -> None:
        """There may be room again."""
        with self.bell:
            self._rings += 1
            self.bell.notify_all()

    def end(self) -> None:
        """The call shall end, or has: nothing waits any more."""
        self._is_over = True
        self.flush()
