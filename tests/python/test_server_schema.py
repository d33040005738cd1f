"""Types as JSON Schema, docstrings, forms, and the threads of plain functions."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import threading
from typing import Annotated, Any, Literal, Optional

import msgspec
import pydantic
import pytest
from typing_extensions import TypedDict

import segue
from segue import schema
from segue.server import docstring
from segue.server.pool import Pool
from segue.server.signature import Signature
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811


class Size(enum.Enum):
    small = "S"
    large = "L"


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Model(pydantic.BaseModel):
    when: datetime.date


@dataclasses.dataclass
class Holder:
    model: Model


def google(a: int, b: str) -> None:
    """Does it.

    More of it.

    Args:
        a (int): the first,
            which goes on
        b: the second

    Returns:
        Nothing.
    """


def sphinx(a: int, b: str) -> None:
    """Does it.

    More of it.

    :param int a: the first,
        which goes on
    :param b: the second
    :returns: nothing
    """


def numpy(a: int, b: str) -> None:
    """Does it.

    More of it.

    Parameters
    ----------
    a : int
        the first,
        which goes on
    b
        the second

    Returns
    -------
    None
    """


@pytest.mark.parametrize("function", [google, sphinx, numpy])
def test_docstrings(function: Any) -> None:
    about, parameters = docstring.parse(function)
    assert about == "Does it.\n\nMore of it."
    assert parameters == {"a": "the first, which goes on", "b": "the second"}


def test_docstrings_that_say_nothing_of_parameters() -> None:
    def plain() -> None:
        """Notes: all of this is text.

        a: b
        """

    def none() -> None: ...

    assert docstring.parse(plain) == ("Notes: all of this is text.\n\na: b", {})
    assert docstring.parse(none) == (None, {})


def test_schemas() -> None:
    recursive = schema.json_schema(Node)
    assert recursive["type"] == "object" and "title" not in recursive
    items = recursive["properties"]["children"]["items"]
    assert items["$ref"] == "#/$defs/Node" and "Node" in recursive["$defs"]
    assert schema.json_schema(int) == {"type": "integer"}
    assert schema.json_schema(Holder)["$defs"]["Model"]["required"] == ["when"]
    for tp, is_object in {
        Node: True,
        Model: True,
        Holder: True,
        dict: True,
        int: False,
        list[int]: False,
        Optional[Node]: False,  # noqa: UP045
        None: False,
        Any: False,
    }.items():
        assert schema.is_object_type(tp) == is_object, tp
    with pytest.raises(TypeError):
        schema.json_schema(threading.Thread)


def test_values() -> None:
    decoded = schema.decoder(Holder)(b'{"model":{"when":"2026-01-02"}}')
    assert decoded == Holder(Model(when=datetime.date(2026, 1, 2)))
    assert schema.encode(decoded) == b'{"model":{"when":"2026-01-02"}}'
    assert schema.converter(int)("5") == 5
    with pytest.raises(msgspec.ValidationError) as caught:
        schema.decoder(Node)(b'{"name":1}')
    assert schema.reason(caught.value) == "Expected `str`, got `int` - at `$.name`"
    with pytest.raises(pydantic.ValidationError) as refused:
        schema.decoder(Holder)(b'{"model":{"when":"soon"}}')
    assert schema.reason(refused.value).startswith("model.when: Input should be")


class Form(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(description="who", min_length=1)]
    age: int | None = None
    size: Size = Size.small
    tags: list[Literal["a", "b"]] = []


def test_forms() -> None:
    form = schema.form_schema(Form)
    assert form["required"] == ["name"]
    fields = form["properties"]
    assert fields["name"] == {"type": "string", "description": "who", "minLength": 1}
    assert fields["age"] == {"type": "integer"}
    assert fields["size"]["type"] == "string" and set(fields["size"]["enum"]) == {
        "S",
        "L",
    }
    assert fields["tags"]["items"] == {"type": "string", "enum": ["a", "b"]}
    assert schema.form_schema(Model)["properties"]["when"]["format"] == "date"
    for bad in (Node, Holder, int):
        with pytest.raises(TypeError, match="a form"):
            schema.form_schema(bad)


def test_defaults_of_every_sort(world: ServerWorld) -> None:
    server = segue.Server("defaults")
    sentinel = object()

    @server.tool
    def take(
        numbers: list[int] = [1, 2],  # noqa: B006
        node: Node = Node("n"),  # noqa: B008
        size: Size = Size.large,
        odd: Any = sentinel,
        none: str = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> str:
        numbers.append(3)
        assert odd is sentinel and none is None
        return f"{numbers} {node.name} {size.value}"

    async def work(session: Any) -> None:
        (tool,) = await session.list_tools()
        properties = tool.input_schema["properties"]
        assert properties["numbers"]["default"] == [1, 2]
        assert properties["node"]["default"] == {"name": "n", "children": []}
        assert properties["size"]["default"] == "L"
        assert "default" not in properties["odd"]
        for _ in range(2):  # a change of a default in one call must not affect the next
            assert (await session.call("take")).text == "[1, 2, 3] n L"

    world.run(server, work)


def test_a_pool_has_so_many_threads() -> None:
    pool = Pool(2)
    go, done = threading.Event(), threading.Semaphore(0)
    lock = threading.Lock()
    at_once = most = 0

    def job() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        go.wait()
        with lock:
            at_once -= 1
        done.release()

    for _ in range(5):
        pool.submit(job)
    go.set()
    for _ in range(5):
        assert done.acquire(timeout=120)
    assert most <= 2
    pool.submit(lambda: 1 / 0)  # the error does not end its thread
    go.clear()
    pool.submit(job)
    go.set()
    assert done.acquire(timeout=120)
    pool.close()


@dataclasses.dataclass
class Beside:
    width: int
    model: int = 3


class Typed(TypedDict):
    height: int


def test_a_model_beside_a_dataclass_and_a_dict_of_types() -> None:
    """The names of the arguments differ from those of their members."""

    def function(model: Model, beside: Beside, typed: Typed, short: int = 7) -> None:
        pass

    signature = Signature(function)
    properties = signature.schema["properties"]
    assert list(properties) == ["model", "beside", "typed", "short"]
    parts = signature.schema["$defs"]
    assert list(parts["Beside"]["properties"]) == ["width", "model"]
    assert list(parts["Typed"]["properties"]) == ["height"]
    model, beside, typed, short = signature.decode(
        b'{"arguments":{"model":{"when":"2026-07-28"},"beside":{"width":1},'
        b'"typed":{"height":2}}}'
    )
    assert model.when == datetime.date(2026, 7, 28)
    assert (beside, typed, short) == (Beside(1, 3), {"height": 2}, 7)


def test_an_alias_of_ones_own_wins() -> None:
    def function(
        model: Model, size: Annotated[int, pydantic.Field(alias="breadth", ge=1)]
    ) -> None:
        pass

    assert list(Signature(function).schema["properties"]) == ["model", "breadth"]


def test_a_type_that_cannot_be_used_is_told_with_its_parameter() -> None:
    server = segue.Server("types")

    class Strange: ...

    def unusable(n: int, both: Strange) -> None: ...

    def misspelt(n: int, value: Plian) -> None: ...  # type: ignore  # noqa: F821

    with pytest.raises(TypeError, match=r"^unusable: the type of 'both': "):
        server.tool(unusable)
    with pytest.raises(NameError, match=r"^misspelt: the annotation of 'value': name"):
        server.tool(misspelt)
