"""Tools of a Python server: their arguments, their results, their failures."""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811


class Color(enum.Enum):
    red = "red"
    blue = "blue"


class Point(msgspec.Struct):
    x: int
    y: float = 1.5


@dataclasses.dataclass
class Named:
    name: str


class Model(pydantic.BaseModel):
    n: int = pydantic.Field(ge=0, description="how many")


class Shape(TypedDict):
    corners: int


def test_each_sort_of_function(world: ServerWorld) -> None:
    server = segue.Server("sorts")
    threads: dict[str, bool] = {}

    def note(name: str) -> str:
        is_main = threading.current_thread() is threading.main_thread()
        threads[name] = is_main
        return name

    @server.tool
    def plain() -> str:
        return note("plain")

    @server.tool(thread=False)
    def at_once() -> str:
        return note("at_once")

    @server.tool
    async def asynchronous() -> str:
        return note("asynchronous")

    @server.tool
    def generator() -> Iterator[str]:
        yield note("gen")
        yield "erator"

    @server.tool
    async def async_generator() -> AsyncIterator[str]:
        yield note("async_")
        yield "generator"

    class Callable:
        async def __call__(self, text: str) -> str:
            return text

    server.tool(name="callable")(Callable())

    async def two(first: str, second: str = "b") -> str:
        """Joins."""
        return first + second

    server.tool(functools.partial(two, "a"))

    class Object:
        def method(self, text: str) -> str:
            return text

    server.tool(Object().method)

    async def work(session: Any) -> None:
        for name in ("plain", "at_once", "asynchronous", "generator", "async_generator"):
            assert (await session.call(name)).text == name
        assert (await session.call("callable", text="called")).text == "called"
        assert (await session.call("two")).text == "ab"
        assert (await session.call("method", text="bound")).text == "bound"

    world.run(server, work)
    assert threads == {
        "plain": False,
        "at_once": True,
        "asynchronous": True,
        "gen": False,
        "async_": True,
    }


def test_what_a_tool_gives(world: ServerWorld) -> None:
    server = segue.Server("giver")
    link = segue.ResourceLink("file:///x", "x")
    given: dict[str, Any] = {
        "none": None,
        "text": "text",
        "bytes": b"b\xc3\xbctes",
        "number": 42,
        "image": segue.Image(b"\0\1", "image/png"),
        "mixed": ["one", segue.Audio(b"\2"), link],
        "list": [1, 2, 3],
        "empty": [],
        "object": {"a": [1, None]},
        "struct": Point(1),
        "dataclass": Named("Ada"),
        "model": Model(n=3),
        "result": segue.Result("said", {"a": 1}, meta={"k": "v"}),
        "structured": segue.Result(structured={"a": 1}),
        "annotated": segue.Text("t", segue.Annotations(["user"], 0.5)),
    }

    def add(name: str, value: Any) -> None:
        server.tool(name=name)(lambda: value)

    for name, value in given.items():
        add(name, value)

    async def work(session: Any) -> None:
        found = {name: await session.call(name) for name in given}
        assert found["none"].content == [] and found["empty"].content == []
        assert found["text"].content == [segue.Text("text")]
        assert found["bytes"].text == "bütes"
        assert found["number"].text == "42" and found["number"].structured is None
        assert found["image"].content == [segue.Image(b"\0\1", "image/png")]
        assert found["mixed"].content == [segue.Text("one"), segue.Audio(b"\2"), link]
        assert found["list"].text == "[1,2,3]" and found["list"].structured is None
        assert found["object"].structured == {"a": [1, None]}
        assert found["object"].text == '{"a":[1,null]}'
        assert found["struct"].structured == {"x": 1, "y": 1.5}
        assert found["dataclass"].structured == {"name": "Ada"}
        assert found["model"].structured == {"n": 3}
        assert found["result"].text == "said" and found["result"].structured == {"a": 1}
        assert found["result"].meta["k"] == "v"
        assert found["structured"].text == '{"a":1}'
        assert found["annotated"].content[0].annotations.priority == 0.5

    world.run(server, work)


def test_what_is_told_of_a_tool(world: ServerWorld) -> None:
    server = segue.Server("teller", "7", title="Teller", instructions="Ask.")

    @server.tool(
        title="Paint",
        annotations=segue.ToolAnnotations(read_only_hint=True),
        icons=[segue.Icon("https://example.org/i.png", sizes=["48x48"])],
        meta={"example.org/cost": 3},
    )
    def paint(
        ctx: segue.SyncContext,
        at: Point,
        color: Color = Color.red,
        size: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3,
        *,
        layer: Annotated[str, "which one"] = "top",
    ) -> Point:
        """Paints a point.

        It stays.

        Args:
            at: where
                to paint
            color (Color): what with
        """
        return at

    async def work(session: Any) -> None:
        assert session.peer.server.version == "7"
        assert session.peer.server.title == "Teller"
        assert session.peer.instructions == "Ask."
        (tool,) = msgspec.to_builtins(await session.list_tools())
        assert tool["title"] == "Paint"
        assert tool["description"] == "Paints a point.\n\nIt stays."
        assert tool["annotations"] == {"readOnlyHint": True}
        assert tool["icons"][0]["sizes"] == ["48x48"]
        assert tool["_meta"]["example.org/cost"] == 3
        schema = tool["inputSchema"]
        assert schema["required"] == ["at"] and schema["type"] == "object"
        properties = schema["properties"]
        assert list(properties) == ["at", "color", "size", "layer"]
        assert properties["at"]["description"] == "where to paint"
        assert properties["color"]["description"] == "what with"
        assert properties["color"]["default"] == "red"
        assert properties["size"]["minimum"] == 1
        assert properties["layer"]["description"] == "which one"
        assert tool["outputSchema"]["required"] == ["x"]

    world.run(server, work)


def test_arguments_are_checked(world: ServerWorld) -> None:
    server = segue.Server("strict")
    ran: list[Any] = []

    @server.tool
    def take(at: Point, color: Color = Color.red, kind: Literal["a", "b"] = "a") -> str:
        ran.append((at, color, kind))
        return "taken"

    @server.tool
    def rest(a: int = 1, **more: Any) -> str:
        return f"{a} {sorted(more)}"

    @server.tool
    async def takes_three(a: int, b: int, c: int, d: int = 0) -> int:
        return a + b + c + d

    async def refused(session: Any, tool: str, arguments: dict[str, Any]) -> str:
        result = await session.call(tool, arguments, raise_on_error=False)
        assert result.is_error
        return str(result.text)

    async def work(session: Any) -> None:
        text = await refused(session, "take", {})
        assert (
            text == "Invalid arguments for tool take: Object missing required field `at`"
        )
        text = await refused(session, "takes_three", {"b": 1})
        assert text == (
            "Invalid arguments for tool takes_three: Object missing required fields "
            "`a`, `c`"
        )
        text = await refused(session, "take", {"at": {"x": "one"}})
        assert text.endswith("Expected `int`, got `str` - at `$.at.x`")
        text = await refused(session, "take", {"at": {"x": 1}, "color": "green"})
        assert "'green'" in text
        text = await refused(session, "take", {"at": {"x": 1}, "kind": "c"})
        assert "'c'" in text
        assert not ran
        assert (await session.call("take", at={"x": 1})).text == "taken"
        assert ran == [(Point(1), Color.red, "a")]
        assert (await session.call("rest", c=1, b=2)).text == "1 ['b', 'c']"

    world.run(server, work)


def test_unknown_arguments_are_refused(world: ServerWorld) -> None:
    server = segue.Server("names")
    closed = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "later": {}},
        "additionalProperties": False,
    }

    @server.tool
    def paint(color: str, size: int = 1) -> str:
        return f"{color} {size}"

    @server.tool
    def model(model: Model, factor: int = 1) -> str:
        return f"{model.n} {factor}"

    @server.tool
    def bare() -> str:
        return "bare"

    @server.tool(forbid_extra=False)
    def loose(color: str) -> str:
        return color

    @server.tool
    def rest(a: int = 1, **more: Any) -> str:
        return f"{a} {sorted(more)}"

    @server.tool(input_schema={"type": "object", "properties": {"name": {}}})
    def written(name: str = "?") -> str:
        return name

    @server.tool(input_schema=closed)
    def written_closed(name: str = "?") -> str:
        return name

    @server.tool(input_schema=closed)
    def written_rest(**more: Any) -> str:
        return str(sorted(more))

    @server.tool(input_schema=closed, forbid_extra=False)
    def written_loose(name: str = "?") -> str:
        return name

    refused: list[tuple[str, dict[str, Any], str]] = [
        (
            "paint",
            {"colour": "red"},
            'unknown argument "colour", did you mean "color"?',
        ),
        (
            "paint",
            {"color": "red", "Size": 2, "what": 3},
            'unknown argument "Size", did you mean "size"?; unknown argument "what"',
        ),
        (
            "paint",
            {"color": "red", "what": 3},
            'unknown argument "what"; the arguments are "color", "size"',
        ),
        (
            "model",
            {"model": {"n": 1}, "factors": 2},
            'unknown argument "factors", did you mean "factor"?',
        ),
        ("bare", {"a": 1}, 'unknown argument "a"; the tool takes no arguments'),
        (
            "written_closed",
            {"nme": "x"},
            'unknown argument "nme", did you mean "name"?',
        ),
        (
            "written_rest",
            {"b": 1},
            'unknown argument "b"; the arguments are "name", "later"',
        ),
    ]
    taken: list[tuple[str, dict[str, Any], str]] = [
        ("paint", {"color": "red"}, "red 1"),
        ("bare", {}, "bare"),
        ("loose", {"color": "red", "colour": 1}, "red"),
        ("rest", {"c": 1, "b": 2}, "1 ['b', 'c']"),
        ("written", {"nme": "x"}, "?"),
        ("written_closed", {"later": 1}, "?"),
        ("written_rest", {"later": 1}, "['later']"),
        ("written_loose", {"nme": "x"}, "?"),
    ]

    async def work(session: Any) -> None:
        tools = {tool.name: tool.input_schema for tool in await session.list_tools()}
        for name in ("paint", "model", "bare", "written_closed"):
            assert tools[name]["additionalProperties"] is False, name
        assert tools["rest"]["additionalProperties"] is True
        for name in ("loose", "written"):
            assert "additionalProperties" not in tools[name], name
        for name, arguments, text in refused:
            result = await session.call(name, arguments, raise_on_error=False)
            assert result.is_error
            assert result.text == f"Invalid arguments for tool {name}: {text}"
        for name, arguments, text in taken:
            assert (await session.call(name, arguments)).text == text

    world.run(server, work)


def test_models_of_pydantic(world: ServerWorld) -> None:
    server = segue.Server("models")

    @server.tool
    def count(
        model: Model, factor: Annotated[int, pydantic.Field(le=5)] = 2, copy: str = "no"
    ) -> Model:
        assert copy == "no"
        return Model(n=model.n * factor)

    async def work(session: Any) -> None:
        (tool,) = msgspec.to_builtins(await session.list_tools())
        assert list(tool["inputSchema"]["properties"]) == ["model", "factor", "copy"]
        assert tool["inputSchema"]["properties"]["factor"]["maximum"] == 5
        assert tool["outputSchema"]["properties"]["n"]["description"] == "how many"
        result = await session.call("count", model={"n": 4})
        assert result.structured == {"n": 8} and result.decode(Model) == Model(n=8)
        bad = await session.call("count", model={"n": -1}, factor=9, raise_on_error=False)
        assert "model.n: Input should be greater than or equal to 0" in bad.text
        assert "factor: Input should be less than or equal to 5" in bad.text

    world.run(server, work)


def test_structured_results_keep_their_word(world: ServerWorld) -> None:
    server = segue.Server("words")

    @server.tool
    def shape(corners: Any) -> Shape:
        return {"corners": corners}

    @server.tool(structured=True)
    def numbers() -> list[int]:
        return [1, 2]

    @server.tool(structured=False)
    def loose() -> Shape:
        return {"corners": 3}

    @server.tool
    def fails() -> Shape:
        raise segue.ToolError("no shape")

    async def work(session: Any) -> None:
        tools = {tool.name: tool for tool in await session.list_tools()}
        assert tools["shape"].output_schema["required"] == ["corners"]
        assert tools["loose"].output_schema is None
        assert (await session.call("shape", corners=3)).structured == {"corners": 3}
        with pytest.raises(segue.RemoteError, match="does not fit its declared type"):
            await session.call("shape", corners="three")
        assert (await session.call("numbers")).structured == {"result": [1, 2]}
        with pytest.raises(segue.ToolError, match="no shape"):
            await session.call("fails")

    world.run(server, work)


def test_failures(world: ServerWorld, caplog: pytest.LogCaptureFixture) -> None:
    server = segue.Server("failures")

    @server.tool
    def tool_error() -> None:
        raise segue.ToolError("told")

    @server.tool
    async def exception() -> None:
        raise ValueError("a value")

    @server.tool
    async def at_length() -> AsyncIterator[str]:
        for _ in range(100):
            yield "sent before\n"
        raise segue.ToolError("and then it failed")

    @server.tool
    def nameless() -> None:
        raise KeyError

    @server.tool
    async def rpc() -> None:
        raise segue.McpError(1005, "wrong", {"why": [1]})

    @server.tool
    def no_json() -> object:
        return object()

    @server.tool
    def no_text() -> bytes:
        return b"\xff"

    async def work(session: Any) -> None:
        texts = {
            "tool_error": "told",
            "exception": "The tool exception failed",
            "at_length": "and then it failed",
            "nameless": "The tool nameless failed",
            "no_json": "The tool no_json failed",
            "no_text": "The tool no_text failed",
        }
        for name, text in texts.items():
            with pytest.raises(segue.ToolError) as caught:
                await session.call(name)
            assert caught.value.message == text
        with pytest.raises(segue.RemoteError) as refused:
            await session.call("rpc")
        assert refused.value.code == 1005
        assert refused.value.data == {"why": [1]} and refused.value.message == "wrong"

    world.run(server, work)
    logged = {
        record.getMessage(): str(record.exc_info and record.exc_info[1])
        for record in caplog.records
        if record.name == "segue.server"
    }
    assert logged["tool 'exception' failed"] == "a value"
    assert logged["tool 'no_json' failed"] == "object cannot be encoded as JSON"
    assert "UTF-8" in logged["tool 'no_text' failed"]
    assert not any("tool_error" in text for text in logged)


def test_texts_of_exceptions_are_shown_on_request(world: ServerWorld) -> None:
    server = segue.Server("open", expose_errors=True)

    @server.tool
    async def exception() -> None:
        raise ValueError("a value")

    @server.tool
    def nameless() -> None:
        raise KeyError

    @server.resource("note://broken")
    def broken() -> str:
        raise ValueError("it broke")

    @server.prompt
    def odd(word: str) -> str:
        raise ValueError("odd")

    async def work(session: Any) -> None:
        for name, text in {"exception": "a value", "nameless": "KeyError"}.items():
            with pytest.raises(segue.ToolError) as caught:
                await session.call(name)
            assert caught.value.message == text
        with pytest.raises(segue.RemoteError, match="it broke"):
            await session.read_resource("note://broken")
        with pytest.raises(segue.RemoteError, match="odd"):
            await session.get_prompt("odd", {"word": "w"})

    world.run(server, work)


def test_a_failure_with_half_a_surrogate_pair(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Names of files that are not UTF-8 look like this. The name is not logged here,
    because pytest's log capture takes only valid Unicode."""
    server = segue.Server("failures", expose_errors=True)
    caplog.set_level(logging.CRITICAL + 1, "segue.server")

    @server.tool
    async def not_unicode() -> None:
        raise OSError("no such file: \udcff")

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError) as caught:
            await session.call("not_unicode")
        assert caught.value.message == "no such file: \\udcff"

    world.run(server, work)


def test_definitions_that_cannot_be(nothing_left: None) -> None:
    server = segue.Server("odd")

    def many(*values: int) -> None: ...

    class Opaque: ...

    def opaque(value: Opaque) -> None: ...

    with pytest.raises(TypeError, match="use a parameter that is a list"):
        server.tool(many)
    with pytest.raises(TypeError):
        server.tool(opaque)
    with pytest.raises(ValueError, match="never, may, must"):
        server.tool(task="sometimes")(lambda: None)  # type: ignore[typeddict-item]
    server.tool(name="twice")(lambda: None)
    with pytest.raises(ValueError, match="already has a tool 'twice'"):
        server.tool(name="twice")(lambda: None)
    with pytest.raises(KeyError):
        server.remove_tool("never")


def test_the_type_of_further_arguments_is_checked(world: ServerWorld) -> None:
    server = segue.Server("further")

    @server.tool
    def numbers(a: int = 1, **k: int) -> str:
        return f"{a} {k}"

    @server.tool
    def points(**k: Point) -> str:
        return str({name: one.x for name, one in k.items()})

    @server.tool
    def models(**k: Model) -> str:
        return str({name: one.n for name, one in k.items()})

    @server.prompt
    def prompt(a: str, **k: int) -> str:
        return f"{a} {k}"

    async def work(session: Any) -> None:
        tools = {one.name: one.input_schema for one in await session.list_tools()}
        assert tools["numbers"]["additionalProperties"] == {"type": "integer"}
        for name in ("points", "models"):
            assert tools[name]["additionalProperties"]["type"] == "object"
        assert (await session.call("numbers", b=2, c=3.0)).text == "1 {'b': 2, 'c': 3}"
        assert (await session.call("points", p={"x": 1})).text == "{'p': 1}"
        assert (await session.call("models", p={"n": 1})).text == "{'p': 1}"
        prompted = await session.get_prompt("prompt", {"a": "x", "b": "2"})
        assert prompted.messages[0].content.text == "x {'b': 2}"
        for tool, arguments, why in (
            ("numbers", {"b": "2"}, "Expected `int`, got `str` - at `$.b`"),
            ("points", {"p": {"x": "a"}}, "Expected `int`, got `str` - at `$.p.x`"),
            ("models", {"p": {"n": "a"}}, "n: Input should be a valid integer"),
        ):
            result = await session.call(tool, arguments, raise_on_error=False)
            assert result.is_error and why in result.text
        with pytest.raises(segue.RemoteError, match=r"at `\$\.b`") as caught:
            await session.get_prompt("prompt", {"a": "x", "b": "two"})
        assert caught.value.code == -32602

    world.run(server, work)


def test_the_reason_of_a_failed_stream_is_its_last_segment(world: ServerWorld) -> None:
    server = segue.Server("failing")

    @server.tool
    async def fails() -> AsyncIterator[str]:
        yield "one "
        raise segue.ToolError("no more")

    async def work(session: Any) -> None:
        stream = session.stream("fails")
        read: list[str] = []
        with pytest.raises(segue.ToolError, match=r"^no more$") as caught:
            async for segment in stream:
                read.append(segment.text)
        assert read == ["one ", "no more"]
        assert caught.value.result is not None
        assert [block.text for block in caught.value.result.content] == read

    world.run(server, work)


@pytest.mark.parametrize("code", [-32001, -32000, -32050, -32042, -32100, -32599, -32768])
def test_reserved_codes_are_refused_where_the_error_is_made(code: int) -> None:
    with pytest.raises(ValueError, match=f"the protocol reserves the error code {code}:"):
        segue.McpError(code, "mine")


@pytest.mark.parametrize("code", [1.5, "no", True, None, 0, 2**31, -(2**31) - 1])
def test_a_code_is_an_integer(code: Any) -> None:
    with pytest.raises(ValueError, match=r"an integer from .* other than 0"):
        segue.McpError(code, "mine")


@pytest.mark.parametrize("code", [1, -1, -32700, -32602, -32020, -32769, -31999])
def test_other_codes_are_taken(code: int) -> None:
    assert segue.McpError(code, "mine").code == code


@pytest.mark.parametrize("of_tool", [None, True, False])
@pytest.mark.parametrize("of_server", [None, True, False])
def test_a_server_says_whether_text_is_structured(
    nothing_left: None, of_server: bool | None, of_tool: bool | None
) -> None:
    server = segue.Server("switch", structured=of_server)

    @server.tool(structured=of_tool)
    async def text() -> str:
        return "a"

    @server.tool(structured=of_tool)
    async def number() -> int:
        return 1

    @server.tool
    async def nothing() -> None:
        return None

    @server.tool
    async def image() -> segue.Image:
        return segue.Image(b"x", "image/png")

    async def work() -> None:
        async with segue.connect(server) as session:
            wanted = of_server if of_tool is None else of_tool
            result = await session.call("text")
            assert (result.structured is not None) == (wanted is True)
            result = await session.call("number")
            assert (result.structured is not None) == (wanted is not False)
            for name in ("nothing", "image"):
                assert (await session.call(name)).structured is None

    run(work)
