"""The items of a server, and how their handlers run.

    event CALL ── decode ──> async function, generator ── a task on the loop ──> reply
                        └──> plain function ── a thread of the pool ───────────> reply
                                └── thread=False: at once, on the loop

The CALL event passes the call to this module. Each path ends the call once, with a reply
or a failure, and frees the call. Only a call that runs when its loop ends is left without
an answer. If such a call is a task, the next process on the store continues the task.
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
from ..failures import PUBLIC, McpError, ToolError
from . import layers
from .context import Context, SyncContext
from .docstring import named, unwrapped
from .forms import Misfit
from .signature import BadArguments, Signature
from .values import block_of

if TYPE_CHECKING:
    from .hosting import Hosting
    from .server import Server

__all__ = ["Item", "Kind", "log", "named"]

log = logging.getLogger("segue.server")
# maximum number of segments that a generator sends before other work of the loop runs
TURN = 64
# Exceptions that only mean that the call has ended, if it has. A session of the handler
# raises them, too.
_OF_ENDS = (errors.EndedError, errors.RequestCancelledError, errors.ClosedError)


class Kind:
    """The kind of function that a handler is: plain or async, generator or not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        target: Any = unwrapped(function)
        if not inspect.isroutine(target):
            target = type(target).__call__
        self.is_async_generator = inspect.isasyncgenfunction(target)
        self.is_generator = inspect.isgeneratorfunction(target)
        self.is_async = self.is_async_generator or inspect.iscoroutinefunction(target)
        self.streams = self.is_generator or self.is_async_generator


class _Params(msgspec.Struct):
    arguments: dict[str, Any] = {}


decode_params = msgspec.json.Decoder(_Params).decode


class Item(ABC):
    """A tool, a resource, a template of resources or a prompt.

    Attributes:
        item: the kind of item (`ITEM_TOOL`, ...).
        key: the name, the URI or the URI template of the item.
        method: the method of a request for the item.
        servers: the server that the clients see, and for the item of a mounted server
            those inside it; the last one has made the item.
    """

    item: int
    key: str
    what: str
    method: layers.Method
    servers: tuple[Server, ...] = ()
    _told: dict[str, Any]
    expected: tuple[type[BaseException], ...] = (BadArguments, Misfit, *PUBLIC)

    def __init__(self, function: Callable[..., Any], thread: bool, forbid: bool) -> None:
        self.function = function
        self.kind = Kind(function)
        self.thread = thread
        self.signature = Signature(function, forbid)

    @property
    def owner(self) -> Server:
        """The server that has made the item."""
        return self.servers[-1]

    @property
    def around(self) -> tuple[layers.Middleware, ...]:
        """The middlewares around the calls of this item, the outermost first."""
        return self._around(self.method)

    def _around(self, method: layers.Method) -> tuple[layers.Middleware, ...]:
        servers = self.servers
        if len(servers) == 1:
            return servers[0]._layers.of[method]
        return tuple(one for server in servers for one in server._layers.of[method])

    def check(self) -> None:
        """Refuses an item that no server can have, where it is declared. The library
        decides. A warning says what the specification advises against.

        Raises:
            ValueError: the name, the URI, the template or an option is invalid.
        """
        try:
            advice = _segue.item_check(
                self.item, schema.encode(self.describe()), self.options()
            )
        except errors.Error as error:
            raise ValueError(error.message) from None
        if advice:
            log.warning("the %s %r: %s", self.what, self.key, advice)

    def describe(self) -> dict[str, Any]:
        """Returns the item as clients see it in a list."""
        return self._told

    @abstractmethod
    def options(self) -> _segue.ItemOptions: ...

    @abstractmethod
    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        """Returns the values of the handler's parameters. Raises BadArguments when the
        params do not fit."""

    def given(self, call: _segue.Call, params: bytes) -> dict[str, Any]:
        """Returns the arguments as the caller sent them; {} when they are no object."""
        try:
            return decode_params(params).arguments
        except msgspec.ValidationError:
            return {}

    def arguments_of(self, call: _segue.Call, given: dict[str, Any]) -> tuple[Any, ...]:
        """As `arguments`, for the arguments that a middleware has made."""
        return self.arguments(call, schema.encode({"arguments": given}))

    @abstractmethod
    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        """Ends the call with the value that the handler returned, and frees the call."""

    @abstractmethod
    def told(self, error: Exception, is_exposed: bool) -> Exception:
        """Converts an exception to the error for the caller: a ToolError or a McpError.
        Unless `is_exposed`, the error has the exception's text only if the exception was
        meant for the caller.
        """

    @property
    def completes(self) -> bool:
        """Whether the item suggests values for its arguments."""
        return False

    def complete(self, host: Hosting, call: _segue.Call, params: bytes) -> None:
        """Answers completion/complete."""
        raise NotImplementedError

    # ---- a call

    def handler(self, host: Hosting) -> _segue.Handler:
        """Makes the handler that receives the library's events for this item."""
        watch, running, limit = _segue.call_watch, host.running, host.max_calls
        is_async, thread = self.kind.is_async, self.thread
        needs = bool(self.signature.needs)

        def handle(kind: int, call: Any, params: bytes, name: Any) -> None:
            outer = _segue.call_context(call)
            if outer is None:
                take(kind, call, params)
            else:
                # Calls of one request share its context, and a context runs one function
                # at a time.
                outer.copy().run(take, kind, call, params)

        def take(kind: int, call: Any, params: bytes) -> None:
            if kind == _segue.COMPLETION:
                self.complete(host, call, params)
                return
            if host.is_closed:  # a task is left to the next server on the store
                _segue.call_free(call)
                return
            is_full = len(running) >= limit or host.is_draining
            if is_full and _segue.call_resumed(call) is None:
                if len(running) >= limit or host.refuses:
                    refuse(call, host)
                    return
                is_full = False
            on_loop = is_async or needs or self.around
            context = (Context if on_loop else SyncContext)(call, host, self)
            watch(call, context._on_event)
            # This call is a task that was taken over from another server. Its client
            # knows the task as working, so the call is not refused but waits.
            if is_full:
                host.wait(context, functools.partial(begin, call, params, context))
            else:
                begin(call, params, context)
                if kind == _segue.CALL_NOW and is_async:
                    host.loop.call_soon(end_turn, call, context)

        def begin(call: Any, params: bytes, context: Context) -> None:
            running.add(context)
            if type(context) is Context:
                work = self._run_async(call, params, context)
                task = host.begin(work) if is_async else host.spawn(work)
                if is_async:
                    context._task = task
                # before Python 3.12 an asyncio task may be cancelled before its first
                # step
                if sys.version_info < (3, 12):
                    unbegun = functools.partial(self._unbegun, call, context)
                    task.add_done_callback(unbegun)
            elif thread:
                copied = contextvars.copy_context()
                try:
                    host.pool.submit(lambda: copied.run(self._run, call, params, context))
                except RuntimeError as error:  # the pool could not make a thread
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
            value = await self._value_async(call, params, context)
            replies = True
            self.reply(call, value, context)
        except BaseException as error:
            self._failed(call, error, context, replies)
        finally:
            context._host.ended(context)

    async def _value_async(
        self, call: _segue.Call, params: bytes, context: Context
    ) -> Any:
        """Runs the middlewares and the handler. Returns the value of the call."""
        around = self.around
        if around or self.signature.needs:
            return await layers.run(around, layers.Call(self, call, params, context))
        values = self.arguments(call, params)
        if self.kind.is_async_generator:
            return await self._drain(values, context)
        return await self.signature.call(values, context)

    def _unbegun(
        self, call: _segue.Call, context: Context, task: asyncio.Task[None]
    ) -> None:
        """Ends a call if its asyncio task was cancelled before the task's first step."""
        if context in context._host.running:
            self._failed(call, asyncio.CancelledError(), context)
            context._host.ended(context)

    def _run(self, call: _segue.Call, params: bytes, context: Context) -> None:
        replies = False
        try:
            if context._cancelled:  # the call was cancelled while it waited for a thread
                raise errors.RequestCancelledError()
            value = self._value(self.arguments(call, params), context)
            replies = True
            self.reply(call, value, context)
        except BaseException as error:
            self._failed(call, error, context, replies)
        finally:
            context._host.ended(context)

    def _value(
        self,
        values: tuple[Any, ...],
        context: Context,
        found: dict[str, Any] | None = None,
    ) -> Any:
        """Runs a plain function. Returns its value."""
        value = self.signature.call(values, context, found)
        return self._drain_sync(value, context) if self.kind.is_generator else value

    # ---- generators

    async def _drain(
        self,
        values: tuple[Any, ...],
        context: Context,
        found: dict[str, Any] | None = None,
    ) -> Any:
        """Sends the values that a generator yields, and returns the Result that ends the
        call."""
        generator = self.signature.call(values, context, found)
        call, send_text = context._call, _segue.call_send_text
        # the waiting sends of the handler's other asyncio tasks
        waiting = context._room.queue
        sent, last = 0, None
        is_changed = context._change is not None
        try:
            async for value in generator:
                context._has_sent = True
                is_short = type(value) is str and not waiting and not is_changed
                if not is_short or not send_text(call, value):
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

    def block(self, value: Any) -> str | bytes:
        """Converts a value that the handler sends to a block."""
        return block_of(value)

    def pieces(self, value: Any) -> Iterable[Any]:
        """Returns the parts of a yielded value that are sent at once, before the handler
        continues.
        """
        return (value,)

    def last_word(self, value: Any, last: Any) -> Any:
        """Returns the part of the yielded values that is sent only at the end of the
        call. `last` is the result of this method for the values before `value`.
        """
        return last

    # ---- failures

    def _failed(
        self,
        call: _segue.Call,
        error: BaseException,
        context: Context,
        replies: bool = False,
    ) -> None:
        """Ends a call that failed, and frees it.

        Args:
            replies: True = the handler has returned, and the reply failed.
        """
        is_usual = isinstance(error, (Exception, asyncio.CancelledError))
        host = context._host
        if not context._cancelled and is_usual:
            if isinstance(error, asyncio.CancelledError) and host.is_ending(context):
                host.abandon(call)
                return
            try:
                self._answer_failure(call, error, replies, self.owner.expose_errors)
            except errors.Error as why:  # the call has ended in the meantime
                log.debug(
                    "%s %r: the failure could not be reported to the client: %s",
                    self.what,
                    self.key,
                    why,
                )
            except Exception:
                log.exception(
                    "%s %r: the failure could not be reported to the client",
                    self.what,
                    self.key,
                )
        try:
            _segue.call_free(call)
        except errors.ClosedError:  # the reply has already freed the call
            pass
        if not is_usual:
            raise error

    def _log_failure(self, error: BaseException) -> None:
        log.error("%s %r failed", self.what, self.key, exc_info=error)

    def _answer_failure(
        self, call: _segue.Call, error: BaseException, replies: bool, is_exposed: bool
    ) -> None:
        if not isinstance(error, Exception):
            error = ToolError("The call was cancelled on the server")
        is_expected = isinstance(error, PUBLIC if replies else self.expected)
        is_of_end = isinstance(error, _OF_ENDS)
        if not is_expected and not is_of_end:
            self._log_failure(error)
        self._tell_failure(call, self.told(error, is_exposed))
        if is_of_end:  # the call had not ended, so another object had
            self._log_failure(error)

    def _tell_failure(self, call: _segue.Call, told: Exception) -> None:
        """Ends the call with a ToolError or a McpError."""
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
                "%s %r: the protocol reserves the code %d, so the client gets -32603",
                self.what,
                self.key,
                code,
            )
            _segue.call_fail(call, -32603, message, data)


def _blocks(content: Iterable[Any]) -> list[Any]:
    from ..content import Text

    return [Text(one) if isinstance(one, str) else one for one in content]


def end_turn(call: _segue.Call, context: Context) -> None:
    """Reports that an async handler has made its first step. This ends the first turn,
    for which the answer to the call waits. The first turn of a plain function lasts until
    the function ends, at most `first_turn_ms`.
    """
    if context not in context._host.running:  # most handlers end in their first step
        return
    try:
        _segue.call_end_turn(call)
    except errors.ClosedError:  # the call has ended already
        pass


# The data of the error with which an ending server refuses a call. The client sends the
# call again later, and the server that has replaced the ended server answers the call.
ENDING = b'{"reason":"server_ending","retryAfterMs":1000}'


def refuse(call: _segue.Call, host: Hosting) -> None:
    """Refuses a call that cannot run because the server ends or runs max_calls calls."""
    if host.is_draining:
        _segue.call_fail(call, -32603, "The server is about to end", ENDING)
    else:
        most = host.max_calls
        data = f'{{"reason":"limit","limit":"max_calls","value":{most}}}'
        message = f"Too many calls at once: max_calls is {most}"
        _segue.call_fail(call, -32603, message, data.encode())
    _segue.call_free(call)


def _said(text: str) -> str:
    """Escapes characters that UTF-8 cannot represent. File names and the output of
    programs may contain such characters, and the report of a failure must not fail
    because of them."""
    return text.encode("utf-8", "backslashreplace").decode()


def message_of(text: str) -> str:
    """Escapes a message and replaces each NUL in the message, because the library takes
    the message as a NUL-terminated string.
    """
    return _said(text).replace("\0", "\ufffd")


def safe_text(error: Exception, is_exposed: bool, instead: str) -> str:
    """Returns the text of an exception that was not written for the caller. Returns
    `instead` if the text must not be shown to the caller.
    """
    if isinstance(error, Misfit):
        return f"The answer does not fit the form: {error}"
    return (str(error) or type(error).__name__) if is_exposed else instead


def rpc_error(error: Exception, is_exposed: bool) -> Exception:
    """Converts an exception to a JSON-RPC error, for methods whose results have no
    isError."""
    if isinstance(error, BadArguments):
        return McpError(-32602, str(error))
    if isinstance(error, ToolError):
        return McpError(-32603, error.message)
    if isinstance(error, PUBLIC):
        return error
    return McpError(-32603, safe_text(error, is_exposed, "Internal error"))
