"""Content that handlers return: pictures among other values, their types, and values
that have no JSON."""

from __future__ import annotations

import math
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, world  # noqa: F401

# ruff: noqa: F811
PNG = b"\x89PNG\r\n\x1a\n..."


def test_content_among_other_values_stays_content(world: ServerWorld) -> None:
    server = segue.Server("mixed")

    def mixed() -> list[Any]:
        return [segue.Image(PNG), {"a": 1}, "t", 5]

    server.tool(mixed)
    server.tool(lambda: tuple(mixed()), name="tuple")

    @server.tool
    async def yields() -> Any:
        yield mixed()

    async def work(session: Any) -> None:
        for name in ("mixed", "tuple", "yields"):
            result = await session.call(name)
            picture, *texts = result.content
            assert isinstance(picture, segue.Image)
            assert picture.data == PNG
            assert [block.text for block in texts] == ['{"a":1}', "t", "5"]

    world.run(server, work)


def test_a_resource_may_be_a_picture(world: ServerWorld) -> None:
    server = segue.Server("pictures")
    server.resource("pic://one")(lambda: segue.Image(PNG))
    server.resource("pic://set", mime_type="image/x-own")(lambda: segue.Image(PNG))
    server.resource("pic://two")(lambda: [segue.Image(PNG), segue.Audio(b"OggS.")])

    async def work(session: Any) -> None:
        for uri, types in (
            ("pic://one", ["image/png"]),
            ("pic://set", ["image/x-own"]),
            ("pic://two", ["image/png", "audio/ogg"]),
        ):
            items = (await session.read_resource(uri)).contents
            assert [one.mime_type for one in items] == types
            assert items[0].blob == PNG

    world.run(server, work)


@pytest.mark.parametrize("kind", [segue.Image, segue.Audio])
def test_content_of_a_file_is_bytes(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"are bytes, not str: .*read_bytes\(\)"):
        kind("/x.png")


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        (segue.Image, PNG, "image/png"),
        (segue.Image, b"\xff\xd8\xff\xe0", "image/jpeg"),
        (segue.Image, b"GIF89a", "image/gif"),
        (segue.Image, b"RIFF....WEBPVP8 ", "image/webp"),
        (segue.Image, b"....ftypavif", "image/avif"),
        (segue.Image, b"RIFF....WAVE", "image/png"),
        (segue.Audio, b"RIFF....WAVE", "audio/wav"),
        (segue.Audio, b"ID3\x04", "audio/mpeg"),
        (segue.Audio, b"x", "audio/wav"),
    ],
)
def test_the_type_of_content_is_guessed(kind: Any, data: bytes, told: str) -> None:
    assert kind(data).mime_type == told
    assert kind(data, "own/type").mime_type == "own/type"


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_number_without_json_is_refused(world: ServerWorld, number: float) -> None:
    server = segue.Server("numbers", expose_errors=True)
    server.tool(lambda: {"x": [number]}, name="gives")
    server.tool(lambda x: x, name="takes")

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match=r"JSON has no (NaN|infinity)"):
            await session.call("gives")
        takes = session.call
        for call in (takes("takes", x=number), takes("takes", {"x": number})):
            with pytest.raises(ValueError, match=r"JSON has no (NaN|infinity)"):
                await call
        assert (await session.call("takes", x=None)).text == ""

    world.run(server, work)


def test_a_method_needs_its_object(world: ServerWorld) -> None:
    server = segue.Server("methods")

    with pytest.raises(TypeError, match="is a method, and no call passes its 'self'"):

        class Refused:
            @server.tool
            def double(self, x: int) -> int:
                return 2 * x

    class Kept:
        def double(self, x: int) -> int:
            return 2 * x

    server.tool(Kept().double)

    async def work(session: Any) -> None:
        assert (await session.call("double", x=2)).structured == {"result": 4}

    world.run(server, work)


def test_a_prompt_without_a_message_is_refused(world: ServerWorld) -> None:
    server = segue.Server("prompts", expose_errors=True)
    server.prompt(lambda: None, name="nothing")

    async def work(session: Any) -> None:
        with pytest.raises(segue.RemoteError, match="returned no message"):
            await session.get_prompt("nothing")

    world.run(server, work)


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        (lambda s: s.remove_tool("nah"), KeyError, "has no tool 'nah'"),
        (lambda s: s.tool(lambda: 1, name="t", ttl="5"), TypeError, "number of seconds"),
        (lambda s: segue.Server(5), TypeError, "the name and the version are str"),
        (lambda s: segue.middleware.retry(-1), ValueError, "at least 0"),
        (lambda s: segue.middleware.limit_rate("x"), TypeError, "have to be numbers"),
    ],
)
def test_a_wrong_argument_is_told(wrong: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=told):
        wrong(segue.Server("wrong"))
