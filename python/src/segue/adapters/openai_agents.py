"""Tools of the OpenAI Agents SDK (`openai-agents`) from a session:

agent = Agent(name="helper", tools=await segue.adapters.openai_agents.tools(session))
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ..client.session import Session
from ..content import Image
from ._calls import OnSegment, Tokens, call, media_of, missing, text_of

try:
    from agents import FunctionTool, ToolOutputImage, ToolOutputText
    from agents.tool_context import ToolContext
except ImportError as error:
    raise missing(__name__, "openai-agents", error) from error


async def tools(
    session: Session,
    *,
    on_segment: OnSegment | None = None,
    tokens: Tokens | None = None,
) -> list[FunctionTool]:
    """Returns the tools of the server of `session`. `on_segment`, plain or async, gets
    the name of the tool and each segment. With `tokens`, a call with the id of a kept
    token continues that call."""

    def made(tool: Any) -> FunctionTool:
        async def run(context: ToolContext[Any], arguments: str) -> Any:
            try:
                given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
            except msgspec.DecodeError as error:  # the model is told, as of a wrong type
                return f"The arguments are not a JSON object: {error}. Please try again."
            key = context.tool_call_id
            result = await call(
                session, tool.name, given, id=key, tokens=tokens, on_segment=on_segment
            )
            text = text_of(result)
            if result.is_error:
                return f"The tool failed: {text}"
            images = [
                ToolOutputImage(image_url=f"data:{block.mime_type};base64,{data}")
                for block in media_of(result)
                if isinstance(block, Image)
                for data in [base64.b64encode(block.data).decode()]
            ]
            return [ToolOutputText(text=text), *images] if images else text

        description, schema = tool.description or "", tool.input_schema
        return FunctionTool(tool.name, description, schema, run, strict_json_schema=False)

    return [made(tool) for tool in await session.list_tools()]
