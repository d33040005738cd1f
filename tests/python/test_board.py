"""The task board of a listener and of a mounted app. tests/board drives its page."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

import segue
from client_worlds import run


def simple() -> segue.Server:
    server = segue.Server("board-test")

    @server.tool(task="must")
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    return server


def request(url: str, body: str | None = None) -> tuple[int, Any]:
    """Returns the status and the JSON of an answer."""
    asked = urllib.request.Request(url, body and body.encode())
    asked.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None


async def ask(url: str, body: str | None = None) -> tuple[int, Any]:
    return await asyncio.to_thread(request, url, body)


def test_a_listener_has_a_board() -> None:
    async def work() -> None:
        async with simple().serving("127.0.0.1:0", board_path="/board") as serving:
            url = serving.url.replace("/mcp", "/board/api")
            async with segue.connect(serving.url) as session:
                task = await session.start("hang")
                status, told = await ask(f"{url}/tasks")
                assert status == 200 and told["tasks"][0][0] == task.id
                assert told["tasks"][0][3] == "hang"
                cancel = f"{url}/command?id={task.id}"
                assert (await ask(cancel, '{"cancel":1}'))[0] == 200
                with pytest.raises(segue.Error):
                    await task.result()

    run(work)


def test_it_may_be_closed() -> None:
    async def work() -> None:
        async with simple().serving(
            "127.0.0.1:0", board_path="/board", board_read_only=True, board_redact=True
        ) as serving:
            url = serving.url.replace("/mcp", "/board/api")
            status, told = await ask(f"{url}/about")
            assert status == 200 and told["readOnly"] and told["redacted"]
            assert (await ask(f"{url}/command?id=x", '{"cancel":1}'))[0] == 403

    run(work)


def test_it_may_want_a_token() -> None:
    async def work() -> None:
        async with simple().serving(
            "127.0.0.1:0", board_path="/board", board_token="0123456789abcdef"
        ) as serving:
            url = serving.url.replace("/mcp", "/board/api/about")
            assert (await ask(url))[0] == 401
            bearer = {"Authorization": "Bearer 0123456789abcdef"}
            asked = urllib.request.Request(url, headers=bearer)
            with await asyncio.to_thread(urllib.request.urlopen, asked) as answer:
                assert answer.status == 200

    run(work)


def test_the_options_are_checked() -> None:
    server = simple()

    async def work() -> None:
        with pytest.raises(segue.Error, match="begin with /"):
            await server.serving("127.0.0.1:0", board_path="board").start()
        with pytest.raises(segue.Error, match="need board_path"):
            await server.serving("127.0.0.1:0", board_redact=True).start()

    run(work)
