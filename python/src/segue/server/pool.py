"""Threads for plain functions: at most so many, made when they are needed.

They are daemons. A function that hangs may not keep the process from ending, as it would
in a pool of `concurrent.futures`, whose threads are joined at exit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["Pool"]


class Pool:
    """Runs functions on at most `size` threads; the others wait their turn."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0  # jobs that wait or run

    def submit(self, job: Callable[[], Any]) -> None:
        """Runs job on a thread; it may not raise."""
        with self._lock:
            self._busy += 1
            grow = self._busy > self._threads and self._threads < self.size
            self._threads += grow
        self._jobs.put(job)
        if grow:
            threading.Thread(target=self._run, name="segue-tool", daemon=True).start()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                break
            try:
                job()
            finally:
                with self._lock:
                    self._busy -= 1
            del job

    def close(self) -> None:
        """Lets the threads end when they have nothing to do. Does not wait."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)
            self._threads = 0
