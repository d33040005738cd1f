"""Servers inside a Python server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

SECONDS = 120


def weather(**options: Any) -> segue.Server:
    """A server with an item of each kind."""
    server = segue.Server("weather", **options)

    @server.tool
    def today(city: str) -> str:
        return f"sunny in {city}"

    @server.tool(task="may")
    async def hours(n: int) -> AsyncIterator[str]:
        for number in range(n):
            yield f"{number} "

    @server.resource("data://now")
    def now() -> str:
        return "now"

    @server.resource("data://city/{name}")
    def city(name: Annotated[str, segue.Complete(["Bern", "Basel"])]) -> str:
        return f"city {name}"

    @server.resource("file:///notes/a")
    def file() -> str:
        return "a file"

    @server.prompt
    def ask(place: str) -> str:
        return f"How is {place}?"

    return server


async def names(session: Any) -> list[str]:
    tools = [one.name for one in await session.list_tools()]
    resources = [one.uri for one in await session.list_resources()]
    templates = [one.uri_template for one in await session.list_resource_templates()]
    prompts = [one.name for one in await session.list_prompts()]
    return [*tools, *resources, *templates, *prompts]


async def read(session: Any, uri: str) -> str:
    (contents,) = (await session.read_resource(uri)).contents
    assert contents.uri == uri
    return str(contents.text)


def test_items_of_all_kinds(world: ServerWorld) -> None:
    app, inner = segue.Server("app"), weather()

    @app.tool
    def own() -> str:
        return "own"

    app.mount(inner, prefix="weather")
    app.mount(weather())

    async def work(session: Any) -> None:
        for prefix, path in (("weather_", "weather/"), ("", "")):
            call = session.call
            assert (await call(f"{prefix}today", city="Bern")).text == "sunny in Bern"
            task = await session.start(f"{prefix}hours", n=3)
            assert (await task.result()).text == "0 1 2 "
            assert await read(session, f"data://{path}now") == "now"
            assert await read(session, f"data://{path}city/Bern") == "city Bern"
            template = f"data://{path}city/{{name}}"
            assert (await session.complete(template, "name", "be")).values == ["Bern"]
            prompt = await session.get_prompt(f"{prefix}ask", {"place": "Bern"})
            assert prompt.messages[0].content.text == "How is Bern?"
        assert await read(session, "file://weather/notes/a") == "a file"
        assert await read(session, "file:///notes/a") == "a file"
        listed = await names(session)
        assert listed[:5] == ["own", "weather_today", "weather_hours", "today", "hours"]
        bad = await session.call("weather_today", town="", raise_on_error=False)
        assert "Invalid arguments for tool weather_today" in bad.text

    world.run(app, work)


def test_changes_appear_with_their_notifications(nothing_left: None) -> None:
    outer, app, inner = segue.Server("outer"), segue.Server("app"), segue.Server("inner")
    inner.tool(name="first")(lambda: "1")
    app.mount(inner, prefix="in")
    outer.mount(app, prefix="app")
    own = ["own", "data://own", "data://{own}", "own"]
    outer.tool(name="own")(lambda: "")
    outer.resource("data://own")(lambda: "")
    outer.resource("data://{own}")(lambda own: "")
    outer.prompt(name="own")(lambda: "")

    async def added(session: Any) -> list[str]:
        listed = await names(session)
        assert [one for one in listed if one in own] == own
        return [one for one in listed if one not in own]

    async def work() -> None:
        async with (
            segue.connect(outer) as session,
            session.subscribe(
                "data://app/in/x", tools=True, resources=True, prompts=True
            ) as changes,
        ):

            async def until(kind: str) -> Any:
                while (change := await anext(changes)).kind != kind:
                    pass
                return change

            assert await added(session) == ["app_in_first"]
            inner.tool(name="second")(lambda: "2")
            await asyncio.wait_for(until("tools"), SECONDS)
            assert (await session.call("app_in_second")).text == "2"
            inner.remove_tool("first")
            await asyncio.wait_for(until("tools"), SECONDS)
            assert await added(session) == ["app_in_second"]
            inner.resource("data://x")(lambda: "x")
            await asyncio.wait_for(until("resources"), SECONDS)
            assert await read(session, "data://app/in/x") == "x"
            inner.resource_updated("data://x")
            change = await asyncio.wait_for(until("resource"), SECONDS)
            assert change.uri == "data://app/in/x"

            @inner.prompt
            def ask(word: str) -> str:
                return word

            await asyncio.wait_for(until("prompts"), SECONDS)
            inner.completion("ask", "word")(lambda typed: [f"{typed}!"])
            found = await session.complete("app_in_ask", "word", "a")
            assert found.values == ["a!"]
            app.unmount(inner)
            with pytest.raises(KeyError, match=f"{inner.name!r} is not mounted in"):
                app.unmount(inner)
            assert await added(session) == []
            inner.tool(name="third")(lambda: "3")
            assert await added(session) == []

    run(work)


def test_what_collides_is_refused() -> None:
    outer, app, inner = segue.Server("outer"), segue.Server("app"), weather()
    outer.mount(app, prefix="app")
    app.tool(name="today")(lambda: "")
    outer.tool(name="app_hours")(lambda: "")
    for server, prefix, why in (
        (app, "", "'app' already has a tool 'today'"),
        (outer, "app", "'outer' already has a tool 'app_today', of the server 'app'"),
    ):
        had = list(server._items)
        with pytest.raises(ValueError, match=why):
            server.mount(inner, prefix=prefix)
        assert list(server._items) == had and not inner._parents
    app.remove_tool("today")
    with pytest.raises(ValueError, match="'outer' already has a tool 'app_hours'"):
        app.mount(inner)
    assert not app._items and not app._mounts and not inner._parents
    app.mount(inner, prefix="w")
    with pytest.raises(ValueError, match="'app' already has a tool 'w_today', of the se"):
        app.mount(inner, prefix="w")
    outer.tool(name="app_w_more")(lambda: "")
    with pytest.raises(ValueError, match="'outer' already has a tool 'app_w_more'"):
        inner.tool(name="more")(lambda: "")
    assert (0, "more") not in inner._items
    with pytest.raises(ValueError, match="belongs to the server 'weather'"):
        outer.remove_tool("app_w_today")
    with pytest.raises(ValueError, match="belongs to the server 'weather'"):
        app.completion("w_ask", "place")(lambda typed: [])


def test_circles_and_bad_prefixes_are_refused() -> None:
    a, b, c = segue.Server("a"), segue.Server("b"), segue.Server("c")
    a.mount(b, prefix="b")
    b.mount(c, prefix="c")
    for parent, child in ((a, a), (b, a), (c, a), (c, b)):
        with pytest.raises(ValueError, match=f"{parent.name!r} would contain itself"):
            parent.mount(child, prefix="x")
    for prefix in ("a b", "_a", "a/b", "ä"):
        with pytest.raises(ValueError, match="prefix has to have"):
            a.mount(segue.Server("d"), prefix=prefix)
    with pytest.raises(KeyError):
        a.unmount(c)
    nothing: Any = "server"
    with pytest.raises(TypeError, match=r"takes a segue\.Server"):
        a.mount(nothing)
    odd = segue.Server("odd")
    odd.resource("{any}://x")(lambda any: any)
    with pytest.raises(ValueError, match="has no scheme"):
        a.mount(odd, prefix="odd")
    a.mount(odd)


def test_what_belongs_to_the_inner_server_holds(world: ServerWorld) -> None:
    lines: list[str] = []

    def made(name: str) -> Any:
        @contextlib.asynccontextmanager
        async def lifespan(server: segue.Server) -> AsyncIterator[str]:
            lines.append(f"{name} begins")
            yield f"value of {name}"
            lines.append(f"{name} ends")

        return lifespan

    def database() -> str:
        return "real"

    app = segue.Server("app", lifespan=made("app"))
    inner = segue.Server("inner", lifespan=made("inner"), expose_errors=True)
    inner.dependency_overrides[database] = lambda: "fake"

    @app.use
    async def outermost(call: segue.Call, proceed: segue.Proceed) -> Any:
        return f"({await proceed()})"

    @inner.use
    async def innermost(call: segue.Call, proceed: segue.Proceed) -> Any:
        lines.append(call.name)
        return f"[{await proceed()}]"

    @inner.tool
    def value(ctx: segue.SyncContext, db: str = segue.Depends(database)) -> str:
        return f"{ctx.lifespan} {db} {ctx.name}"

    @inner.tool
    async def fails() -> str:
        raise ValueError("the reason")

    @app.tool
    async def own(ctx: segue.Context) -> str:
        return str(ctx.lifespan)

    app.mount(inner, prefix="in")
    app.mount(inner, prefix="again")

    async def work(session: Any) -> None:
        assert lines == ["app begins", "inner begins"]
        assert (await session.call("own")).text == "(value of app)"
        text = (await session.call("in_value")).text
        assert text == "([value of inner fake in_value])"
        with pytest.raises(segue.ToolError, match="the reason"):
            await session.call("again_fails")
        assert lines[2:] == ["in_value", "again_fails"]
        late = segue.Server("late", lifespan=made("late"))
        with pytest.raises(RuntimeError, match="mount it before 'app' is served"):
            app.mount(late)

    world.run(app, work)
    if world.way == "http":  # in one process they end with the loop
        assert lines[4:] == ["inner ends", "app ends"]
    assert sorted(lines[4:]) == ["app ends", "inner ends"]


def test_a_lifespan_that_cannot_begin_ends_those_before(nothing_left: None) -> None:
    lines: list[str] = []

    @contextlib.asynccontextmanager
    async def good(server: segue.Server) -> AsyncIterator[None]:
        yield
        lines.append("good ends")

    @contextlib.asynccontextmanager
    async def bad(server: segue.Server) -> AsyncIterator[None]:
        raise ValueError("cannot begin")
        yield

    app = segue.Server("app", lifespan=good)
    app.mount(segue.Server("bad", lifespan=bad))

    async def work() -> None:
        with pytest.raises(ValueError, match="cannot begin"):
            async with app.serving(http="127.0.0.1:0"):
                pass
        assert lines == ["good ends"]

    run(work)
