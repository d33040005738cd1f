"""A transport for the official SDK (`mcp` 1.x and 2.x) that uses a connection of this
library:

    import segue.adapters.mcp
    from mcp import ClientSession

    async with segue.adapters.mcp.transport(url) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await session.call_tool("story", {"n": 3})

Existing code of the official SDK gets the features of this library: calls and tasks
survive a broken connection, and a server of any revision looks like a server of
2025-11-25. An answer in segments or as a task arrives as one result.

The transport does not forward bytes. It turns each message of the SDK into a request of
this library, because a request can only be repeated safely by code that understands it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from typing_extensions import Unpack

from .. import _segue, errors
from ..client.changes import Changes
from ..client.conversation import LogMessage
from ..client.flow import OK, Callbacks, Exchange, Progress
from ..client.opening import ConnectOptions, Target, open_session
from ..client.questions import Answers, Refused
from ..client.session import Session
from ._calls import missing

try:
    import anyio
    from mcp import types
    from mcp.shared.message import SessionMessage
except ImportError as error:
    raise missing(__name__, "mcp", error) from error

__all__ = ["transport"]

_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_OURS = frozenset({"elicitation", "sampling", "roots"})
_METHOD_NOT_FOUND, _INTERNAL, _FAILED = -32601, -32603, -32000
_QUEUE = 256  # maximum number of messages that wait for the SDK

# This adapter exists only in version 2.x of the SDK.
_adapter: Any = getattr(types, "jsonrpc_message_adapter", None)


def _wrap(message: dict[str, Any]) -> SessionMessage:
    if _adapter is not None:
        return SessionMessage(_adapter.validate_python(message))
    made: Any = types.JSONRPCMessage
    return SessionMessage(made.model_validate(message))


def _unwrap(message: SessionMessage) -> dict[str, Any]:
    inner: Any = message.message
    told: dict[str, Any] = inner.model_dump(
        by_alias=True, mode="json", exclude_unset=True
    )
    return told


class _Asking(Answers):
    """Passes the server's questions to the SDK, which answers them."""

    __slots__ = ("_bridge",)

    def __init__(self, bridge: _Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    def __bool__(self) -> bool:
        return True

    def capabilities(self) -> dict[str, Any]:
        return {k: v for k, v in self._bridge.can.items() if k in _OURS}

    async def answer(self, key: str, method: str, params: bytes) -> bytes:
        return await self._bridge.ask(method, msgspec.json.decode(params or b"{}"))


class _Bridge:
    """Connects the streams of the SDK with one session of this library."""

    def __init__(self, target: Target, options: ConnectOptions, told: Any) -> None:
        self.can: dict[str, Any] = {}
        self._target = target
        self._options = options
        self._told = told  # the stream on which messages go to the SDK
        self._session: Session | None = None
        self._running: dict[Any, Exchange] = {}
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._subscribed: dict[str, Changes] = {}
        self._lists: Changes | None = None
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    # ---- messages to the SDK

    async def _tell(self, message: dict[str, Any]) -> None:
        try:
            await self._told.send(_wrap({"jsonrpc": "2.0", **message}))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the SDK has closed its stream, so nothing reads the message

    def _say(self, method: str, params: dict[str, Any]) -> None:
        """Queues a notification to the SDK, for callers that cannot wait."""
        self._said.put_nowait({"method": method, "params": params})

    async def tell_said(self) -> None:
        """Sends the queued notifications to the SDK, in their order."""
        while True:
            message = await self._said.get()
            await self._tell(message)
            self._said.task_done()

    async def ask(self, method: str, params: dict[str, Any]) -> bytes:
        """Passes a question of the server to the SDK and returns the SDK's answer."""
        self._number += 1
        id = f"segue-{self._number}"
        future = asyncio.get_running_loop().create_future()
        self._asked[id] = future
        try:
            await self._tell({"id": id, "method": method, "params": params})
            answer = await future
        finally:
            del self._asked[id]
        error = answer.get("error")
        if error is not None:
            raise Refused(str(error.get("message")), int(error.get("code", _INTERNAL)))
        return msgspec.json.encode(answer.get("result") or {})

    # ---- messages from the SDK

    async def take(self, message: dict[str, Any]) -> None:
        """Handles one message that the SDK sends: answers it, or makes it a request of
        the session."""
        method, id = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method is None:
            future = self._asked.get(str(id))
            if future is not None and not future.done():
                future.set_result(message)
        elif id is None:
            exchange = self._running.get(params.get("requestId"))
            if method == "notifications/cancelled" and exchange is not None:
                self._running.pop(params["requestId"])
                exchange.cancel()
        else:
            await self._answer(id, method, params)

    async def _answer(self, id: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = await self._result_of(id, method, params)
        except errors.RemoteError as error:
            told: dict[str, Any] = {"code": error.code, "message": error.message}
            if error.data_json is not None:
                told["data"] = error.data
            await self._tell({"id": id, "error": told})
        except Refused as refusal:
            refused = {"code": refusal.code, "message": str(refusal)}
            await self._tell({"id": id, "error": refused})
        except (errors.Error, ValueError, TypeError, OSError) as error:
            failed = {"code": _FAILED, "message": str(error)}
            await self._tell({"id": id, "error": failed})
        else:
            if result is not None:
                await self._tell({"id": id, "result": result})

    async def _result_of(
        self, id: Any, method: str, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        if method == "initialize":
            return await self._initialize(params)
        session = self._session
        # Before initialize every other method is refused, even server/discover, because
        # to the SDK every server looks like a server of 2025-11-25.
        if session is None:
            raise Refused(f"{method} was called before initialize", _METHOD_NOT_FOUND)
        if method == "ping":
            return {}
        if method == "logging/setLevel":
            await session.set_log_level(str(params.get("level")))
            return {}
        is_modern = session.peer.era == "modern"
        if is_modern and method == "resources/subscribe":
            changes = session.subscribe(str(params.get("uri")))
            await changes.open()
            before = self._subscribed.pop(str(params.get("uri")), None)
            self._subscribed[str(params.get("uri"))] = changes
            if before is not None:
                await before.aclose()
            return {}
        if is_modern and method == "resources/unsubscribe":
            left = self._subscribed.pop(str(params.get("uri")), None)
            if left is not None:
                await left.aclose()
            return {}
        return await self._request(session, id, method, params)

    async def _request(
        self, session: Session, id: Any, method: str, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        meta = dict(params.get("_meta") or {})
        token = meta.pop("progressToken", None)
        params = {**params, "_meta": meta}
        if not meta:
            del params["_meta"]
        progress = None if token is None else self._progress(token)
        exchange = Exchange(session, Callbacks(progress, self._log))
        options: _segue.RequestOptions = {"log_level": session._log_level}
        session.send(exchange, method, params, options)
        self._running[id] = exchange
        try:
            status, raw, _ = exchange.outcome or await exchange.wait()
        finally:
            is_wanted = self._running.pop(id, None) is exchange
        # sends the notifications first that were queued before the answer
        await self._said.join()
        if not is_wanted:
            return None  # the SDK has cancelled the request
        if status != OK:
            raise exchange.failure()
        result: dict[str, Any] = msgspec.json.decode(raw or b"{}")
        if result.get("resultType") == "complete":
            del result["resultType"]  # only 2026-07-28 has this member
        return result

    def _progress(self, token: Any) -> Progress:
        def progress(now: float, total: float | None, text: str | None) -> None:
            told: dict[str, Any] = {"progressToken": token, "progress": now}
            if total is not None:
                told["total"] = total
            if text is not None:
                told["message"] = text
            self._say("notifications/progress", told)

        return progress

    # ---- the session

    async def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._session is not None:
            raise Refused("initialized before", -32600)
        self.can = dict(params.get("capabilities") or {})
        told = params.get("clientInfo") or {}
        options = self._options.copy()
        options.setdefault("name", told.get("name"))
        options.setdefault("version", told.get("version"))
        options["answers"] = _Asking(self)
        options["on_notification"] = self._say
        self._session = await open_session(self._target, options)
        self._watch = asyncio.ensure_future(self._closed(self._session))
        peer = self._session.peer
        can = {k: v for k, v in peer.capabilities.items() if k not in ("tasks",)}
        if peer.era == "modern":
            await self._watch_lists(self._session)
        version = params.get("protocolVersion")
        server = msgspec.to_builtins(peer.server)
        result: dict[str, Any] = {
            "protocolVersion": version if version in _VERSIONS else _VERSIONS[0],
            "capabilities": can,
            "serverInfo": {"name": "", "version": "", **server},
        }
        if peer.instructions is not None:
            result["instructions"] = peer.instructions
        return result

    async def _watch_lists(self, session: Session) -> None:
        """Subscribes to changes of the lists, because a server of 2026-07-28 reports only
        the changes to which a client has subscribed."""
        wanted = {}
        for name in ("tools", "resources", "prompts"):
            told = session.peer.capabilities.get(name)
            wanted[name] = isinstance(told, dict) and bool(told.get("listChanged"))
        if any(wanted.values()):
            self._lists = session.subscribe(**wanted)
            try:
                await self._lists.open()
            except errors.Error:
                # the server declared subscriptions but does not support them
                self._lists = None

    def _log(self, message: LogMessage) -> None:
        told = {"level": message.level, "data": message.data}
        if message.logger is not None:
            told["logger"] = message.logger
        self._say("notifications/message", told)

    async def _closed(self, session: Session) -> None:
        try:
            await session.wait_closed()
        except errors.Error:
            pass
        await self._told.aclose()

    async def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            await self._session.close()
            self._watch.cancel()


@asynccontextmanager
async def transport(
    target: Target, /, **options: Unpack[ConnectOptions]
) -> AsyncIterator[tuple[Any, Any]]:
    """Returns the two streams for `ClientSession`.

    The connection is made when the `ClientSession` sends `initialize` with its
    capabilities. If the connection fails, `initialize` fails. The callbacks for questions
    and log messages belong to the `ClientSession`; as options of this function they are
    refused.

    Args:
        target: As in `segue.connect`.
        options: As in `segue.connect`.
    """
    taken = {"on_elicit", "on_sample", "roots", "on_input", "on_log", "on_notification"}
    wrong = sorted(taken & set(options))
    if wrong:
        raise TypeError(
            f"the option {wrong[0]} is not allowed: pass the callback to ClientSession"
        )
    told, read = anyio.create_memory_object_stream[Any](_QUEUE)
    write, said = anyio.create_memory_object_stream[Any](0)
    bridge = _Bridge(target, options, told)

    # The tasks belong to no task group, so an exception in the body of `async with` is
    # raised unchanged.
    working: set[asyncio.Task[None]] = set()

    def begin(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        working.add(task)
        task.add_done_callback(working.discard)

    async def take_all() -> None:
        async with said:
            async for message in said:
                begin(bridge.take(_unwrap(message)))

    begin(take_all())
    begin(bridge.tell_said())
    try:
        yield read, write
    finally:
        with anyio.CancelScope(shield=True):
            await bridge.close()
            left = list(working)
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            for stream in (told, read, write, said):
                await stream.aclose()
