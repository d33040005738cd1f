"""What developers bring along from other packages: marks, decorators and prompts with
typed parameters. They work, or are refused with a sentence that says what to write."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any

import fastapi
import pydantic
import pytest
from mcp.server.mcpserver import Context as McpContext

import segue
from segue.sync import connect as connect_sync
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: B008, F811


def dependency() -> int:
    return 1


class _Dependency:
    """Stands for the marks of packages that are not installed here."""


class CurrentContext(_Dependency):
    """Stands for a mark that another class of marks is the base of."""


def by_default(x: int = fastapi.Depends(dependency)) -> None: ...


def by_annotation(x: Annotated[int, fastapi.Depends(dependency)]) -> None: ...


def by_security(x: int = fastapi.Security(dependency)) -> None: ...


def by_header(x: str = fastapi.Header()) -> None: ...


def by_another(x: Any = CurrentContext()) -> None: ...


def by_function(x: Any = fastapi.Depends) -> None: ...


@pytest.mark.parametrize(
    "function",
    [by_default, by_annotation, by_security, by_header, by_another, by_function],
)
def test_a_mark_of_another_package_is_refused(function: Any) -> None:
    server = segue.Server("s")
    for decorate in (server.tool, server.prompt, server.resource("a://{x}")):
        with pytest.raises(TypeError, match=rf"^{function.__name__}: 'x' is marked with"):
            decorate(function)


def test_a_mark_of_another_package_is_refused_in_a_dependency() -> None:
    def handler(x: None = segue.Depends(by_default)) -> None: ...

    with pytest.raises(TypeError, match=r"^by_default: 'x' is marked with Depends of"):
        segue.Server("s").tool(handler)


@pytest.mark.parametrize("tp", [McpContext, McpContext | None, McpContext[Any]])
def test_a_context_of_another_package_is_refused(tp: Any) -> None:
    def handler(ctx: Any) -> None: ...

    handler.__annotations__["ctx"] = tp
    with pytest.raises(
        TypeError, match=r"^handler: 'ctx' is .* of mcp: use segue.Context"
    ):
        segue.Server("s").tool(handler)


def test_a_decorator_that_is_used_incorrectly_says_what_to_write() -> None:
    server: Any = segue.Server("s")

    def function() -> str:
        return ""

    with pytest.raises(TypeError, match=r'write @server.resource\("data://notes"\)'):
        server.resource(function)
    with pytest.raises(TypeError, match="write name='plan'"):
        server.prompt("plan")
    with pytest.raises(TypeError, match="write name='plan'"):
        server.tool("plan")


# ---- prompts whose parameters are no strings


class Model(pydantic.BaseModel):
    n: int


@dataclasses.dataclass
class Data:
    n: int


def make() -> segue.Server:
    server = segue.Server("prompts")

    @server.prompt
    def plan(
        days: int,
        numbers: list[int],
        model: Model,
        data: Data | None = None,
        names: dict[str, pydantic.PositiveInt] | None = None,
        text: str = "",
    ) -> str:
        return repr((days, numbers, model, data, names, text))

    return server


def test_arguments_of_prompts_are_json_texts(world: ServerWorld) -> None:
    async def work(session: Any) -> None:
        given = {"numbers": "[1, 2]", "model": '{"n": 3}', "text": "[1]"}
        prompt = await session.get_prompt("plan", {**given, "days": "4", "data": "null"})
        said = prompt.messages[0].content.text
        assert said == "(4, [1, 2], Model(n=3), None, None, '[1]')"
        # The client makes texts of other values.
        prompt = await session.get_prompt(
            "plan", days=4, numbers=[1], model=Model(n=3), data=Data(5), names={"a": 1}
        )
        said = prompt.messages[0].content.text
        assert said == "(4, [1], Model(n=3), Data(n=5), {'a': 1}, '')"
        for wrong, why in [
            ({"numbers": "1, 2"}, "Expected a JSON text"),
            ({"numbers": '"a"'}, "Expected `array`"),
            ({"names": '{"a": -1}'}, "greater than 0"),
        ]:
            with pytest.raises(segue.RemoteError, match=why):
                await session.get_prompt("plan", {**given, "days": "4", **wrong})
        told = {
            one.name: one.description
            for one in (await session.list_prompts())[0].arguments
        }
        assert told["days"] is None and told["text"] is None
        assert told["numbers"] == (
            "A JSON text that fits this schema: "
            '{"type":"array","items":{"type":"integer"}}'
        )

    world.run(make(), work)


def test_the_blocking_client_makes_texts_too() -> None:
    async def work() -> None:
        async with make().serving(http="127.0.0.1:0") as serving:

            def ask() -> Any:
                with connect_sync(serving.url) as session:
                    return session.get_prompt("plan", days=4, numbers=[1], model={"n": 1})

            prompt = await asyncio.to_thread(ask)
            assert prompt.messages[0].content.text.startswith("(4, [1], Model(n=1)")

    asyncio.run(work())


# ---- questions


def test_a_question_may_have_no_form_or_a_list_of_choices(world: ServerWorld) -> None:
    server = segue.Server("questions")

    @server.tool
    async def ask(ctx: segue.Context) -> str:
        sure = await ctx.elicit("Sure?", None)
        color = await ctx.ask("Which?", ["red", "blue"])
        several = await ctx.elicit("Which ones?", [["a", "b", "c"]])
        with pytest.raises(TypeError, match="a choice has to be a list of str"):
            await ctx.elicit("Which?", [])
        return f"{sure.accepted} {sure.content} {color} {several.content}"

    @server.tool
    def ask_from_thread(ctx: segue.SyncContext) -> str:
        return f"{ctx.elicit('Sure?', None).accepted} {ctx.ask('?', ['red', 'blue'])}"

    def on_elicit(request: segue.ElicitRequest) -> segue.ElicitResult:
        assert request.schema is not None
        field = request.schema["properties"].get("value")
        if field is None:
            return segue.ElicitResult("accept", {})
        if field["type"] == "string":
            assert field["enum"] == ["red", "blue"]
            return segue.ElicitResult("accept", {"value": "blue"})
        assert field["items"]["enum"] == ["a", "b", "c"]
        return segue.ElicitResult("accept", {"value": ["a", "c"]})

    async def work(session: Any) -> None:
        assert (await session.call("ask")).text == "True None blue ['a', 'c']"
        assert (await session.call("ask_from_thread")).text == "True blue"

    world.run(server, work, on_elicit=on_elicit)


# ---- mistakes that are told


def test_an_async_function_cannot_have_the_context_of_plain_ones() -> None:
    async def handler(ctx: segue.SyncContext) -> str: ...  # type: ignore[empty-body]

    async def factory(ctx: segue.SyncContext) -> int: ...  # type: ignore[empty-body]

    def needing(x: Any = segue.Depends(factory)) -> None: ...

    async def either(ctx: segue.Context | segue.SyncContext) -> None: ...

    server = segue.Server("s")
    with pytest.raises(TypeError, match=r"^handler: 'ctx' is annotated with SyncContext"):
        server.tool(handler)
    with pytest.raises(TypeError, match=r"^factory: 'ctx' is annotated with SyncContext"):
        server.tool(needing)
    server.tool(either)


def test_a_restartable_generator_that_cannot_continue_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = segue.Server("s")

    async def again() -> Any:
        yield "a"

    async def goes_on(ctx: segue.Context) -> Any:
        yield "a"

    server.tool(restartable=True)(goes_on)
    assert not caplog.records
    server.tool(restartable=True)(again)
    assert "the tool 'again' is restartable, but takes no segue.Context" in caplog.text


def test_a_middleware_that_loses_a_segment_fails(world: ServerWorld) -> None:
    server = segue.Server("s", expose_errors=True)

    @server.use
    async def loses(call: segue.Call, proceed: segue.Proceed) -> Any:
        call.on_segment(lambda value: None)
        return await proceed()

    @server.tool
    async def speak() -> Any:
        yield "a"

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match="of on_segment has returned None"):
            await session.call("speak")

    world.run(server, work)


def test_a_limited_rate_says_that_the_call_may_be_repeated(world: ServerWorld) -> None:
    server = segue.Server("s")
    server.use(segue.middleware.limit_rate(0.001, burst=1))

    @server.tool
    def ping() -> str:
        return "pong"

    async def work(session: Any) -> None:
        assert (await session.call("ping")).text == "pong"
        with pytest.raises(segue.RemoteError) as caught:
            await session.call("ping")
        assert caught.value.retryable and caught.value.data["retryAfterMs"] > 0

    world.run(server, work)


def test_a_task_is_a_context_that_does_not_end_it(world: ServerWorld) -> None:
    server = segue.Server("s")
    go = asyncio.Event()

    @server.tool(task="must")
    async def wait() -> str:
        await go.wait()
        return "done"

    async def work(session: Any) -> None:
        async with await session.start("wait") as task:
            token = task.token
        go.set()
        assert (await session.resume(token).result()).text == "done"

    world.run(server, work)
