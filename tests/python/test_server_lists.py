"""Middlewares around lists and completions of a Python server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Literal

import pytest

import segue
from segue import middleware
from segue.server.layers import METHODS
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

LISTS: dict[str, str] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
    "prompts/list": "prompts",
}


def house(name: str = "house") -> segue.Server:
    """A server with an open and a secret item of each kind."""
    server = segue.Server(name)

    for word in ("open", "secret"):
        server.tool(name=word)(lambda: "done")
        server.resource(f"data://{word}", name=word)(lambda: "data")

        @server.resource(f"data://{word}/{{part}}", name=word)
        def template(part: Literal["one", "two"]) -> str:
            return part

        @server.prompt(name=word)
        def prompt(kind: Literal["red", "green"]) -> str:
            return kind

    return server


def hide(server: segue.Server, *parts: str) -> list[str]:
    """Hides the items whose names have one of the parts. Returns what was asked."""
    asked: list[str] = []

    @server.use(methods=list(LISTS))  # type: ignore[arg-type]
    async def hidden(call: segue.Call, proceed: segue.Proceed) -> Any:
        asked.append(f"{call.method} {call.name}".strip())
        assert call.arguments == {} and not call.has_sent
        items: list[segue.Listed] = await proceed()
        return [one for one in items if not any(part in one.name for part in parts)]

    return asked


async def names(session: Any) -> dict[str, list[str]]:
    return {
        "tools": [one.name for one in await session.list_tools()],
        "resources": [one.uri for one in await session.list_resources()],
        "resource_templates": [
            one.uri_template for one in await session.list_resource_templates()
        ],
        "prompts": [one.name for one in await session.list_prompts()],
    }


async def refusal(work: Any) -> tuple[int, str]:
    with pytest.raises(segue.Error) as info:
        await work
    return info.value.code, str(info.value)  # type: ignore[attr-defined]


async def unknown(session: Any, word: str) -> list[tuple[int, str]]:
    """Returns the errors of all requests that name the word, without the word."""
    uri = f"data://{word}"
    found = [
        await refusal(session.call(word)),
        await refusal(session.read_resource(uri)),
        await refusal(session.read_resource(f"{uri}/one")),
        await refusal(session.get_prompt(word, {"kind": "red"})),
        await refusal(session.complete({"type": "ref/prompt", "name": word}, "kind")),
        await refusal(session.complete(f"{uri}/{{part}}", "part")),
    ]
    return [(code, text.replace(word, "WORD")) for code, text in found]


def test_hidden_items_are_in_no_list_and_unknown(world: ServerWorld) -> None:
    server = house()
    asked = hide(server, "secret")

    async def work(session: Any) -> None:
        assert await names(session) == {
            "tools": ["open"],
            "resources": ["data://open"],
            "resource_templates": ["data://open/{part}"],
            "prompts": ["open"],
        }
        assert asked == list(LISTS)
        asked.clear()
        assert (await session.call("open")).text == "done"
        assert asked == ["tools/list open"]
        assert await unknown(session, "secret") == await unknown(session, "nothing")

    world.run(server, work)


def test_what_is_seen_depends_on_the_caller() -> None:
    who = "guest"
    server = segue.Server("callers", principal=lambda peer: who)
    server.tool(name="everybody")(lambda: "yes")
    server.tool(name="admin_only")(lambda: "yes")

    @server.use(methods=["tools/list"])
    async def for_admins(call: segue.Call, proceed: segue.Proceed) -> Any:
        tools: list[segue.Listed] = await proceed()
        if call.context.principal == "admin":
            return tools
        return [one for one in tools if not one.name.startswith("admin_")]

    async def work() -> None:
        nonlocal who
        async with server.serving(http="127.0.0.1:0") as serving:
            async with segue.connect(serving.url) as session:
                assert [one.name for one in await session.list_tools()] == ["everybody"]
                with pytest.raises(segue.Error, match="Unknown tool: admin_only"):
                    await session.call("admin_only")
            who = "admin"
            async with segue.connect(serving.url) as session:
                assert len(await session.list_tools()) == 2
                assert (await session.call("admin_only")).text == "yes"

    run(work)


def test_sessions_hold_what_is_seen(world: ServerWorld) -> None:
    if world.era == "modern":
        return  # requests of 2026-07-28 over HTTP have no session
    server = segue.Server("unlock")

    @server.tool
    async def unlock(ctx: segue.Context) -> str:
        assert ctx.session is not None
        ctx.session.state["open"] = True
        return "open"

    server.tool(name="treasure")(lambda: "gold")

    @server.use(methods=["tools/list"])
    async def locked(call: segue.Call, proceed: segue.Proceed) -> Any:
        session = call.context.session
        is_open = session is not None and session.state.get("open")
        return [one for one in await proceed() if is_open or one.name == "unlock"]

    async def work(session: Any) -> None:
        assert [one.name for one in await session.list_tools()] == ["unlock"]
        with pytest.raises(segue.Error, match="Unknown tool: treasure"):
            await session.call("treasure")
        await session.call("unlock")
        assert (await session.call("treasure")).text == "gold"

    world.run(server, work)


def test_long_lists_have_full_pages(world: ServerWorld) -> None:
    server = segue.Server("many", options={"page_size": 3})
    for number in range(20):
        server.tool(name=f"{'even' if number % 2 == 0 else 'odd'}{number}")(lambda: "")
    hide(server, "odd")

    async def work(session: Any) -> None:
        found = [one.name for one in await session.list_tools()]
        assert found == [f"even{number}" for number in range(0, 20, 2)]

    world.run(server, work)


def test_an_item_is_described(world: ServerWorld) -> None:
    server = segue.Server("described")

    @server.tool(meta={"team": "blue"}, description="Adds")
    def add(a: int) -> int:
        return a

    @server.tool
    def other() -> str:
        return ""

    seen: list[segue.Listed] = []

    @server.use(methods=["tools/list"])
    async def blue(call: segue.Call, proceed: segue.Proceed) -> Any:
        seen[:] = await proceed()
        seen[0].told["name"] = "changed"
        return (one for one in seen if one.told.get("_meta", {}).get("team") == "blue")

    async def work(session: Any) -> None:
        assert [one.name for one in await session.list_tools()] == ["add"]
        assert [repr(one) for one in seen] == [
            "<segue.Listed tool 'add'>",
            "<segue.Listed tool 'other'>",
        ]
        assert seen[0].told["description"] == "Adds"
        assert seen[0].kind == "tool" and seen[0].function is add
        assert (await session.call("add", a=1)).structured == {"result": 1}

    world.run(server, work)


def test_what_a_middleware_must_not_return(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = house()
    returned: Any = None

    @server.use(methods=["tools/list"])
    async def wrong(call: segue.Call, proceed: segue.Proceed) -> Any:
        await proceed()
        return returned

    async def work(session: Any) -> None:
        nonlocal returned
        for value in (None, 5, ["open"]):
            returned = value
            with pytest.raises(segue.Error, match="Internal error"):
                await session.list_tools()
            with pytest.raises(segue.Error, match="Internal error"):
                await session.call("open")
        told = [str(one.exc_info[1]) for one in caplog.records if one.exc_info]
        assert list(dict.fromkeys(told)) == [
            "the middleware wrong has returned None in place of the "
            "value of 'tools/list': write `return await proceed()`",
            "a middleware around tools/list returns some of the items that "
            "`await proceed()` returns, not 5",
            "a middleware around tools/list returns some of the items that "
            "`await proceed()` returns, not 'open'",
        ]

    world.run(server, work)


def test_mounted_servers_hide_their_own(world: ServerWorld) -> None:
    inner, middle, outer = house("inner"), segue.Server("middle"), house("outer")
    middle.tool(name="own")(lambda: "own")
    middle.mount(inner, prefix="in")
    outer.mount(middle, prefix="mid")
    asked = hide(inner, "secret")

    async def work(session: Any) -> None:
        # the rule came with the servers, and sees the names of the client
        found = (await names(session))["tools"]
        assert found == ["open", "secret", "mid_own", "mid_in_open"]
        assert asked[0] == "tools/list"
        assert (await names(session))["resources"] == [
            "data://open",
            "data://secret",
            "data://mid/in/open",
        ]
        asked.clear()
        assert (await session.call("secret")).text == "done"
        assert asked == []
        with pytest.raises(segue.Error, match="Unknown tool: mid_in_secret"):
            await session.call("mid_in_secret")
        assert asked == ["tools/list mid_in_secret"]
        # a rule of the outer server holds for all, and clients hear of it
        hide(outer, "mid_own", "open")
        assert (await names(session))["tools"] == ["secret"]
        outer.unmount(middle)
        assert (await names(session))["tools"] == ["secret"]

    world.run(server=outer, work=work)


def test_a_rule_that_comes_later_changes_the_list(world: ServerWorld) -> None:
    server = house()

    async def work(session: Any) -> None:
        assert len(await session.list_tools()) == 2
        async with session.subscribe(tools=True) as changes:
            hide(server, "secret")
            assert (await asyncio.wait_for(changes.__anext__(), 20)).kind == "tools"
            assert [one.name for one in await session.list_tools()] == ["open"]

    world.run(server, work)


def test_completions_pass_a_middleware(world: ServerWorld) -> None:
    server = house()
    lines: list[str] = []

    @server.use(methods=["completion/complete"])
    async def shouting(call: segue.Call, proceed: segue.Proceed) -> Any:
        lines.append(f"{call.method} {call.name} {call.arguments}")
        values: list[str] = await proceed()
        return (one.upper() for one in values)

    async def work(session: Any) -> None:
        found = await session.complete("open", "kind", "g")
        assert list(found.values) == ["GREEN"]
        assert lines == ["completion/complete open {'kind': 'g'}"]
        found = await session.complete("data://open/{part}", "part")
        assert list(found.values) == ["ONE", "TWO"]

    world.run(server, work)


def test_a_completion_can_be_refused(world: ServerWorld) -> None:
    server = house()

    @server.use(methods=["completion/complete"])
    async def refusing(call: segue.Call, proceed: segue.Proceed) -> Any:
        raise segue.McpError(-32603, "not now", {"reason": "night"})

    async def work(session: Any) -> None:
        with pytest.raises(segue.RemoteError, match="not now") as info:
            await session.complete("open", "kind", "g")
        assert info.value.data == {"reason": "night"}

    world.run(server, work)


def test_the_ready_ones_see_lists_and_completions(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = house()
    now = 1000.0
    caplog.set_level(logging.INFO, "segue.calls")
    seconds: list[str] = []
    fails = True
    server.use(middleware.log_calls(clock=lambda: now))
    server.use(
        middleware.time_calls(lambda call, *_: seconds.append(call.method)),
    )
    limit = middleware.limit_rate(1, burst=6, key=lambda _: "all", clock=lambda: now)
    server.use(limit, methods=METHODS)
    server.use(middleware.mask_errors("Ask the operator"))
    server.use(middleware.retry(1, on=(ConnectionError,), delay=0))

    @server.use(methods=["tools/list", "completion/complete"])
    async def failing(call: segue.Call, proceed: segue.Proceed) -> Any:
        nonlocal fails
        if call.name != "open" or call.method == "completion/complete":
            fails = not fails
            if not fails:
                raise ConnectionError
            if seconds.count("prompts/list"):
                raise ValueError("internal")
        return await proceed()

    async def work(session: Any) -> None:
        nonlocal now
        assert len(await session.list_tools()) == 2
        assert list((await session.complete("open", "kind")).values) == [
            "red",
            "green",
        ]
        assert (await session.call("open")).text == "done"
        await session.list_prompts()
        with pytest.raises(segue.Error, match="Ask the operator"):
            await session.list_tools()
        await session.list_resources()
        with pytest.raises(segue.Error, match="Too many calls"):
            await session.list_resource_templates()
        lines = [one.getMessage() for one in caplog.records if one.name == "segue.calls"]
        assert lines == [
            "tools/list ended after 0.000 s",
            "completion/complete open ended after 0.000 s",
            "tools/call open ended after 0.000 s",
            "prompts/list ended after 0.000 s",
            "tools/list failed (ToolError) after 0.000 s",
            "resources/list ended after 0.000 s",
            "resources/templates/list failed (McpError) after 0.000 s",
        ]
        assert seconds[:3] == ["tools/list", "completion/complete", "tools/call"]

    world.run(server, work)


def test_calls_do_not_ask_what_hides_nothing() -> None:
    """A server with only the ready middlewares asks nothing before a call."""
    server = house()
    checks: list[str] = []
    server.use(middleware.time_calls(lambda call, *_: checks.append(call.method)))

    async def work() -> None:
        async with segue.connect(server) as session:
            await session.call("open")
            assert checks == ["tools/call"]

    run(work)


def test_a_list_is_cancelled_with_its_request(world: ServerWorld) -> None:
    server = house()
    ended: list[str] = []
    begun = asyncio.Event()

    @server.use(methods=["prompts/list"])
    async def slow(call: segue.Call, proceed: segue.Proceed) -> Any:
        begun.set()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            ended.append(call.method)
            raise

    async def work(session: Any) -> None:
        asking = asyncio.ensure_future(session.list_prompts())
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while not ended:
            await asyncio.sleep(0)
        assert ended == ["prompts/list"]

    world.run(server, work)


def test_methods_are_checked() -> None:
    server = segue.Server("s")

    async def fine(call: segue.Call, proceed: segue.Proceed) -> Any:
        return await proceed()

    with pytest.raises(ValueError, match="prompts/list, not 'tasks/list'"):
        server.use(fine, methods=["tasks/list"])  # type: ignore[list-item]
