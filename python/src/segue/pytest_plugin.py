"""A plug-in for pytest. pytest loads it when the package is installed.

    @pytest.fixture
    def segue_server():
        return server                          # the server to test

    async def test_add(segue_session):
        assert (await segue_session.call("add", a=1, b=2)).text == "3"

    async def test_a_broken_connection(segue_served):
        session = await segue_served.connect()
        segue_served.cut()

An async test that uses one of these fixtures runs in an event loop of its own, with
asyncio. An exception that nobody catches, in a callback or a task of the loop, fails the
test. No other plug-in is needed. If pytest-asyncio or the plug-in of anyio takes the same
test, by its mark or in its mode "auto", the test runs in this loop all the same. Async
fixtures of those plug-ins run in a loop of their own, so they cannot use a session.

Fixtures:
    segue_server: The server to test. A test suite defines it.
    segue_session: A session with the server, in memory. `segue_options` are its options.
    segue_options: Options of `segue.connect` for `segue_session`; none by default.
    segue_served: The server over HTTP, as a `segue.testing.Served`: `connect`, `cut`,
        `kill`, `start`.
    segue_clock: The clock of the loop, as a `segue.testing.Clock`, which stands still.
    segue_lab: A `segue.testing.Lab`, for several servers and sessions.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from segue import ConnectOptions, Server, Session
    from segue.testing import Clock, Lab, Served

T = TypeVar("T")

_RUNNER = pytest.StashKey["_Runner"]()


class _Runner:
    """The event loop of one test.

    Attributes:
        test: the function of the test, as it was before another plug-in has wrapped it.
    """

    def __init__(self, test: Callable[..., Any]) -> None:
        self.test = test
        self.loop = asyncio.new_event_loop()
        self.failures: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.failures.append(context))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.run(_ended(left))
        self.run(self.loop.shutdown_asyncgens())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


async def _call(function: Any) -> Any:
    """Calls a plain function in the loop."""
    return function()


@pytest.fixture
def segue_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A `segue.testing.Lab`, which is closed after the test."""
    from segue.testing import Lab

    runner = _Runner(request.node.obj)
    request.node.stash[_RUNNER] = runner
    lab = Lab()
    try:
        yield lab
    finally:
        try:
            runner.run(lab.aclose())
        finally:
            runner.close()
    if runner.failures:
        first = runner.failures[0]
        raise AssertionError(
            f"nobody has caught: {first.get('exception') or first.get('message')!r}"
        ) from first.get("exception")


@pytest.fixture
def segue_server() -> Server:
    """The server to test."""
    raise pytest.UsageError(
        "define a fixture segue_server that returns the segue.Server to test"
    )


@pytest.fixture
def segue_options() -> ConnectOptions:
    """The options of `segue_session`, and of the sessions of `segue_served`."""
    return {}


@pytest.fixture
def segue_session(
    request: pytest.FixtureRequest,
    segue_lab: Lab,
    segue_server: Server,
    segue_options: ConnectOptions,
) -> Session:
    """A session with the server, in memory."""
    return _runner(request).run(segue_lab.connect(segue_server, **segue_options))


@pytest.fixture
def segue_served(
    request: pytest.FixtureRequest,
    segue_lab: Lab,
    segue_server: Server,
    segue_options: ConnectOptions,
) -> Served:
    """The server over HTTP, behind a wire."""
    served: Served = _runner(request).run(segue_lab.serve(segue_server))
    served._client_options = segue_options
    return served


@pytest.fixture
def segue_clock(request: pytest.FixtureRequest, segue_lab: Lab) -> Clock:
    """The clock of the loop, which stands still."""
    clock: Clock = _runner(request).run(_call(segue_lab.fake_clock))
    return clock


def _runner(request: pytest.FixtureRequest) -> _Runner:
    runner: _Runner = request.node.stash[_RUNNER]
    return runner


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Runs an async test that uses a fixture of this plug-in. Other plug-ins, and pytest
    itself, see a plain function, so none of them runs the test in another loop."""
    runner = pyfuncitem.stash.get(_RUNNER, None)
    if runner is None or not inspect.iscoroutinefunction(runner.test):
        yield
        return
    test, given = runner.test, pyfuncitem.obj

    def run(**arguments: Any) -> None:
        runner.run(test(**arguments))

    pyfuncitem.obj = run
    yield
    pyfuncitem.obj = given
