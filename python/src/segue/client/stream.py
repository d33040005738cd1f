"""Results that are read in segments while the tool runs."""

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

# The largest result, in bytes, that is decoded when it arrives. A larger result is
# decoded only when it is used, because decoding would block the loop for too long.
_AT_ONCE = 65536
_IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"


def _may_be_error(raw: bytes) -> bool:
    """Returns whether `isError` of a result might be true. One fast search finds this
    out, without decoding the result.
    """
    at = raw.find(b'"isError"')
    while at >= 0:
        if raw[at + 9 : at + 32].lstrip().removeprefix(b":").lstrip()[:4] == b"true":
            return True
        at = raw.find(b'"isError"', at + 9)
    return False


class Reader(_segue.SegmentReader):
    """The base class of streams and tasks. At its first use it starts one flow (a request
    that delivers segments, see flow.py), and it reads the segments of this flow.

    The base class has the attribute `_flow` and the method `__anext__`, which runs for
    each segment. It takes a segment that has arrived, and awaits `_next_later` when none
    has.
    """

    _flow: Flow | None

    def __init__(
        self,
        begin: Callable[[], Flow],
        finish: Callable[[bytes], Result],
        on_leave: Leave,
    ) -> None:
        if on_leave not in ("cancel", "detach"):
            raise ValueError(f'on_leave has to be "cancel" or "detach", not {on_leave!r}')
        self._begin = begin
        self._finish = finish
        self._on_leave = on_leave
        self._result: Result | None = None
        self._is_read = False

    def _started(self) -> Flow:
        flow = self._flow
        if flow is None:
            flow = self._flow = self._begin()
        return flow

    # ---- state

    @property
    def token(self) -> str | None:
        """The token for `session.resume`, in this process or another, at any later time.
        The resumed request continues after the last segment that was read. None while the
        request cannot be resumed. The token is a secret: whoever has it can read the
        task."""
        return None if self._flow is None else self._flow.token()

    @property
    def task_id(self) -> str | None:
        """The id of the task, if the call has become a task, or None."""
        return None if self._flow is None else self._flow.task_id

    @property
    def immediate(self) -> str | None:
        """The server's interim answer for the model, to use while the task runs
        (2025-11-25 basic/utilities/tasks), or None. The value is None until `on_task`
        has run or `start` has returned.
        """
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
        """Whether the call has ended and all its segments were read."""
        flow = self._flow
        return flow is not None and flow.outcome is not None and not flow.queue

    async def _wait_started(self) -> Flow:
        """Waits as `started` does, and returns the flow."""
        flow = self._started()
        while not flow.has_begun:
            await flow.change()
        return flow

    async def started(self) -> Self:
        """Begins the request and waits until a task, a resumption id (SEP-975), a segment
        or the end arrives. If `token` is set afterwards, store the token: with it the
        work can be fetched from the server later.
        """
        await self._wait_started()
        return self

    # ---- reading

    def __aiter__(self) -> Self:
        self._started()
        self._is_read = True
        return self

    async def _next_later(self) -> Segment:
        flow = self._flow or self._started()
        while not flow.queue:
            if flow.outcome is not None:
                self._end(flow)
                raise StopAsyncIteration
            await flow.change()
        return flow.take()

    def take(self) -> Segment | None:
        """Returns the next segment if a segment has arrived, and None otherwise. Never
        waits.
        """
        flow = self._flow
        if flow is None or not flow.queue:
            return None
        return flow.take()

    async def batches(self) -> AsyncIterator[list[Segment]]:
        """Yields lists of segments. Each list has all segments that have arrived, at
        least one. Use this method to read more than about 100,000 segments per second."""
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
        """Raises the error of the request if the request ended without success."""
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
        """Detaches from the task without cancelling it: reading ends, and the task
        continues on the server.

        Returns:
            The token for `session.resume`.

        Raises:
            NotResumableError: The call is not a task (yet), or has not begun.
        """
        token = self.token
        flow = self._flow
        if token is None or flow is None:
            raise errors.NotResumableError()
        if flow.outcome is None:
            flow.detach()
        return token

    async def cancel(self) -> None:
        """Cancels the call or its task, and waits for the end. If the call has already
        ended, nothing happens.
        """
        if self._flow is not None:
            await self._flow.leave(detach=False)

    def __del__(self) -> None:
        flow = getattr(self, "_flow", None)
        if flow is not None and flow.outcome is None:
            flow.let_go(self._on_leave == "detach")


class Stream(Reader):
    """A call of a tool whose segments are read as they arrive:

        async with session.stream("story", n=3) as story:
            async for segment in story:
                print(segment.text, end="")
        print(story.result.structured)

    The call begins at its first use. A slow reader slows the server down: at most
    `window` segments wait unread. A segment with `replaces` discards all earlier
    segments.

    Leaving early ends the call: at the end of `async with`, or with the last reference to
    the stream, the call is cancelled. With ``on_leave="detach"`` a task continues on the
    server. After `break`, a new loop over the same stream continues with the next
    segment.

    Cancelling `__anext__` does not end the call, so ``asyncio.wait_for(anext(stream),
    1)`` may be tried again.
    """

    @property
    def result(self) -> Result:
        """The whole result, available when all segments were read.

        Raises:
            StateError: Reading has not ended.
            Error: The call failed.
        """
        flow = self._flow
        if flow is None or flow.outcome is None or flow.queue:
            raise errors.StateError(
                "the stream has not been read to its end: read it, or use collect()"
            )
        if flow.outcome[0] != OK:
            raise flow.failure()
        return self._take_result(flow.outcome[1] or b"{}")

    async def collect(self) -> Result:
        """Waits for the result without reading the segments.

        Raises:
            Error: The call failed.
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
        """Leaves the call, as the end of `async with` does."""
        if self._flow is not None:
            await self._flow.leave(self._on_leave == "detach")
