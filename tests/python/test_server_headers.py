"""What Python handlers learn of the HTTP request that made their call: `ctx.headers`, and
the context variables of the app that mounts the server."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount

import segue
from client_worlds import run
from segue import testing
from server_worlds import nothing_left  # noqa: F401
from test_server_asgi import in_uvicorn

pytestmark = pytest.mark.usefixtures("nothing_left")
ERAS = pytest.mark.parametrize("era", ["auto", "legacy"])
SENT = {"X-Tenant": "blue", "Authorization": "Bearer s3cret"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "tags", "arguments": {}},
}

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="unset")


def simple() -> segue.Server:
    server = segue.Server("heads", expose_errors=True)

    @server.tool
    async def tell(ctx: segue.Context, name: str) -> str:
        assert name.upper() in ctx.headers or ctx.headers.get(name) is None
        return ctx.headers.get(name, "-")

    @server.tool
    def tell_in_thread(ctx: segue.SyncContext, name: str) -> str:
        return ctx.headers.get(name, "-")

    @server.tool
    async def tags(ctx: segue.Context) -> str:
        return (
            f"{ctx.headers['x-TAG']}|{ctx.headers.getlist('X-Tag')}|"
            + (ctx.headers["cookie"])
        )

    @server.tool
    async def all_names(ctx: segue.Context) -> list[str]:
        assert len(ctx.headers) == len(list(ctx.headers))
        assert "s3cret" not in repr(ctx.headers)
        return list(ctx.headers)

    @server.resource("heads://{name}")
    async def read(name: str, ctx: segue.Context) -> str:
        return ctx.headers.get(name, "-")

    @server.prompt
    def ask(name: str, ctx: segue.SyncContext) -> str:
        return ctx.headers.get(name, "-")

    @server.tool(task="must")
    async def as_task(ctx: segue.Context) -> str:
        await asyncio.sleep(0)
        return ctx.headers.get("x-tenant", "-")

    return server


async def check(session: segue.Session, has: Mapping[str, str]) -> None:
    for name in (*SENT, "x-none"):
        want = has.get(name, "-")
        assert (await session.call("tell", name=name)).text == want
        assert (await session.call("tell_in_thread", name=name)).text == want
    want = has.get("X-Tenant", "-")
    assert (await session.read_resource("heads://x-tenant")).text == want
    prompt = await session.get_prompt("ask", {"name": "x-tenant"})
    assert prompt.messages[0].content.text == want
    assert (await session.call("as_task")).text == want


@ERAS
def test_the_own_listener_gives_the_headers(era: Any) -> None:
    async def work() -> None:
        serving = simple().serving(http="127.0.0.1:0")
        async with serving, segue.connect(serving.url, era=era, headers=SENT) as session:
            await check(session, SENT)
            names = (await session.call("all_names")).structured
            assert "authorization" in names["result"]
            assert "mcp-protocol-version" in names["result"]

    run(work)


@ERAS
def test_a_mounted_server_gives_the_headers(era: Any) -> None:
    async def work() -> None:
        mcp = simple().asgi()
        app = Starlette(routes=[Mount("/mcp", app=mcp)], lifespan=mcp.lifespan)
        async with (
            in_uvicorn(app) as port,
            segue.connect(
                f"http://127.0.0.1:{port}/mcp/", era=era, headers=SENT
            ) as session,
        ):
            await check(session, SENT)

    run(work)


def test_several_values_of_one_name() -> None:
    async def work() -> None:
        serving = simple().serving(http="127.0.0.1:0")
        async with serving, httpx.AsyncClient() as client:
            answer = await client.post(
                str(serving.url),
                json=CALL,
                headers=[
                    ("Accept", "application/json, text/event-stream"),
                    ("X-Tag", "a"),
                    ("cookie", "k=1"),
                    ("x-tag", "b"),
                    ("cookie", "l=2"),
                ],
            )
        content = answer.json()["result"]["content"]
        assert content[0]["text"] == "a, b|['a', 'b']|k=1; l=2"

    run(work)


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_without_http_there_are_no_headers(era: Any) -> None:
    async def work() -> None:
        async with segue.connect(simple(), era=era) as session:
            await check(session, {})
            assert (await session.call("all_names")).structured == {"result": []}

    run(work)


def test_a_task_that_runs_again_has_no_headers(tmp_path: Path) -> None:
    """Headers hold secrets, so they are not stored. The file of the store has none."""
    runs: list[dict[str, str]] = []
    server = segue.Server("again")
    begun = asyncio.Event()

    @server.tool(task="must", restartable=True)
    async def job(ctx: segue.Context) -> str:
        runs.append(dict(ctx.headers))
        await ctx.checkpoint("here")
        begun.set()
        if ctx.resumed is None:
            await asyncio.sleep(60)
        return "done"

    async def work() -> None:
        store = tmp_path / "tasks.db"
        lab = testing.Lab()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(lab.aclose)
            served = await lab.serve(server, store=str(store))
            session = await served.connect(headers=SENT)
            task = asyncio.ensure_future(session.call("job"))
            await begun.wait()
            await served.kill()
            for path in tmp_path.iterdir():
                assert b"s3cret" not in path.read_bytes()
            await served.start()
            assert (await task).text == "done"

    run(work)
    assert runs[0]["authorization"] == "Bearer s3cret"
    assert runs[1:] == [{}]


# ---- context variables of the app


def variables() -> segue.Server:
    server = segue.Server("variables")

    @server.use
    async def around(call: segue.Call, proceed: segue.Proceed) -> Any:
        heard.append(tenant.get())
        return await proceed()

    heard: list[str] = []

    @server.tool
    async def on_loop() -> str:
        mine = tenant.get()
        tenant.set("changed by a handler")
        await asyncio.sleep(0)
        return f"{mine} {heard[-1]}"

    @server.tool
    def in_thread() -> str:
        return tenant.get()

    @server.tool
    async def stream(n: int) -> Any:
        for _ in range(n):
            yield tenant.get()
            await asyncio.sleep(0)

    @server.tool(task="must")
    async def as_task() -> str:
        await asyncio.sleep(0.01)
        return tenant.get()

    @server.resource("who://am/i")
    async def who() -> str:
        return tenant.get()

    @server.prompt
    def greet() -> str:
        return tenant.get()

    return server


def plain_variables() -> segue.Server:
    """Without middlewares, handlers begin in another way."""
    server = segue.Server("plain")

    @server.tool
    async def on_loop() -> str:
        return f"{tenant.get()} {tenant.get()}"

    @server.tool
    def in_thread() -> str:
        return tenant.get()

    @server.tool(thread=False)
    def inline() -> str:
        return tenant.get()

    return server


class Tenants(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        tenant.set(request.headers.get("x-tenant", "none"))
        return await call_next(request)


class PureTenants:
    """A middleware of pure ASGI, which takes the value back when the answer is out."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        token = tenant.set(headers.get(b"x-tenant", b"none").decode())
        try:
            await self.app(scope, receive, send)
        finally:
            tenant.reset(token)


@ERAS
@pytest.mark.parametrize("kind", [Tenants, PureTenants])
def test_handlers_see_the_variables_of_the_app(kind: Any, era: Any) -> None:
    async def work() -> None:
        mcp = variables().asgi()
        app = Starlette(
            routes=[Mount("/mcp", app=mcp)],
            lifespan=mcp.lifespan,
            middleware=[Middleware(kind)],
        )
        async with in_uvicorn(app) as port, AsyncExitStack() as stack:
            sessions = {
                name: await stack.enter_async_context(
                    segue.connect(
                        f"http://127.0.0.1:{port}/mcp/",
                        era=era,
                        headers={"X-Tenant": name},
                    )
                )
                for name in ("red", "blue")
            }

            async def see(name: str, session: segue.Session) -> None:
                assert (await session.call("in_thread")).text == name
                texts = [one.text async for one in session.stream("stream", n=3)]
                assert texts[:3] == [name] * 3
                assert (await session.call("as_task")).text == name
                assert (await session.read_resource("who://am/i")).text == name
                prompt = await session.get_prompt("greet")
                assert prompt.messages[0].content.text == name

            await asyncio.gather(*(see(*one) for one in sessions.items()))
            for name, session in sessions.items():
                assert (await session.call("on_loop")).text == f"{name} {name}"

    run(work)


def test_handlers_without_middlewares_see_them_too() -> None:
    async def work() -> None:
        mcp = plain_variables().asgi()
        app = Starlette(
            routes=[Mount("/mcp", app=mcp)],
            lifespan=mcp.lifespan,
            middleware=[Middleware(PureTenants)],
        )
        async with (
            in_uvicorn(app) as port,
            segue.connect(
                f"http://127.0.0.1:{port}/mcp/", headers={"X-Tenant": "red"}
            ) as session,
        ):
            assert (await session.call("on_loop")).text == "red red"
            assert (await session.call("in_thread")).text == "red"
            assert (await session.call("inline")).text == "red"

    run(work)
    assert tenant.get() == "unset"
