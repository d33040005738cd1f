"""`segue.Server`: what it serves, by decorators, and how it is run."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .. import _runtime, _segue
from .auth import Peer, principal_hook
from .completion import Complete, Completer
from .hosting import Hosting
from .item import Item
from .listed import Completing, Prompt, Resource
from .pool import Pool
from .serving import Serving
from .stores import OpenStore, Store, StoreLike, store_of
from .tool import Tool, seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import PromptOptions, ResourceOptions, ServeOptions, ToolOptions

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])
_SCOPES = {"private": 0, "public": 1}


class Server:
    """An MCP server: tools, resources and prompts, made of functions.

    It belongs to no event loop: the decorators may be used while it is imported, and it
    may be served several times, in several ways. What is added or removed while it is
    served is told to the clients that listen; that is for one thread at a time, mostly
    that of the loop.

    Args:
        name: told to clients, as are version, title and instructions.
        max_calls: how many calls run at once; beyond, callers are refused (-32603,
            `{"reason": "limit"}`), and tasks that were taken over wait.
        threads: how many plain functions run at once; others wait for a thread.
        store: where tasks are kept: path of a SQLite file, which survives a crash, or
            URL of a Redis server (`redis://`, `rediss://`, `unix://`), which servers may
            share; a `Store` says how as well. None: in memory.
        principal: says who a caller is, by what the connection tells of him; None
            refuses. It is asked for each request, and must be quick. Not with
            `BearerAuth`.
        list_ttl: seconds for which lists stay fresh (2026-07-28).
        list_scope: whether others than who asked may keep them.
        options: further members of `segue_server_options`, by their names in C (limits,
            dialects, keys); durations in milliseconds.
    """

    def __init__(
        self,
        name: str = "segue",
        version: str = "0",
        *,
        title: str | None = None,
        instructions: str | None = None,
        max_calls: int = 16384,
        threads: int = 32,
        store: StoreLike | None = None,
        principal: Callable[[Peer], str | None] | None = None,
        list_ttl: float | None = None,
        list_scope: Literal["private", "public"] = "private",
        options: _segue.ServerOptions | None = None,
    ) -> None:
        if max_calls < 1 or threads < 1:
            raise ValueError("max_calls and threads are at least 1")
        self.name = name
        self.version = version
        self.title = title
        self.instructions = instructions
        self.max_calls = max_calls
        self.store = store_of(store)
        self.principal = principal
        self._list = {"list_ttl_ms": seconds(list_ttl), "list_scope": _SCOPES[list_scope]}
        self._options = options or {}
        self._items: dict[tuple[int, str], Item] = {}
        self._threads = threads
        self._begin()
        _servers.add(self)

    def _begin(self) -> None:
        """What belongs to one process: where it serves, open stores, threads."""
        self._hosts: dict[tuple[Any, ...], Hosting] = {}
        self._closed: weakref.WeakSet[Hosting] = weakref.WeakSet()
        self._stores: weakref.WeakValueDictionary[Store, OpenStore]
        self._stores = weakref.WeakValueDictionary()
        self._pool = Pool(self._threads)

    def __repr__(self) -> str:
        return f"<segue.Server {self.name!r}, {len(self._items)} items>"

    # ---- tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Makes a function a tool, and returns the function.

        The function is async, plain (it then runs on a thread), or a generator of either
        sort: each `yield` is a segment of the result, which a client sees as it comes.
        What is yielded or returned: str, content (`Image`, `Audio`, ...), a list of
        these, a `Result`, or a value that has a form in JSON.

        Its parameters are the arguments: their types are checked, and told to clients as
        JSON Schema with descriptions of `Annotated[int, "..."]`, `msgspec.Meta`,
        `pydantic.Field` or the docstring. One that is annotated with `Context` gets the
        context of the call. A return type that is an object (Struct, dataclass, model,
        TypedDict, dict) makes results structured.

        What it raises becomes a result with `isError` and the message; a `McpError`, and
        any other `segue.Error` but `ToolError`, a JSON-RPC error.

        Args:
            task: may a call become a task, which outlives the connection? "must": callers
                that take no tasks are refused.
            ttl: seconds that an ended task is kept (1 h).
            poll: seconds between looks at a task, told to clients (1 s).
            promote_after: seconds after which a call becomes a task ("may"); 0 = at once.
            restartable: after a crash it is run again; see `Context.resumed`.
            resumable: callers before 2026-07-28 that were cut off may come again
                (SEP-975): after `resume_after` seconds, and within `resume_within` (10
                min), or the call is cancelled.
            unstoppable: cancelling its tasks has no effect.
            incremental: its output comes in pieces; by default, of generators.
            scopes: over HTTP the caller's token needs all of them.
            structured: True: results are structured also where they are no objects, as
                `{"result": value}`. False: they are not.
            input_schema, output_schema: told instead of what the types say.
            thread: False: a plain function runs on the event loop, which it may not
                block.
            forbid_extra: arguments that nobody asked for are an error.
        """
        return self._decorate(function, lambda made: Tool(made, **options))

    def _decorate(self, function: Any, make: Callable[[Any], Item]) -> Any:
        def decorate(made: F) -> F:
            self._add(make(made))
            return made

        return decorate if function is None else decorate(function)

    # ---- resources, prompts, completion

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Makes a function a resource, or a template: `@server.resource("note://{id}")`.

        The variables of a template are the function's parameters. Their values come from
        strangers and may hold anything, "../" too. It returns str, bytes, a
        `ResourceContents`, a list of these, or a value that is JSON then. None, and
        `FileNotFoundError`, mean that there is no such resource.

        Args:
            ttl: seconds for which what was read stays fresh (2026-07-28); `scope` says
                whether others than who asked may keep it.
        """

        return self._decorate(None, lambda made: Resource(made, uri, **options))  # type: ignore[no-any-return]

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Makes a function a prompt, and returns the function.

        Its parameters are the arguments, which are strings on the wire. It returns str (a
        message of the user), a block, a `PromptMessage` (`segue.user`,
        `segue.assistant`), or a list of these.
        """
        return self._decorate(function, lambda made: Prompt(made, **options))

    def completion(self, of: str, argument: str) -> Callable[[Completer], Completer]:
        """Makes a function suggest values of an argument.

        It gets what was typed, and if it takes two parameters a dict of the other
        arguments. See also `Complete`; a Literal and an Enum suggest their values
        themselves.

        Args:
            of: name of a prompt, or the text of a template, that is there already.
            argument: its name.

        Raises:
            ValueError: there is no such prompt or template, or it has no such argument.
        """

        def decorate(function: Completer) -> Completer:
            kinds = (_segue.ITEM_PROMPT, _segue.ITEM_RESOURCE_TEMPLATE)
            item = next(
                (self._items[kind, of] for kind in kinds if (kind, of) in self._items),
                None,
            )
            if not isinstance(item, Completing) or argument not in item.signature.names:
                raise ValueError(f"there is no argument {argument!r} of {of!r}")
            had = item.completes
            item.suggestions.by_name[argument] = Complete(function)
            if not had:
                for host in list(self._hosts.values()):
                    host.remove(item)
                    host.add(item)
            return function

        return decorate

    # ---- items that come and go

    def _add(self, item: Item) -> None:
        key = (item.item, item.key)
        if key in self._items:
            raise ValueError(f"there is a {item.what} {item.key!r} already")
        for host in list(self._hosts.values()):
            host.add(item)
        self._items[key] = item

    def _remove(self, kinds: Sequence[int], name: str) -> None:
        for kind in kinds:
            item = self._items.pop((kind, name), None)
            if item is not None:
                for host in list(self._hosts.values()):
                    host.remove(item)
                return
        raise KeyError(name)

    def remove_tool(self, name: str) -> None:
        """Takes a tool away. Calls that run go on.

        Raises:
            KeyError: there is none.
        """
        self._remove([_segue.ITEM_TOOL], name)

    def remove_resource(self, uri: str) -> None:
        """Takes a resource, or a template, away; as `remove_tool`."""
        self._remove([_segue.ITEM_RESOURCE, _segue.ITEM_RESOURCE_TEMPLATE], uri)

    def remove_prompt(self, name: str) -> None:
        """Takes a prompt away; as `remove_tool`."""
        self._remove([_segue.ITEM_PROMPT], name)

    def resource_updated(self, uri: str) -> None:
        """Tells the clients that subscribed to a resource that it has changed."""
        for host in list(self._hosts.values()):
            _segue.server_resource_updated(host.handle, uri)

    # ---- serving

    def serving(
        self, http: str | int | None = None, **options: Unpack[ServeOptions]
    ) -> Serving:
        """Serves in the running loop, as an async context manager:

            async with server.serving(http="127.0.0.1:0") as serving:
                print(serving.url)
                await serving.wait_closed()

        Several may be open at once; those with the same store share their tasks.

        Args:
            http: "host:port", a port, "unix:/path", "systemd:name" or a URL. Port 0 is
                one that is free. None: standard input and output.
            store: SQLite file or Redis URL of the tasks, if not that of the server.
            path: of the endpoint; "/mcp".
            health_path: GET answers 200 there.
            auth: who may call.
            cert_file, key_file: PEM: TLS.
            client_ca_file: client certificates are asked for, and verified.
            hosts: names that Host may have; "*" = any. Without TLS or auth, a name under
                which the server is known has to be in it (it keeps other pages out).
            origins: pages that may call; "*" = any. `cors` lets browsers read answers.
            drain: seconds that calls may go on at the end.
            options: further members of `segue_listen_options`, by their names in C.
        """
        return Serving(self, http, options)

    async def serve(
        self, http: str | int | None = None, **options: Unpack[ServeOptions]
    ) -> None:
        """Serves until standard input ends, or this is cancelled. As `serving`."""
        async with self.serving(http, **options) as serving:
            await serving.wait_closed()

    def run(self, http: str | int | None = None, **options: Unpack[ServeOptions]) -> None:
        """Serves, in a loop of its own, until SIGINT or SIGTERM: calls that run may end
        within `drain` seconds, a second signal ends at once. As `serving`.

        Over standard input and output it ends with the input, too, and print() goes to
        standard error, so that it does no harm. Over HTTP the URL is printed there.
        """
        from .running import run

        run(self, self.serving(http, **options))

    def _attach(self, transport: _segue.Transport) -> None:
        """Serves the other end of a transport of this loop's runtime."""
        host = self._host(None)
        host.users += 1  # its tasks stay for who comes again, as long as the loop
        _segue.server_attach(host.handle, transport)

    # ---- what the parts ask

    def _server_options(self) -> _segue.ServerOptions:
        told: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "instructions": self.instructions,
            **self._list,
        }
        made = {key: value for key, value in told.items() if value is not None}
        return {**made, **self._options}  # type: ignore[typeddict-item]

    def _principal_hook(self) -> Callable[[_segue.Transport], str | None] | None:
        return None if self.principal is None else principal_hook(self.principal)

    def _host(self, store: Store | None, own: object = None) -> Hosting:
        """The server of C of this loop, for this store; own: one that nobody shares."""
        runtime = _runtime.current()
        wanted = store or self.store
        key = (id(runtime), wanted, id(own) if own else None)
        host = self._hosts.get(key)
        if host is None or host.runtime is not runtime or host.is_closed:
            kept = self._open(wanted)
            host = Hosting(self, runtime, kept.handle if kept else None)
            host.store = kept
            host.own = own
            self._hosts[key] = host
            runtime.before_close(lambda: self._drop(host))
        return host

    def _open(self, store: Store | None) -> OpenStore | None:
        if store is None:
            return None
        kept = self._stores.get(store)
        if kept is None:
            kept = self._stores[store] = OpenStore(store)
        return kept

    async def _end(self, patience: float) -> None:
        """Cancels what still runs anywhere, and waits so many seconds for it."""
        hosts = list(self._hosts.values()) + [
            host for host in self._closed if host.running
        ]
        for host in hosts:
            host.close()
        await asyncio.gather(*[host.cancel(patience) for host in hosts])

    def _forget(self, host: Hosting) -> None:
        """Nobody serves it any more."""
        self._closed.add(host)
        self._drop(host)

    def _drop(self, host: Hosting) -> None:
        host.close()
        for key, one in list(self._hosts.items()):
            if one is host:
                del self._hosts[key]


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _begin_again() -> None:
    """In the child of a fork: threads, stores and hostings are the parent's."""
    for server in list(_servers):
        server._begin()


os.register_at_fork(after_in_child=_begin_again)
