"""The items that the servers on versions 1 and 2 of the Python SDK share. Types are made
with the names of their members on the wire, which both versions know."""
import base64

from pydantic import BaseModel

PNG, WAV = (base64.b64encode(data).decode() for data in (b"\x89PNG", b"RIFF"))


class Sum(BaseModel):
    sum: int


def add_fixtures(server, types):
    """types: the module with the protocol's types."""

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
    def media() -> types.CallToolResult:
        inside = types.TextResourceContents(uri="test://x", mimeType="text/plain",
                                            text="inside")
        return types.CallToolResult(content=[
            types.ImageContent(type="image", data=PNG, mimeType="image/png"),
            types.AudioContent(type="audio", data=WAV, mimeType="audio/wav"),
            types.EmbeddedResource(type="resource", resource=inside),
        ])

    @server.tool(structured_output=False)
    def fail() -> types.CallToolResult:
        text = types.TextContent(type="text", text="failed on purpose")
        return types.CallToolResult(content=[text], isError=True)

    @server.resource("test://static-text", name="static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://template/{id}/data", name="template")
    def template(id: str) -> str:
        return f"Data of {id}"
