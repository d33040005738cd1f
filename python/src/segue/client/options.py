"""What a session can be told when it is opened, and what the library is told of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from typing_extensions import TypedDict

from .. import _segue
from .auth import OAuth
from .conversation import Log, Notified, Reconnecting, milliseconds
from .modes import ResponseMode, response_modes
from .questions import Answers, Elicit, Input, Roots, Sample

__all__ = [
    "ConnectOptions",
    "answers_of",
    "check",
    "http_options",
    "session_options",
    "validator",
]

Validate = Callable[[str, "dict[str, Any]", Any], str | None]
Auth = str | OAuth | Callable[[int], str | None]

_ERAS = {"auto": 0, "modern": 1, "legacy": 2}
# segue_dialect
_DRAFT_TASKS, _PARTIAL, _PARTIAL_RESULTS, _RESUMABLE = 4, 32, 64, 128


class ConnectOptions(TypedDict, total=False):
    """The options of `connect`, `resume` and `segue.sync.connect`. Times are seconds.

    What the server asks and tells (plain or async callbacks):
        on_elicit: Answers `ElicitRequest` by an `ElicitResult`; None declines.
        on_sample: Answers `SampleRequest` by a `SampleResult`.
        roots: `file://` URIs or `Root`s, or what gives them.
        on_input: Answers any other `Question`.
        answers: Instead of these four: an object that answers everything.
        on_log: Gets each `LogMessage`; asks for them from `log_level` on ("info").
        on_notification: Gets method and params of what belongs to no request.
        on_reconnect: Gets a `Reconnect` when the server was lost and is tried again.
        on_stderr: Gets each line of a child's standard error, which else is ours.

    Calls:
        timeout: Of calls and other requests, each as a whole; default: none.
        raise_on_error: Results with `isError` are raised as `ToolError`; default True.
        validate: Gets tool, schema and structured content of a result whose tool has
            told its `outputSchema` (by `list_tools`); returns what is wrong, or None.

    The connection:
        headers: Of each HTTP request.
        auth: A bearer token; `OAuth`; or a callable that gets 0, or the status 401 or
            403 that its last token was refused with, and returns a token or None. It is
            called in the loop's thread and must be quick.
        connect_timeout: For the first connection; default 30. The time that a user
            takes to log in does not count.
        connect_attempts: For the first connection; default 1.
        request_timeout: Of one exchange on the wire; default 60.
        probe_timeout: A server that says nothing to `server/discover` for so long, over
            stdio, is one of the handshake eras; default 5.
        max_reconnects: Attempts in a row, -1 = none; default 20. So often `tasks/get`,
            `tasks/update` and `tasks/result` that fail are sent again, each by itself.
        reconnect_timeout: So long a server that is lost is tried to be reached again,
            over HTTP by each request; then that ends with a `DisconnectedError`, which
            has the token. `math.inf` = as long as `max_reconnects` allows; default 60.
        verify: False = certificates are not verified; a path = a file of them, PEM.
        cert: File of a client certificate, or (certificate, key), or with a password.
        proxy: Its URL; "" = none. Default: of the environment.
        unix_socket: Connect there, whatever host the URL names.
        http2: False = HTTP/1.1 only.
        silence_timeout: A stream that is silent for so long is taken for broken.
        env: Variables of a child process, beside our own.
        cwd: Its directory.
        restart: False = a child that ends is not started again; default True.

    The protocol:
        era: "auto", "modern" (2026-07-28 only), or "legacy" (initialize only).
        name, version: Of this client.
        capabilities: More of them, as JSON has them.
        tasks: False = no tasks are declared or asked for.
        response_modes: How a server of 2025-11-25 may answer calls that it can run as
            tasks (SEP-1905): some of "task", "immediate" and "streaming"; default: all.
        streaming: False = segments of plain calls are not asked for.
        draft_tasks: Offer DRAFT-2026-v1 (SEP-2557).
        resumable: Take servers of SEP-975 at their word; default True.
        idempotency: False = no idempotency keys.
        fill_defaults: What an accepted form leaves out has the default of its schema.
        cache_bytes: Of results that are kept while they are fresh; -1 = none.
        max_requests: In flight at once; default 100,000.
        max_result_bytes: Of one result that is collected; default 64 MiB.
    """

    on_elicit: Elicit | None
    on_sample: Sample | None
    roots: Roots | None
    on_input: Input | None
    answers: Answers | None
    on_log: Log | None
    log_level: str | None
    on_notification: Notified | None
    on_reconnect: Reconnecting | None
    on_stderr: Callable[[str], object] | None
    timeout: float | None
    raise_on_error: bool
    validate: Validate | None
    headers: Mapping[str, str] | None
    auth: Auth | None
    connect_timeout: float | None
    connect_attempts: int
    request_timeout: float | None
    probe_timeout: float | None
    max_reconnects: int
    reconnect_timeout: float | None
    verify: bool | str | os.PathLike[str]
    cert: str | tuple[str, ...] | None
    proxy: str | None
    unix_socket: str | None
    http2: bool
    silence_timeout: float | None
    env: Mapping[str, str] | None
    cwd: str | os.PathLike[str] | None
    restart: bool
    era: Literal["auto", "modern", "legacy"]
    name: str | None
    version: str | None
    capabilities: Mapping[str, Any] | None
    tasks: bool
    response_modes: Collection[ResponseMode] | None
    streaming: bool
    draft_tasks: bool
    resumable: bool
    idempotency: bool
    fill_defaults: bool
    cache_bytes: int | None
    max_requests: int | None
    max_result_bytes: int | None


_MANY = 100_000  # requests at once: tasks of asyncio cost little, who has them may
_KNOWN = frozenset(ConnectOptions.__annotations__)


def check(o: ConnectOptions) -> None:
    """Refuses what is no option.

    Raises:
        TypeError: One is none, or a callback no function.
    """
    unknown = sorted(set(o) - _KNOWN)
    if unknown:
        raise TypeError(f"connect() has no option {unknown[0]!r}")
    for name, given in o.items():
        if name.startswith("on_") and given is not None and not callable(given):
            raise TypeError(f"{name} is a function, not {given!r}")


def http_options(o: ConnectOptions) -> _segue.HttpOptions:
    """Of `segue_transport_http`."""
    told: _segue.HttpOptions = {}
    verify = o.get("verify", True)
    if verify is False:
        told["insecure"] = True
    elif verify is not True:
        told["ca_file"] = os.fspath(verify)
    cert = o.get("cert")
    if cert is not None:
        parts = (cert,) if isinstance(cert, (str, Path)) else tuple(cert)
        names: Any = ("cert_file", "key_file", "key_password")
        for name, part in zip(names, parts, strict=False):
            told[name] = os.fspath(part)  # type: ignore[literal-required]
    for name in ("proxy", "unix_socket"):
        value = o.get(name)
        if value is not None:
            told[name] = value  # type: ignore[literal-required]
    if not o.get("http2", True):
        told["http1"] = True
    told["silence_timeout_ms"] = milliseconds(o.get("silence_timeout"))
    told["connect_timeout_ms"] = milliseconds(o.get("connect_timeout"))
    return told


def session_options(o: ConnectOptions, answers: Answers) -> _segue.SessionOptions:
    """Of `segue_session_open`."""
    era = o.get("era", "auto")
    if era not in _ERAS:
        raise ValueError(f"no such era: {era!r}")
    off = 0 if o.get("streaming", True) else _PARTIAL | _PARTIAL_RESULTS
    on = _RESUMABLE if o.get("resumable", True) else 0
    on |= _DRAFT_TASKS if o.get("draft_tasks", False) else 0
    can = {**answers.capabilities(), **(o.get("capabilities") or {})}
    return {
        "name": o.get("name"),
        "version": o.get("version"),
        "capabilities": msgspec.json.encode(can).decode() if can else None,
        "era": _ERAS[era],
        "request_timeout_ms": milliseconds(o.get("request_timeout")),
        "probe_timeout_ms": milliseconds(o.get("probe_timeout")),
        "max_reconnects": o.get("max_reconnects"),
        "reconnect_timeout_ms": -1
        if o.get("reconnect_timeout") == math.inf
        else milliseconds(o.get("reconnect_timeout")),
        "first_attempts": o.get("connect_attempts", 1),
        "max_result_bytes": o.get("max_result_bytes"),
        "max_requests": o.get("max_requests") or _MANY,
        "no_idempotency": not o.get("idempotency", True),
        "no_tasks": not o.get("tasks", True),
        "fill_defaults": o.get("fill_defaults", False),
        "cache_bytes": o.get("cache_bytes"),
        "dialects_off": off,
        "dialects_on": on,
        "response_modes": response_modes(o.get("response_modes")),
    }


def validator(validate: Validate) -> _segue.Validate:
    def check(tool: str, what: int, schema: bytes, value: bytes) -> str | None:
        return validate(tool, msgspec.json.decode(schema), msgspec.json.decode(value))

    return check


def answers_of(o: ConnectOptions) -> Answers:
    return Answers(
        o.get("on_input"), o.get("on_elicit"), o.get("on_sample"), o.get("roots")
    )
