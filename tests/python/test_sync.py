"""The client without asyncio."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import segue
import segue.sync
from programs import server_command


def test_a_script(tmp_path: Path) -> None:
    command = server_command("--store", str(tmp_path / "tasks.db"))
    with segue.sync.connect(command) as session:
        assert session.peer.server.name == "segue-fixture"
        assert session.call("greet", name="Ada").text == "Hello, Ada!"
        assert [tool.name for tool in session.list_tools()]
        assert session.read_resource("test://static-text").text
        assert session.get_prompt("simple").messages
        assert session.complete("arguments", "arg1", "word").values
        assert session.list_resources() and session.list_prompts()
        assert session.list_resource_templates()
        assert session.request("tools/list")["tools"]
        session.ping()
        with pytest.raises(segue.ToolError):
            session.call("fail")
        with pytest.raises(segue.RequestTimeoutError):
            session.call("hang_plain", timeout=0.05)
    assert session.is_closed and "closed" in repr(session)
    with pytest.raises(segue.ClosedError):
        session.call("greet")


def test_segments_in_a_for_loop() -> None:
    with segue.sync.connect(server_command()) as session:
        stream = session.stream("story", n=2000)
        assert [s.number for s in stream] == [*range(1, 2001)]
        assert stream.done and stream.result.text.startswith("segment 1 of")
        with session.stream("story", n=100000, delayMs=1) as stream:
            for segment in stream:
                if segment.number == 3:
                    break
        assert stream.done
        assert (
            session.stream("story", n=3).collect().text.endswith("segment 3 of the story")
        )
        assert session.stream("story", n=3).started().task_id
        with pytest.raises(segue.ToolError):
            for _ in session.stream("fail_after", n=1):
                pass


def test_tasks_and_tokens(tmp_path: Path) -> None:
    command = server_command("--store", str(tmp_path / "tasks.db"))
    with segue.sync.connect(command) as session:
        task = session.start("story", n=6, delayMs=10)
        assert task.id and task.status().id == task.id
        for segment in task:
            if segment.number == 2:
                break
        token = task.detach()
    with segue.sync.resume(token, command) as resumed:
        assert [s.number for s in resumed] == [3, 4, 5, 6]
        assert resumed.result().text.startswith("segment 1 of")
    with segue.sync.connect(command) as session:
        assert session.task(task.id).result().text
        assert session.resume(token).result().text
        hanging = session.start("hang")
        assert hanging.status().status == "working"
        hanging.cancel()
        with pytest.raises(segue.RequestCancelledError):
            hanging.result()


def test_changes() -> None:
    with segue.sync.connect(server_command()) as session:
        with session.subscribe("test://static-text") as changes:
            session.call("update")
            assert next(iter(changes)).uri == "test://static-text"
        assert list(changes) == []


def test_inside_of_a_running_loop() -> None:
    """A notebook has a running loop."""

    async def work() -> None:
        with segue.sync.connect(server_command()) as session:
            assert session.call("greet").text == "Hello, World!"
            assert len(list(session.stream("story", n=3))) == 3

    asyncio.run(work())


def test_several_threads() -> None:
    with segue.sync.connect(server_command()) as session:
        texts: list[str] = []

        def work(n: int) -> None:
            for i in range(50):
                texts.append(session.call("greet", name=f"{n}.{i}").text)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(texts)) == 200


def test_callbacks_must_not_wait() -> None:
    told: list[BaseException] = []
    with segue.sync.connect(server_command()) as session:

        def on_progress(*_: Any) -> None:
            try:
                session.ping()
            except segue.ReentrantError as error:
                told.append(error)

        session.call("steps", n=1, on_progress=on_progress)
    assert len(told) == 1


SCRIPT = """
import segue.sync, signal, sys
# Whoever runs the tests in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with segue.sync.connect(sys.argv[1:]) as session:
    task = session.start("hang")
    try:
        print("ready", flush=True)
        session.call("hang_plain")
    except KeyboardInterrupt:
        print("interrupted", session.call("greet").text, flush=True)
    try:
        print("ready", flush=True)
        for segment in session.stream("story", n=100000, delayMs=20):
            pass
    except KeyboardInterrupt:
        print("interrupted", session.call("greet").text, flush=True)
"""


def test_control_c_cancels() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *server_command()],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
        start_new_session=True,
    )
    assert child.stdout
    for _ in range(2):
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted Hello, World!\n"
    child.stdout.close()
    assert child.wait(120) == 0


def test_an_interrupt_waits_for_what_it_cancels() -> None:
    """The cancelled work still has a message for the server, and the session may be
    closed next."""
    told: list[str] = []
    me = threading.get_ident()

    async def work() -> None:
        while sys._current_frames()[me].f_code.co_name != "wait":
            await asyncio.sleep(0)  # until somebody waits for its end
        os.kill(os.getpid(), signal.SIGALRM)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):
                await asyncio.sleep(0)
            told.append("cancelled")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            segue.sync._run(work())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert told == ["cancelled"]


def test_an_interrupt_at_any_moment() -> None:
    """An interrupt leaves no lock taken that the loop would wait for."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    chance = random.Random(7)
    with segue.sync.connect(server_command()) as session:
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(100):
                with pytest.raises(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3))
                    session.call("hang_plain")
                assert session.call("greet").text == "Hello, World!"
        finally:
            signal.signal(signal.SIGALRM, before)


def test_the_program_ends_with_open_sessions() -> None:
    script = "import segue.sync, sys; s = segue.sync.connect(sys.argv[1:]); print(s)"
    ended = subprocess.run(
        [sys.executable, "-c", script, *server_command()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0 and not ended.stderr, ended.stderr


def test_a_notification_is_sent() -> None:
    with segue.sync.connect(server_command()) as session:
        session.notify("notifications/roots/list_changed")
        with pytest.raises(segue.errors.InvalidError):
            session.notify("")
        session.ping()


def test_it_has_the_verbs_of_the_session() -> None:
    """Fails when only one of the two classes has a method."""
    asyncs = {name for name in dir(segue.Session) if not name.startswith("_")}
    own = {name for name in dir(segue.sync.Session) if not name.startswith("_")}
    inner = {"begun", "connections", "exchange", "failed", "on_event", "opened"}
    inner |= {"reconnected", "request_raw", "run", "send", "tell_log", "wait_closed"}
    assert asyncs - inner == own - {"peer", "is_closed"}
