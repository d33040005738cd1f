"""Structured results of a Python server: which types have them, and their schemas."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
from collections.abc import Generator, Iterator
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    TypedDict,
    TypeVar,
)

import jsonschema
import msgspec
import pydantic
import pytest

import segue
from segue import schema
from segue.server.output import Output, Unfit
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811

T = TypeVar("T")


class Color(enum.Enum):
    red = "red"
    blue = "blue"


class Word(str, enum.Enum):
    yes = "yes"


class Point(msgspec.Struct):
    x: int
    y: float = 1.5


class Point3(Point):
    z: int = 0


@dataclasses.dataclass
class Named:
    name: str


@dataclasses.dataclass
class Titled(Named):
    title: str


class Model(pydantic.BaseModel):
    n: int


class Twin(msgspec.Struct):
    """As Point, but another class."""

    x: int


class Lenient(pydantic.BaseModel):
    n: int


@dataclasses.dataclass
class Corners:
    corners: int


class Shape(TypedDict):
    corners: int


class Pair(NamedTuple):
    a: int
    b: str


class Branch(pydantic.BaseModel):
    """A model that has itself as a part."""

    name: str
    parts: list[Branch] = []


Count = NewType("Count", int)
Title = NewType("Title", str)
Photo = NewType("Photo", segue.Image)


OBJECTS = [
    Branch,
    NewType("Root", Branch),
    Point,
    Named,
    Model,
    Shape,
    dict,
    dict[str, int],
    Annotated[Point, "where"],
]
WRAPPED = [
    int,
    bool,
    float,
    list[int],
    list[str],
    list[Model],
    list[Point],
    tuple[int, str],
    set[int],
    int | str,
    Point | None,
    Color,
    Word,
    Literal["m", "km"],
    Pair,
    Annotated[int, "how many"],
    Count,
]
NEITHER = [
    Any,
    None,
    str,
    str | None,
    bytes,
    list,
    tuple,
    list[Any],
    tuple[Any, ...],
    segue.Result,
    segue.Image,
    segue.Image | None,
    list[segue.Image],
    list[str | segue.Image],
    dict[str, segue.Image],
    object,
    Annotated[str, "a text"],
    Title,
    Title | None,
    Photo,
    list[Photo],
]


@pytest.mark.parametrize("tp", OBJECTS, ids=str)
def test_an_object_is_sent_as_it_is(tp: Any) -> None:
    output = Output.of(tp, None)
    assert output is not None and not output.wraps
    assert output.schema["type"] == "object"
    assert Output.of(tp, False) is None


@pytest.mark.parametrize("tp", WRAPPED, ids=str)
def test_another_value_is_wrapped(tp: Any) -> None:
    output = Output.of(tp, None)
    assert output is not None and output.wraps
    assert output.schema["type"] == "object"
    assert output.schema["required"] == ["result"]
    assert output.schema["x-fastmcp-wrap-result"] is True
    assert Output.of(tp, False) is None


@pytest.mark.parametrize("tp", NEITHER, ids=str)
def test_text_and_content_are_not_structured(tp: Any) -> None:
    assert Output.of(tp, None) is None


def test_text_is_structured_on_request() -> None:
    output = Output.of(str, True)
    assert output is not None and output.wraps
    assert Output.of(segue.Image, True) is None


VALUES: list[tuple[Any, Any, str, Any]] = [
    (int, 3, "3", {"result": 3}),
    (bool, True, "true", {"result": True}),
    (float, 3, "3", {"result": 3}),
    (list[int], [1, 2], "[1,2]", {"result": [1, 2]}),
    (list[str], ["a", "b"], "ab", {"result": ["a", "b"]}),
    (list[str], [], "[]", {"result": []}),
    (list[Model], [Model(n=1)], '[{"n":1}]', {"result": [{"n": 1}]}),
    (list[Point], [Point(1)], '[{"x":1,"y":1.5}]', {"result": [{"x": 1, "y": 1.5}]}),
    (list[Point], [{"x": 1}], '[{"x":1}]', {"result": [{"x": 1}]}),
    (int, 3.0, "3", {"result": 3}),
    (list[int], [3.0], "[3]", {"result": [3]}),
    (Point, {"x": 1}, '{"x":1}', {"x": 1}),
    (Named, {"name": "Ada"}, '{"name":"Ada"}', {"name": "Ada"}),
    (dict[int, int], {1: 2}, '{"1":2}', {"1": 2}),
    (int | str, "a", "a", {"result": "a"}),
    (Point | None, None, "null", {"result": None}),
    (Color, Color.red, "red", {"result": "red"}),
    (Word, Word.yes, "yes", {"result": "yes"}),
    (Pair, Pair(1, "b"), '[1,"b"]', {"result": [1, "b"]}),
    (Named, Named("Ada"), '{"name":"Ada"}', {"name": "Ada"}),
    (Shape, {"corners": 3}, '{"corners":3}', {"corners": 3}),
    (Model, Model(n=2), '{"n":2}', {"n": 2}),
    (dict[str, int], {"a": 1}, '{"a":1}', {"a": 1}),
    (str, "text", "text", None),
    (list, [1], "[1]", None),
    (Lenient, {"n": "5"}, '{"n":5}', {"n": 5}),
    (list[Lenient], [{"n": "5"}], '[{"n":5}]', {"result": [{"n": 5}]}),
]
MISFITS: list[tuple[Any, Any]] = [
    (int, "3"),
    (int, 2.5),
    (int, None),
    (int, True),
    (float, math.nan),
    (list[int], ["a"]),
    (list[int], [True]),
    (list[int], [object()]),
    (Point, {"x": "1"}),
    (Shape, {"corners": "3"}),
    (list[Point], [{"y": 1}]),
    (list[Model], [{}]),
    (Point, Point("a")),  # type: ignore[arg-type]
    (Point, Named("a")),
    (Point, Twin(1)),
    (Named, Named(1)),  # type: ignore[arg-type]
    (Model, Model.model_construct(n="a")),
    (Model, Lenient(n=1)),
    (Point | None, Twin(1)),
    (list[Point], [Twin(1)]),
    (dict[str, Point], {"a": Twin(1)}),
    (tuple[int, Point], (1, Twin(1))),
    (list[Model], [Lenient(n=1)]),
]


def test_values_and_their_texts(world: ServerWorld) -> None:
    server = segue.Server("outputs")

    def add(name: str, tp: Any, value: Any) -> None:
        def function() -> Any:
            return value

        function.__annotations__["return"] = tp
        server.tool(name=name)(function)

    for number, (tp, value, _, _) in enumerate(VALUES):
        add(f"value{number}", tp, value)
    for number, (tp, value) in enumerate(MISFITS):
        add(f"misfit{number}", tp, value)

    @server.tool
    def counts() -> Generator[str, None, int]:
        yield "one "
        return 1

    @server.tool
    def streams() -> Iterator[int]:
        yield 1

    @server.tool(structured=True)
    def text() -> str:
        return "a text"

    @server.tool(structured=False)
    def loose() -> int:
        return 3

    @server.tool(output_schema={"type": "object"})
    def written() -> int:
        return segue.Result("three", {"n": 3})  # type: ignore[return-value]

    async def work(session: Any) -> None:
        tools = {tool.name: tool.output_schema for tool in await session.list_tools()}
        for number, (tp, value, told, structured) in enumerate(VALUES):
            result = await session.call(f"value{number}")
            assert (result.text, result.structured) == (told, structured), tp
            if structured is not None:
                assert tools[f"value{number}"]["type"] == "object"
                assert schema.encode(result.decode(tp)) == schema.encode(
                    schema.converter(tp)(value)
                )
        for number, (tp, _) in enumerate(MISFITS):
            with pytest.raises(segue.RemoteError, match="its declared type") as caught:
                await session.call(f"misfit{number}")
            assert caught.value.code == -32603, tp
        result = await session.call("counts")
        assert (result.text, result.structured) == ("one 1", {"result": 1})
        result = await session.call("streams")
        assert (result.text, result.structured) == ("1", None)
        result = await session.call("text")
        assert (result.text, result.structured) == ("a text", {"result": "a text"})
        result = await session.call("loose")
        assert (result.text, result.structured) == ("3", None)
        assert tools["loose"] is None and tools["streams"] is None
        assert (await session.call("written")).structured == {"n": 3}
        assert tools["written"] == {"type": "object"}

    world.run(server, work)


PICTURE = segue.Image(b"a")
PLAIN: list[tuple[Any, Any]] = [
    (str, "a"),
    (Title, "a"),
    (str | None, None),
    (None, None),
    (bytes, bytearray(b"a")),
    (segue.Image, PICTURE),
    (Photo, PICTURE),
    (segue.Image | None, None),
    (segue.Image | int, 3),
    (list[segue.Image], (PICTURE,)),
    (tuple[str, segue.Image], ("a", PICTURE)),
    (dict[str, segue.Image], {"a": PICTURE}),
    (list[str | segue.Image], ["a", PICTURE]),
    (list, ["a"]),
    (Any, 5),
    (object, 5),
    (T, 5),
    (str, segue.Result("a")),
    (None, segue.Result("a")),
]
PLAIN_MISFITS: list[tuple[Any, Any, str, str]] = [
    (str, 5, "str", "`int`: 5"),
    (str, {"a": 1}, "str", "`dict`: {'a': 1}"),
    (str, Point(1), "str", "`Point`: Point(x=1, y=1.5)"),
    (str, None, "str", "`NoneType`: None"),
    (str | None, 5, "str | None", "`int`: 5"),
    (Title, 5, "Title", "`int`: 5"),
    (None, 4, "NoneType", "`int`: 4"),
    (None, "a", "NoneType", "`str`: 'a'"),
    (bytes, "a", "bytes", "`str`: 'a'"),
    (segue.Image, "x", "Image", "`str`: 'x'"),
    (segue.Result, "x", "Result", "`str`: 'x'"),
    (segue.Image | int, "x", "segue.content.Image | int", "`str`: 'x'"),
    (list[segue.Image], ["x"], "list[segue.content.Image]", "`list`: ['x']"),
    (list[segue.Image], PICTURE, "list[segue.content.Image]", "`Image`: Image("),
    (tuple[str, segue.Image], ("a",), "tuple[str, segue.content.Image]", "`tuple`: ('a"),
    (dict[str, segue.Image], {"a": 1}, "dict[str, segue.content.Image]", "`dict`: {'a"),
    (list, 5, "list", "`int`: 5"),
]


def test_text_and_content_have_to_fit_too(world: ServerWorld) -> None:
    server = segue.Server("plain", expose_errors=True)

    def add(name: str, tp: Any, value: Any) -> None:
        def function() -> Any:
            return value

        function.__annotations__["return"] = tp
        server.tool(name=name)(function)

    for number, (tp, value) in enumerate(PLAIN):
        add(f"fit{number}", tp, value)
    for number, (tp, value, *_) in enumerate(PLAIN_MISFITS):
        add(f"misfit{number}", tp, value)

    @server.tool
    def streams() -> Generator[str, None, str]:
        yield "a"
        return 5  # type: ignore[return-value]

    @server.tool(structured=False)
    def loose() -> int:
        return "a"  # type: ignore[return-value]

    async def work(session: Any) -> None:
        for number in range(len(PLAIN)):
            await session.call(f"fit{number}")
        for number, (_, _, name, came) in enumerate(PLAIN_MISFITS):
            with pytest.raises(segue.RemoteError) as caught:
                await session.call(f"misfit{number}")
            told = f"The result of misfit{number} does not fit its declared type {name}: "
            assert caught.value.message.startswith(f"{told}got {came}")
            assert caught.value.code == -32603
        with pytest.raises(segue.RemoteError, match="declared type str: got `int`: 5"):
            await session.call("streams")
        assert (await session.call("loose")).text == "a"

    world.run(server, work)


def test_objects_of_subclasses_fit() -> None:
    for tp, value, structured in (
        (Shape, Corners(3), {"corners": 3}),
        (dict[str, Any], Point(1), {"x": 1, "y": 1.5}),
        (Point | None, Point3(1), {"result": {"x": 1, "y": 1.5, "z": 0}}),
        (list[Point], [Point3(1)], {"result": [{"x": 1, "y": 1.5, "z": 0}]}),
        (list[Named], [Titled("A", "B")], {"result": [{"name": "A", "title": "B"}]}),
        (dict[str, Point], {"a": Point3(1)}, {"a": {"x": 1, "y": 1.5, "z": 0}}),
    ):
        output = Output.of(tp, None)
        assert output is not None
        assert output.encode("tool", value) == schema.encode(structured)
    output = Output.of(list[Point], None)
    assert output is not None
    with pytest.raises(Unfit, match="its declared type"):
        output.encode("tool", [Point3("a")])  # type: ignore[arg-type]


class Settings(msgspec.Struct):
    size: int = 1


class Options(pydantic.BaseModel):
    size: int = 1


class Outcome(msgspec.Struct):
    result: dict[str, int]


class Tree(pydantic.BaseModel):
    result: Tree | None = None
    size: int = 1


@pytest.mark.parametrize(
    ("tp", "inner", "value"),
    [
        (Settings, {"size": 2}, Settings(2)),
        (Settings | None, {"size": 2}, Settings(2)),
        (Settings, {}, Settings()),
        (Options, {"size": 2}, Options(size=2)),
        (dict, {"size": 2}, {"size": 2}),
        (dict[str, Any], {"size": 2}, {"size": 2}),
        (Any, 3, 3),
        (None, None, None),
        (dict, 3, {"result": 3}),
        (Outcome, {"a": 1}, Outcome({"a": 1})),
        (Outcome | None, {"a": 1}, Outcome({"a": 1})),
        (Outcome | None, None, None),
        (Outcome, {"result": {"a": 1}}, Outcome({"a": 1})),
        (Tree, {"size": 2}, Tree(result=Tree(size=2))),
        (Annotated[Outcome, "which"], {"a": 1}, Outcome({"a": 1})),
    ],
    ids=str,
)
def test_the_value_inside_is_decoded_first(tp: Any, inner: Any, value: Any) -> None:
    assert segue.Result(structured={"result": inner}).decode(tp) == value


class Level(msgspec.Struct):
    height: int


class Grade(pydantic.BaseModel):
    height: int


@pytest.mark.parametrize("tp", [Level, Grade])
def test_a_result_is_decoded_by_the_rule_of_json(tp: Any) -> None:
    assert segue.Result(structured={"height": 5.0}).decode(tp).height == 5
    assert segue.Result(structured={"result": {"height": 5.0}}).decode(tp).height == 5
    assert segue.Result('{"height":5.0}').decode(tp).height == 5
    for height in ("5", 5.5):
        with pytest.raises(ValueError):
            segue.Result(structured={"height": height}).decode(tp)


@pytest.mark.parametrize(
    ("tp", "name"), [(int, "int"), (list[int], "list[int]"), (Branch, "Branch")]
)
def test_a_value_that_does_not_fit_is_told_with_the_declared_type(
    tp: Any, name: str
) -> None:
    output = Output.of(tp, None)
    assert output is not None
    with pytest.raises(Unfit) as caught:
        output.encode("told", None)
    assert f"The result of told does not fit its declared type {name}: " in str(
        caught.value
    )


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, "infinity")])
def test_a_number_that_json_has_not_is_told(value: float, name: str) -> None:
    output = Output.of(float, None)
    assert output is not None
    with pytest.raises(Unfit, match=f"type float: JSON has no {name}$"):
        output.encode("told", value)


def test_a_wrapped_value_is_decoded() -> None:
    wrapped = segue.Result("3", {"result": 3})
    assert wrapped.decode(int) == 3
    assert wrapped.decode(dict) == {"result": 3}
    with pytest.raises(msgspec.ValidationError):
        wrapped.decode(str)
    with pytest.raises(msgspec.ValidationError):
        segue.Result(structured={"other": 3}).decode(int)


def test_a_misfit_is_logged_and_masked(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    masked = segue.Server("masked")
    shown = segue.Server("shown", expose_errors=True)
    for server in (masked, shown):

        @server.tool
        def secret() -> Point:
            return Point("the secret")  # type: ignore[arg-type]

        @server.tool
        def name() -> str:
            return 5  # type: ignore[return-value]

    reasons = {
        "secret": "Point: Expected `int`, got `str` - at `$.x`",
        "name": "str: got `int`: 5",
    }
    told = [f"The result of {tool} does not fit its declared type" for tool in reasons]
    why = [" ".join(pair) for pair in zip(told, reasons.values(), strict=True)]

    async def fails(session: Any) -> None:
        for tool in reasons:
            with pytest.raises(segue.RemoteError) as caught:
                await session.call(tool)
            lines.append(caught.value.message)

    lines: list[str] = []
    world.run(masked, fails)
    logged = zip(reasons, why, strict=True)
    assert caplog.messages == [f"tool {tool!r} failed: {one}" for tool, one in logged]
    world.run(shown, fails)
    assert lines == told + why


# ---- models whose written form is not the one that they read


class Stamped(pydantic.BaseModel):
    t: Annotated[
        datetime.datetime,
        pydantic.PlainSerializer(lambda v: v.timestamp(), return_type=float),
    ]


class Renamed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)
    first: str = pydantic.Field(
        validation_alias="in_first", serialization_alias="firstName"
    )


class Square(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    side: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> int:
        return self.side**2


class Secret(pydantic.BaseModel):
    word: pydantic.SecretStr


Late = Annotated[
    datetime.date, pydantic.PlainSerializer(lambda v: v.toordinal(), return_type=int)
]
NEW_YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("tp", "value", "sent"),
    [
        (Stamped, Stamped(t=NEW_YEAR), {"t": 1767225600.0}),
        (Renamed, Renamed(first="a"), {"firstName": "a"}),
        (Square, Square(side=2), {"side": 2, "area": 4}),
        (list[Square], [Square(side=1)], {"result": [{"side": 1, "area": 1}]}),
        (Late, datetime.date(1, 1, 2), {"result": 2}),
        (dict[str, Late], {"a": datetime.date(1, 1, 2)}, {"a": 2}),
        (Secret, Secret(word=pydantic.SecretStr("a")), {"word": "**********"}),
    ],
)
def test_the_schema_of_a_result_tells_what_is_written(
    tp: Any, value: Any, sent: Any
) -> None:
    output = Output(tp)
    raw = output.encode("t", value)
    assert msgspec.json.decode(raw) == sent
    jsonschema.validate(sent, output.schema)


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


def test_an_object_of_a_generic_model_fits_its_declared_form() -> None:
    output = Output(Page[Square])
    for page in (Page(items=[Square(side=1)]), Page[Square](items=[Square(side=1)])):
        assert output.encode("t", page) == b'{"items":[{"side":1,"area":1}]}'
    with pytest.raises(Unfit):
        output.encode("t", Page(items=["a"]))
    with pytest.raises(Unfit):
        output.encode("t", Square(side=1))
