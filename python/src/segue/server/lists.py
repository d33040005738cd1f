"""Lists as the middlewares of a server see them: which items a caller sees.

    tools/list ──> middleware ──> middleware ──> the items of the server
    shown names <── some of them <── some of them ──┘  └──> of a mounted one: its own

    tools/call NAME ──> the same, with a list of the one item ──> shown, or unknown

A `Lister` answers the library, which asks before it answers a list and before a request
names an item. It is made only for a list that has middlewares.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from .. import _segue, schema
from . import layers
from .context import Context
from .item import Item, rpc_error
from .mount import inside

if TYPE_CHECKING:
    from .hosting import Hosting
    from .server import Server

__all__ = ["Listed", "Listers"]

Kind = Literal["tool", "resource", "template", "prompt"]
_KINDS: dict[int, Kind] = {
    _segue.ITEM_TOOL: "tool",
    _segue.ITEM_RESOURCE: "resource",
    _segue.ITEM_RESOURCE_TEMPLATE: "template",
    _segue.ITEM_PROMPT: "prompt",
}
_TYPES: dict[layers.Method, int] = {
    "tools/list": _segue.ITEM_TOOL,
    "resources/list": _segue.ITEM_RESOURCE,
    "resources/templates/list": _segue.ITEM_RESOURCE_TEMPLATE,
    "prompts/list": _segue.ITEM_PROMPT,
}


class Listed:
    """An item of a list, as a middleware around the list gets it.

    Attributes:
        name: the name of the tool or prompt, the URI of the resource, or the text of the
            template, as clients see it.
        kind: "tool", "resource", "template" or "prompt".
        told: the item as clients see it in the list, a dict. Changes have no effect.
        function: the function that the item was made of.
    """

    __slots__ = ("_item", "function", "kind", "name", "told")

    def __init__(self, item: Item) -> None:
        self._item = item
        self.name = item.key
        self.kind = _KINDS[item.item]
        self.told = dict(item.describe())
        self.function: Callable[..., Any] = item.function

    def __repr__(self) -> str:
        return f"<segue.Listed {self.kind} {self.name!r}>"


class _ListCall(layers.Call):
    """A list as its middlewares get it."""

    __slots__ = ("_rest",)

    def __init__(
        self,
        lister: _Lister,
        call: _segue.Call,
        context: Context,
        rest: Callable[[], Awaitable[list[Listed]]],
    ) -> None:
        super().__init__(lister, call, b"{}", context)
        self._rest = rest

    async def _handle(self) -> list[Listed]:
        return await self._rest()


async def _everything() -> list[Listed]:
    """Stands for the handler of a list, which has none."""
    return []


class _Lister(Item):
    """Answers the library about one list of a server."""

    item = _segue.ITEM_LIST
    what = "list"

    def __init__(self, method: layers.Method, owner: Server, shows_all: bool) -> None:
        super().__init__(_everything, thread=False, forbid=False)
        self.key = self.method = method
        self.servers = (owner,)
        self.shows_all = shows_all
        self._told = {"method": method}

    def options(self) -> _segue.ItemOptions:
        return {"flags": _segue.LIST_SHOWS_ALL if self.shows_all else 0}

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        return ()

    def given(self, call: _segue.Call, params: bytes) -> dict[str, Any]:
        return {}

    def told(self, error: Exception, is_exposed: bool) -> Exception:
        return rpc_error(error, is_exposed)

    async def _value_async(
        self, call: _segue.Call, params: bytes, context: Context
    ) -> list[Listed]:
        kind, name = _TYPES[self.method], _segue.call_name(call)
        listed = [
            Listed(one)
            for one in self.owner._items.values()
            if one.item == kind and (not name or one.key == name)
        ]
        return await self._shown(self.owner, 0, listed, call, context)

    async def _shown(
        self,
        server: Server,
        depth: int,
        listed: list[Listed],
        call: _segue.Call,
        context: Context,
    ) -> list[Listed]:
        """Runs the middlewares of a server, and inside them those of the servers that are
        mounted in it, each for its own items.

        Args:
            depth: how many servers are around this one.
        """

        async def rest() -> list[Listed]:
            kept = listed
            inner: dict[Server, list[Listed]] = {}
            for one in listed:
                servers = one._item.servers
                if len(servers) > depth + 1:
                    inner.setdefault(servers[depth + 1], []).append(one)
            for child, own in inner.items():
                shown = await self._shown(child, depth + 1, own, call, context)
                hidden = {one.name for one in own} - {one.name for one in shown}
                if hidden:
                    kept = [one for one in kept if one.name not in hidden]
            return list(kept)

        around = server._layers.of[self.method]
        if _segue.call_name(call):
            # asked about one item: only a middleware that may hide it has a say
            around = tuple(one for one in around if not layers.shows_all(one))
        if not around:
            return await rest()
        value = await layers.run(around, _ListCall(self, call, context, rest))
        return _checked(value, {one.name for one in listed}, self.method)

    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        if not self.shows_all:
            names = schema.encode([one.name for one in value])
            _segue.call_set_field(call, "shown", names)
        _segue.call_reply(call)


def _checked(value: Any, names: set[str], method: str) -> list[Listed]:
    """Refuses what a middleware must not return for a list."""
    try:
        shown = list(value)
    except TypeError:
        shown = [value]
    for one in shown:
        if not isinstance(one, Listed) or one.name not in names:
            raise RuntimeError(
                f"a middleware around {method} returns some of the items that "
                f"`await proceed()` returns, not {one!r}"
            )
    return shown


class Listers:
    """What a running server (hosting) tells the library about its lists."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._now: dict[str, _Lister] = {}

    def refresh(self, host: Hosting) -> None:
        """Makes the lists depend on the middlewares that the server has now."""
        for method in _TYPES:
            around = _all_around(self._server, method)
            shows_all = all(map(layers.shows_all, around))
            had = self._now.get(method)
            if had is not None and around and had.shows_all == shows_all:
                continue
            if had is not None:
                host.remove(self._now.pop(method))
            if around:
                made = self._now[method] = _Lister(method, self._server, shows_all)
                host.add(made)


def _all_around(server: Server, method: layers.Method) -> list[layers.Middleware]:
    """Returns the middlewares around a list of a server and of those inside it."""
    return [one for part in inside(server) for one in part._layers.of[method]]
