"""Middleware: functions of the application around the calls of a server's items, its
lists and its completions.

    CALL ──> middleware ──> middleware ──> arguments, handler
    reply <── value ─────────── value ──────────┘  └──> segments, directly to the client

A middleware runs on the event loop, also for a plain function, which then runs on its
thread while the middleware waits. Segments do not pass the middleware on their way, so
nothing is gathered. A middleware that wants to see them registers a function for them
(`Call.on_segment`).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from .. import _segue, errors, schema
from . import docstring
from .context import Context
from .depends import Needs

if TYPE_CHECKING:
    from .item import Item

__all__ = ["CALLS", "METHODS", "Call", "Layers", "Method", "Middleware", "Proceed"]

Method = Literal[
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
]
METHODS: tuple[Method, ...] = get_args(Method)
# the methods around which a middleware goes by default
CALLS: tuple[Method, ...] = METHODS[:3]
F = TypeVar("F", bound=Callable[..., Any])
Proceed = Callable[[], Awaitable[Any]]
"""Runs the rest: the next middleware, or the handler. Returns the handler's value."""


class Call:
    """A call of a tool or prompt, a read of a resource, a completion, or a list, as a
    middleware gets it.

    Attributes:
        name: the name of the tool or prompt; for a resource, the URI that is read; for a
            completion, the name of the prompt or the text of the template. For a list it
            is "", or the name of the only item in question (see `Server.use`).
        context: the context of the call: its caller, its log messages and its progress.
    """

    __slots__ = ("_arguments", "_before", "_call", "_item", "_params", "context", "name")

    def __init__(
        self, item: Item, call: _segue.Call, params: bytes, context: Context
    ) -> None:
        self._item = item
        self._call = call
        self._params = params
        self._arguments: dict[str, Any] | None = None
        self._before = b""
        self.name = _segue.call_name(call)
        self.context = context

    def __repr__(self) -> str:
        return f"<segue.Call {self.method} {self.name!r}>"

    @property
    def method(self) -> Method:
        """The method of the request."""
        return self._item.method

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the caller sent them, decoded from JSON; for a resource, the
        variables of its template. The handler gets the changes that a middleware
        makes. For a completion, the other arguments and the text that was typed; for a
        list, {}."""
        if self._arguments is None:
            self.arguments = self._item.given(self._call, self._params)
            self._before = schema.encode(self._arguments)
        assert self._arguments is not None
        return self._arguments

    @arguments.setter
    def arguments(self, value: dict[str, Any]) -> None:
        self._arguments = value
        self._before = b""

    @property
    def has_sent(self) -> bool:
        """Whether the handler has sent a segment."""
        context = self.context
        inner = context._inner
        return context._has_sent or (inner is not None and inner._has_sent)

    def on_segment(self, change: Callable[[Any], Any]) -> None:
        """Registers a function that gets each value that the handler yields or sends, and
        returns the value that is sent. The functions of several middlewares run in the
        order from the handler to the client. The value that the handler returns is the
        value of `proceed`.
        """
        context, before = self.context, self.context._change

        def changed(value: Any) -> Any:
            made = change(value)
            if made is None and value is not None:
                raise TypeError(
                    f"the function {docstring.named(change)} of on_segment has returned "
                    "None: it has to return the value that is sent"
                )
            # The middleware that registers later is nearer to the handler.
            return made if before is None else before(made)

        context._change = changed

    # ---- the handler

    @property
    def _may_be_nothing(self) -> bool:
        """Whether None is a value of the handler's declared type."""
        returns = self._item.signature.returns
        parts = get_args(returns) or (returns,)
        return any(one in (Any, None, type(None)) for one in parts)

    def _values(self) -> tuple[Any, ...]:
        given = self._arguments
        if given is None or self._before == schema.encode(given):
            return self._item.arguments(self._call, self._params)
        return self._item.arguments_of(self._call, given)

    async def _handle(self) -> Any:
        """Runs the handler. Returns its value."""
        item, context = self._item, self.context
        values, needs = self._values(), item.signature.needs
        if not needs:
            return await self._run(values, {})

        def on_thread(work: Callable[[], Any]) -> Awaitable[Any]:
            return _on_thread(work, context, is_needed=True)

        def of(is_async: bool) -> Context:
            return context if is_async else context._for_thread()

        made = Needs(of, on_thread, item.owner.dependency_overrides)
        return await made.run(needs, lambda found: self._run(values, found))

    async def _run(self, values: tuple[Any, ...], found: dict[str, Any]) -> Any:
        item, context = self._item, self.context
        if item.kind.is_async_generator:
            return await item._drain(values, context, found)
        if item.kind.is_async:
            return await item.signature.call(values, context, found)
        inner = context._for_thread()
        try:
            if not item.thread:
                return item._value(values, inner, found)
            return await _on_thread(lambda: item._value(values, inner, found), context)
        finally:
            context._has_sent |= inner._has_sent


async def _on_thread(
    work: Callable[[], Any], context: Context, is_needed: bool = False
) -> Any:
    """Runs a function on a thread of the pool. Returns its value.

    Args:
        is_needed: True = the function runs also if the call was cancelled before.
    """
    host, copied = context._host, contextvars.copy_context()
    done: asyncio.Future[tuple[Any, BaseException | None]] = host.loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        if not done.done():  # the middleware may have left
            done.set_result((value, error))

    def run() -> None:
        value, error = None, None
        try:
            # cancelled while the function waited for a thread
            if context._cancelled and not is_needed:
                raise errors.RequestCancelledError()
            value = copied.run(work)
        except BaseException as why:
            error = why
        try:
            host.loop.call_soon_threadsafe(tell, value, error)
        except RuntimeError:  # the loop was closed before the function was done
            pass

    host.pool.submit(run)
    value, error = await done
    try:
        if error is not None:
            raise error
    finally:
        del error  # the traceback keeps this frame
    return value


Middleware = Callable[[Call, Proceed], Awaitable[Any]]
"""An async function around calls: it gets the call, and a function that goes on."""


def _shown(function: Any) -> str:
    return docstring.named(function) if callable(function) else repr(function)


def _check(function: Any) -> None:
    """Refuses what cannot be a middleware.

    Raises:
        TypeError: it is no async function of two arguments.
    """
    inner = docstring.unwrapped(function)
    target: Any = inner if inspect.isroutine(inner) else type(inner).__call__
    if isinstance(inner, type) or not inspect.iscoroutinefunction(target):
        raise TypeError(
            f"{_shown(function)} is no middleware: a middleware is an async function of "
            "a Call and a Proceed, such as what segue.middleware.log_calls() makes"
            + (": make it async def" if inspect.isfunction(inner) else "")
        )
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"{_shown(function)}: a middleware is called with a Call and a Proceed, "
            f"which its parameters do not allow: {error}"
        ) from None


class Layers:
    """The middlewares of a server.

    Attributes:
        of: the middlewares around the calls of each method, the outermost first.
    """

    def __init__(self) -> None:
        self.of: dict[str, tuple[Middleware, ...]] = dict.fromkeys(METHODS, ())

    def add(self, function: Middleware, methods: Iterable[Method] | None) -> None:
        _check(function)
        if isinstance(methods, str):
            raise TypeError(f"methods has to be a list: methods=[{methods!r}]")
        usual: tuple[Method, ...] = getattr(function, "_segue_usual", CALLS)
        wanted = usual if methods is None else tuple(methods)
        for method in wanted:
            if method not in self.of:
                names = ", ".join(METHODS)
                raise ValueError(f"methods has to have some of {names}, not {method!r}")
        for method in wanted:
            self.of[method] += (function,)


def showing_all(usual: tuple[Method, ...] = METHODS) -> Callable[[F], F]:
    """Marks a middleware that returns what `proceed` returned, also for lists. So it
    hides no item, and calls need not ask it.

    Args:
        usual: the methods around which it goes by default.
    """

    def mark(function: F) -> F:
        function._segue_usual = usual  # type: ignore[attr-defined]
        return function

    return mark


def shows_all(function: Middleware) -> bool:
    """Returns whether a middleware is marked by `showing_all`."""
    return hasattr(function, "_segue_usual")


async def _pass(function: Middleware, call: Call, rest: Proceed) -> Any:
    """Runs a middleware. Returns its value.

    Raises:
        RuntimeError: it has forgotten to await `proceed`, or to return the value.
    """
    begun: list[Coroutine[Any, Any, Any]] = []
    inner: Any = None

    async def work() -> Any:
        nonlocal inner
        inner = await rest()
        return inner

    def proceed() -> Awaitable[Any]:
        begun.append(work())
        return begun[-1]

    try:
        value = await function(call, proceed)
    finally:
        is_forgotten = False
        for one in begun:
            if inspect.getcoroutinestate(one) == inspect.CORO_CREATED:
                one.close()
                is_forgotten = True
    if is_forgotten:
        raise RuntimeError(
            f"the middleware {docstring.named(function)} has called proceed() without "
            "await: write `return await proceed()`"
        )
    is_lost = value is None and inner is not None
    if is_lost and not call._may_be_nothing:
        raise RuntimeError(
            f"the middleware {docstring.named(function)} has returned None in place of "
            f"the value of {call._item.key!r}: write `return await proceed()`"
        )
    return value


async def run(layers: tuple[Middleware, ...], call: Call) -> Any:
    """Runs the middlewares around the handler of a call. Returns the value of the
    outermost one."""

    def rest(place: int) -> Proceed:
        if place == len(layers):
            return call._handle
        return lambda: _pass(layers[place], call, rest(place + 1))

    return await rest(0)()
