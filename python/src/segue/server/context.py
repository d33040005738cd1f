"""The context of a call: everything that a handler can do besides returning a result.

Each call has one context, which also receives the library's events about the call. In an
async handler, the methods that may have to wait are coroutines. A plain function runs on
a thread of the pool and gets a `SyncContext`, whose methods block that thread instead.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import msgspec

from .. import _segue, errors, schema
from ..failures import Declined, McpError, NotAsked
from ..questions import ElicitResult, Root, SampleResult
from . import forms
from .headers import Headers, headers_of
from .room import Attempt, Room, ThreadRoom, together
from .session import ServerSession

if TYPE_CHECKING:
    from .hosting import Hosting
    from .item import Item

__all__ = ["Context", "Resumed", "SyncContext"]

T = TypeVar("T")
Level = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
_META = "io.modelcontextprotocol/"
_CANCELLED = errors.RequestCancelledError
_decode = msgspec.json.decode
_send_text, _send_json = _segue.call_send_text, _segue.call_send_json


class Resumed(NamedTuple):
    """The point where an earlier run of this task ended.

    Attributes:
        segments: the number of stored segments. The next segment that is sent follows
            these segments.
        bytes: the stored form of the last checkpoint; None without a checkpoint.
    """

    segments: int
    bytes: builtins.bytes | None

    @property
    def data(self) -> Any:
        """The value of the last checkpoint, for a checkpoint that was stored as a value
        and not as bytes. None without a checkpoint."""
        return None if self.bytes is None else _decode(self.bytes)


class Context:
    """The context of a call in an async handler.

    A context must be used on the event loop, and only until the handler has ended.
    """

    __slots__ = (
        "__weakref__",
        "_call",
        "_cancelled",
        "_change",
        "_convert",
        "_has_sent",
        "_headers",
        "_host",
        "_inner",
        "_item",
        "_room",
        "_session",
        "_task",
    )

    _room: Room

    def __init__(
        self,
        call: _segue.Call,
        host: Hosting,
        item: Item,
    ) -> None:
        self._call = call
        self._host = host
        self._item = item
        # the function that converts each value that the handler sends to a block
        self._convert = item.block
        # the function of a middleware that changes each value before that
        self._change: Callable[[Any], Any] | None = None
        self._has_sent = False
        self._cancelled = False
        self._headers: Headers | None = None
        # the context of a plain function that runs inside a middleware
        self._inner: SyncContext | None = None
        self._task: asyncio.Task[None] | None = None
        self._session: ServerSession | None = None
        self._room = Room()

    # ---- events of the library, on the loop

    def _on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if self._inner is not None:
            self._inner._on_event(kind, a, b, c)
        if kind == _segue.CANCEL:
            self._cancelled = True
            if self._task is not None:
                self._task.cancel()
            self._room.end()
            self._host.dismiss(self)
        else:
            self._room.flush()

    def _for_thread(self) -> SyncContext:
        """Returns the context for plain functions of the call."""
        inner = self._inner
        if inner is None:
            inner = self._inner = SyncContext(self._call, self._host, self._item)
        inner._change = self._change
        inner._cancelled = self._cancelled
        return inner

    def _leave(self) -> None:
        """Frees the call because the server has ended. The handler may continue."""
        self._cancelled = True
        if self._inner is not None:
            self._inner._cancelled = True
        try:
            _segue.call_free(self._call)
        except errors.ClosedError:  # the reply has already freed the call
            pass
        self._end()

    def _end(self) -> None:
        """Rejects the sends that still wait."""
        self._room.end()
        if self._inner is not None:
            self._inner._room.end()

    # ---- the caller and the request

    @property
    def principal(self) -> str:
        """The caller's principal; "" for an anonymous caller."""
        return _segue.call_principal(self._call)

    def has_scope(self, scope: str) -> bool:
        """Returns whether the caller's token grants a scope. Over stdio every scope is
        granted."""
        return _segue.call_has_scope(self._call, scope)

    @property
    def headers(self) -> Headers:
        """The headers of the HTTP request that made the call, among them `authorization`
        and `cookie`: do not log them. Empty over stdio, and when the call is a task that
        runs again after a crash, because headers are not stored. A task has the headers
        of the request that made it.
        """
        if self._headers is None:
            self._headers = headers_of(self._call)
        return self._headers

    @property
    def lifespan(self) -> Any:
        """The value of the `lifespan` of the server that has the item; None without
        one."""
        life = self._item.owner._lives.get(id(self._host.runtime))
        return None if life is None else life.value

    @property
    def session(self) -> ServerSession | None:
        """The session of the client, with its `state`. None = the request is of no
        session: over HTTP clients of 2026-07-28 have none, and a task that runs again
        after a crash has lost its session. Such state belongs to the `principal`. None
        also for a task whose session has ended before its handler asked.
        """
        if self._session is None:
            number = _segue.call_client(self._call)
            self._session = self._host.sessions.of(number)
        return self._session

    @property
    def method(self) -> str:
        """The method of the request: "tools/call", "resources/read", "prompts/get" or
        "completion/complete".
        """
        return _segue.call_method(self._call)

    @property
    def name(self) -> str:
        """The name of the tool or prompt; for a resource, the URI that is read."""
        return _segue.call_name(self._call)

    @property
    def params(self) -> dict[str, Any]:
        """The whole params of the request, decoded anew at each use."""
        made: dict[str, Any] = _decode(_segue.call_params(self._call))
        return made

    def meta(self, key: str) -> Any:
        """Returns one member of the request's `_meta`, such as "traceparent"; None if
        absent."""
        raw = _segue.call_meta(self._call, key)
        return None if raw is None else _decode(raw)

    @property
    def trace_parent(self) -> str | None:
        """The trace of the call (W3C traceparent): the span that was set, else the
        caller's; None when the call is in no trace. The caller's trace is stored with
        a task, so a server that goes on with the task after a crash has it, too. A span
        that was set is not stored. An adapter for traces sets the span that it makes for
        the call; the events of the call then name it.
        """
        return _segue.call_trace_parent(self._call)

    @trace_parent.setter
    def trace_parent(self, value: str) -> None:
        _segue.call_set_trace_parent(self._call, value)

    @property
    def client_info(self) -> dict[str, Any] | None:
        """The client's name and version. A client of 2026-07-28 sends them with each
        request; for other clients the value is None."""
        info: dict[str, Any] | None = self.meta(_META + "clientInfo")
        return info

    @property
    def protocol_version(self) -> str | None:
        """The protocol revision that the request names. Only requests of 2026-07-28 name
        it; for other requests the value is None."""
        version: str | None = self.meta(_META + "protocolVersion")
        return version

    @property
    def cancelled(self) -> bool:
        """Whether the client has cancelled the call. An async handler is also cancelled
        by asyncio; a plain function must check this property.
        """
        if not self._cancelled:
            try:
                self._cancelled = _segue.call_is_cancelled(self._call)
            except errors.ClosedError:
                return True
        return self._cancelled

    # ---- progress and log messages

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Reports progress to the client if the client asked for progress. Does not wait.
        While the client reads slowly, a newer report replaces an older one that was not
        sent; the last one arrives before the answer.

        Args:
            message: What is being done.
            progress: the amount of work that is done. Each report must have a larger
                amount than the report before.
            total: the amount of the whole work; None = unknown.
        """
        _segue.call_progress(self._call, progress, total or 0, message)

    def log(self, data: Any, level: Level = "info") -> None:
        """Sends a log message to a client that asked for this level. Does not wait. While
        the client reads slowly, messages are replaced as reports of progress are.

        Args:
            data: text, or any value that JSON can represent.
        """
        _segue.call_log(self._call, level, schema.encode(data))

    # ---- tasks and resumption

    @property
    def resumed(self) -> Resumed | None:
        """The point where an earlier run of the task ended; None on the first run. Only
        tools with `restartable` run again."""
        found = _segue.call_resumed(self._call)
        return None if found is None else Resumed(*found)

    def defer(self, ttl: float | None = None) -> bool:
        """Turns the call into a task now. A task outlives the connection.

        Args:
            ttl: how long the task lives from its creation, in seconds; None = as the
                client has asked, or as the tool's option says.

        Returns:
            False when the tool or the client does not allow tasks; the call then stays a
            plain call.
        """
        try:
            _segue.call_defer(self._call, 0 if ttl is None else round(ttl * 1000))
        except errors.UnsupportedError:
            return False
        return True

    def hang_up(self, retry: float = 1.0) -> bool:
        """Closes the event stream of the call. The client comes back for the rest of the
        answer (2025-11-25 basic/transports, "Sending Messages to the Server").

        Args:
            retry: seconds after which the client should come back.

        Returns:
            False when the client cannot come back; the stream then stays open.
        """
        try:
            _segue.call_hang_up(self._call, round(retry * 1000))
        except errors.UnsupportedError:
            return False
        return True

    def _send(self, value: Any) -> Attempt:
        change = self._change
        call, block = self._call, self._convert(change(value) if change else value)
        self._has_sent = True
        if isinstance(block, str):
            return lambda: _send_text(call, block)
        return lambda: _send_json(call, block)

    def _extend(self, index: int, text: str) -> Attempt:
        call, change = self._call, self._change
        more = change(text) if change else text
        return lambda: _segue.call_extend_text(call, index, more)

    def _replace(self, values: tuple[Any, ...]) -> Attempt:
        call = self._call
        return together([lambda: _segue.call_replace(call), *map(self._send, values)])

    def _stored(self, data: Any) -> bytes:
        return data if isinstance(data, bytes) else schema.encode(data)

    # ---- sending, which may have to wait

    async def send(self, *values: Any) -> None:
        """Sends a segment for each value. Waits while the client or the store is slow.

        Args:
            values: str, content objects, segments of another call, or values that JSON
                can represent. The handler of a resource sends str values, which form one
                text, or `ResourceContents`.

        Raises:
            EndedError: the call has ended, for instance because it was cancelled.
            LimitError: the result has become too large, and the call has failed.
        """
        room = self._room
        self._has_sent = True
        for place, value in enumerate(values):
            is_plain = type(value) is str and self._change is None
            if is_plain and not room.queue and _send_text(self._call, value):
                continue
            attempt = self._send(value)
            if room.queue or not attempt():
                rest = [attempt, *map(self._send, values[place + 1 :])]
                await room.wait(together(rest))
                break

    async def extend(self, index: int, text: str) -> None:
        """Sends text that continues a text block of the result. A client that reads
        segments receives a new segment; in the result the text is appended to the block.
        A client that streams a task by SEP-1905 receives a new block instead.

        Args:
            index: the index of the block, from 0, in the order in which blocks were sent
                since the last `replace`.

        Raises:
            InvalidError: there is no such block yet, or the block is not a text.
            EndedError, LimitError: as in `send`.
        """
        await self._room.take(self._extend(index, text))

    async def replace(self, *values: Any) -> None:
        """Discards everything sent so far, for every reader. The values begin a new
        result."""
        await self._room.take(self._replace(values))

    async def set_field(self, name: str, value: Any) -> None:
        """Sets another member of the result, such as "structuredContent" of a tool,
        "description" of a prompt, or "ttlMs" of a resource that is read.

        Args:
            name: The member of the result.
            value: Its value, any JSON.
        """
        raw = schema.encode(value)
        await self._room.take(lambda: _segue.call_set_field(self._call, name, raw))

    async def set_status(self, message: str) -> None:
        """Sets the text that describes the status of a task."""
        await self._room.take(lambda: _segue.call_set_status(self._call, message))

    async def checkpoint(self, data: Any) -> bool:
        """Stores the handler's progress for a later run after a crash (`resumed`).

        Args:
            data: bytes, or a value that JSON can represent.

        Returns:
            False when the call is no task and cannot become one, so its progress is not
            stored.
        """
        raw = self._stored(data)
        try:
            await self._room.take(lambda: _segue.call_checkpoint(self._call, raw))
        except errors.StateError:
            return False
        return True

    # ---- questions

    async def request(
        self, method: str, params: Any = None, *, key: str | None = None
    ) -> Any:
        """Asks the client any question and returns its answer, decoded.

        Args:
            params: Its params, as a JSON object.
            method: the method, such as "elicitation/create".
            key: the name of the question. A later run of the task that asks with the same
                key gets the stored answer.

        Raises:
            UnsupportedError: the client has not declared that it answers this method.
            McpError: the client answered with an error.
            RequestCancelledError: the call has ended.
        """
        return _decode(await self._ask(method, schema.encode(params or {}), key))

    def _put(self, method: str, params: bytes, key: str | None, answer: _Answer) -> None:
        try:
            _segue.call_require_input(self._call, key, method, params, answer)
        except errors.UnsupportedError:
            raise NotAsked(
                f"the client has not declared that it answers {method}"
            ) from None

    async def _ask(self, method: str, params: bytes, key: str | None) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(method, params, key, _Answer(answer))
        return await answer

    @overload
    async def ask(self, message: str, type: type[T], *, key: str | None = None) -> T: ...
    @overload
    async def ask(self, message: str, *, key: str | None = None) -> str: ...
    @overload
    async def ask(
        self, message: str, type: Sequence[str], *, key: str | None = None
    ) -> str: ...

    async def ask(self, message: str, type: Any = str, *, key: str | None = None) -> Any:
        """Asks the user and returns the user's input.

        Args:
            message: the text that the user reads.
            type: the wanted input: str, int, float, bool, an Enum, a Literal or a list of
                strings to choose from, or a flat Struct, dataclass or model, whose fields
                are those of the form. Other types make a form with one field, `value`.
            key: see `request`.

        Raises:
            Declined: the user declined or did not decide. If the handler does not catch
                this ToolError, the tool ends with an error result that says so.
            UnsupportedError: the client cannot ask its user.
        """
        return _accepted(await self.elicit(message, type, key=key))

    async def elicit(
        self, message: str, type: Any, *, key: str | None = None
    ) -> ElicitResult[Any]:
        """Asks the user as `ask` does, and returns a refusal as `action` instead of
        raising. If `type` is a JSON Schema, the answer is a dict. With None the form has
        no fields, `[["a", "b"]]` is a choice of several strings.

        Args:
            message: The text for the user.
            key: A name for the question that stays the same when the tool runs again.
        """
        form, params = _form(message, type)
        return _elicited(await self._ask(forms.ELICIT, params, key), form)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, *, key: str | None = None
    ) -> ElicitResult[None]:
        """Sends the user to a URL, where the user enters data that must not pass through
        the client.

        Args:
            message: The text for the user.
            url: The page to open.
            elicitation_id: The id by which the page is known.
            key: A name for the question that stays the same when the tool runs again.
        """
        params = forms.url_params(message, url, elicitation_id)
        return _elicited(await self._ask(forms.ELICIT, params, key), None)

    async def sample(
        self, messages: Any, *, max_tokens: int, key: str | None = None, **options: Any
    ) -> SampleResult:
        """Asks the client's model.

        Args:
            max_tokens: The longest answer of the model, in tokens.
            key: A name for the question that stays the same when the tool runs again.
            messages: a string (a message of the user), a `PromptMessage`, or a list of
                these.
            options: other members of the request, with the protocol's names:
                systemPrompt, temperature, stopSequences, modelPreferences, tools, ...
        """
        params = forms.sample_params(messages, max_tokens, options)
        return SampleResult.from_json(await self._ask(forms.SAMPLE, params, key))

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Asks the client for its roots: the directories and files that it works in."""
        return forms.decode_roots(await self._ask(forms.ROOTS, b"{}", key)).roots


class SyncContext(Context):
    """The context of a call in a plain function. A method that has to wait blocks the
    function's thread."""

    __slots__ = ()

    _room: ThreadRoom  # type: ignore[assignment]

    def __init__(
        self,
        call: _segue.Call,
        host: Hosting,
        item: Item,
    ) -> None:
        super().__init__(call, host, item)
        self._room = ThreadRoom()  # pyright: ignore[reportIncompatibleVariableOverride]

    def send(self, *values: Any) -> None:  # type: ignore[override]
        """As `Context.send`, but blocks the calling thread."""
        self._room.take(together([self._send(value) for value in values]))

    def extend(self, index: int, text: str) -> None:  # type: ignore[override]
        """As `Context.extend`, but blocks the calling thread."""
        self._room.take(self._extend(index, text))

    def replace(self, *values: Any) -> None:  # type: ignore[override]
        """As `Context.replace`, but blocks the calling thread."""
        self._room.take(self._replace(values))

    def set_field(self, name: str, value: Any) -> None:  # type: ignore[override]
        """As `Context.set_field`, but blocks the calling thread."""
        raw = schema.encode(value)
        self._room.take(lambda: _segue.call_set_field(self._call, name, raw))

    def set_status(self, message: str) -> None:  # type: ignore[override]
        """As `Context.set_status`, but blocks the calling thread."""
        self._room.take(lambda: _segue.call_set_status(self._call, message))

    def checkpoint(self, data: Any) -> bool:  # type: ignore[override]
        """As `Context.checkpoint`, but blocks the calling thread."""
        raw = self._stored(data)
        try:
            self._room.take(lambda: _segue.call_checkpoint(self._call, raw))
        except errors.StateError:
            return False
        return True

    def _block(self, method: str, params: bytes, key: str | None) -> bytes:
        answer: concurrent.futures.Future[bytes] = concurrent.futures.Future()
        self._put(method, params, key, _Answer(answer))
        return answer.result()

    def request(self, method: str, params: Any = None, *, key: str | None = None) -> Any:
        """As `Context.request`, but blocks the calling thread."""
        return _decode(self._block(method, schema.encode(params or {}), key))

    @overload  # type: ignore[override]
    def ask(self, message: str, type: type[T], *, key: str | None = None) -> T: ...
    @overload
    def ask(self, message: str, *, key: str | None = None) -> str: ...
    @overload
    def ask(
        self, message: str, type: Sequence[str], *, key: str | None = None
    ) -> str: ...

    def ask(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, message: str, type: Any = str, *, key: str | None = None
    ) -> Any:
        """As `Context.ask`, but blocks the calling thread."""
        return _accepted(self.elicit(message, type, key=key))

    def elicit(  # type: ignore[override]
        self, message: str, type: Any, *, key: str | None = None
    ) -> ElicitResult[Any]:
        """As `Context.elicit`, but blocks the calling thread."""
        form, params = _form(message, type)
        return _elicited(self._block(forms.ELICIT, params, key), form)

    def elicit_url(  # type: ignore[override]
        self, message: str, url: str, elicitation_id: str, *, key: str | None = None
    ) -> ElicitResult[None]:
        """As `Context.elicit_url`, but blocks the calling thread."""
        params = forms.url_params(message, url, elicitation_id)
        return _elicited(self._block(forms.ELICIT, params, key), None)

    def sample(  # type: ignore[override]
        self, messages: Any, *, max_tokens: int, key: str | None = None, **options: Any
    ) -> SampleResult:
        """As `Context.sample`, but blocks the calling thread."""
        params = forms.sample_params(messages, max_tokens, options)
        return SampleResult.from_json(self._block(forms.SAMPLE, params, key))

    def roots(self, *, key: str | None = None) -> list[Root]:  # type: ignore[override]
        """As `Context.roots`, but blocks the calling thread."""
        return forms.decode_roots(self._block(forms.ROOTS, b"{}", key)).roots


# ---- answers to questions


class _Answer:
    """Receives the INPUT event of one question."""

    __slots__ = ("_future",)

    def __init__(
        self, future: asyncio.Future[bytes] | concurrent.futures.Future[bytes]
    ) -> None:
        self._future = future

    def __call__(self, kind: int, status: int, raw: bytes | None, c: Any) -> None:
        if self._future.done():  # the handler no longer waits
            return
        if status == 0 and raw is not None:
            self._future.set_result(raw)
        else:
            self._future.set_exception(_refusal(status, raw))


def _refusal(status: int, raw: bytes | None) -> Exception:
    if raw is None:
        return _CANCELLED() if status == _CANCELLED.status else errors.make(status)
    told = _decode(raw)
    told = told if isinstance(told, dict) else {}
    message = str(told.get("message", ""))
    return McpError._of_peer(told.get("code", -32603), message, told.get("data"))


def _form(message: str, tp: Any) -> tuple[forms.Form[Any], bytes]:
    form: forms.Form[Any] = forms.Form(tp)
    return form, schema.encode(
        {"mode": "form", "message": message, "requestedSchema": form.schema}
    )


def _elicited(raw: bytes, form: forms.Form[Any] | None) -> ElicitResult[Any]:
    answer = forms.decode_elicited(raw)
    if answer.action != "accept" or form is None:
        return ElicitResult(answer.action)
    return ElicitResult("accept", form.decode(bytes(answer.content)))


def _accepted(answer: ElicitResult[Any]) -> Any:
    if answer.accepted:
        return answer.content
    told = "declined" if answer.action == "decline" else "did not decide"
    raise Declined(f"The user {told}", answer.action)
