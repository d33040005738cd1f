"""Work on a server that outlives the connection."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import msgspec

from .. import _segue, errors
from ..content import Result
from .flow import OK, Exchange, Flow
from .items import decode
from .stream import Reader

if TYPE_CHECKING:
    from .conversation import Conversation

__all__ = ["Task", "TaskStatus"]

_TOKEN = "sg1."
_FINAL = ("completed", "failed", "cancelled")


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `tasks/get` says, or `requests/getStatus` of a call that can be resumed.

    Attributes:
        id: Of the task; None of a call.
        status: "working", "input_required", "completed", "failed" or "cancelled"; expect
            others.
        message: The server's text for it.
        ttl_ms: How long the task is kept, from its making; None = without limit, or not
            told.
        poll_ms: How often the server likes to be asked.
        raw: All of it, as JSON has it.
    """

    id: str | None
    status: str
    message: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    ttl_ms: int | None = None
    poll_ms: int | None = None
    raw: dict[str, Any] = {}

    @property
    def is_final(self) -> bool:
        """It will not change any more."""
        return self.status in _FINAL


def _state_of_request(told: dict[str, Any]) -> Any:
    """SEP-975 has one word for two of ours."""
    if told.get("status") != "processing":
        return told.get("status")
    return "input_required" if told.get("hasInputRequest") is True else "working"


def _read_status(raw: bytes) -> TaskStatus:
    told = decode(raw, dict[str, Any], "the status of a task")
    inner = told.get("task")  # DRAFT-2026-v1 has it one level deeper
    told = inner if isinstance(inner, dict) else told
    is_task = "requestId" not in told
    if is_task and "taskId" not in told:
        raise errors.ProtocolError("the status of a task has no taskId")

    def first(*names: str) -> Any:
        return next((told[name] for name in names if told.get(name) is not None), None)

    try:
        return msgspec.convert(
            {
                "id": told["taskId"] if is_task else None,
                "status": told.get("status") if is_task else _state_of_request(told),
                "message": told.get("statusMessage"),
                "created_at": told.get("createdAt"),
                "updated_at": told.get("lastUpdatedAt"),
                "ttl_ms": first("ttlMs", "ttl"),
                "poll_ms": first("pollIntervalMs", "pollInterval"),
                "raw": told,
            },
            TaskStatus,
        )
    except msgspec.ValidationError as error:
        raise errors.ProtocolError(f"the status of a task: {error}") from error


def is_token(name: str) -> bool:
    """Is it a token of this library, and no id?"""
    return name.startswith(_TOKEN)


def task_id_of(token: str) -> str | None:
    """The id that a token of a task has: "sg1.", then base64url of a checksum and of JSON
    with "t" (core/engine/asking/token.c). Nobody else needs to know."""
    try:
        raw = token.partition(".")[2].partition("+")[0]
        told = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        id = msgspec.json.decode(told[8:])["t"]
    except (ValueError, KeyError, TypeError):
        return None
    return id if isinstance(id, str) else None


class Task(Reader):
    """A task: `await task.result()`, or `async for segment in task` to read it while it
    is made, then `await task.result()` at once.

    Nothing that happens here ends it but `cancel`: who stops reading, closes the session
    or ends the program leaves it running, and comes back with `token`, or `id`.

    A call that the server answered without a task is one that has ended: `id` is None.
    """

    def __init__(
        self,
        session: Conversation,
        begin: Callable[[], Flow],
        finish: Callable[[bytes], Result],
        name: str | None = None,
    ) -> None:
        super().__init__(begin, finish, "detach")
        self._session = session
        self._name = name  # an id, or a token
        self._last: TaskStatus | None = None
        self._id = task_id_of(name) if name and is_token(name) else name

    @property
    def id(self) -> str | None:
        """The id, by which `session.task` finds it."""
        return self._id or self.task_id

    async def result(self) -> Result:
        """Waits for the end. Segments that nobody reads are skipped.

        Raises:
            RequestCancelledError: It was cancelled.
            TaskLostError: The server does not know it any more.
            Error: How it ended otherwise; `partial` is what there was.
        """
        flow = self._started()
        if not self._is_read:
            flow.drop()
        outcome = await flow.wait()
        if outcome[0] != OK:
            raise flow.failure()
        return self._take_result(outcome[1] or b"{}")

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result().__await__()

    async def status(self) -> TaskStatus:
        """Asks the server: of a task, or of a call that can be resumed. An end that it
        told once stays the answer.

        Raises:
            StateError: It is neither.
            RemoteError: The server does not know it.
        """
        told = _read_status(await self._ask(_segue.task_get))
        if self._last is not None and told.status != self._last.status:
            return self._last  # what comes later is older, or wrong
        if told.is_final:
            self._last = told
        return told

    async def cancel(self) -> None:
        """Asks the server to end it, and waits until it has said so, 5 s at most. No
        error when it has ended meanwhile."""
        flow = self._flow
        if flow is not None and flow.outcome is None:
            await flow.leave(detach=False)
        elif flow is None or flow.is_left:
            await self._ask(_segue.task_cancel)

    async def _ask(self, verb: Any) -> bytes:
        name = self.task_id or self._name or self.token
        if name is None:
            raise errors.StateError("the server did not make a task of it")
        exchange = Exchange(self._session)
        try:
            handle = _segue.task_attach(self._session.handle, name)
        except errors.UnsupportedError:  # a call that is sent again with its key
            raise errors.StateError("the server did not make a task of it") from None
        exchange.handle = verb(handle, exchange.on_event, exchange.mask_of_events())
        status, raw, _ = await exchange.wait()
        if status != OK:
            raise exchange.failure()
        return raw or b"{}"
