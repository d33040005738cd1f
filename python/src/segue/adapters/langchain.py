"""Tools of LangChain and LangGraph from a session: `await tools(session)`.

Each segment of a result is a custom event `segue_segment` of the run, which
`astream_events` yields at once. The artifact of a tool message is the `segue.Result`.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Any

from ..client.session import Session
from ..content import Result
from ._calls import OnSegment, Tokens, call, missing, standard_blocks, text_of

try:
    from langchain_core.callbacks import adispatch_custom_event
    from langchain_core.tools import StructuredTool, ToolException
except ImportError as error:
    raise missing(__name__, "langchain-core", error) from error

_call_id: ContextVar[str | None] = ContextVar("segue_call_id", default=None)


class _Tool(StructuredTool):
    async def ainvoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        _call_id.set(input.get("id") if isinstance(input, dict) else None)
        return await super().ainvoke(input, config, **more)


async def tools(
    session: Session, *, on_segment: OnSegment | None = None, tokens: Tokens | None = None
) -> list[StructuredTool]:
    """Returns the tools of the server of `session`. `on_segment` gets the name of the
    tool and each segment. With `tokens`, a call with the id of a kept token continues
    that call."""

    async def tell(name: str, segment: Any) -> Any:
        with contextlib.suppress(RuntimeError):  # Python 3.10: the run is not known here
            data = {"tool": name, "number": segment.number, "text": segment.text}
            await adispatch_custom_event("segue_segment", data)
        return on_segment and on_segment(name, segment)

    def made(tool: Any) -> StructuredTool:
        async def run(**arguments: Any) -> tuple[Any, Result]:
            options: Any = {"id": _call_id.get(), "tokens": tokens, "on_segment": tell}
            result = await call(session, tool.name, arguments, **options)
            if result.is_error:
                raise ToolException(text_of(result))
            return standard_blocks(result), result

        about: Any = {
            "description": tool.description or "",
            "args_schema": tool.input_schema,
        }
        more: Any = {"response_format": "content_and_artifact", "handle_tool_error": True}
        return _Tool(name=tool.name, coroutine=run, **about, **more)

    return [made(tool) for tool in await session.list_tools()]
