"""One request in flight, as the binding sees it.

    start --> event* --> COMPLETE --> nothing

The binding holds the handler of a flow from its start until COMPLETE; what users hold
(`Stream`, `Task`) holds the flow. So a stream that nobody holds any more is found by its
`__del__`, while its flow goes on to its end. Events come in the loop's thread, after
dispatch: user code that is called from here may start other requests.

An `Exchange` waits for the result alone. A `Flow` has segments too: a queue that the
window of credit bounds, since what is not granted is not delivered, and the peer is held
up.

A resume token covers the segments that were delivered, not those that were taken out of
the queue. So a flow remembers a token from before what waits there, and adds to it how
far the reader has come ("+17"): behind that the resumed request goes on. The older the
token, the more comes over the wire once more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _segue, errors
from .._waits import Wait
from ..content import Result
from .questions import Refused

if TYPE_CHECKING:
    from .conversation import Conversation

__all__ = ["Exchange", "Flow", "failure"]

OK = 0
# All that are left: no result is that long.
ENOUGH = 1 << 53
# So many segments, at least, lie between two tokens that are remembered.
_MARK_EVERY = 1024

SEGMENTS = 1 << _segue.SEGMENTS
PROGRESS = 1 << _segue.PROGRESS
LOG = 1 << _segue.LOG
QUESTION = 1 << _segue.QUESTION
TASK = 1 << _segue.TASK
RESUMABLE = 1 << _segue.RESUMABLE
STATUS = 1 << _segue.STATUS

_COMPLETE = _segue.COMPLETE
_SEGMENTS = _segue.SEGMENTS

if TYPE_CHECKING:
    Outcome = tuple[int, bytes | None, _segue.ErrorInfo | None]
Progress = Callable[[float, float | None, str | None], object]
Status = Callable[[str, str | None], object]


def failure(outcome: Outcome, token: str | None = None) -> errors.Error:
    """The exception for an end that is no success; `partial` is what had come by then."""
    status, raw, detail = outcome
    error = errors.from_info(detail, status)
    if raw is not None:
        try:
            error.partial = Result.from_json(raw)
        except ValueError:
            pass
    error.token = token
    return error


class Callbacks:
    """What a request tells beside its result. None = it is not asked for."""

    __slots__ = ("input", "log", "progress", "status")

    def __init__(
        self,
        progress: Progress | None = None,
        log: Callable[[Any], object] | None = None,
        status: Status | None = None,
        input: Any = None,
    ) -> None:
        self.progress = progress
        self.log = log
        self.status = status
        self.input = input


_NO_CALLBACKS = Callbacks()


class Exchange:
    """One request and its one end."""

    __slots__ = (
        "_answering",
        "_waiter",
        "callbacks",
        "handle",
        "outcome",
        "session",
        "task_id",
    )

    def __init__(self, session: Conversation, callbacks: Callbacks | None = None) -> None:
        self.session = session
        self.callbacks = callbacks or _NO_CALLBACKS
        self.handle: _segue.Request | None = None
        self.outcome: Outcome | None = None
        self.task_id: str | None = None
        self._waiter: Wait | None = None
        self._answering: dict[str, asyncio.Task[None]] | None = None

    def mask_of_events(self) -> int:
        """What the binding shall tell. Nobody to answer is a fact that the server hears
        of."""
        calls = self.callbacks
        mask = 1 << _COMPLETE
        if calls is not _NO_CALLBACKS:
            if calls.progress:
                mask |= PROGRESS
            if calls.log:
                mask |= LOG
            if calls.status:
                mask |= STATUS
        if calls.input or self.session.answers:
            mask |= QUESTION
        return mask

    # ---- from the binding

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _COMPLETE:
            self.outcome = (a, b, c)
            self.wake()
            if self._answering:
                self._withdraw()
        elif kind == _segue.PROGRESS:
            self.tell(self.callbacks.progress, a, b or None, c)
        elif kind == _segue.LOG:
            self.session.tell_log(self.callbacks.log, a)
        elif kind == _segue.QUESTION:
            self._ask(a, b, c)
        elif kind == _segue.TASK:
            self.task_id = a
            self.can_resume(b)
            self.became_task()
        elif kind == _segue.STATUS:
            self.tell(self.callbacks.status, a, b)
        elif kind == _segue.RESUMABLE:
            self.can_resume(a)

    def wake(self) -> None:
        if self._waiter is not None:
            self.session.runtime.wake(self._waiter)

    def can_resume(self, token: str | None) -> None:
        """It can be resumed by a new token, which covers what was delivered before."""

    def became_task(self) -> None:
        """The task has an id."""

    def tell(self, callback: Callable[..., object] | None, *args: Any) -> None:
        """Runs a callback of the user; its failure is not the library's."""
        if callback is not None:
            self.session.run(callback, *args)

    # ---- questions

    def _ask(self, key: str, method: str, params: bytes) -> None:
        if self._answering is None:
            self._answering = {}
        before = self._answering.pop(key, None)
        if before is not None:
            before.cancel()  # it is asked anew
        task = self.session.loop.create_task(self._answer(key, method, params))
        self._answering[key] = task

    async def _answer(self, key: str, method: str, params: bytes) -> None:
        answers = self.callbacks.input or self.session.answers
        assert self.handle is not None and self._answering is not None
        try:
            try:
                reply = await answers.answer(key, method, params)
                self._say(key, method, reply)
            except Refused as refusal:
                self._refuse(key, refusal.code, str(refusal))
            except (errors.NotFoundError, errors.EndedError, errors.ClosedError):
                pass  # withdrawn meanwhile
            except Exception as error:
                self.session.failed(f"the answer to {method} failed", error)
                self._refuse(key, -32603, "the client could not answer")
        except (errors.NotFoundError, errors.EndedError, errors.ClosedError):
            pass
        finally:
            if self._answering.get(key) is asyncio.current_task():
                del self._answering[key]

    def _say(self, key: str, method: str, reply: bytes) -> None:
        assert self.handle is not None
        try:
            _segue.request_answer(self.handle, key, reply)
        except errors.InvalidError:
            raise errors.InvalidError(
                f"the answer does not fit what {method} asks for: {reply.decode()}"
            ) from None

    def _refuse(self, key: str, code: int, message: str) -> None:
        assert self.handle is not None
        try:
            _segue.request_answer_error(self.handle, key, code, message)
        except errors.UnsupportedError:
            # This revision has no such answer: without one the request cannot end well.
            _segue.request_cancel(self.handle)

    def _withdraw(self) -> None:
        assert self._answering is not None
        for task in list(self._answering.values()):
            if task is not asyncio.current_task():
                task.cancel()

    # ---- for whoever waits

    async def wait(self) -> Outcome:
        """Waits for the end. When the waiting is cancelled so is the request, and its end
        is waited for, so that nothing of it happens afterwards."""
        if self.outcome is None:
            try:
                self._waiter = Wait(loop=self.session.loop)
                await self._waiter
            except asyncio.CancelledError:
                if self.outcome is None:
                    self.cancel()
                    self._waiter = Wait(loop=self.session.loop)
                    await self._waiter
                raise
            await self.session.begun()
        assert self.outcome is not None
        return self.outcome

    def cancel(self) -> None:
        """Asks for the end."""
        if self.handle is not None and self.outcome is None:
            try:
                _segue.request_cancel(self.handle)
            except (errors.EndedError, errors.ClosedError):
                pass

    def failure(self) -> errors.Error:
        """The exception for the end."""
        assert self.outcome is not None
        return failure(self.outcome, self.token())

    def token(self) -> str | None:
        """What resumes it behind all segments that were delivered, or None."""
        if self.handle is None:
            return None
        try:
            return _segue.request_token(self.handle)
        except (errors.NotResumableError, errors.EndedError, errors.ClosedError):
            return None


class Flow(Exchange):
    """A request whose result comes in segments, for one reader.

    Args:
        window: So many segments may wait for the reader.
        is_ordered: Their numbers grow.
    """

    __slots__ = (
        "_first",
        "_kept",
        "_marked",
        "_marks",
        "_waiters",
        "half",
        "is_dropping",
        "is_kept",
        "is_left",
        "is_ordered",
        "on_begin",
        "queue",
        "seen",
        "taken",
        "window",
    )

    def __init__(
        self,
        session: Conversation,
        callbacks: Callbacks | None,
        window: int,
        is_ordered: bool = True,
    ) -> None:
        super().__init__(session, callbacks)
        self.is_ordered = is_ordered
        self.window = window
        self.queue: deque[_segue.Segment] = deque()
        self.seen: _segue.Segment | None = None  # the last one that the reader took
        self.is_dropping = False  # nobody will read
        self.is_kept = False  # the server gave what resumes it: a task's id, a token
        self.is_left = False  # detached: its end is no failure
        self.on_begin: Callable[[], object] | None = None
        self.taken = 0  # since the last grant
        self.half = (window + 1) // 2
        self._marked = 0
        self._first: str | None = None  # the token from before all segments
        self._waiters: list[Wait] = []
        self._kept: str | None = None  # the token at the time of detach
        self._marks: deque[tuple[int, str]] = deque()  # number of a segment, token behind

    def mask_of_events(self) -> int:
        return super().mask_of_events() | SEGMENTS | TASK | RESUMABLE

    # ---- from the binding

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind != _SEGMENTS:
            super().on_event(kind, a, b, c)
        elif not self.is_dropping:
            self.queue.extend(a)
            number = a[-1].number
            if number - self._marked >= _MARK_EVERY:
                self._marked = number
                self.session.loop.call_soon(self._mark_all)
            if self._waiters:
                self.wake()

    def can_resume(self, token: str | None) -> None:
        self.is_kept = True
        if token is not None and not self.is_dropping:
            self._remember(self.queue[-1].number if self.queue else self.last, token)
        self.wake()

    def became_task(self) -> None:
        if self.on_begin is not None:
            self.tell(self.on_begin)

    def wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                self.session.runtime.wake(waiter)

    # ---- for the reader

    @property
    def has_begun(self) -> bool:
        """Something of it is there: what resumes it, a segment or the end."""
        return self.is_kept or bool(self.queue) or self.outcome is not None

    async def change(self) -> None:
        """Waits until something has come. The request is not touched when the waiting is
        cancelled: somebody else may wait, too."""
        waiter = Wait(loop=self.session.loop)
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:  # the waiting was cancelled
                self._waiters.remove(waiter)
        if self.outcome is not None:
            await self.session.begun()

    def take(self) -> _segue.Segment:
        """The next segment, which is there; so there is room for others."""
        self.seen = segment = self.queue.popleft()
        self.taken += 1
        if self.taken >= self.half:
            self.refill()
        return segment

    def refill(self) -> None:
        """Lets as many come as were taken."""
        self.grant(self.taken)
        self.taken = 0

    @property
    def last(self) -> int:
        """The number of the last segment that the reader took."""
        return 0 if self.seen is None else self.seen.number

    def take_all(self) -> list[_segue.Segment]:
        """All that are there, at least one."""
        batch = list(self.queue)
        self.queue.clear()
        self.seen = batch[-1]
        self.taken += len(batch)
        self.refill()
        return batch

    def grant(self, count: int) -> None:
        if self.handle is not None and self.outcome is None:
            try:
                _segue.request_grant(self.handle, count)
            except (errors.EndedError, errors.ClosedError):
                pass

    def drop(self) -> None:
        """Nobody will read: what comes is not kept, so that the result can come."""
        if not self.is_dropping:
            self.is_dropping = True
            self.queue.clear()
            self.grant(ENOUGH)

    async def wait(self) -> Outcome:
        while self.outcome is None:
            await self.change()
        return self.outcome

    async def leave(self, detach: bool) -> None:
        """Ends it, and waits for that."""
        if self.outcome is not None or self.handle is None:
            return
        self.let_go(detach)
        await self.wait()

    def let_go(self, detach: bool) -> None:
        """Ends it without waiting: a task that is detached goes on."""
        if self.outcome is not None or self.handle is None:
            return
        if detach:
            try:
                self.detach()
                return
            except errors.NotResumableError:
                pass  # no task: nothing can go on
        self.is_left = True
        self.cancel()
        self.drop()

    def detach(self) -> None:
        """Lets go of the task.

        Raises:
            NotResumableError: It is none.
        """
        assert self.handle is not None
        token = self.token()
        try:
            _segue.request_detach(self.handle)
        except (errors.EndedError, errors.ClosedError):
            pass
        self._kept = token  # what is thrown away now shall come again
        self.is_left = True
        self.drop()

    # ---- tokens

    def mark(self, number: int) -> None:
        """Remembers the token, which covers all up to that segment."""
        token = super().token()
        if token is not None:
            self._remember(number, token)

    def _mark_all(self) -> None:
        """Between two batches: the token covers what was delivered, and all of that is in
        the queue. While a batch is handled it covers what is still to come of it, too."""
        if not self.is_dropping:
            self.mark(self.queue[-1].number if self.queue else self.last)

    def _remember(self, number: int, token: str) -> None:
        while len(self._marks) > 1 and self._marks[1][0] <= self.last:
            self._marks.popleft()  # there is a newer one that will do
        self._marks.append((number, token))
        self._marked = number
        if self._first is None and self.seen is None and not self.queue:
            self._first = token

    def token(self) -> str | None:
        if self._kept is not None:
            return self._kept
        if not self.queue and not self.session.runtime.is_delivering:
            token = super().token()
            if token is not None or self.outcome is None or self.outcome[0] != OK:
                return token  # that of one that has ended well brings the result again
        if not self.is_ordered:
            return self._first  # what was read comes again: nobody knows what was not
        best: tuple[int, str] | None = None
        for mark in self._marks:
            if mark[0] > self.last:
                break
            best = mark
        if best is None:
            return None
        number, token = best
        return token if number == self.last else f"{token}+{self.last}"
