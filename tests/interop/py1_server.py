"""A server on version 1 of the Python SDK, for tests/interop/through.py: the tools, the
resources and the prompts that are called there."""
import base64

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl, BaseModel

server = FastMCP("judged", instructions="Greet first.", log_level="ERROR")


class Sum(BaseModel):
    sum: int


@server.tool()
def greet(name: str = "World") -> str:
    return f"Hello, {name}!"


@server.tool(structured_output=False)
def repeat(text: str) -> str:
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    return Sum(sum=a + b)


@server.tool(structured_output=False)
async def steps(n: int, delayMs: int, ctx: Context) -> str:
    for at in range(1, n + 1):
        await ctx.info(f"step {at}")
        await ctx.report_progress(at, n)
    return "arrived"


@server.tool()
def media() -> CallToolResult:
    inside = TextResourceContents(uri=AnyUrl("test://x"), mimeType="text/plain",
                                  text="inside")
    return CallToolResult(content=[
        ImageContent(type="image", data=base64.b64encode(b"\x89PNG").decode(),
                     mimeType="image/png"),
        AudioContent(type="audio", data=base64.b64encode(b"RIFF").decode(),
                     mimeType="audio/wav"),
        EmbeddedResource(type="resource", resource=inside),
    ])


@server.tool()
def fail() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="failed on purpose")],
                          isError=True)


@server.resource("test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://template/{id}/data", name="template")
def template(id: str) -> str:
    return f"Data of {id}"


@server.prompt()
def ask(topic: str) -> list[UserMessage]:
    return [UserMessage(f"What about {topic}?")]


server.run("stdio")
