"""Calls tools: `call` waits for the result, `stream` reads segments, `start` makes
tasks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from .. import _segue, errors, schema
from ..content import Result, Text
from ..failures import ToolError
from .conversation import UNSET, Conversation, Log, milliseconds
from .flow import OK, Callbacks, Exchange, Flow, Progress, Status
from .modes import ResponseMode
from .modes import response_modes as modes_of
from .questions import Answers, Input
from .stream import Leave, Stream
from .task import Task, attached, is_token, parts_of

__all__ = ["Calls"]


class _Model(Protocol):
    """A model of pydantic."""

    def model_dump(self) -> dict[str, Any]: ...


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Arguments = Mapping[str, Any] | msgspec.Struct | _Model | _Dataclass

_WINDOW = 1024  # maximum number of segments that wait for their reader
_CALL = "tools/call"
# Minimum and maximum length of an idempotency key, in bytes. A short key could be
# guessed, and a client that guesses a key would find the work of another client.
_KEY_LEAST, _KEY_MOST = 16, 128
_encode = schema.encode


class Calls(Conversation):
    """The calls of a session; see `Session`."""

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

        The result is the same whether the server answers at once, in segments or as a
        task. Cancelling the coroutine cancels the call or the task.

        Args:
            tool: The tool's name.
            arguments: The arguments by name, or one object with all of them: a model of
                msgspec or pydantic, or a dataclass. Such objects may also be arguments.
                More arguments may follow by name, each of them once.
                An argument that has the name of an option below must be passed in this
                dictionary.
            timeout: Limit for the whole call, in seconds; None = no limit. Default: the
                session's timeout. After a timeout a task continues on the server; the
                error has its `token`.
            on_progress: Called with progress, total or None, and message or None. This
                callback, on_log and on_status may be plain or async. A call that has
                become a task of 2026-07-28 sends no progress; see on_status.
            on_log: Called with the log messages for this call; see `log_level` of
                `connect`. A task of 2026-07-28 sends none.
            on_status: Called with the status of a task and its text whenever the status
                or the text changes, with every revision.
            on_input: Answers the server's questions during this call, instead of the
                session's callbacks.
            idempotency_key: Calls with the same key run once, even over broken
                connections and from several programs, if the server supports idempotency
                keys. 16 to 128 bytes. Default: a new key per call.
            meta: `_meta` of the request.
            raise_on_error: True = a result with `isError` is raised as an error. Default:
                the session's setting, which is True unless changed.
            response_modes: How a server of 2025-11-25 may answer a call that it can run
                as a task (SEP-1905): some of "task", "immediate" and "streaming".
                Default: the session's modes. Only modes of the session are allowed.

        Raises:
            ToolError: The tool failed; `result` has its output.
            RemoteError: The server answered with an error.
            RequestTimeoutError: The call took too long. This exception is also a
                `TimeoutError`.
            DisconnectedError: The connection broke, and the tool may or may not have run.
            Error: Any other failure. `partial` is the part of the result that had
                arrived. `token`, if set, resumes the call.
        """
        given = _given(arguments, more)
        options = self._options(timeout)
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params = {"name": tool, "arguments": given}
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
        _no_task: bool = False,
        **more: Any,
    ) -> Stream:
        """Calls a tool and reads its result in segments while the tool runs; see
        `Stream`.

        Args:
            on_task: Called with the stream as soon as the call has become a task. This is
                the moment to store its `token` or `task_id`.
            on_leave: What happens when the reader leaves early: "cancel" ends the
                request, "detach" lets a task continue on the server.
            window: How many unread segments may wait before the server must pause.
            collect: False = segments are not collected, and `result` has no content. Use
                this option for results that are too large for memory. A plain answer,
                which arrives whole, keeps its content.
            unordered: True = segments may arrive out of order, where the server streams
                by SEP-1905.
            ttl: How long a server of 2025-11-25 should keep the task, in seconds.
            tool, arguments, timeout, on_progress, on_log, on_status, on_input,
            idempotency_key, meta, raise_on_error, response_modes: As in `call`.
        """
        given = _given(arguments, more)
        options = self._stream_options(timeout, window, collect, unordered, ttl)
        if _no_task:
            options["no_task"] = True
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params: dict[str, Any] = {"name": tool, "arguments": given}
        if meta:
            params["_meta"] = meta
        raw = _encode(params)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window, not unordered)
            if on_task is not None:
                # The flow (the request behind the stream) must not refer to the stream;
                # the head of flow.py says why.
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
            raise ValueError("window has to be at least 1 segment")
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
        """Calls a tool and returns as soon as the call can be resumed.

        A call can be resumed when the server has made a task, or has given the call a
        resumption id (SEP-975). Its `token` can then be stored. If the server does
        neither, `start` returns at the first segment or at the end of the call. `start`
        has the arguments of `stream`. The call has no time limit except the argument
        `timeout`.

        A task that has failed by then is returned, too: its `result` raises the error.

        Raises:
            Error: The call failed and is no task: the server has refused it, for example.
        """
        given = _given(arguments, more)
        options = self._stream_options(timeout, window, collect, False, ttl)
        _set_key(options, idempotency_key)
        _set_modes(options, response_modes)
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)
        params: dict[str, Any] = {"name": tool, "arguments": given}
        if meta:
            params["_meta"] = meta

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            self.send(flow, _CALL, params, options)
            flow.mark(0)
            return flow

        task = Task(self, begin, lambda raw: self._finish_call(raw, raise_on_error))
        flow = await task._wait_started()
        outcome = flow.outcome
        has_failed = outcome is not None and outcome[0] != OK
        if has_failed and not flow.is_kept and not flow.queue:
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
        """Resumes a request of an earlier connection or process.

        The resumed request delivers the segments after those that the token covers, then
        the whole result.

        Args:
            token: The token of a `Stream`, a `Task` or an error.

        Raises:
            InvalidError: The token is damaged.
        """
        if not isinstance(token, str):
            raise TypeError(f"a token has to be a str, not {token!r}")
        bare, seen = parts_of(token)
        options = self._stream_options(timeout, window, collect)
        options["seen"] = seen
        callbacks = self._callbacks(on_progress, on_log, on_status, on_input)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            try:
                flow.handle = _segue.request_resume(
                    self.handle, bare, options, flow.on_event, flow.mask_of_events()
                )
            except errors.InvalidError:
                raise errors.InvalidError(
                    "the token is damaged, or is not a token of this library"
                ) from None
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
        """Makes a task object for a task id. Nothing is sent until the object is used.
        Reading begins at the first segment that the server still has."""
        if not id:
            raise ValueError("the id of a task must not be empty")
        options = self._stream_options(None, window, collect)
        if is_token(id):
            options["seen"] = parts_of(id)[1]
        callbacks = self._callbacks(None, None, on_status, on_input)

        def begin() -> Flow:
            flow = Flow(self, callbacks, window)
            handle = attached(self.handle, id)
            flow.handle = _segue.task_watch(
                handle, options, flow.on_event, flow.mask_of_events()
            )
            flow.mark(0)
            return flow

        return Task(self, begin, lambda raw: self._finish_call(raw, raise_on_error), id)


def _given(arguments: Arguments | None, more: dict[str, Any]) -> Any:
    """Returns the arguments of a call, as an object that JSON can represent.

    Raises:
        TypeError: the arguments are no JSON object.
    """
    if arguments is None:
        return more
    if isinstance(arguments, Mapping):
        return _with(arguments, more) if more else arguments
    if isinstance(arguments, type):
        raise TypeError(
            f"the arguments have to be an object, not the class {arguments.__name__}: "
            f"pass {arguments.__name__}(...)"
        )
    made = msgspec.json.decode(_encode(arguments))
    if not isinstance(made, dict):
        raise TypeError(
            "the arguments have to be a mapping, a model or a dataclass, not "
            f"{type(arguments).__name__}"
        )
    return _with(made, more)


def _with(given: Mapping[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    twice = [name for name in more if name in given]
    if twice:
        raise TypeError(f"the argument {twice[0]!r} is given twice")
    return {**given, **more}


def _set_key(options: _segue.RequestOptions, key: str | None) -> None:
    if key is not None:
        if not _KEY_LEAST <= len(key.encode()) <= _KEY_MOST:
            raise ValueError(
                f"an idempotency key has to have {_KEY_LEAST} to {_KEY_MOST} bytes, "
                f"not {key!r}"
            )
        options["idempotency_key"] = key


def _set_modes(
    options: _segue.RequestOptions, modes: Collection[ResponseMode] | None
) -> None:
    if modes is not None:
        options["response_modes"] = modes_of(modes)


def _why(result: Result) -> str:
    """Returns the reason why a tool failed: the last text of the result, because a tool
    that streamed output adds the reason after the output. The whole output is in the
    result.
    """
    texts = [block.text for block in result.content if isinstance(block, Text)]
    return texts[-1] if texts else ""
