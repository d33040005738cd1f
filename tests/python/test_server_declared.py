"""Mistakes that are found where a server, an item or a type is declared."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any, Literal

import pydantic
import pytest

import segue
from segue.cli.codes import Exit, exit_code
from server_worlds import run


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Plain:
    """A class whose objects JSON does not have."""


class Reading(pydantic.BaseModel):
    value: float


@pytest.mark.parametrize("http", [[], {}, 1.5, True])
def test_an_address_is_a_text_or_a_port(http: Any) -> None:
    server = segue.Server("s")
    with pytest.raises(TypeError, match="http is the address to listen on, such as"):
        server.run(http=http)
    with pytest.raises(TypeError, match="http is the address to listen on, such as"):
        server.serving(http=http)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("tags", r"tool\(\) has no option 'tags': there are no tags: meta="),
        ("titel", r"tool\(\) has no option 'titel', did you mean 'title'\?$"),
        ("zzz", r"tool\(\) has no option 'zzz'$"),
    ],
)
def test_an_option_of_a_tool_that_is_unknown(option: str, why: str) -> None:
    options: Any = {option: "x"}
    with pytest.raises(TypeError, match=why):
        segue.Server("s").tool(**options)  # before it is applied


def test_options_of_the_other_items_and_of_servers() -> None:
    server, odd = segue.Server("s"), {"titel": "x"}
    given: Any = odd
    with pytest.raises(TypeError, match=r"resource\(\) has no option 'titel', did you"):
        server.resource("x://y", **given)
    with pytest.raises(TypeError, match=r"prompt\(\) has no option 'titel', did you"):
        server.prompt(**given)
    wrong: Any = {"onn_log": print}
    with pytest.raises(TypeError, match="'onn_log', did you mean 'on_log'"):
        run_connect(**wrong)
    with pytest.raises(TypeError, match="no option 'cros', did you mean 'cors'"):
        server.serving(http=0, cros=True)  # type: ignore[call-arg]
    with pytest.raises(segue.InvalidError, match="max_tasks is -5"):
        segue.Server("s", options={"max_tasks": -5})
    unknown: Any = {"max_task": 5}
    with pytest.raises(TypeError, match="no option 'max_task'"):
        segue.Server("s", options=unknown)


def run_connect(**options: Any) -> None:
    async def work() -> None:
        await segue.connect("http://127.0.0.1:9/mcp", **options)

    run(work)


def with_default(kind: Any, default: Any) -> Callable[..., str]:
    """Returns a function with one parameter of this type and with this default."""

    def tool(**given: Any) -> str:
        return str(given)

    parameter = inspect.Parameter(
        "x", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
    )
    tool.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter], return_annotation=str
    )
    tool.__annotations__ = {"x": kind, "return": str}
    return tool


@pytest.mark.parametrize(
    ("kind", "default"),
    [(int, "a"), (Literal["a", "b"], "c"), (str, 5), (list[int], ["a"]), (bool, 1)],
)
def test_a_default_that_does_not_fit_its_type(kind: Any, default: Any) -> None:
    with pytest.raises(TypeError, match=r"the default .* of 'x' does not fit its type: "):
        segue.Server("s").tool(with_default(kind, default))


@pytest.mark.parametrize(
    ("kind", "default"),
    [(int, None), (float, 1), (Level, Level.LOW), (list[int], []), (Any, "x")],
)
def test_a_default_that_fits(kind: Any, default: Any) -> None:
    segue.Server("s").tool(with_default(kind, default))


@pytest.mark.parametrize("kind", [Plain, list[Plain], dict[str, Plain], complex])
def test_a_return_type_that_json_does_not_have(kind: Any) -> None:
    def tool() -> Any:
        return None

    tool.__annotations__["return"] = kind
    why = r"the tool 'tool': its return type has \w+, which JSON does not have: return"
    with pytest.raises(TypeError, match=why):
        segue.Server("s").tool(tool)
    segue.Server("s").tool(structured=False)(tool)  # it says so itself


def test_a_wrong_value_of_an_enum_lists_the_values() -> None:
    server = segue.Server("s")

    class Part(pydantic.BaseModel):
        level: Level

    @server.tool
    def pick(
        level: Level,
        mode: Literal["x", "y"] | None = None,
        levels: list[Level] | None = None,
        by: dict[str, Level] | None = None,
    ) -> str:
        return level.value

    @server.tool
    def model(part: Part) -> str:
        return part.level.value

    cases: list[tuple[dict[str, Any], str]] = [
        ({"level": "HIGH"}, '`$.level`; it is one of "low", "high"'),
        ({"level": "low", "mode": "z"}, '`$.mode`; it is one of "x", "y"'),
        ({"level": "low", "levels": ["no"]}, '`$.levels[0]`; it is one of "low", "high"'),
        ({"level": "low", "by": {"a": "no"}}, '; it is one of "low", "high"'),
    ]

    async def work() -> None:
        async with segue.connect(server) as session:
            for given, why in cases:
                with pytest.raises(segue.ToolError) as caught:
                    await session.call("pick", given)
                assert str(caught.value).endswith(why), str(caught.value)
            with pytest.raises(segue.ToolError, match="'low' or 'high'"):
                await session.call("model", {"part": {"level": "no"}})

    run(work)


def test_no_number_in_a_model_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    server = segue.Server("s")
    nan, inf = float("nan"), float("inf")

    @server.tool
    def alone():  # type: ignore[no-untyped-def]
        return Reading(value=nan)

    @server.tool
    def inside() -> Any:
        return {"all": [Reading(value=inf)]}

    @server.tool
    def declared() -> Reading:
        return Reading(value=nan)

    async def work() -> None:
        async with segue.connect(server) as session:
            for name in ("alone", "inside", "declared"):
                caplog.clear()
                with pytest.raises((segue.ToolError, segue.RemoteError)):
                    await session.call(name)
                assert "JSON has no " in caplog.text

    run(work)


def test_exit_codes_of_a_server_that_refuses() -> None:
    """5 is for authorization only: a redirect is no MCP server at this URL."""
    assert exit_code(segue.UnauthorizedError("x")) is Exit.REFUSED
    assert exit_code(segue.RefusedError("the server redirects to x")) is Exit.CONNECTION
