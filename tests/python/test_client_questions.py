"""Questions of the server: forms, models, roots; answers that fail or never come."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import segue
from client_worlds import World, longer_and_longer, run
from raw_peer import RawPeer


def test_a_form_is_filled_in(world: World) -> None:
    async def work() -> None:
        async def on_elicit(asked: segue.ElicitRequest) -> segue.ElicitResult[Any]:
            assert asked.message and asked.schema is not None
            await asyncio.sleep(0)
            return segue.ElicitResult("accept", {"name": "Ada"})

        async with world.session(on_elicit=on_elicit) as session:
            assert '"Ada"' in (await session.call("ask_name")).text
            task = await session.start("confirm_delete")
            assert "Ada" in (await task.result()).text

    run(work)


@pytest.mark.parametrize("reply", [None, {"action": "decline"}])
def test_the_user_declines(world: World, reply: Any) -> None:
    async def work() -> None:
        async with world.session(on_elicit=lambda _: reply) as session:
            assert "decline" in (await session.call("ask_name")).text

    run(work)


def test_a_model_and_roots_are_asked(world: World) -> None:
    async def work() -> None:
        def on_sample(asked: segue.SampleRequest) -> segue.SampleResult:
            assert asked.max_tokens == 100
            assert asked.messages[0].text == "Say something."
            block = {"type": "text", "text": "something"}
            return segue.SampleResult("assistant", block, model="m-1")

        async def roots() -> list[Any]:
            return ["file:///a", segue.Root("file:///b", "B")]

        async with world.session(on_sample=on_sample, roots=roots) as session:
            assert "something" in (await session.call("ask_model")).text
            assert "file:///b" in (await session.call("ask_roots")).text
        async with world.session(roots=["file:///c"]) as session:
            assert "file:///c" in (await session.call("ask_roots")).text
            assert "cannot ask" in (await session.call("ask_model")).text

    run(work)


def test_any_question(world: World) -> None:
    async def work() -> None:
        asked: list[segue.Question] = []

        def on_input(question: segue.Question) -> dict[str, Any]:
            asked.append(question)
            return {"action": "accept", "content": {"name": "any"}}

        async with world.session(on_input=on_input) as session:
            assert '"any"' in (await session.call("ask_name")).text
            mine: list[str] = []

            def other(question: segue.Question) -> dict[str, Any]:
                mine.append(question.method)
                return {"action": "cancel"}

            assert "cancel" in (await session.call("ask_name", on_input=other)).text
        assert [q.method for q in asked] == ["elicitation/create"] == mine
        assert isinstance(asked[0].typed, segue.ElicitRequest)
        assert asked[0].params["message"] == "Your name?"

    run(work)


def test_nobody_can_be_asked(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            assert "cannot ask" in (await session.call("ask_name")).text

    run(work)


def test_a_callback_refuses(world: World) -> None:
    async def work() -> None:
        def on_elicit(_: Any) -> None:
            raise segue.Refused("not now", -7)

        async with world.session(on_elicit=on_elicit) as session:
            said = (await session.call("ask_name")).text
            assert ("not now" in said) if world.era == "legacy" else ("cancel" in said)

    run(work)


@pytest.mark.parametrize(
    "reply",
    [
        LookupError,
        7,
        "yes",
        object(),
        {"answer": 1},  # the content of a form, without an action
        segue.ElicitResult("acept", {}),  # type: ignore[arg-type]
        segue.ElicitResult("accept", {"wrong": 1}),  # does not fit the form
    ],
)
def test_a_callback_that_fails(world: World, reply: Any) -> None:
    async def work() -> None:
        reported: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))

        def on_elicit(_: Any) -> Any:
            if reply is LookupError:
                raise LookupError("mine")
            return reply

        async with world.session(on_elicit=on_elicit) as session:
            said = (await session.call("ask_name")).text
            assert "cancel" in said
        assert len(reported) == 1
        assert "elicitation/create" in reported.pop()["message"]
        loop.set_exception_handler(None)

    run(work)


def test_a_callback_is_a_function() -> None:
    given: Any = 3
    for name in ("on_elicit", "on_sample", "on_input", "on_log", "on_notification"):
        with pytest.raises(TypeError, match=f"{name} has to be a function"):
            run(lambda name=name: segue.connect(segue.Server("x"), **{name: given}))


def test_an_answer_that_never_comes(world: World) -> None:
    """The call ends first: the callback that was asked is cancelled."""

    async def work() -> None:
        ended: list[str] = []

        async def on_elicit(_: Any) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        async with world.session(on_elicit=on_elicit) as session:
            for limit in longer_and_longer(0.05):
                with pytest.raises(segue.RequestTimeoutError):
                    await session.call("ask_name", timeout=limit)
                assert (await session.call("greet")).text
                if ended:
                    break
        assert ended == ["cancelled"]

    run(work)


def test_several_questions_of_one_call(world: World) -> None:
    async def work() -> None:
        async def on_elicit(asked: segue.ElicitRequest) -> segue.ElicitResult[Any]:
            return segue.ElicitResult("accept", {})

        async with world.session(on_elicit=on_elicit) as session:
            assert (await session.call("ask_both")).text
            assert (await session.call("ask_rounds")).content is not None

    run(work)


def test_servers_ask_while_there_is_no_request() -> None:
    """Servers ask for the roots right after initialize."""

    async def work() -> None:
        peer = RawPeer()
        target: Any = peer
        opening = segue.connect(target, era="legacy", roots=["file:///w"])
        connecting = asyncio.ensure_future(opening.__aenter__())
        hello = msgspec.json.decode(await peer.hear())
        told = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "x", "version": "1"},
        }
        answer = {"jsonrpc": "2.0", "id": hello["id"], "result": told}
        peer.say(msgspec.json.encode(answer))
        await peer.hear()  # notifications/initialized
        peer.say('{"jsonrpc":"2.0","id":0,"method":"roots/list"}')
        heard = msgspec.json.decode(await peer.hear())
        assert heard["id"] == 0
        assert heard["result"]["roots"][0]["uri"] == "file:///w"
        session = await connecting
        peer.say('{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
        assert "result" in msgspec.json.decode(await peer.hear())
        peer.say('{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}')
        assert msgspec.json.decode(await peer.hear())["error"]["code"] == -32601
        with pytest.raises(segue.InvalidError):
            await session.request("")  # this request could never end
        await session.close()

    run(work)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_callback_that_fails_is_named(nothing_left: None, era: Any) -> None:
    server = segue.Server("asks")

    @server.tool
    async def ask(ctx: segue.Context) -> str:
        return (await ctx.sample("hi", max_tokens=5)).text

    def fails(request: segue.SampleRequest) -> Any:
        raise ZeroDivisionError("no model")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        async with segue.connect(server, era=era, on_sample=fails) as session:
            with pytest.raises(segue.RemoteError) as caught:
                await session.call("ask")
        assert caught.value.message == (
            "the callback that answers sampling/createMessage failed: "
            "ZeroDivisionError: no model"
        )
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    run(work)
