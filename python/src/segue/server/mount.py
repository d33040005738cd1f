"""Servers inside a server: the items of one appear in the other, under a prefix.

    Server "all" ── Mount("weather") ──> Server "weather"
      weather_today  <── a copy ────────   today
      data://weather/now <── a copy ───    data://now

The copy of an item differs in its name or URI, and knows the servers that it passed. An
item that is added to a server or removed there is also added to or removed from the
servers that it is mounted in.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .. import _segue

if TYPE_CHECKING:
    from .item import Item
    from .server import Server

__all__ = ["Mount", "above", "inside"]

_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://)?)(/?)(.*)", re.S)
_NAMED = (_segue.ITEM_TOOL, _segue.ITEM_PROMPT)


class Mount(NamedTuple):
    """A server inside another one.

    Attributes:
        parent: the server that clients see.
        child: the server whose items appear there.
        prefix: what their names begin with; "" = the names stay as they are.
    """

    parent: Server
    child: Server
    prefix: str

    def check(self) -> None:
        """Refuses a prefix or a child that is not possible.

        Raises:
            ValueError: the prefix has other characters than names have, or a server would
                contain itself.
        """
        if self.prefix and not _PREFIX.fullmatch(self.prefix):
            raise ValueError(
                "prefix has to have letters, digits, '_', '.' and '-', and to begin with "
                f"a letter or digit, not {self.prefix!r}"
            )
        if self.parent in inside(self.child):
            raise ValueError(
                f"the server {self.parent.name!r} would contain itself: "
                f"{self.child.name!r} is the same server, or contains it"
            )

    def key(self, kind: int, key: str) -> str:
        """Returns the name or URI of an item in the parent.

        Raises:
            ValueError: the URI has no scheme, so it cannot take a prefix.
        """
        if not self.prefix:
            return key
        if kind in _NAMED:
            return f"{self.prefix}_{key}"
        found = _URI.fullmatch(key)
        if found is None:
            raise ValueError(f"{key!r} has no scheme, so it cannot take a prefix")
        scheme, _, rest = found.groups()
        return f"{scheme}{self.prefix}/{rest}"

    def copy(self, item: Item) -> Item:
        """Returns the item as the parent has it."""
        made = copy.copy(item)
        made.key = self.key(item.item, item.key)
        member = {
            _segue.ITEM_RESOURCE: "uri",
            _segue.ITEM_RESOURCE_TEMPLATE: "uriTemplate",
        }
        made._told = {**item._told, member.get(item.item, "name"): made.key}
        made.servers = (self.parent, *item.servers)
        return made


def inside(server: Server) -> Iterator[Server]:
    """Returns a server, and all servers that are mounted in it."""
    yield server
    for mount in server._mounts:
        yield from inside(mount.child)


def above(server: Server) -> Iterator[Server]:
    """Returns a server, and all servers that it is mounted in."""
    yield server
    for mount in server._parents:
        yield from above(mount.parent)
