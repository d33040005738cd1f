"""`segue.Server`: the items of a server, which decorators add, and the ways to serve
them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .. import _runtime, _segue, errors
from .auth import Peer, principal_hook
from .completion import Complete, Completer
from .hosting import Hosting
from .item import Item
from .layers import Layers, Method, Middleware
from .lifespan import Life, Lifespan, Lives
from .listed import Completing, Prompt, Resource
from .mount import Mount, above, inside
from .options import check_item_options
from .pool import Pool
from .running import let_serve, run
from .serving import Serving
from .stores import OpenStore, Store, StoreLike, store_of
from .tool import Tool, seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .asgi import Asgi, PrincipalOf
    from .options import (
        AsgiOptions,
        PromptOptions,
        ResourceOptions,
        ServeOptions,
        ToolOptions,
    )

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Middleware)
_SCOPES = {"private": 0, "public": 1}


class Server:
    """An MCP server: tools, resources and prompts, made of functions.

    A server belongs to no event loop: its decorators may run at import time, and the
    server may be served several times, in several ways. When an item is added or removed,
    the clients that subscribed to changes are notified. Only one thread at a time may add
    or remove items while the server is served, usually the loop's thread.

    Args:
        name: the server's name. Clients see the name, the version, the title and the
            instructions.
        max_calls: the maximum number of running calls. Further callers are refused
            (-32603, `{"reason": "limit"}`). Tasks taken over from another server wait.
        threads: the maximum number of plain functions that run at once. Further functions
            wait for a thread.
        store: where tasks are stored: the path of a SQLite file (which survives a crash),
            the URL of a Redis server (`redis://`, `rediss://`, `unix://`) or of a
            PostgreSQL database (`postgresql://`), which servers may share, or a `Store`
            with further options. None: in memory.
        principal: the name of all callers, for a server with one user; or a function that
            returns the principal of a caller, from data of the connection. With None the
            caller is anonymous. To refuse the caller, the function raises an exception.
            The function runs for each request and must be quick. It cannot be combined
            with `BearerAuth`.
        list_ttl: how long clients may cache lists, in seconds (2026-07-28).
        list_scope: whether shared caches may use a cached list for other callers, too.
        lifespan: a function that returns an async context manager, such as one of
            `contextlib.asynccontextmanager`. It gets the server. The context manager is
            entered before the first call and left after the last one, once in each event
            loop. Handlers get its value as `Context.lifespan`.
        expose_errors: True = callers get the texts of all exceptions. By default callers
            only learn that the tool failed. `ToolError` and `McpError` are meant for
            callers, who always get their texts.
        structured: True = the results of tools are structured when they are text, too
            (`-> str`), as with FastMCP. False = no result is structured. The option of a
            tool comes first.
        options: further members of `segue_server_options`, by their names in C (limits,
            dialects, keys); durations in milliseconds.

    Attributes:
        dependency_overrides: functions in place of those of `Depends`, by the function
            that is replaced; for tests.
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
        principal: str | Callable[[Peer], str | None] | None = None,
        list_ttl: float | None = None,
        list_scope: Literal["private", "public"] = "private",
        lifespan: Lifespan | None = None,
        expose_errors: bool = False,
        structured: bool | None = None,
        options: _segue.ServerOptions | None = None,
    ) -> None:
        if not isinstance(name, str) or not isinstance(version, str):
            raise TypeError(
                f"the name and the version are str, not {name!r} and {version!r}"
            )
        if principal == "":
            raise ValueError(
                "principal has to be a name that is not empty, or a function"
            )
        if max_calls < 1 or threads < 1:
            raise ValueError("max_calls and threads have to be at least 1")
        self.name = name
        self.version = version
        self.title = title
        self.instructions = instructions
        self.max_calls = max_calls
        self.store = store_of(store)
        self.principal = principal
        self.lifespan = lifespan
        self.expose_errors = expose_errors
        self.structured = structured
        self._list = {"list_ttl_ms": seconds(list_ttl), "list_scope": _SCOPES[list_scope]}
        self._options = options or {}
        _segue.server_check(self._server_options())
        self._items: dict[tuple[int, str], Item] = {}
        self._threads = threads
        self._layers = Layers()
        self._mounts: list[Mount] = []
        self._parents: list[Mount] = []
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._begin()
        _servers.add(self)

    def _begin(self) -> None:
        """Makes the state that belongs to one process: native servers (hostings), open
        stores, threads.
        """
        self._hosts: dict[tuple[Any, ...], Hosting] = {}
        self._closed: weakref.WeakSet[Hosting] = weakref.WeakSet()
        self._stores: weakref.WeakValueDictionary[Store, OpenStore]
        self._stores = weakref.WeakValueDictionary()
        self._pool = Pool(self._threads)
        self._lives: dict[int, Life] = {}

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
        kind. Each `yield` of a generator sends a segment of the result, which a client
        receives at once. Values may be str, content (`Image`, `Audio`, ...), a list of
        these, a `Result`, or a value that JSON can represent.

        The parameters of the function are the arguments of the tool. The package checks
        their types, and clients see the types as JSON Schema, with descriptions from
        `Annotated[int, "..."]`, `msgspec.Meta`, `pydantic.Field` or the docstring. A
        parameter annotated with `Context` gets the context of the call. Results are
        structured if the return type is declared, unless it is text or content. An object
        (Struct, dataclass, model, TypedDict, dict) is sent as it is, any other value,
        such as an int or a list of models, as `{"result": value}`.

        A `ToolError` becomes a result with `isError` and its message. A `McpError`
        becomes a JSON-RPC error. Any other exception, also another `segue.Error`, becomes
        a result with `isError` and a general text, and its traceback goes to the log
        `segue.server`.

        Args:
            task: whether a call may become a task, which outlives the connection. With
                "must", callers that do not support tasks are refused.
            ttl: how long a task lives from its creation, in seconds; default 1 h. A task
                that still runs then fails, so a longer tool needs a larger one.
            poll: how often clients should ask for the status of a task, in seconds;
                default 1 s.
            promote_after: seconds after which a call becomes a task ("may"); 0 = at once.
            restartable: True = tasks of this tool are run again after a crash; see
                `Context.resumed`.
            resumable: True = callers before 2026-07-28 may come back after a lost
                connection (SEP-975). A caller waits at least `resume_after` seconds. A
                call whose caller does not come back within `resume_within` seconds
                (default 10 min) is cancelled.
            unstoppable: True = cancelling a task of this tool has no effect.
            stored: True = plain calls are in the store, too. Such a call continues when
                the caller's connection is lost. After a crash it runs again if the tool
                is `restartable`.
            incremental: True = the output is sent in segments; the default for
                generators.
            scopes: over HTTP the caller's token needs all of these scopes.
            structured: True: text is structured, too. False: no result is structured.
            input_schema, output_schema: the schemas that clients see, instead of the
                schemas of the types.
            thread: False = a plain function runs on the event loop and must not block.
            forbid_extra: whether unknown arguments are an error. Default: True, except
                for a function with `**kwargs`, which gets the unknown arguments, and for
                an `input_schema`, which says so itself (`additionalProperties: false`).
                False: unknown arguments are ignored.
        """
        return self._decorate(
            function,
            lambda made: Tool(made, structured_default=self.structured, **options),
            "tool",
            options,
        )

    def _decorate(
        self, function: Any, make: Callable[[Any], Item], what: str, options: Any
    ) -> Any:
        check_item_options(what, options)

        def decorate(made: F) -> F:
            item = make(made)
            item.check()
            self._add(item)
            return made

        if function is None:
            return decorate
        if not callable(function):
            raise TypeError(
                f"a decorator of a server takes its options by name, not {function!r}: "
                f"write name={function!r}"
            )
        return decorate(function)

    # ---- resources, prompts, completion

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Makes a function a resource, or a template: `@server.resource("note://{id}")`.

        The variables of a template are the function's parameters. Clients choose the
        values of the variables, so a value may contain anything, even "../". The function
        returns str, bytes, a `ResourceContents`, a list of these, or a value that is sent
        as JSON. Returning None, or raising `FileNotFoundError`, means that the resource
        does not exist.

        A long text may come in pieces: the function is a generator, of either kind, or
        uses `Context.send`. All str values form one text; a `ResourceContents` is a
        separate item. Clients of revisions before 2026-07-28 that allow pieces receive
        each piece at once. All other clients receive the whole text.

        Args:
            ttl: how long a read result stays fresh, in seconds (2026-07-28). `scope` says
                whether shared caches may keep the result for other callers, too.
        """

        if not isinstance(uri, str):
            raise TypeError(
                "a resource needs its URI, or its template: write "
                '@server.resource("data://notes"), not @server.resource'
            )
        return self._decorate(  # type: ignore[no-any-return]
            None, lambda made: Resource(made, uri, **options), "resource", options
        )

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Makes a function a prompt, and returns the function.

        The parameters of the function are the arguments of the prompt, which are strings
        in the protocol. The function returns str (a message of the user), a block, a
        `PromptMessage` (`segue.user`, `segue.assistant`), or a list of these.

        Args:
            forbid_extra: whether unknown arguments are an error, except for a function
                with `**kwargs`, which gets them. False: they are ignored.
        """
        return self._decorate(
            function, lambda made: Prompt(made, **options), "prompt", options
        )

    def completion(self, of: str, argument: str) -> Callable[[Completer], Completer]:
        """Makes a function suggest values for an argument.

        The function gets the typed text and, if it takes two parameters, a dict of the
        other arguments. See also `Complete`. The values of a Literal or an Enum are
        suggested by default.

        Args:
            of: the name of an existing prompt, or the text of an existing template.
            argument: the argument's name.

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
                raise ValueError(f"{of!r} has no argument {argument!r}")
            self._check_own(item)
            had = item.completes
            item.suggestions.by_name[argument] = Complete(function)
            if not had:
                self._add_again(item)
            return function

        return decorate

    # ---- middleware

    @overload
    def use(self, function: M, /) -> M: ...
    @overload
    def use(self, function: M, /, *, methods: Iterable[Method]) -> M: ...
    @overload
    def use(self, /, *, methods: Iterable[Method]) -> Callable[[M], M]: ...

    def use(
        self, function: Any = None, /, *, methods: Iterable[Method] | None = None
    ) -> Any:
        """Puts a middleware around the calls of all items, around lists or around
        completions, and returns the middleware.

            @server.use
            async def timed(call: segue.Call, proceed: segue.Proceed):
                begin = time.monotonic()
                try:
                    return await proceed()
                finally:
                    print(call.method, call.name, time.monotonic() - begin)

        `await proceed()` runs the rest: the next middleware, or the handler. It returns
        the value that the handler returned, and raises what the handler raised, also if
        the arguments do not fit. The middleware may return another value, raise another
        exception, not proceed, or proceed again. The middleware that was added first is
        the outermost.

        Segments go to the client while `proceed` runs. `Call.on_segment` changes them.

        Around a list, `proceed` returns a list of `segue.Listed`, and the middleware
        returns those that the caller sees:

            @server.use(methods=["tools/list"])
            async def for_admins(call: segue.Call, proceed: segue.Proceed):
                tools = await proceed()
                if call.context.principal == "admin":
                    return tools
                return [one for one in tools if not one.name.startswith("admin_")]

        The same middleware decides about requests that name an item: it then gets a list
        of this one item, and `Call.name` is its name. A hidden item is answered as an
        unknown one. So decide about each item by itself. Around a completion, `proceed`
        returns the suggested values.

        Args:
            function: an async function of a `Call` and a `Proceed`; see
                `segue.middleware` for some that are ready.
            methods: some of "tools/call", "resources/read", "prompts/get",
                "completion/complete", "tools/list", "resources/list",
                "resources/templates/list", "prompts/list". Default: the first three.
                Those of `segue.middleware`, except `limit_rate`, go around all of them.
        """
        if function is None:
            return lambda made: self.use(made, methods=methods or ())
        self._layers.add(function, methods)
        self._refresh_lists()
        return function

    def _refresh_lists(self) -> None:
        """Makes the lists depend on the middlewares of now, here and where this server is
        mounted."""
        for server in above(self):
            for host in list(server._hosts.values()):
                host.refresh_lists()

    # ---- adding and removing items

    def _add(self, item: Item) -> None:
        item.servers = (self,)
        self._check_new([item])
        self._insert(item)

    def _check_new(self, items: Sequence[Item]) -> None:
        """Refuses items that this server, or a server that it is mounted in, has."""
        for item in items:
            had = self._items.get((item.item, item.key))
            if had is not None:
                owner = "" if had.owner is self else f", of the server {had.owner.name!r}"
                raise ValueError(
                    f"the server {self.name!r} already has a {item.what} {item.key!r}"
                    f"{owner}"
                )
        for mount in self._parents:
            mount.parent._check_new([mount.copy(item) for item in items])

    def _insert(self, item: Item) -> None:
        """Adds an item here, and where this server is mounted."""
        for host in list(self._hosts.values()):
            host.add(item)
        self._items[item.item, item.key] = item
        for mount in self._parents:
            mount.parent._insert(mount.copy(item))

    def _check_own(self, item: Item) -> None:
        if item.owner is not self:
            raise ValueError(
                f"the {item.what} {item.key!r} belongs to the server "
                f"{item.owner.name!r}: change it there"
            )

    def _remove(self, kinds: Sequence[int], name: str) -> None:
        for kind in kinds:
            item = self._items.get((kind, name))
            if item is not None:
                self._check_own(item)
                self._drop_item(kind, name)
                return
        what = {
            _segue.ITEM_TOOL: "tool",
            _segue.ITEM_RESOURCE: "resource",
            _segue.ITEM_PROMPT: "prompt",
        }[kinds[0]]
        raise KeyError(f"the server {self.name!r} has no {what} {name!r}")

    def _drop_item(self, kind: int, name: str) -> None:
        """Removes an item here, and where this server is mounted."""
        item = self._items.pop((kind, name), None)
        if item is None:
            return
        for host in list(self._hosts.values()):
            host.remove(item)
        for mount in self._parents:
            mount.parent._drop_item(kind, mount.key(kind, name))

    def _add_again(self, item: Item) -> None:
        """Reports that an item now suggests values for its arguments."""
        for host in list(self._hosts.values()):
            host.remove(item)
            host.add(item)
        for mount in self._parents:
            key = (item.item, mount.key(item.item, item.key))
            mount.parent._add_again(mount.parent._items[key])

    def remove_tool(self, name: str) -> None:
        """Removes a tool. Running calls continue.

        Raises:
            KeyError: there is no such tool.
        """
        self._remove([_segue.ITEM_TOOL], name)

    def remove_resource(self, uri: str) -> None:
        """Removes a resource or a template; see `remove_tool`."""
        self._remove([_segue.ITEM_RESOURCE, _segue.ITEM_RESOURCE_TEMPLATE], uri)

    def remove_prompt(self, name: str) -> None:
        """Removes a prompt; see `remove_tool`."""
        self._remove([_segue.ITEM_PROMPT], name)

    def resource_updated(self, uri: str) -> None:
        """Notifies the clients that subscribed to a resource that the resource has
        changed.
        """
        for host in list(self._hosts.values()):
            _segue.server_resource_updated(host.handle, uri)
        for mount in self._parents:
            mount.parent.resource_updated(mount.key(_segue.ITEM_RESOURCE, uri))

    # ---- servers inside this one

    def mount(self, other: Server, prefix: str = "") -> None:
        """Adds the items of another server to this one. `segue.Remote` is a server of
        another process or machine.

            app.mount(weather, prefix="weather")
            app.mount(segue.Remote("https://example.com/mcp"), prefix="example")

        The tool or prompt `today` of the other server is `weather_today` here, and the
        resource or template `data://now` is `data://weather/now`. Items that are added to
        the other server later, or removed there, appear and disappear here, too, and
        clients are notified. The middlewares of this server are around those of the other
        one, which still hold for its items, as do its lifespan, its `expose_errors` and
        its `dependency_overrides`. Its store, its principals and its limits do not hold
        here. Handlers and middlewares see the names that the client has used. The other
        server may also be served by itself, and be mounted several times.

        Args:
            prefix: letters, digits, "_", "." and "-"; "" = the names stay as they are.

        Raises:
            ValueError: both servers have an item of the same name or URI, the server
                would contain itself, or the prefix is invalid. Nothing is added then.
            RuntimeError: the other server has a lifespan, and this one is served already.
        """
        if not isinstance(other, Server):
            raise TypeError(
                f"mount takes a segue.Server, not {other!r}; segue.Remote makes one of a "
                "URL or a command"
            )
        mount = Mount(self, other, prefix)
        mount.check()
        if any(one.lifespan for one in inside(other)) and any(
            one._hosts for one in above(self)
        ):
            raise RuntimeError(
                f"the server {other.name!r} has a lifespan, which begins when serving "
                f"begins: mount it before {self.name!r} is served"
            )
        items = [mount.copy(item) for item in other._items.values()]
        self._check_new(items)
        self._mounts.append(mount)
        other._parents.append(mount)
        self._refresh_lists()  # before the items, so that none is shown too early
        try:
            for item in items:
                self._insert(item)
        except BaseException:
            self._unmount(mount)
            raise

    def unmount(self, other: Server) -> None:
        """Removes the items of a server that was mounted here. Running calls continue.

        Raises:
            KeyError: the server is not mounted here.
        """
        found = [one for one in self._mounts if one.child is other]
        if not found:
            name = getattr(other, "name", other)
            raise KeyError(f"{name!r} is not mounted in the server {self.name!r}")
        for mount in found:
            self._unmount(mount)

    def _unmount(self, mount: Mount) -> None:
        self._mounts.remove(mount)
        mount.child._parents.remove(mount)
        for kind, name in list(mount.child._items):
            self._drop_item(kind, mount.key(kind, name))
        self._refresh_lists()

    # ---- serving

    def serving(
        self, http: str | int | None = None, **options: Unpack[ServeOptions]
    ) -> Serving:
        """Serves in the running loop, as an async context manager:

            async with server.serving(http="127.0.0.1:0") as serving:
                print(serving.url)
                await serving.wait_closed()

        Several servings may be open at once. Servings with the same store share their
        tasks.

        Args:
            http: "host:port", a port, "unix:/path", "systemd:name" or a URL. Port 0 = a
                free port. None: standard input and output.
            store: where tasks are stored; default: the store of the server.
            path: the path of the endpoint; default "/mcp".
            health_path: a path where GET answers 200.
            metrics_path: a path where GET answers with the metrics, in the text format of
                Prometheus. Only callers on this machine and callers with a name get them.
            board_path: the path of the task board, a web page, for the same callers.
            board_read_only: the board changes nothing.
            board_redact: the board hides what clients and tools have said.
            board_token: a secret of at least 16 bytes without which nobody may use the
                board; the page takes it from its URL: `/board/#token=...`.
            auth: a `BearerAuth` that checks the token of every caller.
            tokens_file: a file with the tokens of callers: a line has the name of a
                principal, a blank, and the SHA-256 of its token.
            cert_file, key_file: PEM files of the certificate and key for TLS.
            client_ca_file: a PEM file of certificate authorities. With this option,
                client certificates are requested and verified.
            hosts: the accepted values of the Host header; "*" = any. Without TLS and
                auth, every host name of the server must be listed, which protects against
                DNS rebinding by web pages.
            origins: the origins of web pages that may call; "*" = any. `cors` lets
                browsers read answers.
            drain: how long running calls may continue at the end, and how long clients
                may come back for their answers, at most, in seconds; default 10. The end
                comes earlier when no call runs and no client is expected. A client that
                is away is expected for its poll interval and 1 s more.
            options: further members of `segue_listen_options`, by their names in C.
        """
        let_serve(self)
        return Serving(self, http, options)

    def asgi(
        self, *, principal: PrincipalOf | None = None, **options: Unpack[AsgiOptions]
    ) -> Asgi:
        """Returns the server as an ASGI 3 application, for an app that has an HTTP
        server already:

            mcp = server.asgi()
            app = FastAPI(lifespan=mcp.lifespan)
            app.mount("/mcp", mcp)

        Alone it runs as `uvicorn module:mcp`. Sessions, streams, limits and the rules for
        Host, Origin and tokens are those of `serving`; the address at which the HTTP
        server got the request counts as the address of the listener.

        Args:
            principal: a function, plain or async, that gets the scope of a request and
                returns the name of its caller, or None. Default: if the host app has
                authenticated the user of the scope (`scope["user"].is_authenticated`),
                its `identity` or else its `username`. A caller that is found so needs no
                token, and the `principal` of the server does not run.
            path: the path of the endpoint below the place where the app is mounted;
                default: every path.
            store, health_path, metrics_path, board_path, board_read_only, board_redact,
                board_token, auth, tokens_file, hosts, origins, cors, drain, options: as
                in `serving`.
                With `auth`, name its `resource`, and mount the application also at
                "/.well-known/oauth-protected-resource".
        """
        from .asgi import Asgi

        return Asgi(self, principal, options)

    async def serve(
        self, http: str | int | None = None, **options: Unpack[ServeOptions]
    ) -> None:
        """Serves until standard input ends or this coroutine is cancelled. Takes the
        arguments of `serving`."""
        async with self.serving(http, **options) as serving:
            await serving.wait_closed()

    def run(
        self,
        http: str | int | None = None,
        *,
        log: Literal["json"] | logging.Logger | None = None,
        **options: Unpack[ServeOptions],
    ) -> None:
        """Serves, in an event loop of its own, until SIGINT or SIGTERM. After the signal,
        running calls may end within `drain` seconds. A second signal ends the server at
        once.

        Over standard input and output the server also ends when the input ends. While the
        server runs, print() writes to standard error, because it would damage the
        messages. Over HTTP the URL is printed to standard error.

        Args:
            http: as in `serving`, like all options.
            log: "json" logs the events of the process to standard error; or a logger, as
                in `segue.log_events`.
        """
        serving = self.serving(http, **options)
        if log is None:
            run(self, serving)
            return
        from ..events import log_events

        stop = log_events(log)
        try:
            run(self, serving)
        finally:
            stop()

    def metrics(self) -> str:
        """Returns the metrics of this server in the text format of Prometheus, version
        0.0.4, for an app that serves them itself; "" while nothing is served. `serving`
        has `metrics_path`, which needs no code.

        Raises:
            StateError: The server is served with several stores, or both over HTTP and
                over standard input, or in several event loops. Each then has metrics of
                its own: use `metrics_path`.
        """
        hosts = [host for host in self._hosts.values() if not host.is_closed]
        if len(hosts) > 1:
            raise errors.StateError(
                f"the server {self.name!r} is served in {len(hosts)} ways that share no "
                "tasks, and each has metrics of its own: use metrics_path="
            )
        return _segue.server_metrics(hosts[0].handle) if hosts else ""

    async def _attach(self, transport: _segue.Transport) -> None:
        """Serves the client at the other end of a transport. The transport must belong to
        the runtime of the running loop. The lifespan then lasts until the loop ends, as
        the tasks of the server do.
        """
        await self._all_lives().enter()
        host = self._host(None)
        # counts the transport as a user of the native server (hosting), so that the
        # native server and its tasks stay when the transport ends
        host.users += 1
        _segue.server_attach(host.handle, transport)

    # ---- for the other parts of the server

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

    def _principal_hook(
        self, has_one_caller: bool
    ) -> Callable[[_segue.Transport], str | None] | None:
        """Returns the function that names the callers of a native server (hosting).

        Args:
            has_one_caller: True = it serves standard input and output. Its caller may
                list tasks also without a name.
        """
        name = self.principal
        if callable(name):
            return principal_hook(name)
        return (lambda _: name) if name is not None or has_one_caller else None

    def _all_lives(self) -> Lives:
        """Returns the lifespans of this server and of those that are mounted in it."""
        servers = dict.fromkeys(inside(self))
        found = [one._life() for one in servers]
        return Lives([life for life in found if life is not None])

    def _life(self) -> Life | None:
        """Returns the lifespan of this server in the running event loop."""
        if self.lifespan is None:
            return None
        runtime = _runtime.current()
        life = self._lives.get(id(runtime))
        if life is None:
            life = self._lives[id(runtime)] = Life(self, self.lifespan)
            runtime.before_close(lambda: self._lives.pop(id(runtime), None))
        return life

    def _host(self, store: Store | None, own: object = None) -> Hosting:
        """Returns the native server (hosting) of this event loop for the store. With an
        object `own`, only callers with the same object share it.
        """
        runtime = _runtime.current()
        wanted = store or self.store
        key = (id(runtime), wanted, id(own) if own else None)
        host = self._hosts.get(key)
        if host is None or host.runtime is not runtime or host.is_closed:
            kept = self._open(wanted)
            host = Hosting(self, runtime, kept.handle if kept else None, own)
            host.store = kept
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
        """Cancels the calls that still run, in all native servers (hostings), and waits
        up to `patience` seconds for their end.
        """
        hosts = list(self._hosts.values()) + [
            host for host in self._closed if host.running
        ]
        for host in hosts:
            host.close()
        await asyncio.gather(*[host.cancel(patience) for host in hosts])

    def _forget(self, host: Hosting) -> None:
        """Removes a native server (hosting) from the list. Called when the last transport
        that it serves has ended.
        """
        self._closed.add(host)
        self._drop(host)

    def _drop(self, host: Hosting) -> None:
        host.close()
        for key, one in list(self._hosts.items()):
            if one is host:
                del self._hosts[key]


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _begin_again() -> None:
    """Gives the child process of a fork new state: threads, stores and native servers
    (hostings) belong to the parent.
    """
    for server in list(_servers):
        server._begin()


os.register_at_fork(after_in_child=_begin_again)
