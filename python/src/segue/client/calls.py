"""Calls of tools: awaited, streamed, as tasks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from .. import _segue, errors
from ..content import Result, Text
from ..failures import ToolError
from .conversation import UNSET, Conversation, Log, milliseconds
from .flow import OK, Callbacks, Exchange, Flow, Progress, Status
from .modes import ResponseMode
from .modes import response_modes as modes_of
from .questions import Answers, Input
from .stream import Leave, Stream
from .task import Task

__all__ = ["Calls"]

Arguments = Mapping[str, Any]

_WINDOW = 1024  # segments that may wait for their reader
_CALL = "tools/call"
# Of an idempotency key: one that is guessed finds the work of somebody else.
_KEY_LEAST, _KEY_MOST = 16, 128
_encode = msgspec.json.encode


class Calls(Conversation):
    """See `Session`."""

    # ---- tools

    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        /,
        *,
        timeout: float | None = UNSET,
        on_progress: Progress | None = None,
        on_log: Log | None = None,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        raise_on_error: bool | None = None,
        response_modes: Collection[ResponseMode] | None = None,
        **more: Any,
    ) -> Result:
        """Calls a tool and waits for its result: ``await session.call("add", a=1, b=2)``.

        Whether the server answers at once, in pieces, or makes a task of it makes no
        difference. Cancelling it (asyncio) withdraws the call, or cancels the task.

        Args:
            tool: Its name.
            arguments: By name; those whose names are options here have to stand there.
            timeout: Seconds for all of it; None = as long as it takes. Default: the
                session's. A task goes on on the server; the error has its `token`.
            on_progress: Gets progress, total or None, and message or None. Plain or
                async, as the next two.
            on_log: Gets what the server logs for this call; see `log_level` of `connect`.
            on_status: Gets the status of a task and its text, as they change.
            on_input: Answers what the server asks for this call, instead of the session's
                callbacks.
            idempotency_key: Calls of the same key run once, also over broken connections
                and from several programs, if the server knows keys; 16 to 128 bytes;
                default: a fresh one.
            meta: `_meta` of the request.
            raise_on_error: Whether a result with `isError` is raised; default: the
                session's, True.
            response_modes: How a server of 2025-11-25 may answer a call that it can run
                as a task (SEP-1905): some of "task", "immediate" and "streaming".
                Default: the session's; each has to be one of those.

        Raises:
            ToolError: The tool failed; `result` has what it said.
            RemoteError: The server answered with an error.
            RequestTimeoutError: Also a `TimeoutError`.
            DisconnectedError: It is not known whether the call was run.
            Error: Any other end. `partial` is what had come of the result; `token`, when
                it is there, resumes it.
        """
        if more:
            arguments = {**(arguments or {}), **more}
        options = self._options(timeout)
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params = {"name": tool, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        raw = await self.exchange(Exchange(self, callbacks), _CALL, params, options)
        return self._finish_call(raw, raise_on_error)

    def _callbacks(
        self,
        on_progress: Progress | None,
        on_log: Log | None,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
    ) -> Callbacks | None:
        if on_log is None and self._log_level is not None:
            on_log = self._on_log
        if not (on_progress or on_log or on_status or on_input):
            return None
        answers = on_input
        if on_input is not None and not isinstance(on_input, Answers):
            answers = Answers(on_input)
        return Callbacks(on_progress, on_log, on_status, answers)

    def _finish_call(self, raw: bytes, raises: bool | None) -> Result:
        try:
            result = Result.from_json(raw)
        except msgspec.DecodeError as error:
            raise errors.ProtocolError(f"tools/call: {error}") from error
        if result.is_error and (self._raises if raises is None else raises):
            raise ToolError(_why(result), result)
        return result

    def stream(
        self,
        tool: str,
        arguments: Arguments | None = None,
        /,
        *,
        timeout: float | None = UNSET,
        on_progress: Progress | None = None,
        on_log: Log | None = None,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
        on_task: Callable[[Stream], object] | None = None,
        on_leave: Leave = "cancel",
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        raise_on_error: bool | None = None,
        window: int = _WINDOW,
        collect: bool = True,
        unordered: bool = False,
        ttl: float | None = None,
        response_modes: Collection[ResponseMode] | None = None,
        **more: Any,
    ) -> Stream:
        """Calls a tool and reads its result while it is made; see `Stream`.

        Args:
            on_task: Gets the stream once it has become a task: the moment to store its
                `token`, or `task_id`.
            on_leave: What becomes of it when its reader leaves early: "cancel", or
                "detach", which lets a task go on.
            window: So many segments may wait for their reader, before the server does.
            collect: False = segments are not kept, and `result` has no content: for
                results that are larger than memory should hold. A plain answer, which
                comes whole, keeps its own.
            unordered: Segments as they come, where the server streams by SEP-1905.
            ttl: Seconds for which a server of 2025-11-25 shall keep the task.
            tool, arguments, timeout, on_progress, on_log, on_status, on_input,
            idempotency_key, meta, raise_on_error, response_modes: As of `call`.
        """
        if more:
            arguments = {**(arguments or {}), **more}
        options = self._stream_options(timeout, window, collect, unordered, ttl)
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        raw = _encode(params)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window, not unordered)
            if on_task is not None:
                # the flow must not hold the stream: see flow.py
                flow.on_begin = lambda: on_task(held())  # type: ignore[arg-type]
            self.send(flow, _CALL, raw, options)
            flow.mark(0)
            return flow

        def finish(raw: bytes) -> Result:
            return self._finish_call(raw, raise_on_error)

        stream = Stream(begin, finish, on_leave)
        held = weakref.ref(stream)
        return stream

    def _stream_options(
        self,
        timeout: float | None,
        window: int,
        collect: bool = True,
        unordered: bool = False,
        ttl: float | None = None,
    ) -> _segue.RequestOptions:
        if window < 1:
            raise ValueError("a window has room for one segment at least")
        options = self._options(timeout)
        options["credit"] = window
        if not collect:
            options["discard"] = True
        if unordered:
            options["unordered"] = True
        if ttl is not None:
            options["ttl_ms"] = milliseconds(ttl)
        return options

    # ---- tasks

    async def start(
        self,
        tool: str,
        arguments: Arguments | None = None,
        /,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        on_log: Log | None = None,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        raise_on_error: bool | None = None,
        window: int = _WINDOW,
        collect: bool = True,
        ttl: float | None = None,
        response_modes: Collection[ResponseMode] | None = None,
        **more: Any,
    ) -> Task:
        """Calls a tool and returns as soon as there is a task, or a call that can be
        resumed (SEP-975), whose `token` can be stored; or, if the server makes neither of
        it, the first segment, or the end. It has the arguments of `stream`; without a
        timeout of its own it has none.

        Raises:
            Error: It ended before anything came of it.
        """
        if more:
            arguments = {**(arguments or {}), **more}
        options = self._stream_options(timeout, window, collect, False, ttl)
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            self.send(flow, _CALL, params, options)
            flow.mark(0)
            return flow

        task = Task(self, begin, lambda raw: self._finish_call(raw, raise_on_error))
        flow = await task._wait_started()
        if flow.outcome is not None and flow.outcome[0] != OK and not flow.queue:
            raise flow.failure()
        return task

    def resume(
        self,
        token: str,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        on_log: Log | None = None,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
        raise_on_error: bool | None = None,
        window: int = _WINDOW,
        collect: bool = True,
    ) -> Task:
        """Goes on with a request of an earlier connection or process: the segments behind
        those that its token covers, then its result. The result is whole all the same.

        Args:
            token: Of a `Stream`, a `Task` or an error.

        Raises:
            InvalidError: The token is damaged.
        """
        if not isinstance(token, str):
            raise TypeError(f"a token is a str, not {token!r}")
        options = self._stream_options(timeout, window, collect)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            try:
                flow.handle = _segue.request_resume(
                    self.handle, token, options, flow.on_event, flow.mask_of_events()
                )
            except errors.InvalidError:
                raise errors.InvalidError("it is no token, or a damaged one") from None
            flow.mark(0)
            return flow

        def finish(raw: bytes) -> Result:
            return self._finish_call(raw, raise_on_error)

        task = Task(self, begin, finish, token)
        task._started()
        return task

    def task(
        self,
        id: str,
        *,
        on_status: Status | None = None,
        on_input: Input | Answers | None = None,
        raise_on_error: bool | None = None,
        window: int = _WINDOW,
        collect: bool = True,
    ) -> Task:
        """The task of an id. Nothing is sent until it is used; it is then read from its
        first segment that is kept."""
        if not id:
            raise ValueError("the id of a task is not empty")
        options = self._stream_options(None, window, collect)
        callbacks = self._callbacks(None, None, on_status, on_input)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            handle = _segue.task_attach(self.handle, id)
            flow.handle = _segue.task_watch(
                handle, options, flow.on_event, flow.mask_of_events()
            )
            flow.mark(0)
            return flow

        return Task(self, begin, lambda raw: self._finish_call(raw, raise_on_error), id)


def _set_key(options: _segue.RequestOptions, key: str | None) -> None:
    if key is not None:
        if not _KEY_LEAST <= len(key.encode()) <= _KEY_MOST:
            raise ValueError(
                f"an idempotency key has {_KEY_LEAST} to {_KEY_MOST} bytes: {key!r}"
            )
        options["idempotency_key"] = key


def _set_modes(
    options: _segue.RequestOptions, modes: Collection[ResponseMode] | None
) -> None:
    if modes is not None:
        options["response_modes"] = modes_of(modes)


def _why(result: Result) -> str:
    """Why a tool failed: its last text. A tool that streamed says it behind all that it
    had sent, which is output and no reason. `result` has all of it."""
    texts = [block.text for block in result.content if isinstance(block, Text)]
    return texts[-1] if texts else ""
