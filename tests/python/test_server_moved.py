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
