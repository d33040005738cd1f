"""Lists, resources, prompts, completion, subscriptions, and the identity of the
server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import segue
from client_worlds import World, run
from programs import HttpServer, server_command
from raw_peer import RawPeer


def test_lists(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            tools = {tool.name: tool for tool in await session.list_tools()}
            assert tools["add"].title == tools["add"].label == "Add"
            assert tools["add"].input_schema["type"] == "object"
            assert tools["add"].output_schema is not None
            told = msgspec.to_builtins(tools["add"])
            assert told["inputSchema"]["properties"]["a"] and "output_schema" not in told
            resources = {one.name: one for one in await session.list_resources()}
            assert resources["static-text"].uri == "test://static-text"
            assert resources["static-text"].mime_type == "text/plain"
            templates = await session.list_resource_templates()
            assert "test://template/{id}/data" in [t.uri_template for t in templates]
            prompts = {one.name: one for one in await session.list_prompts()}
            assert prompts["arguments"].arguments[0].required
            assert prompts["simple"].description == "A simple prompt"

    run(work)


def test_pages_are_put_together(tmp_path: Path) -> None:
    async def work() -> None:
        async with segue.connect(server_command("--page", "2")) as session:
            whole = [tool.name for tool in await session.list_tools()]
            first = await session.request("tools/list")
            assert len(first["tools"]) == 2 and first["nextCursor"]
        async with segue.connect(server_command()) as session:
            assert [tool.name for tool in await session.list_tools()] == whole

    run(work)


def test_pages_that_do_not_end(nothing_left: None) -> None:
    """A server that always returns the same cursor."""

    async def work() -> None:
        peer = RawPeer()
        connecting = asyncio.ensure_future(
            segue.connect(peer, era="legacy").__aenter__()  # type: ignore[arg-type]
        )
        hello = msgspec.json.decode(await peer.hear())
        info = {"name": "x", "version": "1"}
        answer(
            peer,
            hello,
            protocolVersion="2025-11-25",
            capabilities={"tools": {}},
            serverInfo=info,
        )
        session = await connecting
        await peer.hear()  # notifications/initialized
        listing = asyncio.ensure_future(session.list_tools())
        for _ in range(2):
            answer(peer, msgspec.json.decode(await peer.hear()), tools=[], nextCursor="c")
        with pytest.raises(segue.ProtocolError, match="sent more pages"):
            await listing
        listing = asyncio.ensure_future(session.list_tools())
        answer(peer, msgspec.json.decode(await peer.hear()), tools=[{"title": "none"}])
        with pytest.raises(segue.ProtocolError, match="name"):
            await listing
        await session.close()

    run(work)


def test_a_word_for_the_model_while_a_task_runs(nothing_left: None) -> None:
    """2025-11-25 basic/utilities/tasks, "Model Immediate Response"."""

    async def work() -> None:
        peer = RawPeer()
        connecting = asyncio.ensure_future(segue.connect(peer, era="legacy").__aenter__())
        can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
        answer(
            peer,
            msgspec.json.decode(await peer.hear()),
            protocolVersion="2025-11-25",
            capabilities=can,
            serverInfo={"name": "x", "version": "1"},
        )
        session = await connecting
        await peer.hear()
        starting = asyncio.ensure_future(session.start("t"))
        listed = {"name": "t", "inputSchema": {"type": "object"}}
        listed["execution"] = {"taskSupport": "required"}
        answer(peer, msgspec.json.decode(await peer.hear()), tools=[listed])
        call = msgspec.json.decode(await peer.hear())
        assert call["method"] == "tools/call"
        now = "2026-01-01T00:00:00Z"
        told = {"taskId": "T", "status": "working", "ttl": None, "pollInterval": 5000}
        told |= {"createdAt": now, "lastUpdatedAt": now}
        meta = {"io.modelcontextprotocol/model-immediate-response": "It takes a while."}
        answer(peer, call, task=told, _meta=meta)
        task = await starting
        assert task.id == "T" and task.immediate == "It takes a while."
        await session.close()

    run(work)


def answer(peer: RawPeer, request: dict[str, Any], **result: Any) -> None:
    told = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    peer.say(msgspec.json.encode(told))


def test_resources_are_read(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            text = await session.read_resource("test://static-text")
            assert text.text and text.contents[0].mime_type == "text/plain"
            binary = await session.read_resource("test://static-binary")
            assert binary.data and binary.contents[0].blob == binary.data
            made = await session.read_resource("test://template/7/data")
            assert "7" in made.text
            with pytest.raises(segue.RemoteError) as caught:
                await session.read_resource("test://nobody")
            assert caught.value.code in (-32002, -32602)

    run(work)


def test_prompts_are_made(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            prompt = await session.get_prompt("simple")
            assert prompt.messages[0].role == "user"
            assert isinstance(prompt.messages[0].content, segue.Text)
            made = await session.get_prompt("arguments", {"arg1": "one", "arg2": "two"})
            texts = [getattr(m.content, "text", "") for m in made.messages]
            assert any("one" in text for text in texts)
            with pytest.raises(segue.RemoteError) as caught:
                await session.get_prompt("arguments")
            assert caught.value.code == -32602

    run(work)


def test_values_are_suggested(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            found = await session.complete("arguments", "arg1", "word-1")
            assert found.values and all(
                value.startswith("word-1") for value in found.values
            )
            template = (await session.list_resource_templates())[0]
            assert await session.complete(template, "id", "word-1") == found
            assert await session.complete(template.uri_template, "id", "word-1") == found

    run(work)


def test_a_resource_that_changes(world: World) -> None:
    async def work() -> None:
        told: list[str] = []
        options = {"on_notification": lambda method, params: told.append(method)}
        async with world.session(**options) as session:
            async with session.subscribe("test://static-text") as changes:
                await session.call("update")
                change = await anext(changes)
                assert change == segue.Change("resource", "test://static-text")
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(changes), 0.05)
            assert [change async for change in changes] == []
            assert "notifications/resources/updated" in told
            told.clear()
            await session.call("update")
            await session.ping()
            assert "notifications/resources/updated" not in told

    run(work)


def test_lists_that_change(world: World) -> None:
    async def work() -> None:
        async with (
            world.session() as session,
            session.subscribe(tools=True, prompts=True) as changes,
        ):
            await session.call("toggle_items")
            assert await anext(changes) == segue.Change("prompts")
            await session.call("toggle")
            assert await anext(changes) == segue.Change("tools")
            with pytest.raises(ValueError):
                session.subscribe()

    run(work)


def test_subscriptions_survive_the_server(nothing_left: None, tmp_path: Path) -> None:
    async def work() -> None:
        with HttpServer() as server:
            for era in ("auto", "legacy"):
                async with (
                    segue.connect(server.url, era=era) as session,  # type: ignore
                    session.subscribe("test://static-text") as changes,
                ):
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                    # the resource may have changed meanwhile
                    change = await anext(changes)
                    assert change == segue.Change("resource", "test://static-text")
                    await session.call("update")
                    assert await anext(changes) == change

    run(work)


def test_who_the_server_is(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            peer = session.peer
            assert peer.server.name == "segue-fixture" and peer.server.version
            assert peer.instructions and peer.capabilities["tools"] is not None
            assert peer.era == world.era
            assert (peer.protocol_version >= "2026") == (world.era == "modern")
            if world.era == "modern":
                assert peer.dialects[:2] == ["SEP-2663 tasks", "SEP-2694 task events"]
            else:
                assert peer.dialects == ["SEP-1686 tasks", "SEP-1905 streaming"]
            assert "segue-fixture" in repr(session)
            await session.ping()
            session.notify("notifications/roots/list_changed", {"_meta": {"a": 1}})
            session.notify("notifications/roots/list_changed")
            with pytest.raises(segue.errors.InvalidError):
                session.notify("")
        assert "closed" in repr(session)

    run(work)


def test_the_log_of_the_server(world: World) -> None:
    async def work() -> None:
        logged: list[segue.LogMessage] = []
        async with world.session(on_log=logged.append, log_level="emergency") as session:
            await session.call("chatty")
            assert not logged
            await session.set_log_level("debug")
            await session.call("chatty")
            assert logged
            with pytest.raises(ValueError):
                await session.set_log_level("loud")

    run(work)


def test_results_are_validated(world: World) -> None:
    async def work() -> None:
        asked: list[Any] = []

        def validate(tool: str, schema: dict[str, Any], value: Any) -> str | None:
            asked.append((tool, schema["type"], value))
            return "too much" if value["sum"] > 10 else None

        async with world.session(validate=validate) as session:
            await session.list_tools()
            assert (await session.call("add", a=1, b=2)).structured == {"sum": 3}
            with pytest.raises(segue.ProtocolError, match="too much"):
                await session.call("add", a=10, b=2)
            assert [tool for tool, _, _ in asked] == ["add", "add"]

    run(work)
