"""Dependencies of a Python server's handlers: parameters that clients do not see."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

SECONDS = 120
MAIN = threading.main_thread()


class Database:
    def __init__(self, name: str) -> None:
        self.name = name


class Journal:
    """Functions that make dependencies, and what they did."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.problem: Exception | None = None

    async def settings(self) -> str:
        self.lines.append("settings")
        assert threading.current_thread() is MAIN
        return "shop"


journal = Journal()


@pytest.fixture(autouse=True)
def fresh() -> None:
    journal.lines.clear()
    journal.problem = None


def settings() -> str:
    journal.lines.append("settings")
    assert threading.current_thread() is not MAIN
    return "shop"


async def database(
    ctx: segue.Context, name: Annotated[str, segue.Depends(settings)]
) -> AsyncIterator[Database]:
    journal.lines.append(f"open {name} for {ctx.name}")
    assert threading.current_thread() is MAIN
    try:
        yield Database(name)
    except ValueError as error:
        journal.lines.append(f"roll back: {error}")
        raise
    else:
        journal.lines.append("commit")
        if journal.problem is not None:
            raise journal.problem
    finally:
        journal.lines.append("close")


def cursor(
    ctx: segue.SyncContext, opened: Database = segue.Depends(database), size: int = 3
) -> Iterator[str]:
    assert threading.current_thread() is not MAIN
    ctx.log("a cursor")
    yield f"cursor of {opened.name} {size}"
    journal.lines.append("cursor ends")


Cursor = Annotated[str, segue.Depends(cursor)]
ORDER = ["settings", "open shop for {}", "cursor ends", "commit", "close"]


def shop() -> segue.Server:
    server = segue.Server("shop")

    @server.tool
    async def both(
        a: int, at: Cursor, db: Database = segue.Depends(database), b: int = 2
    ) -> str:
        journal.lines.append("handler")
        return f"{a} {b} {db.name} {at}"

    @server.tool
    def plain(db: Annotated[Database, segue.Depends(database)], /, a: int) -> str:
        return f"{a} {db.name} {threading.current_thread() is MAIN}"

    @server.tool(thread=False)
    def on_loop(*, db: Database = segue.Depends(database), a: int) -> str:
        return f"{a} {db.name} {threading.current_thread() is MAIN}"

    @server.tool
    async def stream(at: Cursor, n: int) -> AsyncIterator[str]:
        for number in range(n):
            yield f"{number} "
        journal.lines.append("sent")

    @server.tool
    def plain_stream(n: int, at: Cursor) -> Iterator[str]:
        for number in range(n):
            yield f"{number} "

    @server.tool
    def fails(db: Database = segue.Depends(database)) -> str:
        raise ValueError("no luck")

    @server.tool
    def rest(db: Database = segue.Depends(database), **more: Any) -> str:
        return f"{db.name} {sorted(more)}"

    @server.resource("note://{id}")
    async def note(id: str, db: Database = segue.Depends(database)) -> str:
        return f"{id} {db.name}"

    @server.prompt
    def review(code: str, db: Database = segue.Depends(database)) -> str:
        return f"{code} {db.name}"

    return server


def passed() -> list[str]:
    lines = list(journal.lines)
    journal.lines.clear()
    return lines


def test_clients_do_not_see_them(world: ServerWorld) -> None:
    async def work(session: Any) -> None:
        tools = {one.name: one.input_schema for one in await session.list_tools()}
        assert list(tools["both"]["properties"]) == ["a", "b"]
        assert tools["both"]["required"] == ["a"]
        assert tools["fails"]["properties"] == {}
        (prompt,) = await session.list_prompts()
        assert [one.name for one in prompt.arguments] == ["code"]
        for tool in ("both", "rest"):
            given = {"a": 1, "db": "mine"}
            result = await session.call(tool, given, raise_on_error=False)
            assert result.is_error and 'unknown argument "db"' in result.text
        assert not journal.lines

    world.run(shop(), work)


def test_each_is_made_once_in_a_call_and_cleaned_up(world: ServerWorld) -> None:
    async def work(session: Any) -> None:
        result = await session.call("both", a=1)
        assert result.text == "1 2 shop cursor of shop 3"
        order = [line.format("both") for line in ORDER]
        assert passed() == [*order[:2], "handler", *order[2:]]
        assert (await session.call("plain", a=1)).text == "1 shop False"
        assert passed() == ["settings", "open shop for plain", "commit", "close"]
        assert (await session.call("on_loop", a=1)).text == "1 shop True"
        passed()
        assert (await session.call("stream", n=2)).text == "0 1 "
        order = [line.format("stream") for line in ORDER]
        assert passed() == [*order[:2], "sent", *order[2:]]
        assert (await session.call("plain_stream", n=2)).text == "0 1 "
        assert passed() == [line.format("plain_stream") for line in ORDER]
        assert (await session.call("rest", b=1)).text == "shop ['b']"
        passed()
        (contents,) = (await session.read_resource("note://7")).contents
        assert contents.text == "7 shop"
        assert passed()[1:] == ["open shop for note://7", "commit", "close"]
        prompt = await session.get_prompt("review", {"code": "x"})
        assert prompt.messages[0].content.text == "x shop"

    world.run(shop(), work)


def test_a_failure_reaches_them(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match="The tool fails failed"):
            await session.call("fails")
        assert passed()[2:] == ["roll back: no luck", "close"]
        journal.problem = segue.ToolError("cannot commit")
        with pytest.raises(segue.ToolError, match=r"^cannot commit$"):
            await session.call("plain", a=1)
        assert passed()[2:] == ["commit", "close"]
        journal.problem = None

    world.run(shop(), work)


def test_bad_arguments_make_nothing(world: ServerWorld) -> None:
    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match="Invalid arguments"):
            await session.call("both", a="x")
        assert not journal.lines

    world.run(shop(), work)


def test_one_that_fails_ends_the_call(world: ServerWorld) -> None:
    server = segue.Server("broken")

    def broken() -> str:
        raise segue.ToolError("not today")

    @server.tool
    async def both(
        db: Database = segue.Depends(database), bad: str = segue.Depends(broken)
    ) -> str:
        raise AssertionError

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match=r"^not today$"):
            await session.call("both")
        assert passed()[2:] == ["close"]

    world.run(server, work)


def test_tests_replace_them(world: ServerWorld) -> None:
    server = shop()

    async def fake(ctx: segue.Context) -> Database:
        return Database(f"fake for {ctx.name}")

    async def work(session: Any) -> None:
        server.dependency_overrides[database] = fake
        text = (await session.call("both", a=1)).text
        assert text == "1 2 fake for both cursor of fake for both 3"
        assert passed() == ["handler", "cursor ends"]
        del server.dependency_overrides[database]
        assert (await session.call("plain", a=1)).text == "1 shop False"

    world.run(server, work)


def test_a_middleware_that_runs_again_gets_new_ones(world: ServerWorld) -> None:
    server = shop()

    @server.use
    async def twice(call: segue.Call, proceed: segue.Proceed) -> Any:
        await proceed()
        return await proceed()

    async def work(session: Any) -> None:
        assert (await session.call("plain", a=1)).text == "1 shop False"
        one = ["settings", "open shop for plain", "commit", "close"]
        assert passed() == one + one

    world.run(server, work)


def test_a_call_that_is_cancelled_cleans_up(nothing_left: None) -> None:
    server = segue.Server("cancelled")
    begun = asyncio.Event()
    done = threading.Event()

    async def each() -> AsyncIterator[str]:
        try:
            yield "value"
        finally:
            await asyncio.sleep(0)
            journal.lines.append("cleaned up")

    def guarded() -> Iterator[str]:
        try:
            yield "plain"
        finally:
            done.set()

    @server.tool
    async def waits(
        a: str = segue.Depends(guarded), b: str = segue.Depends(each)
    ) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def work() -> None:
        async with segue.connect(server) as session:
            call = asyncio.ensure_future(session.call("waits"))
            await asyncio.wait_for(begun.wait(), SECONDS)
            call.cancel()
            await asyncio.wait([call])
            assert await asyncio.to_thread(done.wait, SECONDS)
            assert passed() == ["cleaned up"]

    run(work)


def test_what_cannot_be_a_dependency_is_refused() -> None:
    server = segue.Server("checks")

    def needs_more(size: int) -> str: ...

    def by_place(ctx: segue.Context, /) -> str: ...

    class Loop:
        def __call__(self, value: Any) -> str: ...

    loop = Loop()
    Loop.__call__.__defaults__ = (segue.Depends(loop),)

    wrong: list[tuple[Any, str]] = [
        (needs_more, "'size' of a dependency has to be the Context"),
        (by_place, "cannot be positional-only"),
        (loop, "depends on itself"),
    ]
    for function, why in wrong:

        def tool(value: Any = segue.Depends(function)) -> None: ...

        with pytest.raises(TypeError, match=why):
            server.tool(tool)
    nothing: Any = "database"
    with pytest.raises(TypeError, match="Depends needs a function, not 'database'"):
        segue.Depends(nothing)


def test_a_dependency_that_does_not_yield_once_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = segue.Server("yields")

    async def never() -> AsyncIterator[str]:
        for one in ():
            yield one

    def twice() -> Iterator[str]:
        yield "one"
        yield "two"

    @server.tool
    async def first(value: str = segue.Depends(never)) -> None: ...

    @server.tool
    async def second(value: str = segue.Depends(twice)) -> None: ...

    async def work() -> None:
        async with segue.connect(server) as session:
            for tool, how in (("first", "never"), ("second", "twice")):
                with pytest.raises(segue.ToolError):
                    await session.call(tool)
                assert f"the dependency {how} has yielded {how}" in caplog.text

    run(work)


def test_a_mark_without_a_function_is_refused() -> None:
    server = segue.Server("checks")
    mark: Any = segue.Depends

    def by_default(d: Any = mark) -> None: ...

    def by_annotation(d: Annotated[str, mark]) -> None: ...

    def inside(value: Any = segue.Depends(by_default)) -> None: ...

    for tool, name in ((by_default, ""), (by_annotation, ""), (inside, "by_default")):
        name = name or tool.__name__
        with pytest.raises(TypeError, match=f"^{name}: 'd' is marked with segue.Depends"):
            server.tool(tool)
