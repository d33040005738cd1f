"""The stores in which servers keep their tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, Union

from .. import _segue
from .tool import seconds

__all__ = ["OpenStore", "Store", "StoreLike", "store_of"]

_DURABILITY = {"normal": 0, "full": 1}
_REDIS = ("redis://", "rediss://", "unix://")
_POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Store:
    """Describes a store for a server's tasks: `segue.Server(store=segue.Store(...))`.

    The server opens the store when it is served, and closes it afterwards. Servers share
    tasks by naming the same file or URL.

    Attributes:
        at: the path of a SQLite file (which survives a crash), or the URL of a Redis
            server (`redis://`, `rediss://`, `unix://`) or of a PostgreSQL database
            (`postgresql://`), which servers may share. None: memory.
        durability: SQLite: "full" survives the loss of power, "normal" the loss of the
            process. PostgreSQL: "full" waits until the server has synced a commit to its
            disk, "normal" uses the setting of the server.
        busy_timeout: SQLite: how long to wait for another process that locks the file, in
            seconds; default 5.
        timeout: Redis, PostgreSQL: limit for one call, including reconnecting and
            repeating, in seconds; default 5.
        lease: Redis, PostgreSQL: after this many seconds of silence of a server, other
            servers take over its tasks; default 10.
        max_bytes: memory: maximum size of all payloads; default 256 MiB.
        max_principal_operations: maximum number of stored operations per principal; no
            limit by default.
        max_principal_bytes: maximum size of one principal's operations and their logs; no
            limit by default.
    """

    at: str | os.PathLike[str] | None = None
    durability: Literal["normal", "full"] = "normal"
    busy_timeout: float | None = None
    timeout: float | None = None
    lease: float | None = None
    max_bytes: int | None = None
    max_principal_operations: int | None = None
    max_principal_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.at is not None:
            object.__setattr__(self, "at", os.fspath(self.at))
        if self.at == "":
            raise ValueError("store has to be a file or the URL of a server, not ''")
        if self.durability not in _DURABILITY:
            raise ValueError(
                f'durability has to be "normal" or "full", not {self.durability!r}'
            )

    def _open(self) -> _segue.Store:
        options: _segue.StoreOptions = {
            "durability": _DURABILITY[self.durability],
            "busy_timeout_ms": seconds(self.busy_timeout),
            "timeout_ms": seconds(self.timeout),
            "lease_ms": seconds(self.lease),
            "max_bytes": self.max_bytes,
            "max_principal_operations": self.max_principal_operations,
            "max_principal_bytes": self.max_principal_bytes,
        }
        if self.at is None:
            return _segue.store_memory(options)
        at = os.fspath(self.at)
        if at.startswith(_REDIS):
            return _segue.store_redis(at, options)
        if at.startswith(_POSTGRES):
            return _segue.store_postgres(at, options)
        return _segue.store_sqlite(at, options)


# The values that `store=` accepts.
StoreLike = Union[str, "os.PathLike[str]", Store]


def store_of(store: StoreLike | None) -> Store | None:
    """Makes a Store from a path or URL."""
    return store if store is None or isinstance(store, Store) else Store(os.fspath(store))


class OpenStore:
    """An open store. It stays open while a native server (hosting) has a reference to
    it."""

    def __init__(self, store: Store) -> None:
        self.handle = store._open()
