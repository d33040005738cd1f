"""Programs that end, or lose their loop, at every stage of a request. They run as child
processes, which must end by themselves with the right exit status and no output. Also
loops, threads and forks."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from binding_worlds import Pair, Recorder, nothing_is_left, run, runtime, until
from segue import _runtime, _segue, errors

__all__ = ["nothing_is_left"]

HERE = Path(__file__).parent
SECONDS = 120

# The common part of the stages: a server and a client in one runtime, and a tool for
# each stage.
HEAD = """
import asyncio, atexit, os, signal, sys, threading, time
from binding_worlds import Pair, Recorder
from segue import _runtime, _segue

calls = []

def answer(kind, call, params, name):
    _segue.call_reply(call, name)

def hold(kind, call, params, name):
    calls.append(call)

def stream(kind, call, params, name):
    calls.append(call)
    while _segue.call_send_text(call, "x" * 1000) and len(calls) < 3:
        calls.append(call)

TOOLS = {"answer": answer, "hold": hold, "stream": stream}

def pair(rt):
    return Pair(rt.handle, tools=TOOLS, item={"flags": 1, "task": 1})
"""

STAGES = {
    "before anything": """
        async def main():
            _runtime.current()
        asyncio.run(main())
    """,
    "with a session that nobody waited for": """
        async def main():
            kept.append(pair(_runtime.current()))
        kept = []
        asyncio.run(main())
    """,
    "in flight": """
        async def main():
            p = pair(_runtime.current())
            done = Recorder()
            kept.append((p, done, p.start("hold", done)))
            while not calls:
                await asyncio.sleep(0)
        kept = []
        asyncio.run(main())
        assert kept[0][1].of(_segue.COMPLETE)[0][0] == -2
    """,
    "in flight, at exit": """
        async def main():
            p = pair(_runtime.current())
            p.start("hold", Recorder())
            while not calls:
                await asyncio.sleep(0)
            sys.exit(3)
        asyncio.run(main())
    """,
    "amidst a stream": """
        async def main():
            p = pair(_runtime.current())
            done = Recorder()
            kept.append((p, done, p.start("stream", done)))
            await done.get(_segue.SEGMENTS)
        kept = []
        asyncio.run(main())
        assert kept[0][1].kinds[-1] == _segue.COMPLETE
    """,
    "after the end, with all handles": """
        async def main():
            p = pair(_runtime.current())
            done = Recorder()
            kept.append((p, done, p.start("answer", done)))
            await done.get(_segue.COMPLETE)
        kept = []
        asyncio.run(main())
    """,
    "by sys.exit in a callback": """
        def leave(kind, a, b, c):
            if kind == _segue.COMPLETE:
                sys.exit(3)
        async def main():
            p = pair(_runtime.current())
            p.start("answer", leave)
            await asyncio.Event().wait()
        asyncio.run(main())
    """,
    "by sys.exit in a hook": """
        import logging
        logging.getLogger("segue").setLevel(logging.CRITICAL)  # it could not be told
        def leave(tool, what, schema, value):
            sys.exit(3)
        async def main():
            p = Pair(_runtime.current().handle, tools=TOOLS, server={"validate": leave})
            p.start("answer", Recorder())
            await asyncio.Event().wait()
        asyncio.run(main())
    """,
    "by an exception in a callback": """
        def fail(kind, a, b, c):
            raise ZeroDivisionError("in a callback")
        async def main():
            told = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, one: told.append(one))
            p = pair(_runtime.current())
            request = p.start("answer", fail)
            while not told:
                await asyncio.sleep(0)
            assert isinstance(told[0]["exception"], ZeroDivisionError)
            done = Recorder()
            p.start("answer", done)
            await done.get(_segue.COMPLETE)
        asyncio.run(main())
    """,
    "by KeyboardInterrupt": """
        async def main():
            p = pair(_runtime.current())
            done = Recorder()
            kept.append((p, done, p.start("hold", done)))
            while not calls:
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        kept = []
        # Whoever runs the tests in the background may have had it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            sys.exit(3)
    """,
    "with a loop that was closed early": """
        loop = asyncio.new_event_loop()
        async def main():
            p = pair(_runtime.current())
            done = Recorder()
            kept.append((p, done, p.start("hold", done)))
            while not calls:
                await asyncio.sleep(0)
        kept = []
        loop.run_until_complete(main())
        loop.close()
    """,
    "with a loop that was never closed": """
        loop = asyncio.new_event_loop()
        async def main():
            p = pair(_runtime.current())
            kept.append((p, p.start("hold", Recorder())))
            while not calls:
                await asyncio.sleep(0)
        kept = []
        loop.run_until_complete(main())
    """,
    "with a runtime that nobody freed": """
        handle = _segue.runtime_new()
        _segue.runtime_start(handle)
        p = Pair(handle, tools=TOOLS)
        done = Recorder()
        request = p.start("hold", done)
        while not calls:
            for one in _segue.runtime_dispatch(handle, 1000, 16):
                one[0](*one[1:])
    """,
    "in a thread that goes on": """
        def other():
            loop = asyncio.new_event_loop()
            loop.run_until_complete(main())
        async def main():
            p = pair(_runtime.current())
            p.start("hold", Recorder())
            while not calls:
                await asyncio.sleep(0)
            ready.set()
            await asyncio.Event().wait()
        ready = threading.Event()
        threading.Thread(target=other, daemon=True).start()
        ready.wait()
    """,
    "with a server over HTTP under load": """
        import logging
        logging.getLogger("segue").setLevel(logging.CRITICAL)  # calls are cut off
        async def main():
            rt = _runtime.current()
            p = pair(rt)
            listener = _segue.server_listen(p.server)
            way = _segue.transport_http(rt.handle, _segue.listener_url(listener))
            session = _segue.session_open(rt.handle, way)
            params = '{"name":"answer","arguments":{}}'
            done = [Recorder() for _ in range(100)]
            for one in done:
                _segue.request_start(session, "tools/call", params, None, one)
            await done[0].get(_segue.COMPLETE)
        asyncio.run(main())
    """,
    "with os._exit": """
        async def main():
            p = pair(_runtime.current())
            p.start("hold", Recorder())
            while not calls:
                await asyncio.sleep(0)
            os._exit(3)
        asyncio.run(main())
    """,
    "by SIGTERM": """
        async def main():
            p = pair(_runtime.current())
            p.start("hold", Recorder())
            while not calls:
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        asyncio.run(main())
    """,
}
STATUS = {
    "in flight, at exit": 3,
    "by sys.exit in a callback": 3,
    "by sys.exit in a hook": 3,
    "by KeyboardInterrupt": 3,
    "with os._exit": 3,
    "by SIGTERM": -15,
}


def run_program(text: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(text)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_program_ends(stage: str) -> None:
    done = run_program(STAGES[stage])
    assert done.stderr == ""
    assert done.returncode == STATUS.get(stage, 0)


def test_the_child_of_a_fork_has_no_runtime_until_it_makes_one() -> None:
    done = run_program("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12: threads and fork
        async def parent():
            rt = _runtime.current()
            p = pair(rt)
            child = os.fork()
            if child == 0:
                os._exit(0 if in_child(rt, p) else 1)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            done = Recorder()
            p.start("answer", done)
            await done.get(_segue.COMPLETE)

        def in_child(rt, p):
            try:
                _segue.session_close(p.session)
                return False
            except Exception as error:
                if type(error).__name__ != "ClosedError":
                    raise
            assert _segue.live_handles() == {}
            del p
            asyncio.events._set_running_loop(None)
            asyncio.run(again())
            return True

        async def again():
            p = pair(_runtime.current())
            done = Recorder()
            p.start("answer", done)
            await done.get(_segue.COMPLETE)

        asyncio.run(parent())
    """)
    assert done.stderr == ""
    assert done.returncode == 0


def answer(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
    _segue.call_reply(call, name)


async def talk(count: int = 100) -> None:
    """Makes some calls in the runtime of the running loop."""
    pair = Pair(_runtime.current().handle, tools={"answer": answer})
    done = [Recorder() for _ in range(count)]
    for one in done:
        pair.start("answer", one)
    for one in done:
        assert (await one.get(_segue.COMPLETE))[0] == 0


def test_a_loop_has_one_runtime_that_ends_with_it() -> None:
    seen: list[Any] = []

    async def main() -> None:
        made = _runtime.current()
        assert _runtime.current() is made is _runtime.Runtime.current()
        assert made.loop is asyncio.get_running_loop()
        made.on_close(lambda: seen.append("closed"))
        seen.append(weakref.ref(made))
        await talk()

    asyncio.run(main())
    gc.collect()
    assert seen[0]() is None
    assert seen[1] == "closed"
    with pytest.raises(RuntimeError):
        _runtime.current()


def test_a_runtime_that_was_closed_is_made_anew() -> None:
    async def main() -> None:
        first = _runtime.current()
        await talk()
        await first.aclose()
        await first.aclose()
        assert first.is_closed
        assert _runtime.current() is not first
        await talk()

    run(main())


def test_a_runtime_that_has_ended_has_no_descriptor() -> None:
    """Whoever still has its handle, such as the thread that has freed it."""

    async def main() -> None:
        made = _runtime.current()
        handle = made.handle
        descriptors = (_segue.runtime_fd(handle), _segue.runtime_side_fd(handle))
        await made.aclose()
        for descriptor in descriptors:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(descriptor)
        assert repr(handle) == "<segue.Runtime, freed>"

    run(main())


def test_two_loops_in_two_threads() -> None:
    failures: list[BaseException] = []

    def one() -> None:
        try:
            for _ in range(3):
                asyncio.run(asyncio.wait_for(talk(300), SECONDS))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)


def test_a_loop_without_add_reader() -> None:
    """The thread that waits in its place ends with its runtime."""

    async def main() -> None:
        async with runtime(use_reader=False) as made:
            pair = Pair(made.handle, tools={"answer": answer})
            for _ in range(100):
                done = Recorder()
                pair.start("answer", done)
                await done.get(_segue.COMPLETE)
            assert any(one.name == "segue-waiter" for one in threading.enumerate())
        assert not any(one.name == "segue-waiter" for one in threading.enumerate())

    run(main())


def test_calls_may_be_answered_from_any_thread() -> None:
    def answer_later(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        def work() -> None:
            for _ in range(5):
                assert _segue.call_send_text(call, "x")
            _segue.call_reply(call, "done")

        threads.append(threading.Thread(target=work))
        threads[-1].start()

    threads: list[threading.Thread] = []

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"t": answer_later}, item={"flags": 1})
            done = [Recorder() for _ in range(50)]
            for one in done:
                pair.start("t", one)
            for one in done:
                assert (await one.get(_segue.COMPLETE))[0] == 0
                assert len(one.segments) == 6
            for thread in threads:
                thread.join()

    run(main())


def test_what_a_handler_refers_to_lives_until_its_last_event() -> None:
    """They are freed after that, also when handles were freed at once."""

    class Kept:
        pass

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"answer": answer})
            kept = Kept()
            gone = weakref.ref(kept)
            future = asyncio.get_running_loop().create_future()

            def handler(kind: int, a: Any, b: Any, c: Any, kept: Kept = kept) -> None:
                future.set_result(gone() is not None)

            _segue.request_free(pair.start("answer", handler, events=0))
            del kept, handler
            gc.collect()
            assert await future
            await until(lambda: gc.collect() >= 0 and gone() is None)

    run(main())


def test_garbage_is_collected_under_way() -> None:
    """The collector runs between all steps, with handles in cycles."""

    class Node:
        def __init__(self, handle: Any) -> None:
            self.handle = handle
            self.me = self

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"answer": answer})
            done = [Recorder() for _ in range(300)]
            for one in done:
                Node(pair.start("answer", one))
            for one in done:
                await one.get(_segue.COMPLETE)

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        run(main())
    finally:
        gc.set_threshold(*before)


def test_a_stopped_runtime_is_quiet() -> None:
    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"answer": answer})
            done = Recorder()
            pair.start("answer", done)
            _segue.runtime_stop(made.handle)
            turns = 0
            while turns < 1000 and made._loop_reads():
                await asyncio.sleep(0)
                turns += 1
            assert turns < 1000  # its descriptor would stay readable for ever
            with pytest.raises(errors.ClosedError):
                while True:
                    _segue.runtime_dispatch(made.handle)
        assert done.of(_segue.COMPLETE)[0][0] in (0, -2)

    run(main())
