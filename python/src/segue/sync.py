"""The client without asyncio, for scripts, notebooks and tests:

    import segue.sync

    with segue.sync.connect(["python", "server.py"]) as session:
        print(session.call("greet", name="Ada").text)
        for segment in session.stream("story", n=3):
            print(segment.text, end="")

The session has the methods of `segue.Session`, and these methods block. One thread for
the whole program runs an event loop of its own, so the module also works where a loop
runs already, as in Jupyter. Several threads may use a session at the same time. Ctrl-C
cancels the call for which the main thread waits, waits for the end of the call and raises
`KeyboardInterrupt`. The session stays usable.

Callbacks run on the loop's thread. They must neither block nor use this module.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from typing_extensions import Unpack

from . import client, errors
from ._segue import Segment
from .client import ConnectOptions
from .client.calls import Arguments
from .client.opening import Target, open_session
from .client.opening import authorize as _authorize
from .client.stream import Reader
from .content import Result

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Changes", "Session", "Stream", "Task", "authorize", "connect", "resume"]

T = TypeVar("T")

# How often, in seconds, a waiting thread wakes to check for signals. (A signal that
# arrives just before the thread begins to wait for a lock does not wake the thread.)
_GLANCE = 0.2


class _Job(Generic[T]):
    """Work that runs in the loop while another thread waits for its end.

    A signal may interrupt the waiting thread between any two steps. If the interrupted
    thread held a lock that the loop needs, the loop would block. So a job uses only one
    lock, which serves as a wake-up flag and protects no data.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._has_ended = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def begin(self) -> None:
        """Starts the work. Runs in the loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            # retrieves the error, so that asyncio does not report it if no thread asks
            # for it
            task.exception()
        self._ring()

    def _ring(self) -> None:
        self._has_ended = True
        self._bell.release()

    def cancel(self) -> None:
        """Cancels the work. Runs in the loop, before or after `begin`."""
        if self._task is not None:
            self._task.cancel()
        elif not self._has_ended:
            self._work.close()
            self._ring()

    def wait(self) -> None:
        while not self._has_ended:
            self._bell.acquire(timeout=_GLANCE)

    def result(self) -> T:
        assert self._task is not None
        return self._task.result()


class _Loop:
    """The thread of this module and its event loop. The thread starts at the first use
    and ends with the program."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_over = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="segue.sync", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            rest = asyncio.all_tasks(self._loop)
            for task in rest:
                task.cancel()
            if rest:
                self._loop.run_until_complete(asyncio.wait(rest, timeout=6))
        finally:
            self._is_over = True
            self._loop.close()

    def _stop(self) -> None:
        if self._pid == os.getpid() and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(8)

    def is_ours(self) -> bool:
        """Whether the loop runs in this process. A child process of a fork needs its own
        loop."""
        # Thread.is_alive is not used here, because is_alive takes a lock.
        return self._pid == os.getpid() and not self._is_over

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work in the loop and waits for its result. An exception during the
        wait, such as Ctrl-C, cancels the work."""
        if threading.current_thread() is self._thread:
            work.close()
            raise errors.ReentrantError(
                "segue.sync must not be called in a callback: it would wait for the "
                "thread that the callback runs on"
            )
        job = _Job(work)
        try:
            self._loop.call_soon_threadsafe(job.begin)
            job.wait()
        except BaseException:
            # The cancelled work must still notify the server, and the program may close
            # the session next. So the thread waits for the end of the work. A second
            # interrupt ends this wait.
            self._loop.call_soon_threadsafe(job.cancel)
            job.wait()
            raise
        return job.result()


_loops: list[_Loop] = []
_lock = threading.Lock()


def _loop() -> _Loop:
    if _loops and _loops[-1].is_ours():
        return _loops[-1]
    with _lock:
        if not _loops or not _loops[-1].is_ours():
            _loops[:] = [_Loop()]
        return _loops[-1]


def _forget_lock() -> None:
    """Replaces the lock in the child of a fork, because another thread of the parent may
    have held the lock.
    """
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def _run(work: Coroutine[Any, Any, T]) -> T:
    return _loop().run(work)


async def _in_loop(verb: Any, *args: Any, **options: Any) -> Any:
    return verb(*args, **options)


class _Readable:
    """The common methods of streams and tasks; see `segue.Stream`."""

    _reader: Reader

    @property
    def token(self) -> str | None:
        """The token for `resume`, which continues after the last segment that was
        read."""
        token: str | None = _run(_in_loop(getattr, self._reader, "token"))
        return token

    @property
    def task_id(self) -> str | None:
        """The id of the task, if the call has become a task, or None."""
        return self._reader.task_id

    @property
    def immediate(self) -> str | None:
        """The server's interim answer for the model, to use while the task runs, or
        None."""
        return self._reader.immediate

    @property
    def done(self) -> bool:
        """Whether the call has ended and all its segments were read."""
        return self._reader.done

    def __iter__(self) -> Iterator[Segment]:
        return self._segments()

    def _segments(self) -> Iterator[Segment]:
        # Segments are taken one by one, so that `token` covers exactly the segments that
        # were read. Taking a segment that has already arrived needs no switch of threads.
        while True:
            segment = self._reader.take()
            if segment is None:
                try:
                    segment = _run(self._next())
                except _End:
                    return
            yield segment

    async def _next(self) -> Segment:
        try:
            return await self._reader.__aiter__().__anext__()
        except StopAsyncIteration as end:
            raise _End from end

    def detach(self) -> str:
        """Detaches from the task without cancelling it. Returns its token."""
        token: str = _run(_in_loop(self._reader.detach))
        return token

    def cancel(self) -> None:
        """Cancels the call or its task, and waits for the end."""
        _run(self._reader.cancel())


class _End(Exception):
    """Stands for the end of an iteration, because a future cannot hold StopIteration or
    StopAsyncIteration.
    """


class Stream(_Readable):
    """A `segue.Stream` that is read with `for`."""

    def __init__(self, stream: client.Stream) -> None:
        self._reader = self._stream = stream

    @property
    def result(self) -> Result:
        """The whole result, available when all segments were read."""
        return self._stream.result

    def started(self) -> Self:
        """Begins the request and waits for a task, a segment or the end."""
        _run(self._stream.started())
        return self

    def collect(self) -> Result:
        """Waits for the result without reading the segments."""
        return _run(self._stream.collect())

    def close(self) -> None:
        """Leaves the call, as at the end of `with`; see `on_leave` of `stream`."""
        _run(self._stream.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Task(_Readable):
    """A `segue.Task` that is read with `for`. `result()` blocks."""

    def __init__(self, task: client.Task) -> None:
        self._reader = self._task = task

    @property
    def id(self) -> str | None:
        """The id by which `Session.task` finds the task; None if the call is not a
        task."""
        return self._task.id

    def result(self) -> Result:
        """Waits for the result. Unread segments are skipped."""
        return _run(self._task.result())

    def status(self) -> client.TaskStatus:
        """Asks the server for the status of the task."""
        return _run(self._task.status())


class Changes:
    """A `segue.Changes` that is read with `for`. `with` or `close` ends the
    subscription."""

    def __init__(self, changes: client.Changes) -> None:
        self._changes = changes

    def __iter__(self) -> Iterator[client.Change]:
        while True:
            try:
                yield _run(self._next())
            except _End:
                return

    async def _next(self) -> client.Change:
        try:
            return await self._changes.__anext__()
        except StopAsyncIteration as end:
            raise _End from end

    def close(self) -> None:
        """Unsubscribes."""
        _run(self._changes.aclose())

    def __enter__(self) -> Self:
        _run(self._changes.open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Session:
    """A `segue.Session` whose methods block. `connect` makes it."""

    def __init__(self, session: client.Session) -> None:
        self._session = session

    @property
    def peer(self) -> client.Peer:
        """The server's description of itself at the last connection."""
        return self._session.peer

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended."""
        return self._session.is_closed

    def call(
        self, tool: str, arguments: Arguments | None = None, /, **more: Any
    ) -> Result:
        """Calls a tool and waits for its result: see `segue.Session.call`."""
        return _run(self._session.call(tool, arguments, **more))

    def stream(
        self, tool: str, arguments: Arguments | None = None, /, **more: Any
    ) -> Stream:
        """Calls a tool and reads its result in segments while the tool runs: see
        `segue.Session.stream`."""
        return Stream(self._session.stream(tool, arguments, **more))

    def start(
        self, tool: str, arguments: Arguments | None = None, /, **more: Any
    ) -> Task:
        """Calls a tool and returns as soon as the call can be resumed: see
        `segue.Session.start`."""
        return Task(_run(self._session.start(tool, arguments, **more)))

    def resume(self, token: str, **options: Any) -> Task:
        """Resumes a request of an earlier connection or process: see
        `segue.Session.resume`."""
        return Task(_run(_in_loop(self._session.resume, token, **options)))

    def task(self, id: str, **options: Any) -> Task:
        """Makes a task object for a task id: see `segue.Session.task`."""
        return Task(self._session.task(id, **options))

    def list_tools(self) -> list[client.Tool]:
        """Lists all tools."""
        return _run(self._session.list_tools())

    def list_resources(self) -> list[client.Resource]:
        """Lists all resources."""
        return _run(self._session.list_resources())

    def list_resource_templates(self) -> list[client.ResourceTemplate]:
        """Lists all templates of resources."""
        return _run(self._session.list_resource_templates())

    def list_prompts(self) -> list[client.Prompt]:
        """Lists all prompts."""
        return _run(self._session.list_prompts())

    def read_resource(
        self, uri: str, *, meta: Mapping[str, Any] | None = None
    ) -> client.ReadResult:
        """Reads a resource."""
        return _run(self._session.read_resource(uri, meta=meta))

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> client.PromptResult:
        """Gets the messages of a prompt. Its arguments may be given by name, too."""
        return _run(self._session.get_prompt(name, arguments, meta=meta, **more))

    def complete(
        self,
        of: client.Prompt | client.ResourceTemplate | Mapping[str, Any] | str,
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
    ) -> client.Completion:
        """Suggests values for an argument."""
        return _run(self._session.complete(of, argument, value, context=context))

    def subscribe(
        self,
        *uris: str,
        tools: bool = False,
        resources: bool = False,
        prompts: bool = False,
    ) -> Changes:
        """Subscribes to changes of resources or lists. The subscription begins at
        `with`."""
        return Changes(
            self._session.subscribe(
                *uris, tools=tools, resources=resources, prompts=prompts
            )
        )

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Sends any request and waits for its result."""
        return _run(self._session.request(method, params, timeout=timeout))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification. See `segue.Session.notify`."""
        _run(_in_loop(self._session.notify, method, params))

    def ping(self) -> None:
        """Sends a ping to the server and waits for its answer."""
        _run(self._session.ping())

    def set_log_level(self, level: str) -> None:
        """Asks the server for log messages from this level on. `on_log` receives them."""
        _run(self._session.set_log_level(level))

    def close(self) -> None:
        """Ends the session. Tasks on the server continue."""
        _run(self._session.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._session).replace("segue.Session", "segue.sync.Session")


def connect(target: Target, /, **options: Unpack[ConnectOptions]) -> Session:
    """Connects to a server and waits for the connection. See `segue.connect`.

    Use the session with `with`, or call its `close`.
    """
    return Session(_run(open_session(target, options)))


def authorize(redirect_url: str) -> None:
    """Passes the redirect URL of a browser to the connection that waits for it. See
    `segue.authorize`."""
    _run(_in_loop(_authorize, redirect_url))


class _Resumed(Task):
    """A task that has a session of its own."""

    def __init__(self, task: client.Task, session: client.Session) -> None:
        super().__init__(task)
        self._own = session

    def close(self) -> None:
        """Closes the task's session. A task that is still running continues on the
        server."""
        _run(self._own.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def resume(token: str, target: Target, /, **options: Unpack[ConnectOptions]) -> _Resumed:
    """Connects and resumes a request of an earlier connection or process. See
    `segue.resume`.

    Args:
        token: The token of the request.
        target: The server: a URL, a command or a `Server`.
        options: Those of `connect`.
    """

    async def work() -> tuple[client.Task, client.Session]:
        session = await open_session(target, options)
        try:
            return session.resume(token), session
        except BaseException:
            await session.close()
            raise

    return _Resumed(*_run(work()))
