"""The types of arguments of a Python server: which JSON they accept, and their schemas.
Each type is read in the same way with and without a model of pydantic beside it.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

import msgspec
import pydantic
import pytest

import segue
from segue import schema
from segue.server.signature import Signature
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811


class Size(enum.Enum):
    small = "S"
    large = "L"
    medium = "M"


class Level(enum.IntEnum):
    high = 3
    low = 1


class Model(pydantic.BaseModel):
    n: int = 0
    path: pathlib.Path | None = None


class Event(msgspec.Struct):
    at: datetime.datetime
    size: Size
    days: list[datetime.time] = []
    kind: Literal["z", "a"] = msgspec.field(name="sort", default="z")


@dataclasses.dataclass
class Holder:
    event: Event
    level: Level | None = None


class Typed(TypedDict):
    size: Size


class Pair(NamedTuple):
    when: datetime.datetime
    n: int


NOON = datetime.datetime(2026, 7, 28, 12, tzinfo=datetime.timezone.utc)
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
FITS: list[tuple[Any, str, Any]] = [
    (int, "5", 5),
    (int, "5.0", 5),
    (int, "5e0", 5),
    (list[int], "[1.0,2]", [1, 2]),
    (float, "5", 5.0),
    (float, "5.5", 5.5),
    (bool, "true", True),
    (str, '"5"', "5"),
    (int | None, "null", None),
    (pathlib.Path, '"a/b"', pathlib.Path("a/b")),
    (pathlib.PurePosixPath, '"/a"', pathlib.PurePosixPath("/a")),
    (list[pathlib.Path], '["a"]', [pathlib.Path("a")]),
    (datetime.datetime, '"2026-07-28T12:00:00Z"', NOON),
    (datetime.date, '"2026-07-28"', NOON.date()),
    (datetime.time, '"12:00:00"', datetime.time(12)),
    (datetime.timedelta, '"PT90S"', datetime.timedelta(seconds=90)),
    (uuid.UUID, f'"{ID}"', ID),
    (bytes, '"AAE="', b"\0\1"),
    (decimal.Decimal, '"3.10"', decimal.Decimal("3.10")),
    (decimal.Decimal, "3.10", decimal.Decimal("3.10")),
    (Size, '"L"', Size.large),
    (Level, "3", Level.high),
    (Literal["z", "a"], '"a"', "a"),
    (set[int], "[1,2]", {1, 2}),
    (tuple[int, str], '[1,"a"]', (1, "a")),
    (
        Holder,
        '{"event":{"at":"2026-07-28T12:00:00Z","size":"S"},"level":3.0}',
        Holder(Event(NOON, Size.small), Level.high),
    ),
]
MISFITS: list[tuple[Any, str]] = [
    (int, '"5"'),
    (int, "5.5"),
    (int, "true"),
    (int, "null"),
    (float, '"5"'),
    (bool, "1"),
    (bool, '"true"'),
    (str, "5"),
    (pathlib.Path, "5"),
    (datetime.datetime, "1785240000"),
    (datetime.datetime, '"soon"'),
    (datetime.date, '"2026-07-28T12:00:00Z"'),
    (uuid.UUID, '"12"'),
    (bytes, '"%"'),
    (decimal.Decimal, '"many"'),
    (Size, '"large"'),
    (Level, '"3"'),
    (set[int], '["1"]'),
]


def signatures(tp: Any) -> list[Signature]:
    def alone(value: Any) -> None: ...

    def beside(value: Any, model: Model = Model(n=1)) -> None: ...  # noqa: B008

    for function in (alone, beside):
        function.__annotations__["value"] = tp
    return [Signature(alone, True), Signature(beside, True)]


@pytest.mark.parametrize(("tp", "raw", "value"), FITS)
def test_json_that_fits(tp: Any, raw: str, value: Any) -> None:
    for signature in signatures(tp):
        made = signature.decode(b'{"arguments":{"value":%s}}' % raw.encode())[0]
        assert made == value and type(made) is type(value)


@pytest.mark.parametrize(("tp", "raw"), MISFITS)
def test_json_that_does_not_fit(tp: Any, raw: str) -> None:
    params = b'{"arguments":{"value":%s}}' % raw.encode()
    texts = []
    for signature in signatures(tp):
        with pytest.raises(msgspec.ValidationError) as caught:
            signature.decode(params)
        texts.append(str(signature.bad("it", caught.value, params)))
    assert texts[0] == texts[1]


def test_a_model_follows_the_rule_too() -> None:
    def function(model: Model, n: Annotated[int, pydantic.Field(ge=1)] = 1) -> None: ...

    signature = Signature(function)

    def read(arguments: str) -> Any:
        return signature.decode(b'{"arguments":%s}' % arguments.encode())

    assert read('{"model":{"n":5.0,"path":"a"}}') == (
        Model(n=5, path=pathlib.Path("a")),
        1,
    )
    assert read('{"model":{},"n":2.0}') == (Model(), 2)
    wrong = {
        '{"model":{"n":"5"}}': "model.n: Input should be a valid integer",
        '{"model":{},"n":"2"}': "n: Input should be a valid integer",
        '{"model":{},"n":0}': "n: Input should be greater than or equal to 1",
        "{}": "model: Field required",
    }
    for arguments, text in wrong.items():
        with pytest.raises(pydantic.ValidationError) as caught:
            read(arguments)
        assert schema.reason(caught.value) == text


def test_bytes_beside_a_field_are_base64() -> None:
    def function(
        data: Annotated[bytes, pydantic.Field(max_length=3)],
        more: Annotated[list[bytes], pydantic.Field()] = [b"\0\1"],  # noqa: B006
    ) -> None: ...

    signature = Signature(function)
    for text, data in (("AAE=", b"\0\1"), ("+/+/", b"\xfb\xff\xbf")):
        raw = f'{{"arguments":{{"data":"{text}","more":["{text}"]}}}}'
        assert signature.decode(raw.encode()) == (data, [data])
        assert signature.convert({"data": text})[0] == data
    with pytest.raises(pydantic.ValidationError, match="base64"):
        signature.decode(b'{"arguments":{"data":"%"}}')
    properties = signature.schema["properties"]
    assert properties["data"]["format"] == "base64url"
    assert properties["more"]["default"] == ["AAE="]


def test_bytes_in_a_model_follow_the_config_of_the_model() -> None:
    class Texts(pydantic.BaseModel):
        data: bytes

    class Coded(Texts):
        model_config = pydantic.ConfigDict(
            val_json_bytes="base64", ser_json_bytes="base64"
        )

    def function(texts: Any, coded: Any) -> None: ...

    function.__annotations__.update(texts=Texts, coded=Coded)
    texts, coded = Signature(function).decode(
        b'{"arguments":{"texts":{"data":"AAE="},"coded":{"data":"AAE="}}}'
    )
    assert (texts.data, coded.data) == (b"AAE=", b"\0\1")
    assert schema.encode(coded) == b'{"data":"AAE="}'


def test_a_struct_and_a_model_of_one_name() -> None:
    def function(first: Any, second: Any, third: Any) -> None: ...

    class Point(msgspec.Struct):
        x: int

    other = pydantic.create_model("Point", y=(int, ...))
    holder = pydantic.create_model("Holder", point=(other, ...))
    function.__annotations__.update(first=Point, second=other, third=holder)
    signature = Signature(function)
    properties, parts = signature.schema["properties"], signature.schema["$defs"]
    assert list(properties) == signature.schema["required"]
    for name, member in (("first", "x"), ("second", "y")):
        part = parts[properties[name]["$ref"].removeprefix("#/$defs/")]
        assert list(part["properties"]) == [member]
    inner = parts[properties["third"]["$ref"].removeprefix("#/$defs/")]
    part = parts[inner["properties"]["point"]["$ref"].removeprefix("#/$defs/")]
    assert list(part["properties"]) == ["y"]
    first, second, third = signature.decode(
        b'{"arguments":{"first":{"x":1},"second":{"y":2},"third":{"point":{"y":3}}}}'
    )
    assert (first.x, second.y, third.point.y) == (1, 2, 3)


def test_schemas_say_order_type_and_format() -> None:
    sizes = {"enum": ["S", "L", "M"], "type": "string"}

    def part_of(tp: Any) -> dict[str, Any]:
        made = schema.json_schema(tp)
        made.pop("$defs", None)
        return made

    assert part_of(Size) == sizes
    assert part_of(Level) == {"enum": [3, 1], "type": "integer"}
    assert part_of(Literal["z", "a"]) == {"enum": ["z", "a"], "type": "string"}
    assert part_of(Literal["z", 1]) == {"enum": ["z", 1], "type": ["string", "integer"]}
    assert part_of(pathlib.Path) == {"type": "string", "format": "path"}
    assert part_of(datetime.datetime) == {"type": "string", "format": "date-time"}
    assert part_of(datetime.datetime | None)["anyOf"][0]["format"] == "date-time"
    assert part_of(Literal["z", "a"] | None)["anyOf"][0]["enum"] == ["z", "a"]
    assert part_of(dict[str, datetime.time])["additionalProperties"]["format"] == "time"
    assert part_of(tuple[int, datetime.datetime])["prefixItems"][1]["format"]
    assert part_of(list[Literal["z", "a"]])["items"]["enum"] == ["z", "a"]
    assert part_of(Pair)["prefixItems"][0]["format"] == "date-time"
    made = schema.json_schema(Holder)
    event = made["$defs"]["Event"]["properties"]
    assert event["at"]["format"] == "date-time"
    assert event["days"]["items"]["format"] == "time"
    assert event["sort"]["enum"] == ["z", "a"]
    for part in (made["$defs"]["Size"], schema.json_schema(Typed)["$defs"]["Size"]):
        assert {**part, "title": ""} == {**sizes, "title": ""}
    assert made["$defs"]["Level"]["enum"] == [3, 1]


def test_a_described_date_with_time_has_its_format_in_a_union() -> None:
    told = Annotated[datetime.datetime, msgspec.Meta(description="when")]
    made = schema.json_schema(told | None)["anyOf"][0]
    assert made == {"type": "string", "format": "date-time", "description": "when"}


def test_a_decimal_is_read_from_a_number_and_written_as_a_string() -> None:
    class Price(msgspec.Struct):
        amount: decimal.Decimal

    def buy(price: Price, tip: decimal.Decimal | None = None) -> None: ...

    buy.__annotations__.update(price=Price, tip=decimal.Decimal | None)
    signature = Signature(buy)
    read = {"type": ["string", "number"], "format": "decimal"}
    assert signature.schema["properties"]["tip"]["anyOf"][0] == read
    assert signature.schema["$defs"]["Price"]["properties"]["amount"] == read
    price, tip = signature.decode(b'{"arguments":{"price":{"amount":"1.5"},"tip":2}}')
    assert (price.amount, tip) == (decimal.Decimal("1.5"), 2)
    written = {"type": "string", "format": "decimal"}
    assert schema.json_schema(Price)["properties"]["amount"] == written
    assert schema.form_schema(Price)["properties"]["amount"] == written


Number = NewType("Number", int)
NewModel = NewType("NewModel", Model)


def test_a_new_type_is_read_as_the_type_behind_it() -> None:
    def function(n: Any, model: Any, models: Any) -> None: ...

    function.__annotations__.update(n=Number, model=NewModel, models=list[NewModel])
    signature = Signature(function)
    assert signature.schema["properties"]["n"] == {"type": "integer"}
    n, model, models = signature.decode(
        b'{"arguments":{"n":1,"model":{"n":2},"models":[{"n":3}]}}'
    )
    assert (n, model, models) == (1, Model(n=2), [Model(n=3)])


def test_the_first_choice_of_an_alias_is_the_name_of_the_argument() -> None:
    def function(size: Any, place: Any = 0) -> None: ...

    choices = pydantic.AliasChoices(pydantic.AliasPath("sizes", 0), "breadth", "width")
    field = pydantic.Field(validation_alias=choices)
    function.__annotations__.update(size=Annotated[int, field], place=int)
    signature = Signature(function, True)
    assert list(signature.schema["properties"]) == ["breadth", "place"]
    assert signature.schema["required"] == ["breadth"]
    assert signature.decode(b'{"arguments":{"breadth":3}}') == (3, 0)
    path = pydantic.Field(validation_alias=pydantic.AliasPath("sizes", 0))
    function.__annotations__.update(size=Annotated[int, path])
    with pytest.raises(TypeError, match="the alias of 'size' has to have a name"):
        Signature(function)


def test_the_problem_that_whole_numbers_leave_is_told(world: ServerWorld) -> None:
    server = segue.Server("numbers")

    @server.tool
    def add(first: int, second: int) -> int:
        return first + second

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match=r"got `str` - at `\$\.second`$"):
            await session.call("add", first=5.0, second="x")
        with pytest.raises(segue.ToolError, match=r"got `float` - at `\$\.first`$"):
            await session.call("add", first=5.5, second="x")
        assert (await session.call("add", first=5.0, second=1)).decode(int) == 6

    world.run(server, work)


def test_the_names_of_a_schema_are_those_of_its_branches_and_references(
    world: ServerWorld,
) -> None:
    server = segue.Server("names")
    written = {
        "type": "object",
        "properties": {"name": {}, "deep": {"properties": {"inner": {}}}},
        "anyOf": [{"properties": {"first": {}}}, {"$ref": "#/$defs/Sec~1ond"}],
        "if": {"properties": {"name": {"const": "x"}}},
        "then": {"properties": {"third": {}}},
        "dependentSchemas": {"first": {"properties": {"fourth": {}}}},
        "$defs": {"Sec/ond": {"properties": {"second": {}}, "allOf": [{"$ref": "#"}]}},
    }

    @server.tool(input_schema=written, forbid_extra=True)
    def told(**given: Any) -> str:
        return " ".join(given)

    async def work(session: Any) -> None:
        for name in ("name", "deep", "first", "second", "third", "fourth"):
            assert (await session.call("told", **{name: 1})).text == name
        for name in ("inner", "fifth"):
            with pytest.raises(segue.ToolError, match="unknown argument"):
                await session.call("told", **{name: 1})

    world.run(server, work)


def test_types_over_the_wire(world: ServerWorld) -> None:
    server = segue.Server("types")

    @server.tool
    def join(
        path: pathlib.Path,
        data: bytes,
        at: datetime.datetime,
        id: uuid.UUID,
        size: Size = Size.large,
        root: pathlib.Path = pathlib.Path("/root"),
    ) -> list[pathlib.Path]:
        assert (data, at, id) == (b"\0\1", NOON, ID)
        return [root / path / size.value]

    async def work(session: Any) -> None:
        (tool,) = await session.list_tools()
        properties = tool.input_schema["properties"]
        assert properties["root"] == {
            "type": "string",
            "format": "path",
            "default": "/root",
        }
        assert properties["data"]["contentEncoding"] == "base64"
        assert properties["size"]["default"] == "L"
        result = await session.call(
            "join",
            path="a",
            data="AAE=",
            at="2026-07-28T12:00:00Z",
            id=str(ID),
        )
        assert result.structured == {"result": ["/root/a/L"]}
        assert result.decode(list[pathlib.Path]) == [pathlib.Path("/root/a/L")]

    world.run(server, work)
