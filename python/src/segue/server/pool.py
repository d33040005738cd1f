"""Threads for plain functions: at most so many, made when they are needed.

They are daemons. A function that hangs may not keep the process from ending, as it would
in a pool of `concurrent.futures`, whose threads are joined at exit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["Pool"]

log = logging.getLogger("segue.server")


class Pool:
    """Runs functions on at most `size` threads; the others wait their turn."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0  # jobs that wait or run

    def submit(self, job: Callable[[], Any]) -> None:
        """Runs job on a thread; it may not raise.

        Raises:
            RuntimeError: there is no thread, and none can be made.
        """
        with self._lock:
            self._busy += 1
            grow = self._busy > self._threads and self._threads < self.size
            self._threads += grow
        if grow:
            try:
                threading.Thread(target=self._run, name="segue-tool", daemon=True).start()
            except BaseException:
                with self._lock:
                    self._threads -= 1
                    if not self._threads:
                        self._busy -= 1
                        raise
                # Those that are there will see to it.
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                break
            try:
                job()
            except BaseException:  # SystemExit, too, ends no thread of ours
                log.exception("a function on a thread of the pool failed")
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
