"""The queue of sends that wait for room because the client or the store is slower than
the handler. There is room when the library takes another send.

    take ── the queue is empty, and there is room ──> done
      └──> the queue ── DRAIN: there is room again ──> done
                └── the call has ended ──> an exception

The queue keeps the order: a new send waits behind the sends that already wait, even if
another task or thread of the handler made them. The queue needs no limit, because a task
or thread of the handler waits for each entry.
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
    """Combines several attempts into one, so that no other send comes between them. An
    attempt is a function that tries to send and returns whether there was room.
    """
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
    """The queue of an async handler. It is used on the loop's thread only.

    Attributes:
        queue: the waiting attempts, each with a future of its own, so that cancelling one
            does not end another.
    """

    __slots__ = ("_is_over", "queue")

    def __init__(self) -> None:
        self.queue: list[tuple[Attempt, asyncio.Future[None]]] = []
        self._is_over = False

    async def take(self, attempt: Attempt) -> None:
        """Runs the attempt at once. If there is no room, the attempt is repeated when
        there is room."""
        if self.queue or not attempt():
            await self.wait(attempt)

    async def wait(self, attempt: Attempt) -> None:
        """Waits for the attempts that came earlier, and then repeats the attempt. Called
        when the attempt found no room.
        """
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
        """Repeats the waiting attempts in their order. Called when there is room
        again."""
        queue = self.queue
        while queue:
            attempt, waiter = queue[0]
            if not waiter.done():  # a waiter that is done was cancelled
                try:
                    if not attempt():
                        return
                except Exception as error:
                    waiter.set_exception(error)
                else:
                    waiter.set_result(None)
            queue.pop(0)

    def end(self) -> None:
        """Ends the queue when the call has ended or must end. Sends that still wait are
        rejected."""
        self._is_over = True
        if self.queue:
            self.flush()
        while self.queue:
            _, waiter = self.queue.pop(0)
            if not waiter.done():
                waiter.set_exception(_CANCELLED())


class ThreadRoom:
    """The queue of a plain function. A thread of the function that has to wait blocks.

    Attributes:
        bell: a condition that is notified whenever a waiting thread may be able to
            continue.
    """

    __slots__ = ("_is_over", "_queue", "_rings", "bell")

    def __init__(self) -> None:
        self.bell = threading.Condition(threading.Lock())
        self._queue: list[object] = []
        # Counts the notifications that there may be room. A thread whose attempt failed
        # tries again when the count has changed.
        self._rings = 0
        self._is_over = False

    def take(self, attempt: Attempt) -> None:
        """Runs the attempt on this thread when it is the thread's turn and there is
        room."""
        heard = -1
        if not self._queue:
            # the count is read before the attempt, so that a later notification is not
            # missed
            heard = self._rings
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
        """Wakes the waiting threads. Called when there may be room again."""
        with self.bell:
            self._rings += 1
            self.bell.notify_all()

    def end(self) -> None:
        """Ends the queue when the call has ended or must end. Sends that still wait are
        rejected."""
        self._is_over = True
        self.flush()
