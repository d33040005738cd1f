"""Resources, templates, prompts and completion of a Python server; lists that change."""

from __future__ import annotations

import asyncio
import enum
import re
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest

import segue
from segue.server import Complete
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811


def test_resources(world: ServerWorld) -> None:
    server = segue.Server("resources")

    @server.resource("note://text", title="A note", size=4)
    def text() -> str:
        """What it says"""
        return "text"

    @server.resource("note://bytes", mime_type="image/png")
    async def binary() -> bytes:
        return b"\0\1"

    @server.resource("note://json", name="config")
    def config(ctx: segue.SyncContext) -> dict[str, Any]:
        assert ctx.method == "resources/read" and ctx.name == "note://json"
        return {"a": 1}

    @server.resource("note://several")
    def several() -> list[segue.ResourceContents]:
        return [
            segue.ResourceContents("note://several/1", text="one"),
            segue.ResourceContents("note://several/2", blob=b"two"),
        ]

    @server.resource("note://gone")
    def gone() -> None: ...

    @server.resource("note://missing")
    def missing() -> str:
        raise FileNotFoundError("/secret/path")

    @server.resource("note://broken")
    async def broken() -> str:
        raise ValueError("it broke")

    async def read(session: Any, uri: str) -> list[Any]:
        result = await session.read_resource(uri)
        return [(one.uri, one.text, one.blob, one.mime_type) for one in result.contents]

    async def work(session: Any) -> None:
        listed = {one.uri: one for one in await session.list_resources()}
        assert listed["note://text"].title == "A note"
        assert listed["note://text"].description == "What it says"
        assert listed["note://json"].name == "config"
        assert await read(session, "note://text") == [
            ("note://text", "text", None, "text/plain")
        ]
        assert await read(session, "note://bytes") == [
            ("note://bytes", None, b"\0\1", "image/png")
        ]
        assert await read(session, "note://json") == [
            ("note://json", '{"a":1}', None, "application/json")
        ]
        assert await read(session, "note://several") == [
            ("note://several/1", "one", None, None),
            ("note://several/2", None, b"two", None),
        ]
        not_found = -32602 if world.era == "modern" else -32002
        for uri in ("note://gone", "note://missing", "note://unknown"):
            with pytest.raises(segue.RemoteError) as caught:
                await session.read_resource(uri)
            assert caught.value.code == not_found
            assert "secret" not in str(caught.value)
        with pytest.raises(segue.RemoteError) as broken:
            await session.read_resource("note://broken")
        assert (broken.value.code, broken.value.message) == (-32603, "Internal error")

    world.run(server, work)


def test_long_lists(world: ServerWorld) -> None:
    """R-776-31: a client gets the whole list, in however many responses it comes."""
    server = segue.Server("long")
    uris = [f"test://item{i}" for i in range(600)]

    for uri in uris:
        server.resource(uri)(lambda: "text")

    async def work(session: Any) -> None:
        assert [one.uri for one in await session.list_resources()] == uris

    world.run(server, work)


def test_a_long_text(world: ServerWorld) -> None:
    """R-776-32: whoever reads has one text, in however many pieces it came."""
    server = segue.Server("texts", expose_errors=True)
    other = segue.ResourceContents("test://other", text="other")
    parts = [f"part {i}\n" for i in range(300)]

    @server.resource("test://async", mime_type="text/x")
    async def slowly() -> AsyncIterator[Any]:
        yield "con"
        await asyncio.sleep(0.01)
        yield other
        yield "tent"

    @server.resource("test://{name}/plain")
    def by_thread(name: str) -> Iterator[str]:
        yield name
        yield from parts

    @server.resource("test://sent")
    async def sent(ctx: segue.Context) -> None:
        await ctx.send("a", "b")
        await ctx.replace("c")
        await ctx.send("d")

    @server.resource("test://empty")
    def empty() -> Iterator[str]:
        yield from ()

    @server.resource("test://twice")
    def twice() -> Generator[str, None, str]:
        yield "a"
        return "b"

    @server.resource("test://bytes")
    def raw() -> Iterator[Any]:
        yield b"a"

    @server.resource("test://none")
    def none() -> Iterator[str]:
        raise FileNotFoundError
        yield ""

    async def work(session: Any) -> None:
        async def read(name: str) -> Any:
            return (await session.read_resource(f"test://{name}")).contents

        text, added = await read("async")
        assert (text.text, text.mime_type) == ("content", "text/x")
        assert (added.uri, added.text) == ("test://other", "other")
        (text,) = await read("x/plain")
        assert text.uri == "test://x/plain"
        assert text.text == "x" + "".join(parts)
        (text,) = await read("sent")
        assert text.text == "cd"
        assert not await read("empty")
        wrong = {"twice": "send that value", "bytes": "not bytes", "none": "not found"}
        for name, why in wrong.items():
            with pytest.raises(segue.RemoteError, match=why):
                await read(name)

    world.run(server, work)


def test_templates(world: ServerWorld) -> None:
    server = segue.Server("templates")

    @server.resource("user://{id}/{part}")
    def user(part: Literal["name", "mail"], id: int) -> str:
        return f"{id!r} {part}"

    @server.resource("file:///{+path}", name="files")
    async def file(path: str, ctx: segue.Context) -> str:
        return f"{path} {ctx.name}"

    async def text(session: Any, uri: str) -> str:
        (one,) = (await session.read_resource(uri)).contents
        return str(one.text)

    async def work(session: Any) -> None:
        listed = await session.list_resource_templates()
        assert {one.uri_template for one in listed} == {
            *("user://{id}/{part}", "file:///{+path}")
        }
        assert await text(session, "user://7/mail") == "7 mail"
        uri = "file:///a/%20b/../c"
        assert await text(session, uri) == f"a/ b/../c {uri}"
        for bad in ("user://x/name", "user://7/age"):
            with pytest.raises(segue.RemoteError, match="Invalid arguments") as caught:
                await session.read_resource(bad)
            assert caught.value.code == -32602
        found = await session.complete("user://{id}/{part}", "part", "m")
        assert found.values == ["mail"]

    world.run(server, work)


def test_prompts(world: ServerWorld) -> None:
    server = segue.Server("prompts")

    @server.prompt(title="Review")
    def review(code: str, depth: Annotated[int, "how deep"] = 1) -> list[Any]:
        """Reviews code.

        Args:
            code: the code
        """
        image = segue.Image(b"\1")
        answer = segue.assistant("I look.")
        return [f"Review {code} {depth!r}", answer, segue.user(image), image]

    @server.prompt(forbid_extra=False)
    async def loose() -> str:
        return "Hello"

    @server.prompt
    async def told(ctx: segue.Context) -> str:
        await ctx.set_field("description", "made for you")
        return "Hello"

    async def work(session: Any) -> None:
        listed = {one.name: one for one in await session.list_prompts()}
        assert listed["review"].title == "Review"
        assert listed["review"].description == "Reviews code."
        assert msgspec.to_builtins(listed["review"].arguments) == [
            {"name": "code", "description": "the code", "required": True},
            {"name": "depth", "description": "how deep"},
        ]
        result = await session.get_prompt("review", {"code": "x", "depth": "3"})
        assert [one.role for one in result.messages] == [
            *("user", "assistant", "user", "user")
        ]
        assert result.messages[0].content == segue.Text("Review x 3")
        assert result.messages[3].content == segue.Image(b"\1")
        result = await session.get_prompt("told")
        assert result.description == "made for you"
        for prompt, arguments, why in (
            ("review", {"code": "x", "depth": "deep"}, "Expected `int`"),
            ("review", {}, "A required argument is missing"),
            ("review", {"code": "x", "dept": "3"}, '"dept", did you mean "depth"?'),
            ("review", {"code": "x", "?": ""}, 'the arguments are "code", "depth"'),
            ("told", {"code": "x"}, "the prompt takes no arguments"),
        ):
            with pytest.raises(segue.RemoteError) as caught:
                await session.get_prompt(prompt, arguments)
            assert caught.value.code == -32602 and why in caught.value.message
        assert (await session.get_prompt("loose", {"code": "x"})).messages

    world.run(server, work)


def test_completion(world: ServerWorld, caplog: pytest.LogCaptureFixture) -> None:
    server = segue.Server("completion")

    class Size(enum.Enum):
        small = "small"
        smart = "smart"
        big = "big"

    async def cities(typed: str, others: dict[str, str]) -> list[str]:
        return [f"{others.get('country', '?')}/{typed}{n}" for n in range(150)]

    @server.prompt
    def visit(
        country: Annotated[str, Complete(["France", "Finland", "Chad"])],
        city: Annotated[str, Complete(cities)],
        size: Size = Size.big,
        street: str = "",
        broken: Annotated[str, Complete(lambda typed: 1 / 0)] = "",
    ) -> str:
        return ""

    @server.completion("visit", "street")
    def streets(typed: str) -> list[str]:
        return [typed.upper()]

    async def work(session: Any) -> None:
        async def values(argument: str, typed: str, **others: str) -> list[str]:
            found = await session.complete("visit", argument, typed, context=others)
            return list(found.values)

        assert await values("country", "f") == ["France", "Finland"]
        assert await values("size", "sm") == ["small", "smart"]
        assert await values("street", "rue") == ["RUE"]
        found = await session.complete("visit", "city", "p", context={"country": "F"})
        assert found.values[0] == "F/p0" and len(found.values) == 100
        assert found.total == 150 and found.has_more
        assert await values("unknown", "") == []
        with pytest.raises(segue.RemoteError) as broken:
            await values("broken", "")
        assert (broken.value.code, broken.value.message) == (-32603, "Internal error")

    world.run(server, work)
    (logged,) = [one for one in caplog.records if one.name == "segue.server"]
    assert logged.exc_info and str(logged.exc_info[1]) == "division by zero"
    with pytest.raises(ValueError, match="'visit' has no argument 'planet'"):
        server.completion("visit", "planet")(streets)


def test_lists_that_change(world: ServerWorld) -> None:
    server = segue.Server("changes")

    @server.tool
    def first() -> str:
        return "first"

    @server.resource("note://a")
    def note() -> str:
        return "a"

    @server.prompt
    def hello(name: str = "") -> str:
        return name

    def later() -> str:
        return "later"

    async def work(session: Any) -> None:
        everything = session.subscribe(
            "note://a", tools=True, resources=True, prompts=True
        )
        async with everything as changes:
            server.tool(later)
            assert (await anext(changes)).kind == "tools"
            assert (await session.call("later")).text == "later"
            server.remove_tool("later")
            assert (await anext(changes)).kind == "tools"
            assert [one.name for one in await session.list_tools()] == ["first"]
            server.resource("note://b")(later)
            assert (await anext(changes)).kind == "resources"
            server.remove_resource("note://b")
            assert (await anext(changes)).kind == "resources"
            server.remove_prompt("hello")
            assert (await anext(changes)).kind == "prompts"
            server.resource_updated("note://a")
            assert (await anext(changes)).uri == "note://a"

    world.run(server, work)


def test_functions_that_do_not_fit(nothing_left: None) -> None:
    server = segue.Server("odd")
    with pytest.raises(TypeError, match=r"has the variables \['id'\]"):
        server.resource("x://{id}")(lambda: "")
    for uri, shown in [("x://{id*}", "{id*}"), ("x://a{?id}", "{?id}")]:
        text = f"resource template {uri}: {shown}: only {{name}} and {{+name}} are"
        with pytest.raises(ValueError, match=re.escape(text)):
            server.resource(uri)(lambda id: "")
    with pytest.raises(TypeError, match=r"takes \['id'\]"):
        server.resource("x://fixed")(lambda id: "")

    def generator() -> Any:
        yield ""

    with pytest.raises(TypeError, match="generator: a prompt cannot be a generator"):
        server.prompt(generator)


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("", 'the member "uri" of a resource is empty'),
        ("nouri", "resource nouri: it has no scheme"),
        ("a b://x", "resource a b://x: it has a blank"),
        ("a://{", "resource template a://{: {: a brace is not closed"),
        ("a://}", "resource template a://}: a brace is not opened"),
        ("a://{p}/{p}", "resource template a://{p}/{p}: {p}: a variable is used twice"),
        ("a://{p}{q}", "template a://{p}{q}: there is no text between two variables"),
        ('a://"', 'the member "uri" of a resource cannot have quotes'),
    ],
)
def test_a_uri_is_refused_where_it_is_declared(
    nothing_left: None, uri: str, text: str
) -> None:
    server = segue.Server("odd")

    def read(p: str, q: str) -> str:
        return p + q

    with pytest.raises(ValueError, match=re.escape(text)):
        server.resource(uri)(read)


def test_items_are_refused_where_they_are_declared(nothing_left: None) -> None:
    server = segue.Server("odd")

    def nothing() -> str:
        return ""

    def refused(decorator: Any, text: str) -> None:
        with pytest.raises(ValueError, match=re.escape(text)):
            decorator(nothing)

    quotes = 'the member "name" of a {} cannot have quotes'
    refused(server.tool(name='a"b'), quotes.format("tool"))
    refused(server.prompt(name="a\nb"), quotes.format("prompt"))
    refused(server.tool(input_schema={"properties": {}}), 'has no "type": "object"')
    refused(server.tool(ttl=-5), "the option ttl_ms is negative")
    refused(server.tool(scopes='a"b'), "scopes has a character that is not allowed")
    refused(server.resource("a://x", description=5), "have to be strings")
    refused(server.resource("a://x", ttl=-1), "the option read_ttl_ms is negative")
    assert repr(server) == "<segue.Server 'odd', 0 items>"


def test_names_that_the_specification_advises_against_are_warned_of(
    nothing_left: None, caplog: pytest.LogCaptureFixture
) -> None:
    server = segue.Server("odd")
    for name in ("fine", "a b", "a,b", "x" * 128, "x" * 129):
        server.tool(name=name)(lambda: "")
    warned = [one.getMessage() for one in caplog.records]
    assert len(warned) == 3
    assert warned[0].startswith("the tool 'a b': the specification advises names of 1 to")
