"""Running requests, and the events that the binding delivers for them.

    start --> event* --> COMPLETE --> nothing

The binding keeps the handler of a flow alive from the start until COMPLETE. The objects
of users (`Stream`, `Task`) refer to the flow, and the flow never refers to them. So
`__del__` of an unused stream runs while its flow runs to its end. Events arrive on the
loop's thread, after dispatch has returned, so callbacks of the user may start other
requests.

An `Exchange` only waits for the result. A `Flow` also has a queue of segments. The window
of credit bounds the queue: a segment without credit is not delivered, and the peer must
pause.

A resume token covers the segments that were delivered, even those that still wait in the
queue. So a flow remembers an older token, which does not cover the waiting segments, and
appends the number of the last segment that the reader took ("+17"). The resumed request
continues after that segment. The older the token, the more segments the server sends
again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _segue, errors
from .._waits import Wait
from ..content import Result
from .questions import ELICIT, Refused

if TYPE_CHECKING:
    from .conversation import Conversation

__all__ = ["Exchange", "Flow", "failure"]

OK = 0
# The credit of a request without a limit. No result has so many segments.
ENOUGH = 1 << 53
# The minimum distance, in segments, between two resume tokens that a flow remembers.
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
    """Makes the exception of a request that failed. The attribute `partial` of the
    exception is the part of the result that had arrived. If the server or the task was
    lost, it is an empty result when nothing had arrived.
    """
    status, raw, detail = outcome
    error = errors.from_info(detail, status)
    if isinstance(error, (errors.DisconnectedError, errors.TaskLostError)):
        error.partial = Result()
    if raw is not None:
        try:
            error.partial = Result.from_json(raw)
        except ValueError:
            pass
    error.token = token
    return error


class Callbacks:
    """The callbacks of a request. The binding does not report an event whose callback is
    None.
    """

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
# what the server gets when a callback failed, if the revision has an error for it
_NO_ANSWER = "The client failed to answer"


class Exchange:
    """One request, from its start to its end."""

    __slots__ = (
        "_answering",
        "_refused",
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
        # why this client did not answer a question of the request
        self._refused: errors.RemoteError | None = None

    def mask_of_events(self) -> int:
        """Returns the events that the binding should report, as a bit mask. Without
        QUESTION in the mask the library tells the server that the client cannot answer
        questions."""
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

    # ---- called by the binding

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
        """Called when the request can be resumed with a new token. The token covers all
        segments that were delivered until now.
        """

    def became_task(self) -> None:
        """Called when the server has made a task of the request."""

    def tell(self, callback: Callable[..., object] | None, *args: Any) -> None:
        """Runs a callback of the user. An exception in the callback is reported to the
        loop's exception handler and not raised."""
        if callback is not None:
            self.session.run(callback, *args)

    # ---- questions

    def _ask(self, key: str, method: str, params: bytes) -> None:
        if self._answering is None:
            self._answering = {}
        before = self._answering.pop(key, None)
        if before is not None:
            # The server asks the same question again, so the earlier answer is not
            # needed.
            before.cancel()
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
                text = f"the client did not answer {method}: {refusal}"
                self._refused = errors.RemoteError(text, code=refusal.code)
                self._refuse(key, refusal.code, str(refusal))
            except (errors.NotFoundError, errors.EndedError, errors.ClosedError):
                pass  # the question was withdrawn, or its request has ended
            except Exception as error:
                what = f"the callback that answers {method} failed"
                self.session.failed(what, error)
                told = f"{what}: {type(error).__name__}: {error}".removesuffix(": ")
                self._refused = errors.RemoteError(told, code=-32603)
                self._refused.__cause__ = error
                self._give_up(key, method)
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
                f"the answer to {method} does not fit the requested form: "
                f"{reply.decode()}"
            ) from None

    def _give_up(self, key: str, method: str) -> None:
        """Answers a question whose callback failed: a form with "cancel", in every
        revision."""
        assert self.handle is not None
        if method == ELICIT:
            _segue.request_answer(self.handle, key, b'{"action":"cancel"}')
        else:
            self._refuse(key, -32603, _NO_ANSWER)

    def _refuse(self, key: str, code: int, message: str) -> None:
        assert self.handle is not None
        try:
            _segue.request_answer_error(self.handle, key, code, message)
        except errors.UnsupportedError:
            # This protocol revision cannot carry an error as an answer. The request would
            # wait for ever, so the request is cancelled.
            _segue.request_cancel(self.handle)

    def _withdraw(self) -> None:
        assert self._answering is not None
        for task in list(self._answering.values()):
            if task is not asyncio.current_task():
                task.cancel()

    # ---- called by whoever waits for the end

    async def wait(self) -> Outcome:
        """Waits for the end of the request. If the waiting task is cancelled, the request
        is cancelled, and `wait` returns only after the request has ended, so that no
        event follows.
        """
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
        """Cancels the request. The end of the request comes later as an event."""
        if self.handle is not None and self.outcome is None:
            try:
                _segue.request_cancel(self.handle)
            except (errors.EndedError, errors.ClosedError):
                pass

    def failure(self) -> errors.Error:
        """Returns the exception of a request that failed. It is the same in all revisions
        if the request failed because this client did not answer its question."""
        assert self.outcome is not None
        error = failure(self.outcome, self.token())
        refused = self._refused
        if refused is None:
            return error
        if type(error) is errors.RemoteError:
            is_cause = refused.__cause__ is not None and error.message == _NO_ANSWER
        else:
            is_cause = isinstance(error, errors.RequestCancelledError)
        if is_cause:
            refused.partial = error.partial
        return refused if is_cause else error

    def token(self) -> str | None:
        """Returns the token that resumes the request after all segments that were
        delivered, or None."""
        if self.handle is None:
            return None
        try:
            return _segue.request_token(self.handle)
        except (errors.NotResumableError, errors.EndedError, errors.ClosedError):
            return None


class Flow(Exchange):
    """A request that delivers segments to one reader.

    Args:
        window: The maximum number of segments that wait for the reader.
        is_ordered: True = segments arrive in the order of their numbers.
    """

    __slots__ = (
        "_first",
        "_kept",
        "_marked",
        "_marks",
        "_waiters",
        "is_dropping",
        "is_kept",
        "is_left",
        "is_ordered",
        "on_begin",
        "queue",
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
        # the segments that have arrived and that the reader did not take; the reader must
        # take half of the window before new credit is granted
        self.queue = _segue.SegmentQueue((window + 1) // 2)
        self.is_dropping = False  # True = no reader is left, so segments are thrown away
        # True = the request can be resumed, because it has a task id or a token
        self.is_kept = False
        # True = the reader detached or left, so the end of the request is no failure
        self.is_left = False
        self.on_begin: Callable[[], object] | None = None
        self._marked = 0
        # the request's first token, which covers no segment
        self._first: str | None = None
        self._waiters: list[Wait] = []
        self._kept: str | None = None  # the request's token at the time of `detach`
        # pairs of a segment's number and a token that covers the segments up to this
        # number
        self._marks: deque[tuple[int, str]] = deque()

    def mask_of_events(self) -> int:
        return super().mask_of_events() | SEGMENTS | TASK | RESUMABLE

    # ---- called by the binding

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind != _SEGMENTS:
            super().on_event(kind, a, b, c)
        elif not self.is_dropping:
            self.queue.extend(a)
            if self.queue.newest - self._marked >= _MARK_EVERY:
                self._marked = self.queue.newest
                self.session.loop.call_soon(self._mark_all)
            if self._waiters:
                self.wake()

    def can_resume(self, token: str | None) -> None:
        self.is_kept = True
        if token is not None and not self.is_dropping:
            self._remember(self.queue.newest, token)
        self.wake()

    def became_task(self) -> None:
        if self.on_begin is not None:
            self.tell(self.on_begin)

    def wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                self.session.runtime.wake(waiter)

    # ---- called by the reader

    @property
    def has_begun(self) -> bool:
        """Whether something has arrived: a task id or token, a segment, or the end."""
        return self.is_kept or bool(self.queue) or self.outcome is not None

    async def change(self) -> None:
        """Waits until a new event of the request has arrived. Cancelling the wait does
        not cancel the request, because another asyncio task may wait for it, too.
        """
        waiter = Wait(loop=self.session.loop)
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:  # the wait was cancelled
                self._waiters.remove(waiter)
        if self.outcome is not None:
            await self.session.begun()

    def take(self) -> _segue.Segment:
        """Takes the next segment from the queue, which must not be empty. Grants new
        credit when the reader has taken half of the window.
        """
        segment = self.queue.take()
        if self.queue.is_due:
            self.refill()
        return segment

    def refill(self) -> None:
        """Grants credit for as many segments as the reader took."""
        self.grant(self.queue.settle())

    @property
    def last(self) -> int:
        """The number of the last segment that the reader took."""
        return self.queue.last

    def take_all(self) -> list[_segue.Segment]:
        """Takes all segments from the queue, which must not be empty."""
        batch = self.queue.take_all()
        self.refill()
        return batch

    def grant(self, count: int) -> None:
        if self.handle is not None and self.outcome is None:
            try:
                _segue.request_grant(self.handle, count)
            except (errors.EndedError, errors.ClosedError):
                pass

    def drop(self) -> None:
        """Throws away all segments from now on. The flow grants unlimited credit, so that
        the result can arrive."""
        if not self.is_dropping:
            self.is_dropping = True
            self.queue.clear()
            self.grant(ENOUGH)

    async def wait(self) -> Outcome:
        while self.outcome is None:
            await self.change()
        return self.outcome

    async def leave(self, detach: bool) -> None:
        """Ends the request, or detaches from its task, and waits for the end."""
        if self.outcome is not None or self.handle is None:
            return
        self.let_go(detach)
        await self.wait()

    def let_go(self, detach: bool) -> None:
        """Ends the request, or detaches from its task, without waiting."""
        if self.outcome is not None or self.handle is None:
            return
        if detach:
            try:
                self.detach()
                return
            except errors.NotResumableError:
                pass  # the request is no task, so it cannot continue without a reader
        self.is_left = True
        self.cancel()
        self.drop()

    def detach(self) -> None:
        """Detaches from the task, which continues on the server.

        Raises:
            NotResumableError: The request is not a task.
        """
        assert self.handle is not None
        token = self.token()
        try:
            _segue.request_detach(self.handle)
        except (errors.EndedError, errors.ClosedError):
            pass
        # The token does not cover the segments that are thrown away from now on, so the
        # server sends these segments again when the task is resumed.
        self._kept = token
        self.is_left = True
        self.drop()

    # ---- tokens

    def mark(self, number: int) -> None:
        """Remembers the current token, which covers all segments up to `number`."""
        token = super().token()
        if token is not None:
            self._remember(number, token)

    def _mark_all(self) -> None:
        """Remembers a token between two batches of events. At that moment all segments
        that the token covers are in the queue or were read. While a batch is handled, the
        token also covers segments of the batch that are not in the queue yet."""
        if not self.is_dropping:
            self.mark(self.queue.newest)

    def _remember(self, number: int, token: str) -> None:
        while len(self._marks) > 1 and self._marks[1][0] <= self.last:
            # The reader has read the segments up to the next mark too, so this older mark
            # is not needed.
            self._marks.popleft()
        self._marks.append((number, token))
        self._marked = number
        if self._first is None and self.last == 0 and not self.queue:
            self._first = token

    def token(self) -> str | None:
        if self._kept is not None:
            return self._kept
        if not self.queue and not self.session.runtime.is_delivering:
            token = super().token()
            if token is not None or self.outcome is None or self.outcome[0] != OK:
                # After a success the library has no token. The code after this block then
                # returns a token that the flow remembered earlier. A request that is
                # resumed with the remembered token receives the result again.
                return token
        if not self.is_ordered:
            # segments have no order, so the flow does not know which segments are
            # unread
            return self._first
        best: tuple[int, str] | None = None
        for mark in self._marks:
            if mark[0] > self.last:
                break
            best = mark
        if best is None:
            return None
        number, token = best
        return token if number == self.last else f"{token}+{self.last}"
