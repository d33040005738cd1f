"""What can go wrong: one exception for each status of the library.

All are an :class:`Error`. The bands of the statuses are classes too:
:class:`TransportError` for what the way to the peer did, :class:`ProtocolError` for what
the peer should not have sent, :class:`StoreError` for the store; :class:`RemoteError` is
the peer's own answer. A timeout is also Python's ``TimeoutError``, a lost connection its
``ConnectionError``.

The part between the marks is made by bindings/python/make_errors.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ._segue import ErrorInfo

__all__ = ["BY_STATUS", "Error", "TransportError", "from_info", "make"]


class Error(Exception):
    """Base of all errors of Segue.

    Attributes:
        status: Number of the status, as in ``segue.h``: negative.
        name: Its stable name, such as ``"SEGUE_E_CLOSED"``.
        message: One line for a person.
        code: JSON-RPC code that the peer sent; 0 when the failure is of this side.
        data_json: The ``data`` of the peer's error as JSON text, or None.
        retryable: Whether the same call may succeed when it is made again.
        partial: What had come of a result before this ended it: set by the client,
            else None.
        token: What ``session.resume`` takes to go on nevertheless, or None.
    """

    status: ClassVar[int] = -900
    name: ClassVar[str] = "SEGUE_E_FATAL"
    text: ClassVar[str] = "failure"
    retryable: bool = False

    message: str
    code: int
    data_json: bytes | None
    partial: Any
    token: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        code: int = 0,
        data: bytes | None = None,
        retryable: bool | None = None,
        partial: Any = None,
    ) -> None:
        super().__init__(message or self.text)
        self.message = message or self.text
        self.code = code
        self.data_json = data
        self.partial = partial
        self.token = None
        if retryable is not None:
            self.retryable = retryable

    @property
    def data(self) -> Any:
        """The ``data`` of the peer's error, decoded; None when there is none."""
        return None if self.data_json is None else json.loads(self.data_json)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})" if self.code else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[Error], state: dict[str, Any]) -> Error:
    error = kind(state.get("message", ""))
    error.__dict__.update(state)
    return error


class TransportError(Error):
    """The way to the peer failed (statuses of -100 to -199)."""


# ---- from errors.def: begin ----


class InvalidError(Error):
    """Invalid argument (SEGUE_E_INVALID, -1)."""

    status = -1
    name = "SEGUE_E_INVALID"
    text = "invalid argument"


class ClosedError(Error):
    """The handle is closed (SEGUE_E_CLOSED, -2)."""

    status = -2
    name = "SEGUE_E_CLOSED"
    text = "the handle is closed"


class ReentrantError(Error):
    """Not allowed inside a callback (SEGUE_E_REENTRANT, -3)."""

    status = -3
    name = "SEGUE_E_REENTRANT"
    text = "not allowed inside a callback"


class ThreadError(Error):
    """Not allowed on this thread (SEGUE_E_THREAD, -4)."""

    status = -4
    name = "SEGUE_E_THREAD"
    text = "not allowed on this thread"


class WouldBlockError(Error):
    """Would block: wait for on_drain (SEGUE_E_WOULD_BLOCK, -5)."""

    status = -5
    name = "SEGUE_E_WOULD_BLOCK"
    text = "would block: wait for on_drain"
    retryable = True


class OutOfMemoryError(Error, MemoryError):
    """Out of memory (SEGUE_E_NOMEM, -6)."""

    status = -6
    name = "SEGUE_E_NOMEM"
    text = "out of memory"
    retryable = True


class VersionError(Error):
    """A struct of a newer version sets an unknown field (SEGUE_E_VERSION, -7)."""

    status = -7
    name = "SEGUE_E_VERSION"
    text = "a struct of a newer version sets an unknown field"


class NotFoundError(Error):
    """Not found (SEGUE_E_NOT_FOUND, -8)."""

    status = -8
    name = "SEGUE_E_NOT_FOUND"
    text = "not found"


class ExistsError(Error):
    """Exists already (SEGUE_E_EXISTS, -9)."""

    status = -9
    name = "SEGUE_E_EXISTS"
    text = "exists already"


class StateError(Error):
    """Not possible in this state (SEGUE_E_STATE, -10)."""

    status = -10
    name = "SEGUE_E_STATE"
    text = "not possible in this state"


class EndedError(Error):
    """The operation has ended (SEGUE_E_TERMINAL, -11)."""

    status = -11
    name = "SEGUE_E_TERMINAL"
    text = "the operation has ended"


class LimitError(Error):
    """A limit is reached (SEGUE_E_LIMIT, -12)."""

    status = -12
    name = "SEGUE_E_LIMIT"
    text = "a limit is reached"


class NotResumableError(Error):
    """The peer offers nothing to resume with (SEGUE_E_NOT_RESUMABLE, -13)."""

    status = -13
    name = "SEGUE_E_NOT_RESUMABLE"
    text = "the peer offers nothing to resume with"


class UnsupportedError(Error):
    """The peer or this build does not support this (SEGUE_E_UNSUPPORTED, -14)."""

    status = -14
    name = "SEGUE_E_UNSUPPORTED"
    text = "the peer or this build does not support this"


class RequestCancelledError(Error):
    """Cancelled (SEGUE_E_CANCELLED, -15)."""

    status = -15
    name = "SEGUE_E_CANCELLED"
    text = "cancelled"


class RequestTimeoutError(Error, TimeoutError):
    """Timed out (SEGUE_E_TIMEOUT, -16)."""

    status = -16
    name = "SEGUE_E_TIMEOUT"
    text = "timed out"
    retryable = True


class TooSmallError(Error):
    """The buffer is too small (SEGUE_E_TOO_SMALL, -17)."""

    status = -17
    name = "SEGUE_E_TOO_SMALL"
    text = "the buffer is too small"


class DisconnectedError(TransportError, ConnectionError):
    """The connection is lost (SEGUE_E_DISCONNECTED, -100)."""

    status = -100
    name = "SEGUE_E_DISCONNECTED"
    text = "the connection is lost"
    retryable = True


class InputOutputError(TransportError):
    """Input or output failed (SEGUE_E_IO, -101)."""

    status = -101
    name = "SEGUE_E_IO"
    text = "input or output failed"
    retryable = True


class SpawnError(TransportError):
    """The program cannot be started (SEGUE_E_SPAWN, -102)."""

    status = -102
    name = "SEGUE_E_SPAWN"
    text = "the program cannot be started"


class RefusedError(TransportError):
    """The peer refuses to serve, or cannot be trusted (SEGUE_E_REFUSED, -103)."""

    status = -103
    name = "SEGUE_E_REFUSED"
    text = "the peer refuses to serve, or cannot be trusted"


class UnauthorizedError(TransportError):
    """The peer asks for an authorization (SEGUE_E_UNAUTHORIZED, -104)."""

    status = -104
    name = "SEGUE_E_UNAUTHORIZED"
    text = "the peer asks for an authorization"


class ProtocolError(Error):
    """The peer broke the protocol (SEGUE_E_PROTOCOL, -200)."""

    status = -200
    name = "SEGUE_E_PROTOCOL"
    text = "the peer broke the protocol"


class JsonError(ProtocolError):
    """Not valid JSON (SEGUE_E_JSON, -201)."""

    status = -201
    name = "SEGUE_E_JSON"
    text = "not valid JSON"


class TooLargeError(ProtocolError):
    """Larger than the limit (SEGUE_E_TOO_LARGE, -202)."""

    status = -202
    name = "SEGUE_E_TOO_LARGE"
    text = "larger than the limit"


class NegotiationError(ProtocolError):
    """No protocol version in common (SEGUE_E_NEGOTIATION, -203)."""

    status = -203
    name = "SEGUE_E_NEGOTIATION"
    text = "no protocol version in common"


class IncompleteError(ProtocolError):
    """The result is incomplete (SEGUE_E_INCOMPLETE, -204)."""

    status = -204
    name = "SEGUE_E_INCOMPLETE"
    text = "the result is incomplete"


class TaskLostError(ProtocolError):
    """The task is gone (SEGUE_E_TASK_LOST, -205)."""

    status = -205
    name = "SEGUE_E_TASK_LOST"
    text = "the task is gone"


class RemoteError(Error):
    """The peer answered with an error (SEGUE_E_REMOTE, -300)."""

    status = -300
    name = "SEGUE_E_REMOTE"
    text = "the peer answered with an error"


class StoreError(Error):
    """The store failed (SEGUE_E_STORE, -400)."""

    status = -400
    name = "SEGUE_E_STORE"
    text = "the store failed"
    retryable = True


class StoreFullError(StoreError):
    """The store is full (SEGUE_E_STORE_FULL, -401)."""

    status = -401
    name = "SEGUE_E_STORE_FULL"
    text = "the store is full"
    retryable = True


class StoreCorruptError(StoreError):
    """The store is damaged or of a newer format (SEGUE_E_STORE_CORRUPT, -402)."""

    status = -402
    name = "SEGUE_E_STORE_CORRUPT"
    text = "the store is damaged or of a newer format"


class FencedError(StoreError):
    """Another server has taken the operation over (SEGUE_E_FENCED, -403)."""

    status = -403
    name = "SEGUE_E_FENCED"
    text = "another server has taken the operation over"


class FatalError(Error):
    """Internal failure (SEGUE_E_FATAL, -900)."""

    status = -900
    name = "SEGUE_E_FATAL"
    text = "internal failure"


BY_STATUS: dict[int, type[Error]] = {
    -1: InvalidError,
    -2: ClosedError,
    -3: ReentrantError,
    -4: ThreadError,
    -5: WouldBlockError,
    -6: OutOfMemoryError,
    -7: VersionError,
    -8: NotFoundError,
    -9: ExistsError,
    -10: StateError,
    -11: EndedError,
    -12: LimitError,
    -13: NotResumableError,
    -14: UnsupportedError,
    -15: RequestCancelledError,
    -16: RequestTimeoutError,
    -17: TooSmallError,
    -100: DisconnectedError,
    -101: InputOutputError,
    -102: SpawnError,
    -103: RefusedError,
    -104: UnauthorizedError,
    -200: ProtocolError,
    -201: JsonError,
    -202: TooLargeError,
    -203: NegotiationError,
    -204: IncompleteError,
    -205: TaskLostError,
    -300: RemoteError,
    -400: StoreError,
    -401: StoreFullError,
    -402: StoreCorruptError,
    -403: FencedError,
    -900: FatalError,
}


class ServerStoreError(RemoteError):
    """The store of the server refused it, or cannot give it back."""


class ServerStoreFailedError(ServerStoreError):
    """Said by the server: its store fails."""


class ServerStoreFullError(ServerStoreError):
    """Said by the server: its store is full."""


class ServerStoreCorruptError(ServerStoreError):
    """Said by the server: its store is damaged."""


class ServerStoreLostError(ServerStoreError):
    """Said by the server: its store has lost the operation."""


class ServerStoreTornError(ServerStoreError):
    """Said by the server: its store has lost a part of the operation."""


class ServerStoreExistsError(ServerStoreError):
    """Said by the server: its store has such an operation already."""


class ServerStoreTooLargeError(ServerStoreError):
    """Said by the server: it is larger than its store takes."""


# By data.reason of the peer's error.
BY_REASON: dict[str, type[RemoteError]] = {
    "store_failed": ServerStoreFailedError,
    "store_full": ServerStoreFullError,
    "store_corrupt": ServerStoreCorruptError,
    "store_lost": ServerStoreLostError,
    "store_torn": ServerStoreTornError,
    "store_exists": ServerStoreExistsError,
    "store_too_large": ServerStoreTooLargeError,
}


# ---- from errors.def: end ----


def _by_reason(data: bytes) -> type[RemoteError]:
    decoded = json.loads(data)
    reason = decoded.get("reason") if isinstance(decoded, dict) else None
    return BY_REASON.get(reason, RemoteError) if isinstance(reason, str) else RemoteError


def make(
    status: int,
    message: str = "",
    code: int = 0,
    data: bytes | None = None,
    retryable: bool | None = None,
) -> Error:
    """Makes the exception of a status; of one that is unknown here, an :class:`Error`."""
    kind = BY_STATUS.get(status, Error)
    if kind is RemoteError and data is not None and b'"reason"' in data:
        kind = _by_reason(data)
    return kind(message, code=code, data=data, retryable=retryable)


def from_info(info: ErrorInfo | None, status: int) -> Error:
    """Makes the exception of a COMPLETE or CLOSED event."""
    if info is None:
        return make(status)
    return make(info[0] or status, info[1], info[2], info[3], info[4])
