"""Constraints of arguments and results: whatever declares a constraint, it is in the
schema and enforced, at any depth of a type. A type that would lose one is refused."""

from __future__ import annotations

import dataclasses
import ipaddress
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, Generic, NamedTuple, NewType, TypeVar

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
import typing_extensions

import segue
from segue.server.output import Output
from segue.server.signature import Signature
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811

Short = Annotated[str, pydantic.StringConstraints(max_length=2)]
T = TypeVar("T")


@dataclasses.dataclass
class Data:
    n: pydantic.PositiveInt


@dataclasses.dataclass
class Box(Generic[T]):
    value: T
    n: pydantic.PositiveInt = 1


class Typed(typing_extensions.TypedDict):
    n: pydantic.PositiveInt


class TypedToo(typing_extensions.TypedDict):
    n: typing_extensions.NotRequired[Annotated[int, pydantic.Field(gt=0)]]


class Named(NamedTuple):
    n: pydantic.PositiveInt


class Model(pydantic.BaseModel):
    n: pydantic.PositiveInt


class Even:
    """Tells pydantic how to check."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        def check(value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

        return pydantic.AfterValidator(check).__get_pydantic_core_schema__(
            source, handler
        )


Positive = NewType("Positive", pydantic.PositiveInt)  # type: ignore[valid-newtype]
CASES: list[tuple[Any, str, str]] = [
    (pydantic.PositiveInt, "1", "-1"),
    (pydantic.conint(gt=0), "1", "0"),
    (pydantic.constr(pattern="^a"), '"ab"', '"b"'),
    (pydantic.conlist(int, max_length=1), "[1]", "[1,2]"),
    (pydantic.StrictInt, "1", '"1"'),
    (Short, '"ab"', '"abc"'),
    (Annotated[int, annotated_types.Ge(1)], "1", "0"),
    (Annotated[int, annotated_types.Interval(ge=1, le=2)], "2", "3"),
    (Annotated[str, annotated_types.Len(1, 2)], '"a"', '""'),
    (Annotated[int, annotated_types.Predicate(lambda n: n != 3)], "2", "3"),
    (Annotated[int, pydantic.AfterValidator(abs)], "1", '"a"'),
    (Annotated[int, Even], "2", "1"),
    (Annotated[int, Even()], "2", "1"),
    (pydantic.PositiveInt | None, "null", "-1"),
    (pydantic.PositiveInt | str, '"a"', "-1"),
    (list[pydantic.PositiveInt], "[1]", "[-1]"),
    (set[pydantic.PositiveInt], "[1]", "[-1]"),
    (tuple[pydantic.PositiveInt, ...], "[1]", "[-1]"),
    (dict[str, pydantic.PositiveInt], '{"a":1}', '{"a":-1}'),
    (dict[Short, int], '{"a":1}', '{"abc":1}'),
    (dict[str, list[Short | None]], '{"a":[null]}', '{"a":["abc"]}'),
    (Positive, "1", "-1"),
    (Data, '{"n":1}', '{"n":-1}'),
    (list[Data], '[{"n":1}]', '[{"n":-1}]'),
    (Box[int], '{"value":1,"n":1}', '{"value":1,"n":-1}'),
    (Box[pydantic.PositiveInt], '{"value":1}', '{"value":-1}'),
    (Typed, '{"n":1}', '{"n":-1}'),
    (TypedToo, '{"n":1}', '{"n":-1}'),
    (Named, "[1]", "[-1]"),
    (Model, '{"n":1}', '{"n":-1}'),
    (Annotated[int, msgspec.Meta(ge=1)], "1", "0"),
    (list[Annotated[str, msgspec.Meta(max_length=2)]], '["ab"]', '["abc"]'),
]


def signatures(tp: Any) -> list[Signature]:
    """Returns a signature with an argument of this type: alone, with a default, beside
    types of msgspec and of pydantic, and as the type of further arguments."""

    def alone(value: Any) -> None: ...

    def absent(value: Any = None) -> None: ...

    def beside(value: Any, n: int = 1, model: Model | None = None) -> None: ...

    def further(**value: Any) -> None: ...

    functions: list[Callable[..., None]] = [alone, absent, beside, further]
    for function in functions:
        function.__annotations__["value"] = tp
    return [Signature(function, True) for function in functions]


@pytest.mark.parametrize(("tp", "fit", "misfit"), CASES)
def test_a_constraint_is_enforced_at_any_depth(tp: Any, fit: str, misfit: str) -> None:
    for signature in signatures(tp):
        signature.decode(b'{"arguments":{"value":%s}}' % fit.encode())
        with pytest.raises((ValueError, msgspec.ValidationError)):
            signature.decode(b'{"arguments":{"value":%s}}' % misfit.encode())


@pytest.mark.parametrize(
    ("tp", "keyword"),
    [
        (pydantic.PositiveInt, '"exclusiveMinimum":0'),
        (pydantic.PositiveInt | None, '"exclusiveMinimum":0'),
        (list[Data], '"exclusiveMinimum":0'),
        (Box[int], '"exclusiveMinimum":0'),
        (TypedToo, '"exclusiveMinimum":0'),
        (Named, '"exclusiveMinimum":0'),
        (pydantic.conlist(int, max_length=7), '"maxItems":7'),
        (Short, '"maxLength":2'),
        (Annotated[int, annotated_types.Ge(1)], '"minimum":1'),
        (Annotated[int, msgspec.Meta(ge=1)], '"minimum":1'),
    ],
)
def test_a_constraint_is_in_the_schema(tp: Any, keyword: str) -> None:
    for signature in signatures(tp):
        assert keyword in msgspec.json.encode(signature.schema).decode()
    assert keyword in msgspec.json.encode(Output(tp).schema).decode()


def test_a_constraint_holds_for_results_too() -> None:
    good = Output(list[Data]).encode("t", [Data(1)])
    as_bytes = Output(tuple[pydantic.PositiveInt, bytes]).encode("t", (1, b"\0\xff"))
    assert as_bytes == b'{"result":[1,"AP8="]}'
    assert good == b'{"result":[{"n":1}]}'
    for tp, value in [(Data, Data(-1)), (list[pydantic.PositiveInt], [0])]:
        with pytest.raises(segue.server.output.Unfit):
            Output(tp).encode("t", value)


class Struct(msgspec.Struct):
    n: pydantic.PositiveInt


@attrs.define
class Defined:
    n: pydantic.PositiveInt


@pytest.mark.parametrize(
    "tp",
    [
        Struct,
        list[Struct],
        Defined,
        Annotated[pydantic.PositiveInt, msgspec.Meta(le=5)],
        tuple[Model, Annotated[int, msgspec.Meta(le=5)]],
    ],
)
def test_a_type_that_would_lose_a_constraint_is_refused(tp: Any) -> None:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = tp
    with pytest.raises(TypeError, match=r"handler: the type of 'value': .* is read by"):
        Signature(handler)


def test_without_pydantic_a_constraint_of_annotated_types_is_refused() -> None:
    program = """
import sys
sys.modules["pydantic"] = None  # as if it were not installed
from typing import Annotated
import annotated_types, segue
server = segue.Server("s")
try:
    @server.tool
    def f(n: Annotated[int, annotated_types.Gt(0)]) -> str: ...
except TypeError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == (
        "f: the type of 'n': `Gt(gt=0)` needs pydantic: "
        "pip install 'segue-mcp[pydantic]'\n"
    )


def test_constraints_over_the_wire(world: ServerWorld) -> None:
    server = segue.Server("constraints")

    @server.tool
    def only(x: pydantic.PositiveInt) -> str:
        return repr(x)

    async def work(session: Any) -> None:
        assert (await session.call("only", x=3)).text == "3"
        with pytest.raises(segue.ToolError, match="greater than 0"):
            await session.call("only", x=-1)

    world.run(server, work)


# ---- types that only pydantic has, and addresses


OTHERS: list[tuple[Any, str, str, str]] = [
    (pydantic.AnyUrl, '"http://a.b/"', '"a"', "uri"),
    (pydantic.HttpUrl, '"http://a.b/"', '"ftp://a.b/"', "uri"),
    (pydantic.SecretStr, '"a"', "1", "password"),
    (list[pydantic.SecretStr], '["a"]', "[1]", "password"),
    (ipaddress.IPv4Address, '"127.0.0.1"', '"::1"', "ipv4"),
    (ipaddress.IPv6Address, '"::1"', '"127.0.0.1"', "ipv6"),
    (ipaddress.IPv4Network, '"10.0.0.0/8"', '"10.0.0.1/8"', "ipv4network"),
    (list[ipaddress.IPv6Network], '["::/8"]', '["a"]', "ipv6network"),
    (ipaddress.IPv4Interface | None, '"10.0.0.1/8"', "5", "ipv4interface"),
    (ipaddress.IPv6Interface | None, '"::1/8"', "false", "ipv6interface"),
]


@pytest.mark.parametrize(("tp", "fit", "misfit", "kind"), OTHERS)
def test_types_that_msgspec_does_not_know(
    tp: Any, fit: str, misfit: str, kind: str
) -> None:
    for signature in signatures(tp):
        value = signature.decode(b'{"arguments":{"value":%s}}' % fit.encode())[0]
        value = value["value"] if isinstance(value, dict) else value
        value = value[0] if isinstance(value, list) else value
        assert type(value).__module__ in (
            "ipaddress",
            "pydantic.networks",
            "pydantic.types",
        )
        assert f'"format":"{kind}"' in msgspec.json.encode(signature.schema).decode()
        with pytest.raises((ValueError, msgspec.ValidationError)):
            signature.decode(b'{"arguments":{"value":%s}}' % misfit.encode())


def test_an_address_is_a_result() -> None:
    output = Output(list[ipaddress.IPv4Address])
    raw = output.encode("t", [ipaddress.IPv4Address("127.0.0.1")])
    assert raw == b'{"result":["127.0.0.1"]}'


def test_a_type_that_nothing_reads_is_told_with_what_to_do() -> None:
    class Strange: ...

    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = Strange
    with pytest.raises(TypeError) as caught:
        Signature(handler)
    assert str(caught.value) == (
        "handler: the type of 'value': JSON has no form of `Strange`: use a type of "
        "JSON, a dataclass, a TypedDict, a Struct of msgspec or a model of pydantic"
    )
