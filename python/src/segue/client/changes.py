"""Subscriptions to changes that a server reports: of resources, or of its lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .. import errors
from .flow import Exchange

if TYPE_CHECKING:
    from typing_extensions import Self

    from .conversation import Conversation

__all__ = ["Change", "Changes"]

Kind = Literal["resource", "tools", "resources", "prompts"]

# The name that `subscriptions/listen` (2026-07-28) has for the changes of each list.
_NAMES: dict[str, str] = {
    "tools": "toolsListChanged",
    "resources": "resourcesListChanged",
    "prompts": "promptsListChanged",
}
_METHODS: dict[str, Kind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
# limits of the pause before the client subscribes again, in seconds
_PAUSE_FIRST, _PAUSE_MOST = 0.1, 30.0


class Change(msgspec.Struct, frozen=True):
    """One change: of the list of tools, resources or prompts, or of one resource."""

    kind: Kind
    """What changed: a resource or one of the lists."""
    uri: str | None = None
    """URI of the resource, or None."""


def read_change(method: str, params: dict[str, Any]) -> Change | None:
    """Returns the change that a notification reports, or None."""
    if method == _UPDATED:
        uri = params.get("uri")
        return Change("resource", uri) if isinstance(uri, str) else None
    kind = _METHODS.get(method)
    return Change(kind) if kind else None


class Changes:
    """A subscription. A loop over the subscription reads each change:

        async with session.subscribe("file:///log", tools=True) as changes:
            async for change in changes:
                ...

    A change that arrives several times before it is read is reported once, so a slow
    reader cannot fill the queue. After a broken connection the client subscribes again.
    Changes during the break are unknown, so every subscribed list and resource is then
    reported once as changed.
    """

    def __init__(
        self, session: Conversation, uris: Iterable[str], lists: Iterable[str]
    ) -> None:
        self._session = session
        self._uris = list(dict.fromkeys(uris))
        self._lists: list[Any] = [name for name in _NAMES if name in set(lists)]
        if not self._uris and not self._lists:
            raise ValueError(
                "a subscription needs at least one URI, or tools, resources or prompts"
            )
        self._pending: dict[Change, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._listening: _Listening | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._end: Exception | None = None
        self._is_open = False
        # the value of `connections` of the session when the client last subscribed
        self._generation = 0

    # ---- called by the session

    def notified(self, method: str, change: Change | None) -> None:
        """Takes a notification that belongs to no request. The session calls this
        method."""
        if method == _ACKNOWLEDGED and self._listening is not None:
            self._listening.acknowledge()
        elif change is not None and self._wants(change):
            self._pending[change] = None
            self._wake()

    def _wants(self, change: Change) -> bool:
        if change.kind == "resource":
            # The server may report a part of a resource, such as a file in a subscribed
            # directory.
            uri = change.uri or ""
            return any(uri.startswith(one) for one in self._uris)
        return change.kind in self._lists

    def closed(self, error: Exception | None) -> None:
        """Ends the subscription. The session calls this method when the session has
        ended.
        """
        self._end = error
        self._is_open = False
        if self._keeping is not None:
            self._keeping.cancel()
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # ---- called by the reader

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Subscribes at the server.

        Raises:
            UnsupportedError: The server supports no such subscription.
            RemoteError: The server refuses.
        """
        self._session.changes.append(self)
        self._is_open = True
        self._generation = self._session.connections
        try:
            await self._subscribe()
        except BaseException:
            self._is_open = False
            self._session.changes.remove(self)
            raise
        self._keeping = self._session.loop.create_task(self._keep())

    async def aclose(self) -> None:
        """Unsubscribes."""
        if not self._is_open:
            return
        self._is_open = False
        self._session.changes.remove(self)
        if self._keeping is not None:
            self._keeping.cancel()
        if self._listening is not None:
            await self._listening.end()
        elif not self._session.is_closed:
            for uri in self._uris:
                if not any(uri in other._uris for other in self._session.changes):
                    await self._quietly("resources/unsubscribe", uri)
        self._wake()

    async def _quietly(self, method: str, uri: str) -> None:
        try:
            await self._session.request(method, {"uri": uri})
        except errors.Error:
            # A failure to unsubscribe does not matter, because the subscription ends
            # either way.
            pass

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._pending:
            if not self._is_open:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            waiter = self._session.loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:  # the wait was cancelled
                    self._waiters.remove(waiter)
        change = next(iter(self._pending))
        del self._pending[change]
        return change

    # ---- subscribing

    async def _subscribe(self) -> None:
        """Sends the server the requests that subscribe to the lists and resources of this
        subscription, over the current connection.
        """
        session = self._session
        if session.peer.era == "modern":
            wanted: dict[str, Any] = {_NAMES[name]: True for name in self._lists}
            if self._uris:
                wanted["resourceSubscriptions"] = self._uris
            self._listening = _Listening(session, wanted)
            await self._listening.begin()
            return
        told = session.peer.capabilities.get("resources")
        can = isinstance(told, dict) and told.get("subscribe")
        if self._uris and not can:
            raise errors.UnsupportedError(
                "the server does not support subscriptions to resources"
            )
        for uri in self._uris:
            await session.request("resources/subscribe", {"uri": uri})

    async def _keep(self) -> None:
        """Subscribes again each time the connection was lost. The pauses between attempts
        grow."""
        pause = _PAUSE_FIRST
        lost = False
        while True:
            if self._listening is not None and not lost:
                await self._listening.ended()
                lost = True
            elif not lost:
                await self._session.reconnected(self._generation)
                lost = True
            try:
                if self._listening is not None:
                    await asyncio.sleep(pause)
                self._generation = self._session.connections
                await self._subscribe()
            except errors.Error as error:
                if self._session.is_closed:
                    return
                if not error.retryable:
                    self._session.failed("a subscription has failed", error)
                    self.closed(error)
                    return
                pause = min(pause * 2, _PAUSE_MOST)
                continue
            lost, pause = False, _PAUSE_FIRST
            for uri in self._uris:
                self._pending[Change("resource", uri)] = None
            for name in self._lists:
                self._pending[Change(name)] = None
            self._wake()


class _Listening:
    """One `subscriptions/listen` request (2026-07-28). The server's answer to this
    request ends the subscription."""

    def __init__(self, session: Conversation, wanted: dict[str, Any]) -> None:
        self._exchange = Exchange(session)
        self._begun: asyncio.Future[None] = session.loop.create_future()
        self._wanted = wanted
        self._session = session

    def acknowledge(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)

    async def begin(self) -> None:
        exchange = self._exchange
        self._session.send(
            exchange, "subscriptions/listen", {"notifications": self._wanted}
        )
        ending = asyncio.ensure_future(exchange.wait())
        try:
            await asyncio.wait((self._begun, ending), return_when=asyncio.FIRST_COMPLETED)
            if not self._begun.done():
                raise (
                    exchange.failure()
                    if ending.result()[0]
                    else errors.ClosedError("the server ended the subscription")
                )
        except asyncio.CancelledError:
            ending.cancel()
            raise
        self._ending = ending

    async def ended(self) -> None:
        await asyncio.wait((self._ending,))

    async def end(self) -> None:
        self._exchange.cancel()
        await asyncio.wait((self._ending,))
