"""Several processes serve one port with one store: each shares the port (SO_REUSEPORT),
or has inherited the listening socket of its parent, as workers of gunicorn do."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import segue
from ports import free_port
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811
PROGRAM = str(Path(__file__).with_name("prefork_program.py"))
SECONDS = 120.0
WORKERS = 3
# The shell becomes the worker, so its process id is the worker's.
BECOME = 'LISTEN_PID=$$ exec "$@"'


class Worker:
    """A process of the server, and the URL at which only this process answers."""

    def __init__(self, http: str, store: str, inherited: socket.socket | None) -> None:
        def take() -> None:  # in the child: the protocol of systemd
            if inherited is not None:
                os.dup2(inherited.fileno(), 3)

        self.child = subprocess.Popen(
            ["sh", "-c", BECOME, "sh", sys.executable, "-B", PROGRAM, http, store],
            stdout=subprocess.PIPE,
            text=True,
            close_fds=inherited is None,
            preexec_fn=take,
            env={**os.environ, "LISTEN_FDS": "1" if inherited else "0"},
        )
        assert self.child.stdout is not None
        ready, _, _ = select.select([self.child.stdout], [], [], SECONDS)
        pid, self.url = self.child.stdout.readline().split() if ready else ("", "")
        self.pid = int(pid)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()
        assert self.child.stdout is not None
        self.child.stdout.close()


class Site:
    """All workers, and the URL that they share."""

    def __init__(self, way: str, store: str) -> None:
        self.listening: socket.socket | None = None
        port = free_port()
        http = f"127.0.0.1:{port}"
        if way == "inherited":
            self.listening = socket.create_server(("127.0.0.1", port), backlog=64)
            http = "systemd"
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.workers: dict[int, Worker] = {}
        for _ in range(WORKERS):
            worker = Worker(http, store, self.listening)
            self.workers[worker.pid] = worker

    def kill(self, pid: int) -> None:
        self.workers.pop(pid).kill()

    def close(self) -> None:
        for pid in list(self.workers):
            self.kill(pid)
        if self.listening is not None:
            self.listening.close()


@pytest.fixture(params=["reuse_port", "inherited"])
def site(
    nothing_left: None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Site]:
    made = Site(request.param, str(tmp_path / "tasks.db"))
    yield made
    made.close()


def pid_of(segment: Any) -> int:
    return int(segment.text.split(":")[1])


def test_each_worker_finds_the_tasks_of_the_others(site: Site) -> None:
    async def work() -> None:
        async with segue.connect(site.url) as session:
            task = await session.start("count", to=2)
            text = (await task.result()).text
            assert text.startswith("1:")
            for worker in site.workers.values():
                async with segue.connect(worker.url) as other:
                    found = other.task(str(task.id))
                    assert (await found.status()).status == "completed"
                    assert (await found.result()).text == text

    run(work)


def test_a_task_survives_the_kill_of_its_worker(site: Site) -> None:
    async def work() -> None:
        async with segue.connect(site.url) as session:
            task = await session.start("count", to=4)
            segments: list[Any] = []
            async for segment in task:
                segments.append(segment)
                if len(segments) == 2:
                    first = pid_of(segment)
                    running = [await status(one, task) for one in site.workers.values()]
                    assert running == ["working"] * WORKERS
                    site.kill(first)
            assert [int(one.text.split(":")[0]) for one in segments] == [1, 2, 3, 4]
            then = {pid_of(one) for one in segments[2:]}
            assert len(then) == 1 and then <= set(site.workers)
            for worker in site.workers.values():
                assert await status(worker, task) == "completed"

    async def status(worker: Worker, task: Any) -> str:
        async with segue.connect(worker.url) as session:
            return str((await session.task(str(task.id)).status()).status)

    run(work)


def test_a_plain_call_survives_the_kill_of_its_worker(site: Site) -> None:
    async def work() -> None:
        async with segue.connect(site.url) as session:
            begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            def on_progress(progress: float, total: Any, message: Any) -> None:
                if not begun.done():
                    begun.set_result(int(progress))

            call = asyncio.ensure_future(session.call("plain", on_progress=on_progress))
            site.kill(await asyncio.wait_for(begun, SECONDS))
            result = await asyncio.wait_for(call, SECONDS)
            assert int(result.text) in site.workers

    run(work)


def test_a_worker_that_ends_leaves_its_place_to_the_others(site: Site) -> None:
    async def work() -> None:
        async with segue.connect(site.url) as session:
            for pid in list(site.workers)[1:]:
                os.kill(pid, signal.SIGTERM)
                assert await asyncio.to_thread(site.workers[pid].child.wait, SECONDS)
                task = await session.start("count", to=2)
                assert (await task.result()).text.startswith("1:")

    run(work)
