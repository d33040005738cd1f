"""Dependencies: parameters of a handler that a function of the application fills, and
that clients do not see.

    CALL ──> middleware ──> dependencies ──> handler ──> clean-up ──> reply

The dependencies of a call are made one after the other, each once. A plain function runs
on a thread of the pool, an async one on the loop, as handlers do. A generator makes its
value with `yield`. The rest of it is the clean-up, which runs in the opposite order when
the handler has ended, and before the reply. So a clean-up that fails makes the call fail.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, overload

from ..hints import unnamed
from . import docstring

if TYPE_CHECKING:
    from .context import Context, SyncContext

__all__ = ["Dependency", "Depends", "Needs", "dependency_of"]

T = TypeVar("T")
Factory = Callable[..., Any]


class Dependency:
    """Marks a parameter as a dependency. `Depends` makes it."""

    __slots__ = ("function",)

    def __init__(self, function: Factory) -> None:
        if not callable(function):
            raise TypeError(f"Depends needs a function, not {function!r}")
        self.function = function

    def __repr__(self) -> str:
        return f"Depends({docstring.named(self.function)})"


@overload
def Depends(function: Callable[..., AsyncIterator[T]], /) -> T: ...
@overload
def Depends(function: Callable[..., Iterator[T]], /) -> T: ...
@overload
def Depends(function: Callable[..., Awaitable[T]], /) -> T: ...
@overload
def Depends(function: Callable[..., T], /) -> T: ...
def Depends(function: Factory, /) -> Any:
    """Marks a parameter of a handler that a function fills, and that clients do not see:

        @server.tool
        async def count(database: Database = segue.Depends(open_database)) -> int: ...

    `database: Annotated[Database, segue.Depends(open_database)]` means the same.

    Args:
        function: a function that makes the value: plain (it then runs on a thread),
            async, or a generator of either kind, which yields the value once and then
            cleans up. Its parameters are the `Context` of the call, further
            dependencies, or have defaults. It runs once in each call, also if several
            parameters depend on it. `Server.dependency_overrides` replaces it in tests.
    """
    return Dependency(function)


def dependency_of(
    function: Factory, parameter: inspect.Parameter, hint: Any
) -> Dependency | None:
    """Returns the mark of a parameter: its default, or a part of its annotation.

    Raises:
        TypeError: the parameter is marked with `Depends` itself, without a function, or
            with a mark of another package, so that clients would fill it.
    """
    where = f"{docstring.named(function)}: {parameter.name!r}"
    for one in (parameter.default, *getattr(unnamed(hint), "__metadata__", ())):
        if isinstance(one, Dependency):
            return one
        if one is Depends:
            raise TypeError(
                f"{where} is marked with segue.Depends without a function: write "
                "segue.Depends(function)"
            )
        if _is_foreign_mark(one):
            kind = one if isinstance(one, type) or inspect.isroutine(one) else type(one)
            raise TypeError(
                f"{where} is marked with {kind.__name__} of {kind.__module__}, which "
                "means nothing here, so clients could set it: use "
                "segue.Depends(function)"
            )
    _refuse_foreign_context(where, hint)
    return None


def check_context(function: Factory, name: str, hint: Any) -> None:
    """Refuses an async function that is annotated with the context of plain functions,
    because it gets the other one, whose methods are coroutines."""
    from .context import SyncContext
    from .item import Kind

    kinds = [one for one in (hint, *get_args(hint)) if isinstance(one, type)]
    is_plain = any(issubclass(one, SyncContext) for one in kinds)
    if is_plain and len(kinds) == 1 and Kind(function).is_async:
        raise TypeError(
            f"{docstring.named(function)}: {name!r} is annotated with SyncContext, which "
            "only plain functions get: use segue.Context in an async function"
        )


def _is_foreign_mark(one: Any) -> bool:
    """Returns whether a default or an annotation is how another package marks a
    parameter that clients must not fill, such as `fastapi.Depends`."""
    is_class = isinstance(one, type)
    kind = one if is_class or inspect.isroutine(one) else type(one)
    if str(kind.__module__).partition(".")[0] == "fastapi":
        return True
    names = [base.__name__ for base in getattr(kind, "__mro__", (kind,))]
    return any(name.lstrip("_") in ("Depends", "Dependency") for name in names)


def _refuse_foreign_context(where: str, hint: Any) -> None:
    for one in (hint, *get_args(hint)):
        kind = get_origin(one) or one
        for base in getattr(kind, "__mro__", ()):
            package = base.__module__.partition(".")[0]
            if base.__name__ == "Context" and package in ("mcp", "fastmcp"):
                raise TypeError(
                    f"{where} is annotated with the Context of {package}: use "
                    "segue.Context"
                )


class _Plan(NamedTuple):
    """How to call a function that makes a dependency.

    Attributes:
        contexts: the names of the parameters that get the context.
        needs: the dependencies of the function, by the parameter's name.
    """

    is_async: bool
    is_generator: bool
    contexts: tuple[str, ...]
    needs: dict[str, Dependency]


@functools.lru_cache(maxsize=1024)
def _plan_of(function: Factory) -> _Plan:
    from .item import Kind
    from .signature import is_context, type_hints

    target: Any = function
    if isinstance(function, type):  # its objects are the values
        kind, target = None, target.__init__
    else:
        kind = Kind(function)
    hints, shown = type_hints(target), docstring.named(function)
    contexts, needs = [], {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        found = dependency_of(function, parameter, hint)
        if found is not None:
            needs[parameter.name] = found
        elif is_context(hint):
            if kind is not None:
                check_context(function, parameter.name, hint)
            contexts.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise TypeError(
                f"{shown}: {parameter.name!r} of a dependency has to be the "
                "Context, to be a dependency, or to have a default"
            )
        is_filled = parameter.name in needs or parameter.name in contexts
        if is_filled and parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{shown}: {parameter.name!r} of a dependency is passed by its "
                "name, so it cannot be positional-only"
            )
    return _Plan(
        kind is not None and kind.is_async,
        kind is not None and kind.streams,
        tuple(contexts),
        needs,
    )


def check(dependency: Dependency, above: tuple[Factory, ...] = ()) -> None:
    """Refuses a dependency that cannot be made.

    Raises:
        TypeError: a parameter of its function cannot be filled, or it needs itself.
    """
    function = dependency.function
    if function in above:
        raise TypeError(f"{docstring.named(function)} depends on itself")
    for one in _plan_of(function).needs.values():
        check(one, (*above, function))


# What contextlib says of a generator that does not yield once.
_YIELDS = {"generator didn't yield": "never", "generator didn't stop": "twice"}


async def _yielding(function: Factory, work: Awaitable[Any]) -> Any:
    """Waits for one part of a generator. Names the function if it does not yield once."""
    try:
        return await work
    except RuntimeError as error:
        how = _YIELDS.get(str(error))
        if how is None:
            raise
        raise RuntimeError(
            f"the dependency {docstring.named(function)} has yielded {how}: it has to "
            "yield its value once"
        ) from error


class Needs:
    """The dependencies of one call.

    Args:
        context: returns the context of the call, for an async or a plain function.
        on_thread: runs a function on a thread of the pool. Returns its value.
        overrides: the functions that replace others.
    """

    def __init__(
        self,
        context: Callable[[bool], Context | SyncContext],
        on_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
        overrides: Mapping[Factory, Factory],
    ) -> None:
        self._context = context
        self._on_thread = on_thread
        self._overrides = overrides
        self._made: dict[Factory, Any] = {}
        self._stack = contextlib.AsyncExitStack()

    async def run(
        self,
        needs: Mapping[str, Dependency],
        work: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Makes the dependencies, runs `work` with their values by name, and cleans up.
        Returns the value of `work`."""
        try:
            value = await work(await self._values(needs))
        except BaseException as error:
            # A clean-up may raise another exception, but it cannot hide this one.
            await self._stack.__aexit__(type(error), error, error.__traceback__)
            raise
        await self._stack.aclose()
        return value

    async def _values(self, needs: Mapping[str, Dependency]) -> dict[str, Any]:
        return {name: await self._value(one.function) for name, one in needs.items()}

    async def _value(self, key: Factory) -> Any:
        if key not in self._made:
            function = self._overrides.get(key, key)
            if function is not key:
                check(Dependency(function), (key,))
            self._made[key] = await self._make(function)
        return self._made[key]

    async def _make(self, function: Factory) -> Any:
        plan = _plan_of(function)
        given = await self._values(plan.needs)
        for name in plan.contexts:
            given[name] = self._context(plan.is_async)
        if plan.is_async and plan.is_generator:
            manager = contextlib.asynccontextmanager(function)(**given)
            value = await _yielding(function, manager.__aenter__())

            async def leave(*exception: Any) -> Any:
                return await _yielding(function, manager.__aexit__(*exception))

            self._stack.push_async_exit(leave)
            return value
        if plan.is_async:
            return await function(**given)
        if not plan.is_generator:
            return await self._on_thread(lambda: function(**given))
        plain = contextlib.contextmanager(function)(**given)
        value = await _yielding(function, self._on_thread(plain.__enter__))

        async def leave_plain(*exception: Any) -> Any:
            left = self._on_thread(lambda: plain.__exit__(*exception))
            return await _yielding(function, left)

        self._stack.push_async_exit(leave_plain)
        return value
