"""Where servers keep their tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, Union

from .. import _segue
from .tool import seconds

__all__ = ["OpenStore", "Store", "StoreLike", "store_of"]

_DURABILITY = {"normal": 0, "full": 1}
_REDIS = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True)
class Store:
    """Where a server keeps its tasks, and how: `segue.Server(store=segue.Store(...))`.

    The server opens it when it serves, and closes it afterwards. Servers that share tasks
    name the same file or URL.

    Attributes:
        at: path of a SQLite file, which survives a crash, or URL of a Redis server
            (`redis://`, `rediss://`, `unix://`), which servers may share. None: memory.
        durability: SQLite: "full" survives the loss of power, "normal" the loss of the
            process.
        busy_timeout: SQLite: seconds that another process may hold the file (5).
        timeout: Redis: seconds of a call, connecting and repeating in it (5).
        lease: Redis: seconds of silence after which others take over (10).
        max_bytes: memory: payloads that are kept at most (256 MiB).
        max_principal_operations: kept of one principal at most; no bound by default.
        max_principal_bytes: the same in bytes, with their logs.
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
            raise ValueError("store is a file or the URL of a Redis server, not ''")
        if self.durability not in _DURABILITY:
            raise ValueError(f'durability is "normal" or "full", not {self.durability!r}')

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
        return _segue.store_sqlite(at, options)


# What `store=` takes.
StoreLike = Union[str, "os.PathLike[str]", Store]


def store_of(store: StoreLike | None) -> Store | None:
    """A path or URL as the store that it names."""
    return store if store is None or isinstance(store, Store) else Store(os.fspath(store))


class OpenStore:
    """A store that is open; the hostings that use it hold it."""

    def __init__(self, store: Store) -> None:
        self.handle = store._open()
