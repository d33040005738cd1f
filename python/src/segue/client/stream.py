"""A result that is read while it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from .. import _segue, errors
from .._segue import Segment
from ..content import Result
from .flow import OK, Flow

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Stream"]

Leave = Literal["cancel", "detach"]

# A result of more bytes is decoded when somebody asks for it: that takes the loop longer
# than others should wait.
_AT_ONCE = 65536
_IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"


def _may_be_error(raw: bytes) -> bool:
    """Whether `isError` might be true, in one pass at the speed of memory."""
    at = raw.find(b'"isError"')
    while at >= 0:
        if raw[at + 9 : at + 32].lstrip().removeprefix(b":").lstrip()[:4] == b"true":
            return True
        at = raw.find(b'"isError"', at + 9)
    return False


class Reader:
    """What streams and tasks have in common: one flow, which begins when it is needed,
    and a reader of its segments."""

    def __init__(
        self,
        begin: Callable[[], Flow],
        finish: Callable[[bytes], Result],
        on_leave: Leave,
    ) -> None:
        if on_leave not in ("cancel", "detach"):
            raise ValueError(f'on_leave is "cancel" or "detach", not {on_leave!r}')
        self._begin = begin
        self._finish = finish
        self._on_leave = on_leave
        self._flow: Flow | None = None
        self._result: Result | None = None
        self._is_read = False

    def _started(self) -> Flow:
        flow = self._flow
        if flow is None:
            flow = self._flow = self._begin()
        return flow

    # ---- what is known of it

    @property
    def token(self) -> str | None:
        """What `session.resume` takes, here or in another process, another day: it goes
        on behind the last segment that was read. None while there is nothing to resume
        with. It is a secret: it opens the task."""
        return None if self._flow is None else self._flow.token()

    @property
    def task_id(self) -> str | None:
        """The id of the task that it became, or None."""
        return None if self._flow is None else self._flow.task_id

    @property
    def immediate(self) -> str | None:
        """What the server gives the model to go on with while the task runs (2025-11-25
        basic/utilities/tasks), or None. To be read from `on_task`, or `start`, on."""
        flow = self._flow
        if flow is None or flow.handle is None or flow.task_id is None:
            return None
        try:
            raw = _segue.request_meta(flow.handle, _IMMEDIATE)
        except (errors.NotFoundError, errors.EndedError, errors.ClosedError):
            return None
        told = None if raw is None else msgspec.json.decode(raw)
        return told if isinstance(told, str) else None

    @property
    def done(self) -> bool:
        """It has ended, and all its segments were read."""
        flow = self._flow
        return flow is not None and flow.outcome is not None and not flow.queue

    async def _wait_started(self) -> Flow:
        """Waits as `started` says."""
        flow = self._started()
        while not flow.has_begun:
            await flow.change()
        return flow

    async def started(self) -> Self:
        """Begins, and waits until something of it is there: a task, what resumes the call
        (SEP-975), a segment or the end. When `token` is there now, store it: the server
        keeps the work for whoever comes with it."""
        await self._wait_started()
        return self

    # ---- reading

    def __aiter__(self) -> Self:
        self._started()
        self._is_read = True
        return self

    async def __anext__(self) -> Segment:
        flow = self._flow or self._started()
        while not flow.queue:
            if flow.outcome is not None:
                self._end(flow)
                raise StopAsyncIteration
            await flow.change()
        # flow.take(), without the call: what is done for each segment decides the speed
        flow.seen = segment = flow.queue.popleft()
        flow.taken += 1
        if flow.taken >= flow.half:
            flow.refill()
        return segment

    def take(self) -> Segment | None:
        """The next segment if it is there; never waits."""
        flow = self._flow
        if flow is None or not flow.queue:
            return None
        return flow.take()

    async def batches(self) -> AsyncIterator[list[Segment]]:
        """The segments in lists, as many as are there, at least one: for those who have
        to read more than some 100,000 a second."""
        flow = self._started()
        self._is_read = True
        while True:
            if flow.queue:
                yield flow.take_all()
            elif flow.outcome is not None:
                self._end(flow)
                return
            else:
                await flow.change()

    def _end(self, flow: Flow) -> None:
        """Raises if the end was none of success."""
        outcome = flow.outcome
        assert outcome is not None
        if outcome[0] == OK:
            raw = outcome[1] or b"{}"
            if len(raw) <= _AT_ONCE or _may_be_error(raw):
                self._take_result(raw)
        elif not flow.is_left:
            raise flow.failure()

    def _take_result(self, raw: bytes) -> Result:
        if self._result is None:
            self._result = self._finish(raw)
        return self._result

    # ---- leaving

    def detach(self) -> str:
        """Lets go of the task without cancelling it: reading ends, the server goes on.

        Returns:
            The token that `session.resume` takes.

        Raises:
            NotResumableError: It is no task (yet), or it has not begun.
        """
        token = self.token
        flow = self._flow
        if token is None or flow is None:
            raise errors.NotResumableError()
        if flow.outcome is None:
            flow.detach()
        return token

    async def cancel(self) -> None:
        """Asks the server to end it, and waits for that: a task is cancelled, a plain
        call withdrawn. No error when it has ended meanwhile."""
        if self._flow is not None:
            await self._flow.leave(detach=False)

    def __del__(self) -> None:
        flow = getattr(self, "_flow", None)
        if flow is not None and flow.outcome is None:
            flow.let_go(self._on_leave == "detach")


class Stream(Reader):
    """One call of a tool whose segments are read as they come:

        async with session.stream("story", n=3) as story:
            async for segment in story:
                print(segment.text, end="")
        print(story.result.structured)

    It begins with the first use. Reading holds up the server when it is slow: so many
    segments as the window are on the way at most. A segment that `replaces` makes void
    what was read before it.

    Who leaves early ends it: at the end of `async with`, and when nobody holds the stream
    any more, the call is cancelled, or, with ``on_leave="detach"``, a task is let go.
    A stream that is still held after `break` can be read on.

    `__anext__` does not end anything when it is cancelled, so
    ``asyncio.wait_for(anext(stream), 1)`` may be tried again.
    """

    @property
    def result(self) -> Result:
        """The whole result, once reading has ended.

        Raises:
            StateError: Reading has not ended.
            Error: How it ended otherwise.
        """
        flow = self._flow
        if flow is None or flow.outcome is None or flow.queue:
            raise errors.StateError("the stream has not been read to its end")
        if flow.outcome[0] != OK:
            raise flow.failure()
        return self._take_result(flow.outcome[1] or b"{}")

    async def collect(self) -> Result:
        """Reads to the end without looking at the segments; the result.

        Raises:
            Error: How it ended otherwise.
        """
        flow = self._started()
        flow.drop()
        await flow.wait()
        self._end(flow)
        return self.result

    async def __aenter__(self) -> Self:
        self._started()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leaves it, as at the end of `async with`."""
        if self._flow is not None:
            await self._flow.leave(self._on_leave == "detach")
