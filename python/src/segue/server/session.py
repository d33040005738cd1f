"""The sessions of a server's clients, and the state that handlers keep for a session.

A session is a connection over a byte stream, or over HTTP what `initialize` begins. The
library reports its begin and its end (`CLIENT_OPEN`, `CLIENT_CLOSED`), and tells which
session a call is of (`call_client`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

__all__ = ["ServerSession", "Sessions"]

OnEnd = TypeVar("OnEnd", bound=Callable[[], Awaitable[object] | object])
_log = logging.getLogger("segue.server")
_decode = msgspec.json.decode


class ServerSession:
    """The session of the client that calls, from `Context.session`.

    All calls of the session get the same object. It is in the memory of this process:
    after a restart, and in another process that serves the same store, the state of a
    session is empty.

    Attributes:
        id: the name of the session in this process, for logs. It is not the value of
            `Mcp-Session-Id`, which is a secret.
        principal: the client's principal; "" for an anonymous client.
        protocol_version: the protocol revision that the client speaks.
        client_info: the client's name and version; None = unknown, because the session
            began in another process.
        state: what handlers keep for the session. Plain functions run on threads, so two
            calls of a session may use the dict at the same time.
    """

    __slots__ = (
        "__weakref__",
        "_hooks",
        "_is_closed",
        "client_info",
        "id",
        "principal",
        "protocol_version",
        "state",
    )

    def __init__(self, number: int, principal: str, told: dict[str, Any]) -> None:
        self.id = str(number)
        self.principal = principal
        self.protocol_version: str = told["protocolVersion"]
        self.client_info: dict[str, Any] | None = told.get("clientInfo")
        self.state: dict[str, Any] = {}
        self._hooks: list[Callable[[], Awaitable[object] | object]] = []
        self._is_closed = False

    def __repr__(self) -> str:
        closed = " closed" if self._is_closed else ""
        return f"<segue.ServerSession {self.id}{closed}>"

    @property
    def closed(self) -> bool:
        """Whether the session has ended. A task may outlive its session."""
        return self._is_closed

    def on_end(self, function: OnEnd) -> OnEnd:
        """Registers a function, plain or async, that runs on the event loop when the
        session has ended, to free what `state` holds. Functions run one after the other,
        the last one first. Their exceptions go to the log `segue.server`. Returns the
        function, so `on_end` is a decorator, too.

        Raises:
            RuntimeError: the session has ended.
        """
        if self._is_closed:
            raise RuntimeError(f"the session {self.id} has ended")
        self._hooks.append(function)
        return function

    async def _end(self) -> None:
        while self._hooks:
            hook = self._hooks.pop()
            try:
                done = hook()
                if inspect.isawaitable(done):
                    await done
            except Exception:
                _log.exception("a function for the end of session %s failed", self.id)


class Sessions:
    """The sessions of a running server (hosting), by the numbers of their clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_number: dict[int, ServerSession] = {}
        # the tasks that run functions of `ServerSession.on_end`
        self._ending: set[asyncio.Task[None]] = set()

    def of(self, number: int) -> ServerSession | None:
        """Returns the session of a client; None = there is none, or it has ended."""
        return self._by_number.get(number)

    def opened(self, number: int, principal: str, told: bytes) -> None:
        declared = _decode(told)
        # Over HTTP a request subscriptions/listen of 2026-07-28 is a client, too.
        if declared["isSession"]:
            self._by_number[number] = ServerSession(number, principal, declared)

    def closed(self, number: int) -> None:
        session = self._by_number.pop(number, None)
        if session is None:
            return
        session._is_closed = True
        if session._hooks:
            self._end(session)

    def _end(self, session: ServerSession) -> None:
        work = session._end()
        if self._loop.is_running():
            task = self._loop.create_task(work)
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            return
        # The loop has ended, so only a function that need not wait can run.
        try:
            work.send(None)
        except StopIteration:
            return
        work.close()
        _log.error("%r ended after its event loop: a function could not wait", session)

    def close(self) -> None:
        """Ends all sessions, because the server has closed their connections."""
        for number in list(self._by_number):
            self.closed(number)

    async def wait(self, patience: float) -> None:
        """Waits until the functions for the ends of sessions have run, at most `patience`
        seconds; then cancels those that still run."""
        if not self._ending:
            return
        _, late = await asyncio.wait(self._ending, timeout=patience)
        for task in late:
            task.cancel()
