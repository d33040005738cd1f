"""Events: what the library does, for logs and traces.

    stop = segue.observe(lambda event: print(event.name, event.fields))
    segue.log_events("json")                         # lines of JSON on standard error
    segue.log_events(logging.getLogger("my.mcp"))    # records with `extra` fields

`core/docs/logs-and-traces.md` lists the events and their fields. They are those of all
servers and sessions of the process. No event has a result, a token or a header.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from . import _runtime

__all__ = ["Event", "Level", "log_events", "observe"]

Level = Literal["debug", "info", "warning", "error"]

_LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
_NUMBERS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
# A text cannot have this, because its quotation marks are escaped.
_ARGUMENTS = '"arguments":'


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        name: such as "call_ended".
        level: "debug", "info", "warning" or "error".
        time: the time in RFC 3339, in UTC.
        fields: the other fields, by name.
    """

    name: str
    level: Level
    time: str
    fields: dict[str, str | int]


@dataclass(frozen=True, eq=False)
class _Observer:
    """One observer. `take` gets the number of the level and the line of JSON."""

    take: Callable[[int, str], object]
    level: int
    max_argument_bytes: int


_observers: list[_Observer] = []
_lock = threading.Lock()


def _cut_arguments(line: str, most: int) -> str:
    """Returns the line with at most this number of bytes of the arguments.

    The runtime has the highest limit of all observers. So a line can have more than an
    observer asked for.
    """
    if _ARGUMENTS not in line:
        return line
    fields = json.loads(line)
    if most > 0:
        cut = fields["arguments"].encode()[:most]
        fields["arguments"] = cut.decode(errors="ignore")
    else:
        del fields["arguments"]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _deliver(kind: int, level: int, line: str, _: None) -> None:
    for observer in tuple(_observers):
        if level >= observer.level:
            observer.take(level, _cut_arguments(line, observer.max_argument_bytes))


def _apply() -> None:
    if not _observers:
        _runtime.observe(None, {})
        return
    _runtime.observe(
        _deliver,
        {
            "level": min(one.level for one in _observers),
            "max_argument_bytes": max(one.max_argument_bytes for one in _observers),
        },
    )


def _add(
    take: Callable[[int, str], object], level: Level, max_argument_bytes: int = 0
) -> Callable[[], None]:
    if level not in _LEVELS:
        raise ValueError(f"level has to be one of {', '.join(_LEVELS)}, not {level!r}")
    if not 0 <= max_argument_bytes < 2**31:
        raise ValueError(
            f"max_argument_bytes must be from 0 to 2**31 - 1, not {max_argument_bytes}"
        )
    made = _Observer(take, _LEVELS.index(level), max_argument_bytes)
    with _lock:
        _observers.append(made)
        _apply()

    def stop() -> None:
        with _lock:
            if made in _observers:
                _observers.remove(made)
                _apply()

    return stop


def _read(line: str) -> Event:
    fields: dict[str, Any] = json.loads(line)
    return Event(fields.pop("event"), fields.pop("level"), fields.pop("time"), fields)


def observe(
    callback: Callable[[Event], object],
    *,
    level: Level = "debug",
    max_argument_bytes: int = 0,
) -> Callable[[], None]:
    """Calls a function with each event from now on. Returns a function that ends this.

    The callback runs on the thread of the event loop whose server or session the event
    is about, and must not block. At most 1024 events wait for it; further events are
    dropped, and the event `events_dropped` has their number.

    Args:
        callback: gets an `Event`.
        level: the lowest level of the events.
        max_argument_bytes: how much of the arguments of a call the event `call_started`
            has; 0 = nothing. Arguments can be secret.
    """
    return _add(lambda _, line: callback(_read(line)), level, max_argument_bytes)


def log_events(
    to: Literal["json"] | logging.Logger = "json",
    *,
    level: Level = "info",
    file: TextIO | None = None,
) -> Callable[[], None]:
    """Logs each event from now on. Returns a function that ends this.

    Args:
        to: "json" writes one line of JSON for each event. A logger gets a record for each
            event: the message is the name of the event, and the other fields are
            attributes of the record, such as `record.segue_duration_us`.
        level: the lowest level of the events.
        file: where the lines go; default: standard error.
    """
    if to == "json":

        def write(_: int, line: str) -> None:
            target = file or sys.stderr
            target.write(line + "\n")
            target.flush()

        return _add(write, level)
    if not isinstance(to, logging.Logger):
        raise TypeError(f'to has to be "json" or a logging.Logger, not {to!r}')
    logger = to

    def record(number: int, line: str) -> None:
        event = _read(line)
        extra = {f"segue_{name}": value for name, value in event.fields.items()}
        logger.log(_NUMBERS[number], event.name, extra=extra)

    return _add(record, level)
