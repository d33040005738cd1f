"""`segue.Remote`: a server somewhere else, whose items this process offers.

    client ──> Server "all" ── Mount("git") ──> Remote ── Session ──> the remote server
                 git_log   <── a copy ────       log   <── listed ───   log

A `Remote` is a server whose items come from the lists of another server. Each item relays
its calls over one session, which is the value of the lifespan. A follower lists again
what the remote server reports as changed, and after each new connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from .. import _segue, errors
from ..client.conversation import UNSET
from ..client.flow import Callbacks, Exchange
from ..client.items import ReadResult, decode, read_prompt
from ..client.opening import Target, connect
from ..client.questions import Answers, Question, Refused
from ..client.session import MOST_PAGES
from ..content import Result
from ..failures import McpError
from .completion import Suggestions, parse_params
from .context import Context
from .item import Item, decode_params, log
from .listed import Prompt, Resource
from .server import Server
from .tool import Tool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..client.changes import Changes
    from ..client.conversation import LogMessage
    from ..client.options import ConnectOptions
    from ..client.session import Session

__all__ = ["Remote"]

_PROTOCOL = "io.modelcontextprotocol/"
_MISSING_CAPABILITY = -32021
# What a server may offer: the methods that list it, the members of their answers, and the
# kinds of items.
_LISTS = {
    "tools": {"tools/list": "tools"},
    "resources": {
        "resources/list": "resources",
        "resources/templates/list": "resourceTemplates",
    },
    "prompts": {"prompts/list": "prompts"},
}
_KINDS = {
    "tools": (_segue.ITEM_TOOL,),
    "resources": (_segue.ITEM_RESOURCE, _segue.ITEM_RESOURCE_TEMPLATE),
    "prompts": (_segue.ITEM_PROMPT,),
}


class _Meta(msgspec.Struct):
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


_decode_meta = msgspec.json.Decoder(_Meta).decode


class Remote(Server):
    """A remote MCP server as a `Server`, to mount it in another one:

        app.mount(segue.Remote("https://example.com/mcp"), prefix="example")
        app.mount(segue.Remote(["npx", "-y", "some-server"]), prefix="some")

    It connects when serving begins, and serving fails if the server cannot be reached.
    The tools, resources, templates and prompts of the remote server appear here as its
    lists change. Calls, reads and suggestions are relayed: with segments, progress, log
    messages, questions (elicitation, sampling, roots) and cancellation. The session
    connects again as each session does. Until then calls wait, or fail with an error that
    says so.

    A remote item that another item of the same name hides is left out, and the log
    `segue.server` says so. Links to resources inside of results keep the URI of the
    remote server. Updates of a single resource are not relayed. A remote server of a
    revision before 2026-07-28 does not say to which call a log message over stdio
    belongs, so such messages are dropped.

    Args:
        target: the URL of the server, or the command that starts it.
        server_name: the name of this server, which clients see when it is served by
            itself.
        options: as in `segue.connect`, such as `auth` and `headers`. All clients share
            these credentials.
    """

    def __init__(
        self,
        target: Target,
        *,
        server_name: str = "remote",
        **options: Unpack[ConnectOptions],
    ) -> None:
        super().__init__(server_name, lifespan=lambda _: self._live())
        self._target = target
        self._connecting = options
        self._session: Session | None = None
        # what asks the clients of the calls that are open
        self._asks: list[Callable[[Question], Awaitable[Any]]] = []
        if isinstance(target, Server):
            raise TypeError("mount a segue.Server itself, not a segue.Remote of it")

    @contextlib.asynccontextmanager
    async def _live(self) -> AsyncIterator[Session]:
        """Connects, and keeps the items current until the lifespan ends."""
        if self._session is not None:
            raise RuntimeError(
                f"the remote server {self._target!r} is in use in another event loop: "
                "make a segue.Remote for each loop"
            )
        options: ConnectOptions = {
            "log_level": "debug",
            "on_log": _ignore,
            **self._connecting,
            "on_input": self._ask_only,
        }
        async with connect(self._target, **options) as session:
            self._session = session
            try:
                kinds = [kind for kind in _LISTS if kind in session.peer.capabilities]
                changes = await self._subscribed(session, kinds)
                for kind in kinds:
                    await self._refresh(kind)
                following = asyncio.ensure_future(self._follow(changes))
                try:
                    yield session
                finally:
                    following.cancel()
                    await asyncio.wait([following])
            finally:
                self._session = None

    async def _ask_only(self, question: Question) -> Any:
        """Asks the client of the only open call.

        A server of a revision before 2026-07-28 may send a question on a stream that
        names no call: the official SDK does so over HTTP, unless the server's program
        says to which call the question belongs. A question may only follow from a call,
        so it is that of the only open one. If there are several calls, their clients may
        be several users, and nobody is asked.
        """
        if len(self._asks) == 1:
            return await self._asks[0](question)
        count = len(self._asks) or "no"
        raise Refused(
            f"{question.method} names no call, and {count} calls are open: "
            "nobody is asked",
            -32601,
        )

    # ---- the items

    async def _subscribed(self, session: Session, kinds: list[str]) -> Changes | None:
        """Subscribes to the lists. Returns None if the remote server does not report
        their changes."""
        if not kinds:
            return None
        wanted: Any = dict.fromkeys(kinds, True)
        changes = session.subscribe(**wanted)
        try:
            await changes.open()
        except errors.Error as error:
            log.info("%r does not report changes of its lists: %s", self._target, error)
            return None
        return changes

    async def _follow(self, changes: Changes | None) -> None:
        """Lists again what has changed, until this task is cancelled."""
        if changes is None:
            return
        with contextlib.suppress(errors.Error):  # the session has ended
            async for change in changes:
                try:
                    await self._refresh(change.kind)
                except errors.Error as error:  # the next connection reports changes, too
                    log.warning(
                        "%r: %s cannot be listed: %s", self._target, change.kind, error
                    )

    async def _refresh(self, kind: str) -> None:
        """Makes the items of one kind those that the remote server lists now."""
        found: dict[tuple[int, str], Item] = {}
        for method, member in _LISTS[kind].items():
            for told in await self._pages(method, member):
                item = _MAKERS[member](self, told)
                found[item.item, item.key] = item
        for key, had in list(self._items.items()):
            if key[0] in _KINDS[kind] and isinstance(had, _RELAYS):
                if key in found and found[key]._told == had._told:
                    del found[key]
                else:
                    self._drop_item(*key)
        for item in found.values():
            try:
                self._add(item)
            except (ValueError, errors.Error) as error:
                log.warning("%r: %s %r: %s", self._target, item.what, item.key, error)

    async def _pages(self, method: str, member: str) -> list[dict[str, Any]]:
        session = self._connected()
        listed: list[dict[str, Any]] = []
        params: dict[str, Any] | None = None
        for _ in range(MOST_PAGES):
            raw = await session.request_raw(method, params, no_cache=True)
            page = decode(raw, dict[str, Any], method)
            listed += page.get(member, [])
            if page.get("nextCursor") is None:
                return listed
            params = {"cursor": page["nextCursor"]}
        raise errors.ProtocolError(f"{method}: more than {MOST_PAGES} pages")

    def _connected(self) -> Session:
        if self._session is None:
            raise errors.ClosedError(f"{self._target!r} is not connected")
        return self._session


# ---- relaying


def _ignore(_: Any) -> None:
    """Takes a log message that belongs to no call."""


@contextlib.contextmanager
def _answering(remote: Remote) -> Iterator[None]:
    """Gives the errors of the remote server to the caller. Of another failure of the
    session the caller learns only its kind, and the log has the rest.
    """
    try:
        yield
    except errors.RemoteError as error:
        answer = McpError._of_peer(error.code, error.message)
        answer.data_json = error.data_json
        raise answer from error
    except (errors.TransportError, errors.ClosedError) as error:
        log.warning("%r cannot be reached: %s", remote._target, str(error))
        raise McpError(-32603, "The remote server cannot be reached") from error


@contextlib.contextmanager
def _callbacks(remote: Remote, context: Context) -> Iterator[Callbacks]:
    """Gives the callbacks that pass on what comes during a call."""

    async def ask(question: Question) -> Any:
        try:
            return await context.request(question.method, question.params)
        except McpError as error:
            raise Refused(error.message, error.code) from None
        except errors.UnsupportedError as error:
            raise Refused(str(error), -32601) from None

    def tell(message: LogMessage) -> None:
        level: Any = message.level
        context.log(message.data, level)

    remote._asks.append(ask)
    try:
        with _answering(remote):
            yield Callbacks(context.progress, tell, None, Answers(ask))
    finally:
        remote._asks.remove(ask)


def _meta_of(context: Context) -> dict[str, Any] | None:
    """Returns `_meta` of the request without what belongs to this connection."""
    passed = _passing(_decode_meta(_segue.call_params(context._call)).meta)
    trace = context.trace_parent
    return passed if trace is None else {**(passed or {}), "traceparent": trace}


def _is_heard(context: Context) -> bool:
    """Returns whether the client of a call gets progress and log messages. With
    2026-07-28 it does not, if the call becomes a task, as each call that may be one does
    at once."""
    meta = _decode_meta(_segue.call_params(context._call)).meta or {}
    can = meta.get(f"{_PROTOCOL}clientCapabilities", {})
    return f"{_PROTOCOL}tasks" not in can.get("extensions", {})


def _passing(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns the members of `_meta` that do not belong to one connection."""
    return {
        key: value
        for key, value in (meta or {}).items()
        if key != "progressToken" and not key.startswith(_PROTOCOL)
    } or None


async def _relay(
    remote: Remote, context: Context, method: str, params: dict[str, Any]
) -> bytes:
    """Sends a request to the remote server, and returns its answer."""
    session: Session = context.lifespan
    meta = _meta_of(context)
    if meta:
        params["_meta"] = meta
    with _callbacks(remote, context) as passed:
        exchange = Exchange(session, passed)
        return await session.exchange(exchange, method, params, session._options(UNSET))


async def _extend(context: Context, **fields: Any) -> None:
    for name, value in fields.items():
        if value is not None:
            await context.set_field(name, value)


class _RemoteTool(Tool):
    """A tool that calls the tool of the remote server."""

    def __init__(self, remote: Remote, told: dict[str, Any]) -> None:
        name: str = told["name"]
        support = told.pop("execution", {}).get("taskSupport", "forbidden")

        # What is known of tasks: 2026-07-28 does not tell it before a call.
        must_be_task = support == "required"

        async def run(
            context: Context, given: dict[str, Any], no_task: bool
        ) -> AsyncIterator[Any]:
            session: Session = context.lifespan
            with _callbacks(remote, context) as passed:
                stream = session.stream(
                    name,
                    given,
                    on_progress=passed.progress,
                    on_log=passed.log,
                    on_input=passed.input,
                    meta=_meta_of(context),
                    raise_on_error=False,
                    collect=False,
                    _no_task=no_task,
                )
                async with stream:
                    blocks = 0
                    async for segment in stream:
                        if segment.replaces:
                            await context.replace(segment)
                            blocks = 1
                        elif segment.index < blocks and segment.text is not None:
                            await context.extend(segment.index, segment.text)
                        else:
                            yield segment
                            blocks += 1
                    ended = stream.result
            yield Result([], ended.structured, ended.is_error, _passing(ended.meta))

        async def call(context: Context, given: dict[str, Any]) -> AsyncIterator[Any]:
            nonlocal must_be_task
            no_task = _is_heard(context) and not must_be_task
            try:
                async for part in run(context, given, no_task):
                    yield part
                return
            except errors.RemoteError as error:
                # The tool has not run: it must be a task, which reports no progress.
                if not no_task or error.code != _MISSING_CAPABILITY:
                    raise
            must_be_task = True
            async for part in run(context, given, False):
                yield part

        super().__init__(
            call,
            name=name,
            input_schema=told.get("inputSchema") or {"type": "object"},
            task="never" if support == "forbidden" else "may",
            forbid_extra=False,
        )
        self._told = told

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        return (decode_params(params).arguments,)


class _RemoteResource(Resource):
    """A resource or a template that reads from the remote server."""

    def __init__(self, remote: Remote, told: dict[str, Any]) -> None:
        own: str = told["uri"] if "uri" in told else told["uriTemplate"]
        begin = own.partition("{")[0]

        async def read(context: Context) -> Any:
            # The beginning of the URI has the prefixes of all mounts.
            shown = context._item.key.partition("{")[0]
            uri = begin + context.name[len(shown) :]
            raw = await _relay(remote, context, "resources/read", {"uri": uri})
            result: ReadResult = decode(raw, ReadResult, "resources/read")
            await _extend(context, _meta=_passing(result.meta))
            return [
                msgspec.structs.replace(one, uri=context.name) if one.uri == uri else one
                for one in result.contents
            ]

        super().__init__(read, own)
        if self.variables:
            of = {"type": "ref/resource", "uri": own}
            self.suggestions = _RemoteSuggestions(remote, of)
        self._told = told

    def _check_variables(self) -> None:
        """The URI that the client has used is enough."""

    def arguments_of(self, call: _segue.Call, given: dict[str, Any]) -> tuple[Any, ...]:
        return ()


class _RemotePrompt(Prompt):
    """A prompt of the remote server."""

    def __init__(self, remote: Remote, told: dict[str, Any]) -> None:
        name: str = told["name"]

        async def get(context: Context, given: dict[str, Any]) -> Any:
            params = {"name": name, "arguments": given}
            result = read_prompt(await _relay(remote, context, "prompts/get", params))
            meta = _passing(result.meta)
            await _extend(context, description=result.description, _meta=meta)
            return result.messages

        super().__init__(get, name=name)
        if told.get("arguments"):
            self.suggestions = _RemoteSuggestions(
                remote, {"type": "ref/prompt", "name": name}
            )
        self._told = told

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        return (decode_params(params).arguments,)


class _RemoteSuggestions(Suggestions):
    """Suggestions that the remote server makes, if it makes any."""

    def __init__(self, remote: Remote, of: dict[str, str]) -> None:
        super().__init__({})
        self._remote = remote
        self._of = of

    def __bool__(self) -> bool:
        session = self._remote._session
        return session is not None and "completions" in session.peer.capabilities

    async def answer(self, params: bytes) -> tuple[list[str], int, bool]:
        name, typed, others = parse_params(params)
        with _answering(self._remote):
            session = self._remote._connected()
            found = await session.complete(self._of, name, typed, context=others)
        total = len(found.values) if found.total is None else found.total
        return found.values, total, found.has_more


_RELAYS = (_RemoteTool, _RemoteResource, _RemotePrompt)
_MAKERS: dict[str, Callable[[Remote, dict[str, Any]], Item]] = {
    "tools": _RemoteTool,
    "resources": _RemoteResource,
    "resourceTemplates": _RemoteResource,
    "prompts": _RemotePrompt,
}
