"""Events: `segue.observe`, `segue.log_events` and the log of `segue run`."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import segue

DEADLINE = 120
SECRET = "s3cret"


def run(work: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(work(), DEADLINE))


def greeter() -> segue.Server:
    server = segue.Server("greeter")

    @server.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    return server


async def call() -> None:
    async with segue.connect(greeter()) as session:
        await session.call("greet", name=SECRET)


async def until(found: Callable[[], object]) -> None:
    while not found():
        await asyncio.sleep(0)


def sees(events: list[segue.Event], name: str) -> segue.Event:
    return next(event for event in events if event.name == name)


def test_a_call_is_observed() -> None:
    events: list[segue.Event] = []

    async def work() -> None:
        stop = segue.observe(events.append)
        await call()
        await until(lambda: any(one.name == "call_ended" for one in events))
        stop()
        events_before = len(events)
        await call()
        assert len(events) == events_before

    run(work)
    ended = sees(events, "call_ended")
    assert (ended.level, ended.time[-1]) == ("info", "Z")
    assert ended.fields["server"] == "greeter"
    assert (ended.fields["item"], ended.fields["status"]) == ("greet", "ok")
    assert isinstance(ended.fields["duration_us"], int)
    assert sees(events, "request_sent").fields["method"]
    assert SECRET not in repr(events)


def test_arguments_are_there_when_they_are_wanted() -> None:
    events: list[segue.Event] = []

    async def work() -> None:
        stop = segue.observe(events.append, max_argument_bytes=12)
        await call()
        await until(lambda: any(one.name == "call_started" for one in events))
        stop()

    run(work)
    assert sees(events, "call_started").fields["arguments"] == '{"name":"s3c'


def test_each_observer_gets_the_arguments_that_it_asked_for() -> None:
    wide: list[segue.Event] = []
    cut: list[segue.Event] = []
    file = io.StringIO()

    async def work() -> None:
        stops = [
            segue.observe(wide.append, max_argument_bytes=1000),
            segue.observe(cut.append, max_argument_bytes=10),
            segue.log_events("json", level="debug", file=file),
        ]
        async with segue.connect(greeter()) as session:
            await session.call("greet", name="\u00e9" + SECRET)
        await until(lambda: "call_started" in file.getvalue())
        for stop in stops:
            stop()

    run(work)
    whole = sees(wide, "call_started").fields["arguments"]
    assert whole == f'{{"name":"\u00e9{SECRET}"}}'
    # the tenth byte is the first one of the letter
    assert sees(cut, "call_started").fields["arguments"] == '{"name":"'
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    (started,) = (line for line in lines if line["event"] == "call_started")
    assert started["item"] == "greet"
    assert "arguments" not in started
    assert SECRET not in file.getvalue()


def test_events_become_lines() -> None:
    file = io.StringIO()

    async def work() -> None:
        stop = segue.log_events("json", file=file)
        await call()
        await until(lambda: "call_ended" in file.getvalue())
        stop()

    run(work)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    ended = next(line for line in lines if line["event"] == "call_ended")
    assert list(ended)[:3] == ["time", "level", "event"]
    assert {line["level"] for line in lines} <= {"info", "warning", "error"}
    assert SECRET not in file.getvalue()


def test_events_become_records(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("test.events")

    def records() -> list[logging.LogRecord]:
        return [one for one in caplog.records if one.getMessage() == "call_ended"]

    async def work() -> None:
        stop = segue.log_events(logger)
        await call()
        await until(records)
        stop()

    with caplog.at_level(logging.INFO, logger="test.events"):
        run(work)
    (record,) = records()
    assert record.levelno == logging.INFO
    assert vars(record)["segue_item"] == "greet"
    assert vars(record)["segue_status"] == "ok"


def test_dropped_events_are_counted() -> None:
    """The loop does not run while the private thread of the runtime answers requests,
    which make more events than can wait."""
    events: list[segue.Event] = []
    script = (
        "import sys, urllib.request\n"
        "for _ in range(1100):\n"
        "    urllib.request.urlopen(sys.argv[1]).read()\n"
    )

    async def work() -> None:
        serving = greeter().serving(http="127.0.0.1:0", health_path="/health")
        async with serving:
            stop = segue.observe(events.append)
            url = serving.url.replace("/mcp", "/health")
            subprocess.run([sys.executable, "-c", script, url], check=True)
            async with segue.connect(serving.url) as session:
                await session.call("greet", name="Ada")
            await until(lambda: any(one.name == "events_dropped" for one in events))
            stop()

    run(work)
    dropped = sees(events, "events_dropped")
    assert dropped.level == "warning"
    assert isinstance(dropped.fields["count"], int)
    assert dropped.fields["count"] > 0


def test_a_callback_that_raises_is_reported() -> None:
    found: list[dict[str, Any]] = []

    def raises(event: segue.Event) -> None:
        raise ValueError(event.name)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: found.append(context))
        stop = segue.observe(raises, level="info")
        await call()
        await until(lambda: found)
        stop()

    run(work)
    assert isinstance(found[0]["exception"], ValueError)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="level has to be one of"):
        segue.observe(print, level="loud")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_argument_bytes"):
        segue.observe(print, max_argument_bytes=-1)
    with pytest.raises(TypeError, match="to has to be"):
        segue.log_events("text")  # type: ignore[arg-type]


SERVER = """
import segue

server = segue.Server("ran")

@server.tool
def greet(name: str) -> str:
    return name
"""


def test_the_command_logs_lines(tmp_path: Path) -> None:
    file = tmp_path / "ran.py"
    file.write_text(SERVER)
    words = [sys.executable, "-m", "segue.cli", "run", str(file), "--log", "json"]
    words += ["--http", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines: list[str] = []
        for line in server.stderr:
            lines.append(line)
            if " listens on " in line:
                break

        async def talk() -> None:
            url = lines[-1].split()[-1]
            async with segue.connect(url) as session:
                await session.call("greet", name=SECRET)

        run(talk)
        server.send_signal(signal.SIGTERM)
        lines += server.stderr.readlines()
        assert server.wait(DEADLINE) == 0
    events = [json.loads(line) for line in lines if line.startswith("{")]
    names = [event["event"] for event in events]
    assert {"listener_opened", "call_ended", "listener_closed"} <= set(names)
    assert not any(SECRET in line for line in lines)
