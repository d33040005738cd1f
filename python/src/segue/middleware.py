"""Middlewares that are ready for `Server.use`.

    server.use(segue.middleware.log_calls())
    server.use(segue.middleware.limit_rate(10, burst=20), methods=["tools/call"])

The first that is added is the outermost. So `log_calls` sees what `limit_rate` refuses.
Unless `methods` says otherwise, these go around calls, lists and completions, except
`limit_rate`, which goes around calls only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from .failures import PUBLIC, McpError, ToolError
from .server.forms import Misfit
from .server.layers import CALLS, Call, Middleware, Proceed, showing_all
from .server.signature import BadArguments

__all__ = ["limit_rate", "log_calls", "mask_errors", "retry", "time_calls"]

Clock = Callable[[], float]
# The exceptions whose texts are written for the caller.
_TOLD = (BadArguments, Misfit, *PUBLIC)
# maximum number of callers whose rates are kept
_CALLERS = 65536
_LOGGERS = (logging.Logger, logging.LoggerAdapter)


def _check_callable(name: str, value: object) -> None:
    if not callable(value):
        raise TypeError(f"{name} has to be a function, not {value!r}")


def log_calls(
    logger: logging.Logger | logging.LoggerAdapter[Any] | None = None,
    level: int = logging.INFO,
    *,
    arguments: bool = False,
    clock: Clock = time.monotonic,
) -> Middleware:
    """Logs the end of each call, with its time.

    Args:
        level: The level of the lines.
        clock: A clock for tests, in seconds.
        logger: default: the logger "segue.calls".
        arguments: True = the arguments are logged, too.
    """
    if logger is not None and not isinstance(logger, _LOGGERS):
        raise TypeError(
            f"logger has to be a logging.Logger, not {logger!r}: use "
            "logging.getLogger(name)"
        )
    log = logger or logging.getLogger("segue.calls")

    def report(call: Call, seconds: float, error: BaseException | None) -> None:
        given = f" {call.arguments}" if arguments and call.name else ""
        end = "ended" if error is None else f"failed ({type(error).__name__})"
        what = f"{call.method} {call.name}{given}".rstrip()
        log.log(level, "%s %s after %.3f s", what, end, seconds)

    return time_calls(report, clock=clock)


def time_calls(
    report: Callable[[Call, float, BaseException | None], object],
    *,
    clock: Clock = time.monotonic,
) -> Middleware:
    """Measures each call, until its handler has ended.

    Args:
        clock: A clock for tests, in seconds.
        report: gets the call, its time in seconds, and the exception with which it
            ended; None if it did not fail.
    """
    _check_callable("report", report)

    @showing_all()
    async def timed(call: Call, proceed: Proceed) -> Any:
        begin = clock()
        try:
            value = await proceed()
        except BaseException as error:
            report(call, clock() - begin, error)
            raise
        report(call, clock() - begin, None)
        return value

    return timed


def _principal(call: Call) -> str:
    return call.context.principal


def limit_rate(
    per_second: float,
    burst: int | None = None,
    *,
    key: Callable[[Call], str] = _principal,
    clock: Clock = time.monotonic,
) -> Middleware:
    """Refuses the calls of a caller who calls too often (-32603, `{"reason": "limit"}`).
    The error says when the caller may try again.

    Args:
        clock: A clock for tests, in seconds.
        per_second: how many calls a caller may begin per second, over time.
        burst: how many calls a caller may begin at once; default: `per_second`, at
            least 1.
        key: the name of the caller; default: the principal. All anonymous callers
            together are one caller.
    """
    _check_callable("key", key)
    for number in (per_second, burst or 1):
        if not isinstance(number, (int, float)):
            raise TypeError(f"per_second and burst have to be numbers, not {number!r}")
    most = float(max(1, per_second) if burst is None else burst)
    if per_second <= 0 or most < 1:
        raise ValueError("per_second has to be above 0, and burst at least 1")
    # For each caller, the time at which all of the burst is available again. Callers are
    # in the order of their last calls.
    full_at: OrderedDict[str, float] = OrderedDict()

    @showing_all(CALLS)
    async def limited(call: Call, proceed: Proceed) -> Any:
        now, name = clock(), key(call)
        full = max(full_at.get(name, now), now) + 1 / per_second
        wait = full - now - most / per_second
        if wait > 1e-9:
            told = {
                "reason": "limit",
                "limit": "calls_per_second",
                "value": per_second,
                "retryAfterMs": max(1, round(wait * 1000)),
            }
            raise McpError(
                -32603,
                f"Too many calls: at most {per_second:g} a second. Try again in "
                f"{told['retryAfterMs']} ms",
                told,
            )
        full_at[name] = full
        full_at.move_to_end(name)
        while len(full_at) > _CALLERS or next(iter(full_at.values())) <= now:
            full_at.popitem(last=False)
        return await proceed()

    return limited


def mask_errors(
    text: str = "The call failed",
    *,
    show: tuple[type[Exception], ...] = (),
    on_error: Callable[[Call, Exception], object] | None = None,
) -> Middleware:
    """Says which exceptions callers see. By default, callers of a tool get "The tool NAME
    failed" for every exception that is no `ToolError` and no `McpError`; this middleware
    sets the text.

    Args:
        text: what the caller gets for an exception that is masked.
        show: exceptions whose own text the caller gets, such as `(ValueError,)`.
        on_error: gets each exception that is masked, in place of the log
            `segue.server`.
    """
    if not isinstance(text, str):
        raise TypeError(f"text has to be a str, not {text!r}")
    if on_error is not None:
        _check_callable("on_error", on_error)

    @showing_all()
    async def masked(call: Call, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except _TOLD:
            raise
        except show as error:  # its text is written for the caller
            raise ToolError(str(error) or type(error).__name__) from error
        except Exception as error:
            is_missing = isinstance(error, FileNotFoundError)
            if is_missing and call.method == "resources/read":
                raise  # the caller learns that the resource does not exist
            if on_error is None:
                _log.error("%r failed", call, exc_info=error)
            else:
                on_error(call, error)
            raise ToolError(text) from error

    return masked


_log = logging.getLogger("segue.server")


def retry(
    times: int = 2,
    *,
    on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
    delay: float = 0.1,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Middleware:
    """Runs a handler again that failed before it sent a segment.

    Args:
        sleep: A function for tests that waits a number of seconds.
        times: how often the handler runs again at most.
        on: the exceptions after which the handler runs again.
        delay: the time before the second run, in seconds. It doubles with each run.

    Raises:
        ValueError: times or delay is below 0.
    """
    if times < 0 or delay < 0:
        raise ValueError("times and delay have to be at least 0")

    @showing_all()
    async def retried(call: Call, proceed: Proceed) -> Any:
        for run in range(times):
            try:
                return await proceed()
            except on:
                if call.has_sent or call.context.cancelled:
                    raise
            await sleep(delay * 2**run)
        return await proceed()

    return retried
