"""The metrics of a server: the parser of Prometheus' library reads them, and they tell
what happened."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Mount

import segue
from client_worlds import run
from server_worlds import nothing_left  # noqa: F401
from test_server_asgi import Cutter, Request, in_uvicorn

pytestmark = pytest.mark.usefixtures("nothing_left")

REACHED = "segue_limits_reached_total"
TOOK = "mcp_server_operation_duration_seconds"


def simple(**options: Any) -> segue.Server:
    server = segue.Server("counted", **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def broken() -> str:
        raise segue.ToolError("on purpose")

    @server.tool(task="may")
    async def story(ctx: segue.Context, n: int) -> str:
        for i in range(n):
            await ctx.send(f"{i};")
        return "end"

    @server.tool(name="a} 1,era=# {é")
    async def hostile() -> str:
        return "hostile"

    return server


class Counted:
    """The metrics of a text, each sample by its name and labels."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {}
        self.samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for family in text_string_to_metric_families(text):
            assert family.name not in self.families, family.name
            assert family.documentation and family.type != "unknown", family.name
            self.families[family.name] = family
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in self.samples, key
                self.samples[key] = sample.value

    def __call__(self, name: str, **labels: str) -> float:
        """Returns the value of a sample, or 0 if there is none."""
        return self.samples.get((name, tuple(sorted(labels.items()))), 0)

    def calls(self, tool: str, era: str = "modern", **more: str) -> float:
        labels = {"mcp_method_name": "tools/call", "gen_ai_tool_name": tool, "era": era}
        return self("segue_calls_total", **labels, **more)


def get(url: str) -> str:
    with urllib.request.urlopen(url, None, 120) as answer:
        kind = answer.headers["Content-Type"]
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        return str(answer.read().decode())


async def fetch(url: str) -> Counted:
    return Counted(await asyncio.to_thread(get, url.replace("/mcp", "/metrics")))


def test_counters_move_by_what_happens() -> None:
    server = simple()

    async def work() -> None:
        async with server.serving("127.0.0.1:0", metrics_path="/metrics") as serving:
            before = Counted(server.metrics())
            assert before.calls("add") == 0
            async with segue.connect(serving.url) as session:
                assert (await session.call("add", a=1, b=2)).text == "3"
                await session.call("add", a=1, b=2)
                await session.call("a} 1,era=# {é")
                with pytest.raises(segue.ToolError):
                    await session.call("broken")
                with pytest.raises(segue.Error):
                    await session.call("no_such_tool")
            async with segue.connect(serving.url, era="legacy") as session:
                await session.call("add", a=1, b=2)
            after = Counted(server.metrics())
        assert after.calls("add") == 2
        assert after.calls("add", "legacy") == 1
        assert after.calls("a} 1,era=# {é") == 1
        assert after.calls("broken", error_type="tool_error") == 1
        assert after.calls("_other", error_type="unknown_name") == 1
        assert after("segue_operations_calls_total") == 5
        assert after("segue_operations_segments_total") > 0
        assert after("process_resident_memory_bytes") > 1 << 20
        assert after("segue_build_info", version=segue.__version__) == 1

    run(work)


def test_histograms_are_whole() -> None:
    """Their buckets rise, and the last one has all values."""
    server = simple()

    async def work() -> None:
        async with (
            server.serving("127.0.0.1:0") as serving,
            segue.connect(serving.url) as session,
        ):
            await session.call("add", a=1, b=2)
            await (await session.start("story", n=3)).result()
            found = Counted(server.metrics())
        kinds = {
            family.name
            for family in found.families.values()
            if family.type == "histogram"
        }
        assert kinds == {
            TOOK,
            "segue_store_commit_duration_seconds",
            "segue_store_commit_writes",
        }
        for name in kinds:
            series: dict[str, list[tuple[float, float]]] = {}
            for sample in found.families[name].samples:
                if sample.name == f"{name}_bucket":
                    rest = {k: v for k, v in sample.labels.items() if k != "le"}
                    edge = float(sample.labels["le"])
                    series.setdefault(str(rest), []).append((edge, sample.value))
            assert series
            for buckets in series.values():
                assert buckets == sorted(buckets) and len(buckets) == 15
                assert [n for _, n in buckets] == sorted(n for _, n in buckets)
            counts = [
                sample.value
                for sample in found.families[name].samples
                if sample.name == f"{name}_count"
            ]
            assert counts == [buckets[-1][1] for buckets in series.values()]
        edges = [edge for edge, _ in buckets_of(found, TOOK)]
        assert edges[:3] == [0.01, 0.02, 0.05] and edges[-2:] == [300, float("inf")]
        assert (
            found("segue_store_commit_writes_count")
            == found("segue_store_commits_total")
            > 0
        )

    run(work)


def buckets_of(found: Counted, name: str) -> list[tuple[float, float]]:
    rows = [
        (float(sample.labels["le"]), sample.value)
        for sample in found.families[name].samples
        if sample.name == f"{name}_bucket"
    ]
    return rows[:15]


def test_resumes_are_counted() -> None:
    server = simple()

    async def work() -> None:
        async with server.serving("127.0.0.1:0", metrics_path="/metrics") as serving:
            port = urllib.parse.urlsplit(serving.url).port
            assert port
            cutter = Cutter(port, 2000, 2)
            async with (
                cutter.running() as cut,
                segue.connect(f"http://127.0.0.1:{cut}/mcp") as session,
            ):
                async for _ in session.stream("story", n=100):
                    pass
            assert cutter.done == 2
            found = await fetch(serving.url)
        assert found("segue_resumes_streams_total", endpoint="/mcp") == 2
        assert found("segue_use_streams_opened_total", endpoint="/mcp") >= 2

    run(work)


def test_refusals_are_counted_by_limit() -> None:
    server = simple(options={"max_tasks": 1})
    ends = asyncio.Event()

    @server.tool(task="must")
    async def waits() -> str:
        await ends.wait()
        return "end"

    async def work() -> None:
        async with (
            server.serving("127.0.0.1:0") as serving,
            segue.connect(serving.url) as session,
        ):
            task = await session.start("waits")
            before = Counted(server.metrics())
            assert before(REACHED, limit="max_tasks") == 0
            with pytest.raises(segue.Error):
                await (await session.start("waits")).result()
            after = Counted(server.metrics())
            ends.set()
            await task.result()
        assert after(REACHED, limit="max_tasks") == 1
        assert after(REACHED, limit="max_requests") == 0
        assert after("segue_operations_tasks_total") == 1

    run(work)


def test_a_mounted_app_has_them_for_callers_on_this_machine() -> None:
    app = simple().asgi(metrics_path="/metrics")

    async def ask(**scope: Any) -> Request:
        request = Request()
        request.body = b""
        request.pieces = [b""]
        names = (b"content-type", b"content-length", b"mcp-name", b"mcp-method")
        headers = [pair for pair in request.scope["headers"] if pair[0] not in names]
        request.scope.update(
            method="GET", path="/metrics", raw_path=b"/metrics", headers=headers
        )
        request.scope.update(scope)
        return await request.run(app)

    async def work() -> None:
        local = await ask()
        assert local.status == 200 and "segue_use_requests" in local.text
        assert (await ask(client=("192.0.2.1", 4711))).status == 403
        assert (await ask(client=None)).status == 403
        proxied = [*local.scope["headers"], (b"x-forwarded-for", b"192.0.2.1")]
        assert (await ask(headers=proxied)).status == 403
        await app.aclose()

    run(work)


def test_a_mounted_app_below_a_path() -> None:
    mcp = simple().asgi(metrics_path="/metrics")
    app = Starlette(routes=[Mount("/mcp", app=mcp)], lifespan=mcp.lifespan)

    async def work() -> None:
        async with in_uvicorn(app) as port:
            async with segue.connect(f"http://127.0.0.1:{port}/mcp/") as session:
                await session.call("add", a=1, b=2)
            text = await asyncio.to_thread(get, f"http://127.0.0.1:{port}/mcp/metrics")
            assert Counted(text).calls("add", endpoint="/") == 1

    run(work)


def test_a_token_is_needed_where_calls_need_one(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ada {hashlib.sha256(b'secret').hexdigest()}\n")
    server = simple()

    async def work() -> None:
        async with server.serving(
            "127.0.0.1:0", metrics_path="/metrics", tokens_file=str(tokens)
        ) as serving:
            with pytest.raises(urllib.error.HTTPError, match="401"):
                await fetch(serving.url)

    run(work)


def test_each_way_of_serving_has_metrics_of_its_own(tmp_path: Path) -> None:
    server = simple()
    assert server.metrics() == ""

    async def work() -> None:
        one = server.serving("127.0.0.1:0", store=str(tmp_path / "one.db"))
        other = server.serving("127.0.0.1:0", store=str(tmp_path / "other.db"))
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(one)
            assert Counted(server.metrics())("segue_use_requests") == 0
            await stack.enter_async_context(other)
            with pytest.raises(segue.StateError, match="served in 2 ways"):
                server.metrics()
        assert server.metrics() == ""

    run(work)


def test_the_path_is_checked() -> None:
    server = simple()

    async def work() -> None:
        with pytest.raises(TypeError, match="metrics_path has to be a str"):
            server.serving("127.0.0.1:0", metrics_path=7)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="give http= too"):
            server.serving(metrics_path="/metrics")
        with pytest.raises(segue.InvalidError, match="begin with /"):
            await server.serving("127.0.0.1:0", metrics_path="metrics").start()

    run(work)
