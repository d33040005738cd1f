"""Servers of the transport HTTP+SSE of 2024-11-05: tests/proxy/old_server.py is one.
tests/node/client_old.test.ts has the same scenes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import segue
from programs import ROOT

OLD = [sys.executable, "-B", str(ROOT / "tests" / "proxy" / "old_server.py")]


@contextmanager
def old_server() -> Iterator[str]:
    pipe = subprocess.PIPE
    with subprocess.Popen(OLD, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        yield child.stdout.readline().strip()
        child.stdin.close()


@pytest.mark.parametrize("use", ["auto", "only"])
def test_r_0_9_and_r_0_11_a_server_of_2024_11_05_works(use: Any) -> None:
    steps: list[float] = []

    async def answer(_question: segue.ElicitRequest) -> segue.ElicitResult:
        return segue.ElicitResult("accept", {"x": 1})

    async def on_progress(now: float, _total: float | None, _text: str | None) -> None:
        steps.append(now)

    async def main(url: str) -> None:
        async with segue.connect(url, http_sse=use, on_elicit=answer) as session:
            assert [tool.name for tool in await session.list_tools()][:1] == ["odd"]
            done = await session.call("steps", on_progress=on_progress)
            assert done.text == "done"
            asked = await session.call(
                "ask",
                method="elicitation/create",
                params={
                    "message": "m",
                    "requestedSchema": {"type": "object", "properties": {}},
                },
            )
            assert asked.structured["result"]["action"] == "accept"

    with old_server() as url:
        asyncio.run(main(url))
    assert steps == [0.5, 1.5, 2.5]


def test_r_0_11_it_can_be_switched_off() -> None:
    async def main(url: str) -> None:
        with pytest.raises(segue.NegotiationError, match="HTTP 405"):
            await segue.connect(url, http_sse="never")

    with old_server() as url:
        asyncio.run(main(url))


def test_r_0_11_with_only_the_refusal_of_the_stream_is_told() -> None:
    async def main(url: str) -> None:
        with pytest.raises(segue.NegotiationError, match="HTTP 404"):
            await segue.connect(url, http_sse="only")

    with old_server() as url:
        asyncio.run(main(f"{url}/nothing"))


def test_an_unknown_choice_is_refused() -> None:
    unknown: Any = "perhaps"

    async def main() -> None:
        with pytest.raises(ValueError, match="auto, never, only"):
            await segue.connect("http://127.0.0.1:1/sse", http_sse=unknown)

    asyncio.run(main())
