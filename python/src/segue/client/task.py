"""Tasks: work on a server that outlives the connection."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .. import _segue, errors
from ..content import Result
from .flow import OK, Exchange, Flow
from .items import decode
from .stream import Reader

if TYPE_CHECKING:
    from typing_extensions import Self

    from .conversation import Conversation

__all__ = ["Task", "TaskStatus"]

_TOKEN = "sg1."
_PLACE_MOST = 15  # maximum number of digits of a segment's number in a token
_FINAL = ("completed", "failed", "cancelled")


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `tasks/get`, or to `requests/getStatus` for a resumable call.

    Attributes:
        id: The id of the task; None for a resumable call.
        status: "working", "input_required", "completed", "failed", "cancelled", or
            another text of the server.
        message: The server's text about the status.
        ttl_ms: How long the server keeps the task, from its creation; None = no limit, or
            unknown.
        poll_ms: How often clients should ask for the status, as the server requests: the
            interval in ms.
        raw: The server's whole answer, as JSON.
    """

    id: str | None
    status: str
    message: str | None = None
    created_at: str | None = None
    """When the task was made."""
    updated_at: str | None = None
    """When the task last changed."""
    ttl_ms: int | None = None
    poll_ms: int | None = None
    raw: dict[str, Any] = {}

    @property
    def is_final(self) -> bool:
        """Whether the status is final."""
        return self.status in _FINAL


def _state_of_request(told: dict[str, Any]) -> Any:
    """Converts a state of SEP-975 to the state of a task. "processing" of SEP-975 is
    "working" or "input_required".
    """
    if told.get("status") != "processing":
        return told.get("status")
    return "input_required" if told.get("hasInputRequest") is True else "working"


def _read_status(raw: bytes) -> TaskStatus:
    told = decode(raw, dict[str, Any], "the status of a task")
    inner = told.get("task")  # DRAFT-2026-v1 wraps the answer in a member "task"
    told = inner if isinstance(inner, dict) else told
    is_task = "requestId" not in told
    if is_task and "taskId" not in told:
        raise errors.ProtocolError(
            "the server sent the status of a task without a taskId"
        )

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
    """Returns whether the text is a token of this library and not a task id."""
    return name.startswith(_TOKEN)


def parts_of(token: str) -> tuple[str, int]:
    """Splits a token of this package into the token of the library and the number of the
    last segment that was read. The number comes after a "+" (flow.py)."""
    bare, plus, place = token.partition("+")
    if not plus:
        return bare, 0
    if not (place.isascii() and place.isdigit() and len(place) <= _PLACE_MOST):
        raise errors.InvalidError(
            "the token is damaged, or is not a token of this library"
        )
    return bare, int(place)


def era_of(runtime: _segue.Runtime, token: str) -> Literal["auto", "legacy"]:
    """Returns the option `era` of a session that can resume the token.

    Raises:
        TypeError: The token is no str.
        InvalidError: The token is damaged.
    """
    if not isinstance(token, str):
        raise TypeError(f"a token has to be a str, not {token!r}")
    era = _segue.token_era(runtime, parts_of(token)[0])
    return "legacy" if era == _segue.ERA_LEGACY else "auto"


def attached(session: _segue.Session, name: str) -> _segue.Task:
    """Makes a task handle from a task id or a token."""
    if is_token(name):
        return _segue.task_attach_token(session, parts_of(name)[0])
    return _segue.task_attach(session, name)


def task_id_of(token: str) -> str | None:
    """Reads the task id from a task's token. A token is "sg1." and the base64url form of
    a checksum and JSON with the id in "t" (core/engine/client/token.c). Only this
    function depends on that format."""
    try:
        raw = token.partition("+")[0].partition(".")[2]
        told = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        id = msgspec.json.decode(told[8:])["t"]
    except (ValueError, KeyError, TypeError):
        return None
    return id if isinstance(id, str) else None


_LOST = errors.TaskLostError.status


class Task(Reader):
    """A task: `await task.result()`, or `async for segment in task` to read the segments
    while the task runs. Afterwards `await task.result()` returns at once.

    Only `cancel` ends the task. When the reader stops, the session closes or the program
    ends, the task continues, and `token` or `id` finds the task again.

    If the server answered without making a task, the call has ended, and `id` is None.
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
        self._name = name  # the task id or the token
        self._last: TaskStatus | None = None
        self._id = task_id_of(name) if name and is_token(name) else name

    @property
    def id(self) -> str | None:
        """The id by which `session.task` finds the task; None if the call is not a
        task."""
        return self._id or self.task_id

    async def result(self) -> Result:
        """Waits for the result. Unread segments are skipped.

        Raises:
            RequestCancelledError: The task was cancelled.
            TaskLostError: The server does not know the task any more.
            Error: The task failed; `partial` is the part of the result that had arrived.
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Stops reading. The task continues; only `cancel` ends it."""
        if self._flow is not None:
            await self._flow.leave(detach=True)

    async def status(self) -> TaskStatus:
        """Asks the server for the status of a task or of a resumable call.

        Once the status is final, this method always returns the final status.

        Raises:
            StateError: The call is neither a task nor resumable.
            TaskLostError: The server does not know the task.
        """
        told = _read_status(await self._ask(_segue.task_get))
        if self._last is not None and told.status != self._last.status:
            # a status that comes after the final status is outdated or wrong
            return self._last
        if told.is_final:
            self._last = told
        return told

    async def cancel(self) -> None:
        """Asks the server to cancel the task and waits for the server's answer, at most 5
        s. If the task has already ended, nothing happens.

        Raises:
            TaskLostError: The server does not know the task.
        """
        flow = self._flow
        if flow is not None and flow.outcome is None:
            await flow.leave(detach=False)
        elif flow is None or flow.is_left:
            await self._ask(_segue.task_cancel)
        if flow is not None and flow.outcome is not None and flow.outcome[0] == _LOST:
            raise flow.failure()

    async def _ask(self, verb: Any) -> bytes:
        name = self.task_id or self._name or self.token
        if name is None:
            raise errors.StateError("the call is not a task: the server made no task")
        exchange = Exchange(self._session)
        try:
            handle = attached(self._session.handle, name)
        except errors.UnsupportedError:
            # This token can only send the call again with its idempotency key. Such a
            # call has no status.
            raise errors.StateError(
                "the call is not a task: the server made no task"
            ) from None
        exchange.handle = verb(handle, exchange.on_event, exchange.mask_of_events())
        status, raw, _ = await exchange.wait()
        if status != OK:
            raise exchange.failure()
        return raw or b"{}"
