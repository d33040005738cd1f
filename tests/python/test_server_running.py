"""A Python server as a process: its standard input and output, its signals, its crash."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import segue
from ports import free_port
from server_worlds import nothing_left, run  # noqa: F401
from shared_stores import store  # noqa: F401

# ruff: noqa: F811
PROGRAM = str(Path(__file__).with_name("server_program.py"))
COMMAND = [sys.executable, "-B", PROGRAM]
SECONDS = 120.0


class Program:
    """The server over HTTP as a process, until it ends."""

    def __init__(self, *arguments: str, port: int | None = None, **env: str) -> None:
        self.port = port or free_port()
        http = f"127.0.0.1:{self.port}"
        self.child = subprocess.Popen(
            [*COMMAND, "--http", http, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        assert self.child.stderr is not None
        ready, _, _ = select.select([self.child.stderr], [], [], SECONDS)
        line = self.child.stderr.readline() if ready else ""
        assert line == f"The server program listens on http://{http}/mcp\n"
        self.url = f"http://{http}/mcp"

    def signal(self, number: int) -> None:
        self.child.send_signal(number)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.child.wait, SECONDS)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait()
        assert self.child.stderr is not None
        self.child.stderr.close()


# ---- standard input and output


def lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)


HELLO = lines(
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)


def call(id: int, tool: str, **arguments: Any) -> str:
    params = {"name": tool, "arguments": arguments}
    return lines({"id": id, "method": "tools/call", "params": params})


def test_nothing_but_messages_on_standard_output(nothing_left: None) -> None:
    child = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin and child.stdout and child.stderr
    child.stdin.write(HELLO + call(1, "noisy", text="hé"))
    child.stdin.flush()
    answers = [json.loads(child.stdout.readline()) for _ in range(2)]
    assert answers[0]["result"]["serverInfo"]["name"] == "program"
    assert answers[1]["result"]["content"][0]["text"] == "hé ''"
    out, err = child.communicate(timeout=SECONDS)  # the input ends
    assert child.returncode == 0 and out == ""
    for text in ("printed hé", "written", "to descriptor 1", "of a child"):
        assert f"{text}\n" in err


def test_a_session_over_standard_input_and_output(nothing_left: None) -> None:
    async def work() -> None:
        for era in ("modern", "legacy"):
            async with segue.connect(COMMAND, era=era, restart=False) as session:
                waiting = asyncio.ensure_future(session.call("gate", name="a"))
                await session.call("open", name="a")
                assert (await waiting).text == "through a"
                assert (await session.call("noisy", text="x")).text == "x ''"

    run(work)


def test_what_is_under_way_is_answered_before_a_signal_ends_it(
    nothing_left: None, tmp_path: Path
) -> None:
    """Over standard input and output: SIGTERM, and the call may still end."""
    gate = tmp_path / "gate"
    child = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "GATE_FILE": str(gate)},
    )
    assert child.stdin and child.stdout
    child.stdin.write(HELLO)
    child.stdin.flush()
    child.stdout.readline()
    child.stdin.write(call(1, "open_at_end", name="a") + call(2, "gate", name="a"))
    child.stdin.write(call(3, "open", name="other"))
    child.stdin.flush()
    assert json.loads(child.stdout.readline())["id"] == 3  # so the other calls run
    child.send_signal(signal.SIGTERM)
    gate.touch()
    told = [json.loads(child.stdout.readline()) for _ in range(2)]
    answers = {one["id"]: one for one in told}
    assert child.stdout.readline() == ""
    child.communicate(timeout=SECONDS)
    assert answers[2]["result"]["content"][0]["text"] == "through a"
    assert child.returncode == 0


# ---- signals


def test_a_signal_lets_calls_end(nothing_left: None, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def work(program: Program) -> None:
        started = asyncio.Event()
        async with segue.connect(program.url) as session:
            helper = asyncio.ensure_future(session.call("open_at_end", name="a"))
            waiting = asyncio.ensure_future(
                session.call("gate", name="a", on_progress=lambda *_: started.set())
            )
            await started.wait()
            program.signal(signal.SIGTERM)
            gate.touch()
            assert (await waiting).text == "through a"
            await helper
        assert await program.ended() == 0

    with Program(GATE_FILE=str(gate)) as program:
        run(lambda: work(program))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(nothing_left: None, number: int) -> None:
    async def work(program: Program) -> None:
        started = asyncio.Event()
        async with segue.connect(program.url, max_reconnects=-1) as session:
            calls = [
                asyncio.ensure_future(
                    session.call(tool, arguments, on_progress=lambda *_: started.set())
                )
                for tool, arguments in (("stuck", {}), ("gate", {"name": "never"}))
            ]
            await started.wait()
            program.signal(number)
            while True:  # once no connection is accepted, the first signal was handled
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", program.port)
                except OSError:
                    break
                writer.close()
            program.signal(number)
            assert await program.ended() == 128 + number
            for one in calls:
                with pytest.raises(segue.Error):
                    await one

    with Program("--drain", str(5 * SECONDS)) as program:
        run(lambda: work(program))


def test_a_handler_that_holds_the_loop_is_ended(
    nothing_left: None, tmp_path: Path
) -> None:
    """The server's loop is blocked: a second signal ends the process all the same. Two
    signals at once count as one."""
    held = tmp_path / "held"

    async def work(program: Program) -> None:
        async with segue.connect(program.url, max_reconnects=-1) as session:
            call = asyncio.ensure_future(session.call("hog", file=str(held)))
            while not held.exists():
                await asyncio.sleep(0.01)
            while program.child.poll() is None:
                program.signal(signal.SIGINT)
                await asyncio.sleep(0.3)  # a free loop handles a signal in less time
            # Either the first signal finds the loop blocked, or a later one ends the
            # process.
            ends = (128 + signal.SIGINT, -signal.SIGINT)
            assert await program.ended() in ends
            with pytest.raises(segue.Error):
                await call

    with Program() as program:
        run(lambda: work(program))


# ---- a crash


async def resumed(url: str, token: str) -> tuple[list[str], str]:
    async with segue.connect(url) as session:
        task = session.resume(token)
        seen = [segment.text or "" async for segment in task]
        return seen, (await task.result()).text


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_parked_call_goes_on_in_the_next_process(
    nothing_left: None, tmp_path: Path, way: str
) -> None:
    """R-975-29: when asked to end, a server releases a call that its client can resume.
    A call that cannot run again fails because the server restarted."""
    options = ("--store", str(tmp_path / "calls.db"), "--drain", "0")
    session_options: Any = {"era": "legacy", "tasks": False, "max_reconnects": -1}
    tokens: list[str] = []
    port = free_port()

    async def begin(target: Any) -> None:
        async with segue.connect(target, **session_options) as session:
            for tool, args in (("parked", {"to": 6, "pause_at": 4}), ("parked_lost", {})):
                stream = session.stream(tool, args, on_leave="detach")
                async for segment in stream:
                    if tool == "parked_lost" or segment.number == 3:
                        break
                tokens.append(stream.token or "")

    async def go_on(target: Any) -> None:
        async with segue.connect(target, **session_options) as session:
            assert (await session.resume(tokens[0])).text == "1 2 3 4 5 6 in 2 runs"
            with pytest.raises(segue.TaskLostError) as caught:
                await session.resume(tokens[1])
            assert isinstance(caught.value.partial, segue.Result)
            assert caught.value.data == {"reason": "server_restarted"}

    for work in (begin, go_on):
        if way == "stdio":
            run(lambda: work([*COMMAND, *options]))
            continue
        with Program(*options, port=port) as program:
            run(lambda: work(program.url))
            program.signal(signal.SIGTERM)
            assert run(program.ended) == 0


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_call_whose_client_was_away_for_too_long_does_not_run_again(
    nothing_left: None, tmp_path: Path, way: str
) -> None:
    """R-975-27: the time goes on while there is no server."""
    ran = tmp_path / "ran"
    options = ("--store", str(tmp_path / "calls.db"), "--drain", "0")
    session_options: Any = {"era": "legacy", "tasks": False, "max_reconnects": -1}
    token = ""
    port = free_port()

    async def begin(target: Any) -> None:
        nonlocal token
        async with segue.connect(target, **session_options) as session:
            stream = session.stream("parked_shortly", file=str(ran), on_leave="detach")
            async for _ in stream:
                break
            token = stream.token or ""

    async def come_back(target: Any) -> None:
        async with segue.connect(target, **session_options) as session:
            with pytest.raises(segue.RemoteError) as caught:
                await session.resume(token)
            assert caught.value.data == {"reason": "expired"}

    for work in (begin, come_back):
        if way == "stdio":
            run(lambda: work([*COMMAND, *options]))
        else:
            with Program(*options, port=port) as program:
                run(lambda: work(program.url))
                program.signal(signal.SIGTERM)
                assert run(program.ended) == 0
        time.sleep(1.5 if work is begin else 0)  # longer than the client may be away
    assert ran.read_text() == "ran\n"


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_call_that_kills_its_server_has_an_end(
    nothing_left: None, tmp_path: Path, era: Any
) -> None:
    """R-975-25: over standard input and output, too, `max_reconnects` is the limit.
    A server that dies on calls that it took over counts for the session; one that dies
    on a new call counts for the call."""
    died = tmp_path / "died"
    command = [*COMMAND, "--store", str(tmp_path / "calls.db")]

    async def work() -> None:
        async with segue.connect(command, era=era, max_reconnects=2) as session:
            with pytest.raises(segue.DisconnectedError):
                await session.call("die", file=str(died), timeout=SECONDS)

    run(work)
    assert 1 < len(died.read_text().splitlines()) <= (2 + 1) ** 2


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_call_without_a_key_has_no_token(
    nothing_left: None, tmp_path: Path, era: Any
) -> None:
    """The server keeps nothing: with a token the call would run a second time."""
    died = str(tmp_path / "died")
    options: Any = {"era": era, "resumable": False, "max_reconnects": -1}

    async def work() -> None:
        async with segue.connect(COMMAND, **options) as session:
            with pytest.raises(segue.DisconnectedError) as caught:
                await session.call("die", file=died, timeout=SECONDS)
            assert caught.value.token is None

    run(work)


@pytest.mark.parametrize("end", ["crash", "signal"])
@pytest.mark.parametrize("store", ["file", "redis", "postgres"], indirect=True)
def test_a_task_goes_on_in_the_next_process(
    nothing_left: None, store: str, end: str
) -> None:
    """AS-78, AS-93b: after a kill or a request to end, the next process on the same
    store goes on behind the last segment, with the tool's own checkpoint."""
    options = ("--store", store, "--lease", "1", "--drain", "0")
    port = free_port()
    with Program(*options, port=port) as program:
        tokens = run(lambda: left_by(program, end))
    with Program(*options, port=port) as program:
        run(lambda: gone_on_with(program, *tokens))


@pytest.mark.parametrize("store", ["file", "redis", "postgres"], indirect=True)
def test_a_second_server_takes_over_the_tasks_of_one_that_was_killed(
    nothing_left: None, store: str
) -> None:
    """The second server runs beside the first one, and has another address."""
    options = ("--store", store, "--lease", "1", "--drain", "0")
    with Program(*options) as second:
        with Program(*options) as first:
            tokens = run(lambda: left_by(first, "crash"))
        run(lambda: gone_on_with(second, *tokens))


async def left_by(program: Program, end: str) -> tuple[str, str]:
    """Ends a server in the middle of a task that can go on and of one that cannot;
    returns their tokens."""
    async with segue.connect(program.url, max_reconnects=-1) as session:
        stream = session.stream("count", to=6, pause_at=4, on_leave="detach")
        async for segment in stream:
            if segment.number == 3:
                break
        lost = await session.start("lost")
        async for _ in lost:
            break
    program.signal(signal.SIGKILL if end == "crash" else signal.SIGTERM)
    assert await program.ended() == (-signal.SIGKILL if end == "crash" else 0)
    assert stream.token and lost.token
    return stream.token, lost.token


async def gone_on_with(program: Program, token: str, lost: str) -> None:
    """Checks that another server has the tasks."""
    seen, text = await resumed(program.url, token)
    assert text == "1 2 3 4 5 6 in 2 runs"
    assert "".join(seen).endswith("4 5 6 in 2 runs")
    with pytest.raises(segue.Error):
        await resumed(program.url, lost)


def test_the_children_of_a_fork_serve_and_end(tmp_path: Path) -> None:
    """The parent has used threads, a store and a loop of the server before."""
    (tmp_path / "program.py").write_text(
        f"""
import asyncio, os, signal, warnings
import segue
import segue.sync

warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: threads and fork
server = segue.Server("forked", store={str(tmp_path / "tasks.db")!r})


@server.tool
def add(a: int, b: int) -> int:
    return a + b


async def ask(target):
    async with segue.connect(target) as session:
        return (await session.call("add", a=1, b=2, timeout={SECONDS})).text


def serve(told):
    os.dup2(told, 2)
    try:
        plain.call("add", a=1, b=2, timeout={SECONDS})
    except segue.ClosedError as error:
        assert "forked" in str(error), error
    server.run(http="127.0.0.1:0")
    os._exit(0)


assert asyncio.run(ask(server)) == "3"
plain = segue.sync.connect(server)
assert plain.call("add", a=1, b=2).text == "3"
for child in range(2):
    reading, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        serve(told)
    line = os.read(reading, 4096).decode()
    assert asyncio.run(ask(line.split(" listens on ")[1].strip())) == "3", line
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == 0
print("both")
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-B", str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        check=False,
    )
    assert done.stdout == "both\n", done.stderr
    assert done.returncode == 0
