"""The server that plays tests/vectors: the tools of its README, in Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import segue

FORM = {
    "mode": "form",
    "message": "Are you sure?",
    "requestedSchema": {"type": "object", "properties": {"confirm": {"type": "boolean"}}},
}
NAME = {
    "mode": "form",
    "message": "Name?",
    "requestedSchema": {"type": "object", "properties": {}},
}
TWO_TEXTS = [
    (None, "con"),
    (0, "tent 1."),
    (None, "cont"),
    (1, "ent 2."),
    (0, " Again."),
    (None, "end"),
]
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Say hello"}}]
DRAFT_TASKS = 4
POLL = 0.1


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def make_server(draft: bool, questions_as_tasks: bool) -> segue.Server:
    """Makes a server of its own for each vector."""
    options: Any = {
        "dialects_on": DRAFT_TASKS if draft else 0,
        "first_turn_ms": 60_000,  # a first turn never times out on a busy machine
    }
    if questions_as_tasks:
        options["question_ttl_ms"] = 60_000
    server = segue.Server("segue", "0", principal=lambda peer: "ada", options=options)
    add_plain(server)
    add_streams(server)
    add_questions(server)
    if questions_as_tasks:
        add_models(server)
    return server


def tool(server: segue.Server, **options: Any) -> Any:
    schema = {"type": "object"}
    resume: Any = {"resumable": True, "resume_after": 1.5, "resume_within": 10}
    return server.tool(**{"input_schema": schema, **resume, **options})


def add_plain(server: segue.Server) -> None:
    @server.resource("test://somebody")
    def somebody() -> str:
        return "somebody"

    @tool(server, thread=False)
    def greet(name: str = "World") -> str:
        return f"Hello, {name}!"

    async def never() -> None:
        await asyncio.Event().wait()

    tool(server, name="hang_plain")(never)
    tool(server, name="hang", task="may")(never)

    @tool(server, task="may")
    async def slow_compute(ms: int = 1000, label: str = "done") -> str:
        await asyncio.sleep(ms / 1000)
        return f"Computed: {label}"

    @tool(server, task="may", poll=POLL, thread=False)
    def big(bytes: int) -> str:
        return "x" * bytes

    @tool(server, task="must")
    async def failing_job(ms: int = 1000) -> None:
        await asyncio.sleep(ms / 1000)
        raise segue.ToolError("The job failed")

    @tool(server, task="may")
    async def protocol_error_job() -> None:
        await asyncio.sleep(0.1)
        raise segue.McpError(-32603, "Protocol level failure", {"hint": "on purpose"})


def add_streams(server: segue.Server) -> None:
    async def segments(n: int, delay_ms: int) -> AsyncIterator[str]:
        for number in range(1, n + 1):
            if number > 1 and delay_ms:
                await asyncio.sleep(delay_ms / 1000)
            yield f"segment {number} of the story"
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)

    @tool(server, task="may", restartable=True, poll=POLL)
    async def story(n: int = 3, delayMs: int = 0) -> AsyncIterator[str]:
        async for segment in segments(n, delayMs):
            yield segment

    @tool(server, task="may", poll=POLL)
    async def two_texts(ctx: segue.Context, delayMs: int = 0) -> None:
        for into, text in TWO_TEXTS:
            await (ctx.send(text) if into is None else ctx.extend(into, text))
            if delayMs:
                await asyncio.sleep(delayMs / 1000)

    @tool(server, task="may", poll=POLL)
    async def fail_after(n: int = 3, delayMs: int = 0) -> AsyncIterator[str]:
        async for segment in segments(n, delayMs):
            yield segment
        raise segue.ToolError("The job failed")

    @tool(server, task="may", poll=POLL)
    async def reporter(ctx: segue.Context, n: int = 2, delayMs: int = 20) -> str:
        for number in range(1, n + 1):
            await asyncio.sleep(delayMs / 1000)
            ctx.progress(number, n)
            ctx.log(f"step {number}")
            await ctx.set_status(f"step {number}")
        return "reported"

    @tool(server, task="may", poll=POLL)
    async def fields(ctx: segue.Context) -> None:
        await ctx.send("wrong")
        await ctx.replace("right")
        await ctx.set_field("structuredContent", {"a": 1})
        await ctx.set_field("structuredContent", {"a": 2})
        await ctx.set_field("_meta", {"com.example/k": True})
        await ctx.set_status("almost")


def add_questions(server: segue.Server) -> None:
    async def ask(ctx: segue.Context) -> str:
        try:
            return dumps(await ctx.request("elicitation/create", FORM))
        except segue.UnsupportedError as error:
            return f"cannot ask: {error.name}"

    tool(server, name="confirm_delete", task="must", restartable=True)(ask)
    tool(server, name="ask_once", restartable=True)(ask)

    @tool(server)
    async def ask_both(ctx: segue.Context) -> str:
        answers = await asyncio.gather(
            ctx.request("elicitation/create", FORM),
            ctx.request("elicitation/create", NAME),
        )
        return "".join(map(dumps, answers))


def add_models(server: segue.Server) -> None:
    async def ask(ctx: segue.Context) -> str:
        params = {"messages": MESSAGES, "maxTokens": 100}
        try:
            return dumps(await ctx.request("sampling/createMessage", params))
        except segue.McpError as error:
            told: dict[str, Any] = {"code": error.code, "message": error.message}
            if error.data is not None:
                told["data"] = error.data
            raise segue.ToolError(dumps(told)) from None

    tool(server, name="ask_model", poll=POLL)(ask)
    tool(server, name="ask_model_task", task="must", poll=POLL)(ask)
