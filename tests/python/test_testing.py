"""The plug-in for pytest, used as a user does: a suite of its own, run by pytest."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import segue
from segue.testing import Clock, Lab

SUITE = """
import asyncio
import pytest
import segue

server = segue.Server("tested")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

@server.tool
async def slow() -> str:
    for _ in range(10):
        await asyncio.sleep(60)
    return "done"

@server.tool(task="may", restartable=True)
async def report(ctx: segue.Context):
    begun = ctx.resumed
    for page in range(begun.segments if begun else 0, 3):
        yield f"page {page}\\n"
        if page == 1 and begun is None:
            await asyncio.Event().wait()

@server.tool
async def ask(ctx: segue.Context) -> str:
    return str(await ctx.ask("Name?"))

@pytest.fixture
def segue_server():
    return server

async def test_a_call(segue_session):
    assert (await segue_session.call("add", a=1, b=2)).decode(int) == 3

async def test_time(segue_session, segue_clock):
    begun = segue_clock.time()
    call = asyncio.ensure_future(segue_session.call("slow"))
    for _ in range(10):
        assert await segue_clock.next() == 60
    assert (await call).text == "done"
    assert segue_clock.time() == begun + 600

async def test_a_cut(segue_served):
    session = await segue_served.connect()
    async with session.stream("report") as stream:
        segments = aiter(stream)
        assert (await anext(segments)).text == "page 0\\n"
        segue_served.cut()
        assert (await anext(segments)).text == "page 1\\n"

async def test_a_crash(segue_served):
    session = await segue_served.connect()
    async with session.stream("report") as stream:
        texts = []
        async for segment in stream:
            texts.append(segment.text)
            if len(texts) == 2:
                await segue_served.restart()
    assert texts == ["page 0\\n", "page 1\\n", "page 2\\n"]

class TestOptions:
    @pytest.fixture
    def segue_options(self):
        return {"on_elicit": lambda asked: segue.ElicitResult("accept", {"value": "Ada"})}

    @pytest.mark.parametrize("times", [1, 2])
    async def test_a_question(self, segue_session, times):
        for _ in range(times):
            assert (await segue_session.call("ask")).text == "Ada"

    async def test_a_question_over_http(self, segue_served):
        session = await segue_served.connect()
        assert (await session.call("ask")).text == "Ada"

async def test_two_servers(segue_lab):
    one = await segue_lab.connect(server)
    two = await segue_lab.connect(segue.Server("other"))
    assert [one.peer.server.name, two.peer.server.name] == ["tested", "other"]

def test_a_plain_one(segue_server):
    assert segue_server is server
"""

WRONG = """
import asyncio
import pytest
import segue

async def test_without_a_server(segue_session):
    pass

async def test_nobody_catches(segue_lab):
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)

async def test_fails(segue_lab):
    assert 1 == 2
"""


def run(suite: str, place: Path, *options: str) -> str:
    (place / "test_suite.py").write_text(suite)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, "test_suite.py"]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *words],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_suite_of_a_user(tmp_path: Path) -> None:
    said = run(SUITE, tmp_path)
    assert "9 passed" in said and "failed" not in said, said


@pytest.mark.parametrize(
    ("option", "mark"),
    [("asyncio_mode=auto", ""), ("asyncio_mode=strict", "asyncio"), ("", "anyio")],
)
def test_beside_another_plug_in(option: str, mark: str, tmp_path: Path) -> None:
    marked = f"\npytestmark = pytest.mark.{mark}\n" if mark else ""
    said = run(SUITE + marked, tmp_path, *(["-o", option] if option else []))
    assert " passed" in said and "failed" not in said and "error" not in said, said


def test_what_is_wrong_fails(tmp_path: Path) -> None:
    said = run(WRONG, tmp_path)
    assert "define a fixture segue_server that returns the segue.Server" in said, said
    assert "nobody has caught: ZeroDivisionError" in said, said
    assert "assert 1 == 2" in said, said
    assert "1 failed" in said and "1 passed" in said and "2 errors" in said, said


# ---- the helpers without pytest


def test_a_lab_leaves_nothing(nothing_left: None) -> None:
    server = segue.Server("lab")

    @server.tool
    def name() -> str:
        return server.name

    async def work() -> None:
        async with Lab() as lab:
            served = await lab.serve(server)
            for session in (await lab.connect(server), await served.connect()):
                assert (await session.call("name")).text == "lab"
            await served.kill()
            with pytest.raises(segue.TransportError):
                await served.connect()
            await served.start()
            assert (await (await served.connect()).call("name")).text == "lab"

    asyncio.run(work())


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_handlers_that_go_on_after_a_crash(era: Any, nothing_left: None) -> None:
    """A function in a thread, which nobody can stop, and one that catches its
    cancellation: what they do after the crash reaches neither the store nor the
    client."""
    server = segue.Server("stubborn")
    late: list[str] = []
    begun = threading.Semaphore(0)
    dead, done = threading.Event(), threading.Semaphore(0)

    def resumed(ctx: segue.Context | segue.SyncContext) -> str:
        assert ctx.resumed is not None
        return f"resumed after {ctx.resumed.segments} at {ctx.resumed.data}"

    def plain(ctx: segue.SyncContext) -> str:
        if ctx.resumed is not None:
            return resumed(ctx)
        ctx.checkpoint("here")
        ctx.send("early")
        begun.release()
        dead.wait()
        try:
            for name, deed in (("send", ctx.send), ("checkpoint", ctx.checkpoint)):
                with contextlib.suppress(segue.Error):
                    deed("late")
                    late.append(name)
        finally:
            done.release()
        return "late"

    async def stubborn(ctx: segue.Context) -> str:
        if ctx.resumed is not None:
            return resumed(ctx)
        await ctx.checkpoint("here")
        await ctx.send("early")
        begun.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with contextlib.suppress(segue.Error):
                await ctx.send("late")
                late.append("send after cancellation")
        finally:
            done.release()
        return "late"

    for name, run in (("thread", plain), ("loop", stubborn)):
        server.tool(run, name=f"{name}_lost", task="must")
        server.tool(run, name=f"{name}_kept", task="must", restartable=True)

    async def work() -> None:
        async with Lab() as lab:
            served = await lab.serve(server)
            session = await served.connect(era=era)

            async def told(name: str) -> str:
                try:
                    return (await session.call(name)).text
                except segue.Error as error:
                    return str(error)

            names = ("thread_lost", "thread_kept", "loop_lost", "loop_kept")
            calls = [asyncio.ensure_future(told(name)) for name in names]
            for _ in names:
                await asyncio.to_thread(begun.acquire)
            await served.kill()
            dead.set()
            for _ in names:
                await asyncio.to_thread(done.acquire)
            await served.start()
            said = await asyncio.gather(*calls)
            assert "Server restarted" in said[0], said
            assert said[1] == "earlyresumed after 1 at here", said
            assert "Server restarted" in said[2], said
            assert said[3] == "earlyresumed after 1 at here", said
            assert late == []

    asyncio.run(work())


def test_the_clock() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        clock = Clock(loop)
        begun = clock.time()
        woken: list[float] = []

        async def sleeper(*seconds: float) -> None:
            for one in seconds:
                await asyncio.sleep(one)
                woken.append(loop.time() - begun)

        one = asyncio.ensure_future(sleeper(10, 10, 100))
        two = asyncio.ensure_future(sleeper(15))
        await clock.advance(30)
        assert woken == [10, 15, 20]
        assert clock.time() == begun + 30
        assert await clock.next() == 90
        await asyncio.gather(one, two)
        with pytest.raises(ValueError, match="does not go back"):
            await clock.advance(-1)
        with pytest.raises(asyncio.TimeoutError):
            waiting = asyncio.ensure_future(asyncio.wait_for(asyncio.Event().wait(), 5))
            await clock.advance(6)
            await waiting
        clock.restore()
        assert loop.time() - begun < 100

    asyncio.run(work())
