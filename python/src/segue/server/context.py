"""The context of a call: what a handler can do besides returning a result.

One object for each call. It is also what the library's events of the call go to. In an
async handler the methods that may have to wait are coroutines; in a plain function, which
runs on a thread of the pool, they block that thread: there the context is a
`SyncContext`, of which all else is the same.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import msgspec

from .. import _segue, errors, schema
from ..failures import Declined, McpError
from ..questions import ElicitResult, Root, SampleResult
from . import forms
from .room import Attempt, Room, ThreadRoom, together
from .values import block_of

if TYPE_CHECKING:
    from .hosting import Hosting

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
    """Where an earlier run of this task ended.

    Attributes:
        segments: how many segments are stored; the next one that is sent comes behind.
        bytes: the last checkpoint, as it is stored; None when there is none.
    """

    segments: int
    bytes: builtins.bytes | None

    @property
    def data(self) -> Any:
        """The last checkpoint, if it was a value and not bytes; None = there is none."""
        return None if self.bytes is None else _decode(self.bytes)


class Context:
    """The context of a call in an async handler.

    Use it on the event loop, and not after the handler has ended.
    """

    __slots__ = ("__weakref__", "_call", "_cancelled", "_host", "_room", "_task")

    _room: Room

    def __init__(self, call: _segue.Call, host: Hosting) -> None:
        self._call = call
        self._host = host
        self._cancelled = False
        self._task: asyncio.Task[None] | None = None
        self._room = Room()

    # ---- events of the library, on the loop

    def _on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.CANCEL:
            self._cancelled = True
            if self._task is not None:
                self._task.cancel()
            self._room.end()
            self._host.dismiss(self)
        else:
            self._room.flush()

    def _leave(self) -> None:
        """The server has ended: so has the call, for the handler."""
        self._cancelled = True
        try:
            _segue.call_free(self._call)
        except errors.ClosedError:  # it was just about to end
            pass
        self._room.end()

    # ---- who and what

    @property
    def principal(self) -> str:
        """Who calls; "" for nobody in particular."""
        return _segue.call_principal(self._call)

    def has_scope(self, scope: str) -> bool:
        """Whether the caller's token grants a scope. Over stdio everybody has all."""
        return _segue.call_has_scope(self._call, scope)

    @property
    def method(self) -> str:
        """ "tools/call", "resources/read", "prompts/get" or "completion/complete"."""
        return _segue.call_method(self._call)

    @property
    def name(self) -> str:
        """The tool or prompt; of a resource, the URI that is read."""
        return _segue.call_name(self._call)

    @property
    def params(self) -> dict[str, Any]:
        """The whole params of the request, as they came."""
        made: dict[str, Any] = _decode(_segue.call_params(self._call))
        return made

    def meta(self, key: str) -> Any:
        """One member of the request's `_meta`, such as "traceparent"; None if absent."""
        raw = _segue.call_meta(self._call, key)
        return None if raw is None else _decode(raw)

    @property
    def client_info(self) -> dict[str, Any] | None:
        """What the client says of itself with each request (2026-07-28), else None."""
        info: dict[str, Any] | None = self.meta(_META + "clientInfo")
        return info

    @property
    def protocol_version(self) -> str | None:
        """What the request says (2026-07-28), else None."""
        version: str | None = self.meta(_META + "protocolVersion")
        return version

    @property
    def cancelled(self) -> bool:
        """Whether the client wants the call to end. An async handler is cancelled then
        by itself, a plain function has to look."""
        if not self._cancelled:
            try:
                self._cancelled = _segue.call_is_cancelled(self._call)
            except errors.ClosedError:
                return True
        return self._cancelled

    # ---- what is told on the way

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Reports progress, if the client asked for it. Does not wait.

        Args:
            progress: how far it is; only ever more.
            total: how much there is; None when that is unknown.
        """
        _segue.call_progress(self._call, progress, total or 0, message)

    def log(self, data: Any, level: Level = "info") -> None:
        """Sends a log message to a client that asked for this level. Does not wait.

        Args:
            data: text, or any value that has a form in JSON.
        """
        _segue.call_log(self._call, level, schema.encode(data))

    # ---- what becomes of the call

    @property
    def resumed(self) -> Resumed | None:
        """Where an earlier run ended; None on a first run (`restartable` tools)."""
        found = _segue.call_resumed(self._call)
        return None if found is None else Resumed(*found)

    def defer(self, ttl: float | None = None) -> bool:
        """Turns the call into a task now, which outlives the connection.

        Args:
            ttl: seconds that it is kept; None = what the tool says.

        Returns:
            False when the tool or the client rules tasks out: the call stays plain.
        """
        try:
            _segue.call_defer(self._call, 0 if ttl is None else round(ttl * 1000))
        except errors.UnsupportedError:
            return False
        return True

    def hang_up(self, retry: float = 1.0) -> bool:
        """Ends the event stream, for a client to come back for the rest (2025-11-25
        basic/transports, "Sending Messages to the Server").

        Args:
            retry: seconds after which it is to come.

        Returns:
            False when it could not come back; then nothing has happened.
        """
        try:
            _segue.call_hang_up(self._call, round(retry * 1000))
        except errors.UnsupportedError:
            return False
        return True

    def _send(self, value: Any) -> Attempt:
        call, block = self._call, block_of(value)
        if isinstance(block, str):
            return lambda: _send_text(call, block)
        return lambda: _send_json(call, block)

    def _replace(self, values: tuple[Any, ...]) -> Attempt:
        call = self._call
        return together([lambda: _segue.call_replace(call), *map(self._send, values)])

    def _stored(self, data: Any) -> bytes:
        return data if isinstance(data, bytes) else schema.encode(data)

    # ---- what may have to wait

    async def send(self, *values: Any) -> None:
        """Emits a segment for each value; waits while the client, or the store, is slow.

        Args:
            values: str, content objects, segments of another call, or anything that has
                a form in JSON.

        Raises:
            EndedError: the call has ended, for instance by a cancel.
            LimitError: the result has become too large, and the call has failed.
        """
        room = self._room
        for place, value in enumerate(values):
            if type(value) is str and not room.queue and _send_text(self._call, value):
                continue
            attempt = self._send(value)
            if room.queue or not attempt():
                rest = [attempt, *map(self._send, values[place + 1 :])]
                await room.wait(together(rest))
                break

    async def extend(self, index: int, text: str) -> None:
        """Emits text that goes on in a block of the result: whoever reads along gets a
        segment of its own, whose text stands in that block in the end. To a client that
        streams a task by SEP-1905 it is a block of its own.

        Args:
            index: the place of the block, from 0, as blocks were sent since the last
                `replace`.

        Raises:
            InvalidError: there is no such block yet, or it is no text.
            EndedError, LimitError: as of `send`.
        """
        await self._room.take(lambda: _segue.call_extend_text(self._call, index, text))

    async def replace(self, *values: Any) -> None:
        """Throws away what was emitted, for everybody; values start the result anew."""
        await self._room.take(self._replace(values))

    async def set_field(self, name: str, value: Any) -> None:
        """Sets a member of the result beside its list, such as "structuredContent" of a
        tool, "description" of a prompt, "ttlMs" of what is read."""
        raw = schema.encode(value)
        await self._room.take(lambda: _segue.call_set_field(self._call, name, raw))

    async def set_status(self, message: str) -> None:
        """Sets the text that describes the state of a task."""
        await self._room.take(lambda: _segue.call_set_status(self._call, message))

    async def checkpoint(self, data: Any) -> bool:
        """Stores where the handler is, for a later run after a crash (`resumed`).

        Args:
            data: bytes, or a value that has a form in JSON.

        Returns:
            False when the call is no task, and so nothing outlives it.
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
        """Asks the client anything, and returns its answer as it came, decoded.

        Args:
            method: such as "elicitation/create".
            key: names the question: a later run that asks the same finds the answer that
                was given before.

        Raises:
            UnsupportedError: the client has not declared that it can be asked this.
            McpError: it answered with an error.
            RequestCancelledError: the call has ended.
        """
        return _decode(await self._ask(method, schema.encode(params or {}), key))

    def _put(self, method: str, params: bytes, key: str | None, answer: _Answer) -> None:
        try:
            _segue.call_require_input(self._call, key, method, params, answer)
        except errors.UnsupportedError:
            raise errors.UnsupportedError(
                f"the client cannot be asked this: it has not declared {method}"
            ) from None

    async def _ask(self, method: str, params: bytes, key: str | None) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(method, params, key, _Answer(answer))
        return await answer

    @overload
    async def ask(self, message: str, type: type[T], *, key: str | None = None) -> T: ...
    @overload
    async def ask(self, message: str, *, key: str | None = None) -> str: ...

    async def ask(self, message: str, type: Any = str, *, key: str | None = None) -> Any:
        """Asks the user, and returns what he filled in.

        Args:
            message: what he reads.
            type: what is asked for: str, int, float, bool, an Enum or a Literal, or a
                flat Struct, dataclass or model, whose fields are those of the form.
            key: see `request`.

        Raises:
            Declined: he declined, or did not decide. As a ToolError it ends the tool
                with a result that says so.
            UnsupportedError: the client cannot ask anybody.
        """
        return _accepted(await self.elicit(message, type, key=key))

    async def elicit(
        self, message: str, type: Any, *, key: str | None = None
    ) -> ElicitResult[Any]:
        """Like `ask`, but tells a refusal by `action`. `type` may be a JSON Schema, too,
        and then the answer is a dict."""
        form, params = _form(message, type)
        return _elicited(await self._ask(forms.ELICIT, params, key), form)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, *, key: str | None = None
    ) -> ElicitResult[None]:
        """Sends the user to a URL, for what may not pass through the client."""
        params = forms.url_params(message, url, elicitation_id)
        return _elicited(await self._ask(forms.ELICIT, params, key), None)

    async def sample(
        self, messages: Any, *, max_tokens: int, key: str | None = None, **options: Any
    ) -> SampleResult:
        """Asks the client's model.

        Args:
            messages: a string, which the user says, a `PromptMessage`, or a list of them.
            options: other members of the request, as they are on the wire:
                systemPrompt, temperature, stopSequences, modelPreferences, tools, ...
        """
        params = forms.sample_params(messages, max_tokens, options)
        return SampleResult.from_json(await self._ask(forms.SAMPLE, params, key))

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Asks where the client works."""
        return forms.decode_roots(await self._ask(forms.ROOTS, b"{}", key)).roots


class SyncContext(Context):
    """The context of a call in a plain function: what waits blocks its thread."""

    __slots__ = ()

    _room: ThreadRoom  # type: ignore[assignment]

    def __init__(self, call: _segue.Call, host: Hosting) -> None:
        super().__init__(call, host)
        self._room = ThreadRoom()  # pyright: ignore[reportIncompatibleVariableOverride]

    def send(self, *values: Any) -> None:  # type: ignore[override]
        """See `Context.send`; blocks."""
        self._room.take(together([self._send(value) for value in values]))

    def extend(self, index: int, text: str) -> None:  # type: ignore[override]
        """See `Context.extend`; blocks."""
        self._room.take(lambda: _segue.call_extend_text(self._call, index, text))

    def replace(self, *values: Any) -> None:  # type: ignore[override]
        """See `Context.replace`; blocks."""
        self._room.take(self._replace(values))

    def set_field(self, name: str, value: Any) -> None:  # type: ignore[override]
        """See `Context.set_field`; blocks."""
        raw = schema.encode(value)
        self._room.take(lambda: _segue.call_set_field(self._call, name, raw))

    def set_status(self, message: str) -> None:  # type: ignore[override]
        """See `Context.set_status`; blocks."""
        self._room.take(lambda: _segue.call_set_status(self._call, message))

    def checkpoint(self, data: Any) -> bool:  # type: ignore[override]
        """See `Context.checkpoint`; blocks."""
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
        """See `Context.request`; blocks."""
        return _decode(self._block(method, schema.encode(params or {}), key))

    @overload  # type: ignore[override]
    def ask(self, message: str, type: type[T], *, key: str | None = None) -> T: ...
    @overload
    def ask(self, message: str, *, key: str | None = None) -> str: ...

    def ask(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, message: str, type: Any = str, *, key: str | None = None
    ) -> Any:
        """See `Context.ask`; blocks."""
        return _accepted(self.elicit(message, type, key=key))

    def elicit(  # type: ignore[override]
        self, message: str, type: Any, *, key: str | None = None
    ) -> ElicitResult[Any]:
        """See `Context.elicit`; blocks."""
        form, params = _form(message, type)
        return _elicited(self._block(forms.ELICIT, params, key), form)

    def elicit_url(  # type: ignore[override]
        self, message: str, url: str, elicitation_id: str, *, key: str | None = None
    ) -> ElicitResult[None]:
        """See `Context.elicit_url`; blocks."""
        params = forms.url_params(message, url, elicitation_id)
        return _elicited(self._block(forms.ELICIT, params, key), None)

    def sample(  # type: ignore[override]
        self, messages: Any, *, max_tokens: int, key: str | None = None, **options: Any
    ) -> SampleResult:
        """See `Context.sample`; blocks."""
        params = forms.sample_params(messages, max_tokens, options)
        return SampleResult.from_json(self._block(forms.SAMPLE, params, key))

    def roots(self, *, key: str | None = None) -> list[Root]:  # type: ignore[override]
        """See `Context.roots`; blocks."""
        return forms.decode_roots(self._block(forms.ROOTS, b"{}", key)).roots


# ---- answers


class _Answer:
    """Gets the event INPUT of one question."""

    __slots__ = ("_future",)

    def __init__(
        self, future: asyncio.Future[bytes] | concurrent.futures.Future[bytes]
    ) -> None:
        self._future = future

    def __call__(self, kind: int, status: int, raw: bytes | None, c: Any) -> None:
        if self._future.done():  # the handler has stopped to wait
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
    return McpError(told.get("code", -32603), message, told.get("data"))


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
