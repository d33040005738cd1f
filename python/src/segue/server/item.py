"""What a server serves, and how a handler of it is run.

    event CALL ── decode ──> async function, generator ── a task on the loop ──> reply
                        └──> plain function ── a thread of the pool ───────────> reply
                                └── thread=False: at once, on the loop

The library has given the call away with its event: each way through here ends it once, by
a reply or a failure, and frees it. Only a call that is under way when its loop ends is
left alone: what it has stored as a task belongs to the next process.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from .. import _segue, errors, schema
from ..failures import McpError, ToolError
from .context import Context, SyncContext
from .docstring import unwrapped
from .signature import BadArguments, Signature

if TYPE_CHECKING:
    from .hosting import Hosting

__all__ = ["Item", "Kind", "log", "named"]

log = logging.getLogger("segue.server")
TURN = 64  # segments that a generator sends before others have their turn
# What a reply may raise without that anything is wrong: the call has ended meanwhile, or
# it is the reply's own word for what the handler gave.
_OF_REPLIES = (
    ToolError,
    McpError,
    errors.EndedError,
    errors.RequestCancelledError,
    errors.ClosedError,
)


class Kind:
    """What sort of function a handler is."""

    def __init__(self, function: Callable[..., Any]) -> None:
        target: Any = unwrapped(function)
        if not inspect.isroutine(target):
            target = type(target).__call__
        self.is_async_generator = inspect.isasyncgenfunction(target)
        self.is_generator = inspect.isgeneratorfunction(target)
        self.is_async = self.is_async_generator or inspect.iscoroutinefunction(target)
        self.streams = self.is_generator or self.is_async_generator


def named(function: Callable[..., Any]) -> str:
    """The name of a handler that was given none."""
    target = unwrapped(function)
    return str(getattr(target, "__name__", type(target).__name__))


class Item(ABC):
    """A tool, a resource, a template or a prompt.

    Attributes:
        item: its sort (`ITEM_TOOL`, ...).
        key: what it is found by: a name, a URI, a template.
    """

    item: int
    key: str
    what: str
    expected: tuple[type[BaseException], ...] = (BadArguments, errors.Error)

    def __init__(self, function: Callable[..., Any], thread: bool, forbid: bool) -> None:
        self.function = function
        self.kind = Kind(function)
        self.thread = thread
        self.signature = Signature(function, forbid)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The item as clients see it in a list."""

    @abstractmethod
    def options(self) -> _segue.ItemOptions: ...

    @abstractmethod
    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        """The values of the parameters; raises BadArguments."""

    @abstractmethod
    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        """Ends the call with what the handler returned, and frees it."""

    @abstractmethod
    def told(self, error: Exception) -> Exception:
        """What is told to the caller of an exception: a ToolError, or a McpError."""

    @property
    def completes(self) -> bool:
        """Whether it suggests values of arguments."""
        return False

    def complete(self, host: Hosting, call: _segue.Call, params: bytes) -> None:
        """Answers completion/complete."""
        raise NotImplementedError

    # ---- a call

    def handler(self, host: Hosting) -> _segue.Handler:
        """Who gets the events of this item in a server."""
        watch, running, limit = _segue.call_watch, host.running, host.max_calls
        is_async, thread = self.kind.is_async, self.thread
        make = Context if is_async else SyncContext

        def handle(kind: int, call: Any, params: bytes, name: Any) -> None:
            if kind == _segue.COMPLETION:
                self.complete(host, call, params)
                return
            is_full = len(running) >= limit or host.is_draining
            if is_full and _segue.call_resumed(call) is None:
                refuse(call, host)
                return
            context = make(call, host)
            watch(call, context._on_event)
            if is_full:  # of a task: its caller was told that it works
                host.wait(context, functools.partial(begin, call, params, context))
            else:
                begin(call, params, context)
                if kind == _segue.CALL_NOW and is_async:
                    host.loop.call_soon(end_turn, call)

        def begin(call: Any, params: bytes, context: Context) -> None:
            running.add(context)
            if is_async:
                task = host.begin(self._run_async(call, params, context))
                context._task = task
                if sys.version_info < (3, 12):  # it may be cancelled before it has begun
                    unbegun = functools.partial(self._unbegun, call, context)
                    task.add_done_callback(unbegun)
            elif thread:
                copied = contextvars.copy_context()
                try:
                    host.pool.submit(lambda: copied.run(self._run, call, params, context))
                except RuntimeError as error:  # there is no thread to be had
                    self._failed(call, error, context)
                    host.ended(context)
            else:
                self._run(call, params, context)

        return handle

    async def _run_async(
        self, call: _segue.Call, params: bytes, context: Context
    ) -> None:
        replies = False
        try:
            values = self.arguments(call, params)
            if self.kind.is_async_generator:
                value = await self._drain(values, context)
            else:
                value = await self.signature.call(values, context)
            replies = True
            self.reply(call, value, context)
        except BaseException as error:
            self._failed(call, error, context, replies)
        finally:
            context._host.ended(context)

    def _unbegun(
        self, call: _segue.Call, context: Context, task: asyncio.Task[None]
    ) -> None:
        """A task is over; what was cancelled before its first step has ended nothing."""
        if context in context._host.running:
            self._failed(call, asyncio.CancelledError(), context)
            context._host.ended(context)

    def _run(self, call: _segue.Call, params: bytes, context: Context) -> None:
        replies = False
        try:
            if context._cancelled:  # while it waited for a thread
                raise errors.RequestCancelledError()
            values = self.arguments(call, params)
            value = self.signature.call(values, context)
            if self.kind.is_generator:
                value = self._drain_sync(value, context)
            replies = True
            self.reply(call, value, context)
        except BaseException as error:
            self._failed(call, error, context, replies)
        finally:
            context._host.ended(context)

    # ---- generators

    async def _drain(self, values: tuple[Any, ...], context: Context) -> Any:
        """Sends what comes; returns what ends the result, which stands in a Result."""
        generator = self.signature.call(values, context)
        call, send_text = context._call, _segue.call_send_text
        waiting = context._room.queue  # what the handler's other tasks send
        sent, last = 0, None
        try:
            async for value in generator:
                if type(value) is not str or waiting or not send_text(call, value):
                    last = self.last_word(value, last)
                    await context.send(*self.pieces(value))
                sent += 1
                if sent % TURN == 0:
                    await asyncio.sleep(0)
        finally:
            await generator.aclose()
        return last

    def _drain_sync(self, generator: Any, context: Any) -> Any:
        last = None
        try:
            while True:
                if context._cancelled:
                    raise errors.RequestCancelledError()
                try:
                    value = next(generator)
                except StopIteration as end:
                    return last if end.value is None else end.value
                last = self.last_word(value, last)
                context.send(*self.pieces(value))
        finally:
            generator.close()

    def pieces(self, value: Any) -> Iterable[Any]:
        """What of a value that was yielded is sent at once."""
        return (value,)

    def last_word(self, value: Any, last: Any) -> Any:
        """What of it is kept for the end."""
        return last

    # ---- failures

    def _failed(
        self,
        call: _segue.Call,
        error: BaseException,
        context: Context,
        replies: bool = False,
    ) -> None:
        """Ends a call that came to no good end, and frees it.

        Args:
            replies: it is our own reply that failed; the handler had returned.
        """
        is_usual = isinstance(error, (Exception, asyncio.CancelledError))
        host = context._host
        if not context._cancelled and is_usual:
            if isinstance(error, asyncio.CancelledError) and host.is_ending(context):
                host.abandon(call)
                return
            try:
                self._answer_failure(call, error, replies)
            except errors.Error as why:  # it has ended meanwhile
                log.debug("%s %r: the failure was not told: %s", self.what, self.key, why)
            except Exception:
                log.exception("%s %r: the failure was not told", self.what, self.key)
        try:
            _segue.call_free(call)
        except errors.ClosedError:  # the reply that told it did so
            pass
        if not is_usual:
            raise error

    def _answer_failure(
        self, call: _segue.Call, error: BaseException, replies: bool
    ) -> None:
        if not isinstance(error, Exception):
            error = ToolError("The call was cancelled on the server")
        told = self.told(error)
        if not isinstance(error, _OF_REPLIES if replies else self.expected):
            log.error("%s %r failed", self.what, self.key, exc_info=error)
        if isinstance(told, ToolError):
            content = told.result.content if told.result else [_said(str(told))]
            blocks = [msgspec.json.encode(block) for block in _blocks(content)]
            _segue.call_reply(call, None, blocks, None, True)
            return
        code = getattr(told, "code", 0) or -32603
        data = getattr(told, "data_json", None)
        message = message_of(getattr(told, "message", str(told)))
        try:
            _segue.call_fail(call, code, message, data)
        except errors.InvalidError:
            log.warning(
                "%s %r: %d is a code that the protocol reserves",
                self.what,
                self.key,
                code,
            )
            _segue.call_fail(call, -32603, message, data)


def _blocks(content: Iterable[Any]) -> list[Any]:
    from ..content import Text

    return [Text(one) if isinstance(one, str) else one for one in content]


def end_turn(call: _segue.Call) -> None:
    """An async handler has had its first step. Of a plain function the library waits for
    the end itself, and not for long (`first_turn_ms`)."""
    try:
        _segue.call_end_turn(call)
    except errors.ClosedError:  # it is done
        pass


# The client sends its call again: the next server answers it.
ENDING = b'{"reason":"server_ending","retryAfterMs":1000}'


def refuse(call: _segue.Call, host: Hosting) -> None:
    """Answers a call that does not run."""
    if host.is_draining:
        _segue.call_fail(call, -32603, "The server is about to end", ENDING)
    else:
        most = host.max_calls
        data = f'{{"reason":"limit","limit":"max_calls","value":{most}}}'
        message = f"Too many calls at once: max_calls is {most}"
        _segue.call_fail(call, -32603, message, data.encode())
    _segue.call_free(call)


def _said(text: str) -> str:
    """Names of files and output of programs may hold bytes that are no UTF-8: what is
    told of a failure must not fail because of them."""
    return text.encode("utf-8", "backslashreplace").decode()


def message_of(text: str) -> str:
    """The same for a message, which crosses as a name does: without NUL."""
    return _said(text).replace("\0", "\ufffd")


def rpc_error(error: Exception) -> Exception:
    """What is told of an exception where results have no isError: a JSON-RPC error."""
    if isinstance(error, BadArguments):
        return McpError(-32602, str(error))
    if isinstance(error, ToolError):
        return McpError(-32603, error.message)
    if isinstance(error, errors.Error):
        return error
    if isinstance(error, msgspec.ValidationError):
        return McpError(-32603, schema.reason(error))
    return McpError(-32603, str(error) or type(error).__name__)
