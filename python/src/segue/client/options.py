"""The options of a session, and their conversion to the library's options."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from typing_extensions import TypedDict

from .. import _segue
from ..names import nearest
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
_HTTP_SSE = {"auto": 0, "never": 1, "only": 2}
# Flags of the C enum segue_dialect.
_DRAFT_TASKS, _PARTIAL, _PARTIAL_RESULTS, _RESUMABLE = 4, 32, 64, 128


class ConnectOptions(TypedDict, total=False):
    """The options of `connect`, `resume` and `segue.sync.connect`. Times are in seconds.

    Questions and events of the server (callbacks may be plain or async):
        on_elicit: Answers an `ElicitRequest` with an `ElicitResult`; None declines.
        on_sample: Answers a `SampleRequest` with a `SampleResult`.
        roots: `file://` URIs or `Root`s, or a function that returns them.
        on_input: Answers any other `Question`.
        answers: An object that answers every question, instead of on_elicit, on_sample,
            roots and on_input.
        on_log: Called with each `LogMessage`. With this callback the client asks the
            server for messages from `log_level` on.
        log_level: The least level of log messages. Default: "info" when there is an
            `on_log`.
        on_notification: Called with the method and params of each notification that
            belongs to no request.
        on_reconnect: Called with a `Reconnect` when the server was lost and the client
            tries to connect again.
        on_stderr: Called with each line that a child process writes to its standard
            error; `close` waits until the child has ended and its last line was passed
            on. Without this callback the child writes to the standard error of this
            process.

    Calls:
        timeout: Limit for each call or other request as a whole; default: no limit.
        raise_on_error: True = results with `isError` are raised as `ToolError`; default
            True.
        validate: Checks the structured content of a result. The function gets the tool,
            the tool's `outputSchema` (from `list_tools`) and the content. It returns the
            reason why the content is invalid, or None.

    The connection:
        headers: Headers that are added to each HTTP request.
        auth: A bearer token, an `OAuth`, or a function that returns a token or None. The
            function gets 0, or the status 401 or 403 with which the server refused its
            last token. The function runs on the loop's thread and must be quick.
        connect_timeout: Limit for the first connection; default 30. The time that a user
            takes to log in does not count.
        connect_attempts: Attempts to make the first connection; default 1.
        request_timeout: Limit for one request and its answer on the wire; default 60.
        probe_timeout: How long a server over stdio may take to answer `server/discover`;
            default 5. A server that does not answer in time gets `initialize` instead.
        max_reconnects: Attempts in a row to connect again; -1 = none; default 20. Failed
            `tasks/get`, `tasks/update` and `tasks/result` requests are repeated equally
            often, each counted separately.
        reconnect_timeout: How long the client tries to reach a lost server; over HTTP the
            time of each request counts separately. After this time, requests end with a
            `DisconnectedError`, which has the token. `math.inf` = limited only by
            `max_reconnects`; default 60.
        verify: False = certificates are not verified; a path = a PEM file of trusted
            certificates.
        cert: The file of a client certificate, or (certificate, key), or (certificate,
            key, password).
        proxy: The URL of a proxy; "" = no proxy. Default: the proxy of the environment
            variables.
        unix_socket: The path of a Unix socket to connect to, whatever host the URL names.
        http2: False = use HTTP/1.1 only.
        http_sse: Whether the client speaks HTTP+SSE of 2024-11-05: "auto" (default: if
            the server refuses `initialize` with 400, 404 or 405), "never", or "only"
            (the URL is that of the event stream, and nothing else is tried).
        silence_timeout: A stream that is silent for this long counts as broken.
        env: Environment variables of a child process, in addition to those of this
            process.
        cwd: The working directory of a child process.
        restart: True = a child process that ends is started again; default True.

    The protocol:
        era: "auto", "modern" (2026-07-28 only), or "legacy" (initialize only).
        name, version: The name and version of this client.
        capabilities: More capabilities to declare, as JSON.
        tasks: False = the client neither declares nor asks for tasks.
        response_modes: How a server of 2025-11-25 may answer calls that it can run as
            tasks (SEP-1905): some of "task", "immediate" and "streaming"; default: all.
        streaming: False = the client does not ask for segments of plain calls.
        draft_tasks: True = the client offers DRAFT-2026-v1 (SEP-2557).
        resumable: True = after a broken connection, the client asks a server of a
            revision before 2026-07-28 for the rest of an answer if the server offered
            this (SEP-975); default True.
        idempotency: False = calls carry no idempotency keys.
        fill_defaults: True = members that an accepted form leaves out get the defaults of
            its schema.
        cache_bytes: Maximum size of the cache of fresh results, in bytes; -1 = no cache.
        max_requests: Maximum number of running requests; default 65,536.
        max_result_bytes: Maximum size of one collected result, in bytes; default 64 MiB.
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
    http_sse: Literal["auto", "never", "only"]
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


_KNOWN = frozenset(ConnectOptions.__annotations__)


def check(o: ConnectOptions) -> None:
    """Refuses invalid options.

    Raises:
        TypeError: An option is unknown, or a callback is not a function.
    """
    unknown = sorted(set(o) - _KNOWN)
    if unknown:
        meant = nearest(unknown[0], sorted(_KNOWN))
        end = f", did you mean {meant!r}?" if meant else ""
        raise TypeError(f"connect() has no option {unknown[0]!r}{end}")
    for name, given in o.items():
        if name.startswith("on_") and given is not None and not callable(given):
            raise TypeError(f"{name} has to be a function, not {given!r}")


def _http_sse(given: str) -> int:
    if given not in _HTTP_SSE:
        raise ValueError(
            f"unknown http_sse: {given!r}; it is one of {', '.join(_HTTP_SSE)}"
        )
    return _HTTP_SSE[given]


def http_options(o: ConnectOptions) -> _segue.HttpOptions:
    """Makes the options for `segue_transport_http`."""
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
    told["http_sse"] = _http_sse(o.get("http_sse", "auto"))
    told["silence_timeout_ms"] = milliseconds(o.get("silence_timeout"))
    told["connect_timeout_ms"] = milliseconds(o.get("connect_timeout"))
    return told


def session_options(o: ConnectOptions, answers: Answers) -> _segue.SessionOptions:
    """Makes the options for `segue_session_open`."""
    era = o.get("era", "auto")
    if era not in _ERAS:
        raise ValueError(f"unknown era: {era!r}; the eras are {', '.join(_ERAS)}")
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
        "max_requests": o.get("max_requests"),
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
