#!/usr/bin/env python3
"""The fixtures of server.c as a Python server, for run.py --server.

They are the tools, resources and prompts that the suite names, with the texts that it
asks for. The server listens over HTTP on a free port of loopback, prints its URL, and
runs until SIGINT or SIGTERM.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import signal
from typing import Annotated, Any

import python_questions

import segue
from segue.server import Complete

RED_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADHja"
    "Y/jPwAAAAwEBAPcDQUMAAAAASUVORK5CYII="
)
SILENCE = (
    b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\x08\0\0\0"
    + bytes(8)
)
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {
        "properties": {"contactMethod": {"const": "phone"}},
        "required": ["contactMethod"],
    },
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

server = segue.Server("segue-conformance", segue.__version__)


def text_resource(uri: str, text: str, mime_type: str) -> segue.EmbeddedResource:
    return segue.EmbeddedResource(
        segue.ResourceContents(uri, text=text, mime_type=mime_type)
    )


# ---- content


@server.tool(thread=False)
def test_simple_text(**anything: Any) -> str:
    """One block of text. The suite calls the first tool to check headers: it takes any
    arguments."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> segue.Image:
    """One image"""
    return segue.Image(RED_DOT, "image/png")


@server.tool
def test_audio_content() -> segue.Audio:
    """One sound"""
    return segue.Audio(SILENCE, "audio/wav")


@server.tool
async def test_embedded_resource() -> segue.EmbeddedResource:
    """One resource"""
    text = "This is an embedded resource content."
    return text_resource("test://embedded-resource", text, "text/plain")


@server.tool
async def test_multiple_content_types() -> list[Any]:
    """One of each"""
    return [
        "Multiple content types test:",
        segue.Image(RED_DOT, "image/png"),
        text_resource(
            "test://mixed-content-resource",
            '{"test":"data","value":123}',
            "application/json",
        ),
    ]


@server.tool
def test_error_handling() -> str:
    """Fails"""
    raise segue.ToolError("This tool intentionally returns an error for testing")


@server.tool(input_schema=SCHEMA_2020_12)
def json_schema_2020_12_tool(**anything: Any) -> str:
    """Tool with JSON Schema 2020-12 features"""
    return "The schema is what matters"


# ---- progress and log


@server.tool
async def test_tool_with_logging(ctx: segue.Context) -> str:
    """Logs thrice"""
    for step in ("execution started", "processing data", "execution completed"):
        ctx.log(f"Tool {step}")
        await asyncio.sleep(0.05)
    return "Logged three times"


@server.tool
async def test_tool_with_progress(ctx: segue.Context) -> str:
    """Goes on"""
    for progress in (0, 50, 100):
        ctx.progress(progress, 100)
        await asyncio.sleep(0.05)
    return "Reported progress three times"


@server.tool
async def test_reconnection(ctx: segue.Context) -> str:
    """Hangs up: the result comes while the client is away."""
    ctx.hang_up(retry=0.5)
    await asyncio.sleep(0.1)
    return "Reconnection test completed successfully"


@server.tool
def test_logging_tool(ctx: segue.SyncContext) -> str:
    """Logs loudly: who did not ask for log messages gets none."""
    ctx.log("Nobody asked for this", "emergency")
    return "Logging evaluated"


# ---- capabilities of the client


@server.tool
async def test_missing_capability(ctx: segue.Context) -> str:
    """Needs sampling"""
    declared = ctx.meta("io.modelcontextprotocol/clientCapabilities") or {}
    if "sampling" in declared:
        return "Sampling is declared"
    raise segue.McpError(
        -32021,
        "Missing required client capability: sampling",
        {"requiredCapabilities": {"sampling": {}}},
    )


@server.tool
async def test_custom_headers(
    region: Annotated[str, segue.Header("Region")],
    shard: Annotated[int, segue.Header("Shard")],
) -> str:
    """Has an argument that a header repeats"""
    return region


python_questions.add_tools(server)


# ---- lists that change


def extra_tool() -> str:
    """Comes and goes"""
    return "This is a simple text response for testing."


@server.tool(thread=False)
def test_trigger_tool_change() -> str:
    """Changes the list"""
    try:
        server.remove_tool("extra")
    except KeyError:
        server.tool(name="extra")(extra_tool)
    return "Mutation triggered"


@server.tool(thread=False)
def test_trigger_prompt_change() -> str:
    """Changes the list of prompts"""
    try:
        server.remove_prompt("extra")
    except KeyError:
        server.prompt(name="extra")(test_simple_prompt)
    return "Mutation triggered"


# ---- tasks


@server.tool
def greet(name: str = "World") -> str:
    """Says hello"""
    return f"Hello, {name}!"


@server.tool(task="may")
async def slow_compute(seconds: int = 1, label: str = "done") -> str:
    """Computes for some seconds; can be cancelled"""
    await asyncio.sleep(seconds)
    return f"Computed: {label}"


@server.tool(task="must")
async def failing_job() -> str:
    """Ends with a tool error after a second"""
    await asyncio.sleep(1)
    raise segue.ToolError("The job failed")


@server.tool(task="must")
async def protocol_error_job() -> str:
    """Ends with a JSON-RPC error"""
    await asyncio.sleep(0.1)
    raise segue.McpError(-32603, "The job broke the protocol")


# ---- resources


@server.resource("test://static-text", name="Static text", mime_type="text/plain")
def static_text() -> str:
    """Static text"""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="Static binary", mime_type="image/png")
async def static_binary() -> bytes:
    """Static binary"""
    return RED_DOT


@server.resource(
    "test://watched-resource", name="Watched resource", mime_type="text/plain"
)
def watched_resource() -> str:
    """Watched resource"""
    return "Watched resource content"


WORDS = ["paris", "park", "party", "test"]


@server.resource(
    "test://template/{id}/data", name="Template", mime_type="application/json"
)
def template(id: Annotated[str, Complete(WORDS)]) -> dict[str, Any]:
    """Data by id"""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# ---- prompts


@server.prompt
def test_simple_prompt() -> str:
    """test_simple_prompt"""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: Annotated[str, Complete(WORDS)], arg2: str) -> str:
    """test_prompt_with_arguments

    Args:
        arg1: arg1
        arg2: arg2
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion("test_prompt_with_arguments", "arg2")
async def complete_arg2(typed: str) -> list[str]:
    return [word for word in WORDS if word.startswith(typed)]


# The suite spells this argument in this way.
@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """test_prompt_with_embedded_resource"""
    text = "Embedded resource content for testing."
    return [
        segue.user(text_resource(resourceUri, text, "text/plain")),
        "Please process the embedded resource above.",
    ]


@server.prompt
async def test_prompt_with_image() -> list[Any]:
    """test_prompt_with_image"""
    return [segue.Image(RED_DOT, "image/png"), "Please analyze the image above."]


@server.prompt
async def test_input_required_result_prompt(ctx: segue.Context) -> str:
    """test_input_required_result_prompt"""
    answer = await ctx.request(
        "elicitation/create",
        python_questions.form("What context should the prompt use?", "context"),
        key="user_context",
    )
    return f"The context: {answer}"


async def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server.serving(http="127.0.0.1:0", drain=1.0) as serving:
        print(serving.url, flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
