"""Tools of pydantic-ai from a session:

    agent = Agent(model, tools=await segue.adapters.pydantic_ai.tools(session))

A result that reports an error asks the model to try again (`ModelRetry`).
"""

from __future__ import annotations

from typing import Any

from ..client.session import Session
from ._calls import OnSegment, Tokens, call, media_of, missing, text_of, value_of

try:
    from pydantic_ai import BinaryContent, ModelRetry, RunContext, Tool, ToolReturn
except ImportError as error:
    raise missing(__name__, "pydantic-ai-slim", error) from error


async def tools(
    session: Session,
    *,
    on_segment: OnSegment | None = None,
    tokens: Tokens | None = None,
) -> list[Tool[Any]]:
    """Returns the tools of the server of `session`. `on_segment`, plain or async, gets
    the name of the tool and each segment. With `tokens`, a call with the id of a kept
    token continues that call."""

    def made(tool: Any) -> Tool[Any]:
        async def run(context: RunContext[Any], /, **arguments: Any) -> Any:
            result = await call(
                session,
                tool.name,
                arguments,
                id=context.tool_call_id,
                tokens=tokens,
                on_segment=on_segment,
            )
            if result.is_error:
                raise ModelRetry(text_of(result))
            value = value_of(result)
            media = [
                BinaryContent(block.data, media_type=block.mime_type)
                for block in media_of(result)
            ]
            return ToolReturn(value, content=media, metadata=result) if media else value

        description = tool.description or ""
        schema = tool.input_schema
        one: Tool[Any]
        one = Tool.from_schema(run, tool.name, description, schema, takes_ctx=True)
        return one

    return [made(tool) for tool in await session.list_tools()]
