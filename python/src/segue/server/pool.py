"""A pool of threads for plain functions. The pool makes its threads when they are needed.

The threads are daemon threads, so that a function that hangs cannot keep the process from
ending. A pool of `concurrent.futures` would join its threads at exit.
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
    """Runs functions on at most `size` threads. Further functions wait for a thread."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0  # number of jobs that wait or run

    def submit(self, job: Callable[[], Any]) -> None:
        """Runs a job on a thread. The job must not raise.

        Raises:
            RuntimeError: the pool has no thread, and no thread can be made.
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
                # No new thread could be made, but there are other threads, which run
                # the job.
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                break
            try:
                job()
            except BaseException:
                # no exception of a job, not even SystemExit, may end a thread of the
                # pool
                log.exception("a function on a thread of the pool failed")
            finally:
                with self._lock:
                    self._busy -= 1
            del job

    def close(self) -> None:
        """Lets the threads end when all jobs are done. Does not wait."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)
            self._threads = 0
