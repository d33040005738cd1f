"""Frameworks of agents with the real packages and a model that only says what it was told
to say. Also used by tests/interop/frameworks.py."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import agents
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

__all__ = ["ROUNDS", "RUNS"]

Run = Callable[..., Awaitable[Any]]


# ---- one round of an agent: the model calls a tool, and gets its result


async def langchain_round(
    given: dict[str, Any],
    name: str,
    id: str,
    arguments: dict[str, Any],
    heard: list[Any],
) -> Any:
    tools = {tool.name: tool for tool in given["tools"]}
    asked = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": id}])
    model = FakeMessagesListChatModel(responses=[asked, AIMessage("done")])
    said = await model.ainvoke("go")
    assert isinstance(said, AIMessage)
    made: ToolMessage | None = None
    async for event in tools[name].astream_events(said.tool_calls[0], version="v2"):
        if event["event"] == "on_custom_event":
            assert event["name"] == "segue_segment"
            heard.append(event["data"]["text"])
        if event["event"] == "on_tool_end":
            made = event["data"]["output"]
    assert made is not None and made.tool_call_id == id
    await model.ainvoke([said, made])
    return made.content


async def pydantic_ai_round(
    given: dict[str, Any],
    name: str,
    id: str,
    arguments: dict[str, Any],
    heard: list[Any],
) -> Any:
    def say(messages: list[Any], info: Any) -> PydanticResponse:
        if len(messages) == 1:
            return PydanticResponse([ToolCallPart(name, arguments, tool_call_id=id)])
        return PydanticResponse([TextPart("done")])

    agent = PydanticAgent(FunctionModel(say), **given)
    result = await agent.run("go")
    parts = [part for message in result.all_messages() for part in message.parts]
    (told,) = [part for part in parts if getattr(part, "tool_call_id", "") == id][1:]
    if isinstance(told, ToolReturnPart):
        return told.content
    return told


class FakeModel(agents.Model):
    def __init__(self, name: str, id: str, arguments: str) -> None:
        self.call = ResponseFunctionToolCall(
            name=name, call_id=id, arguments=arguments, type="function_call"
        )
        self.seen: Any = None

    async def get_response(self, *rest: Any, **more: Any) -> Any:
        input = more["input"] if "input" in more else rest[1]
        output: Any = self.call
        if not isinstance(input, str) and len(input) > 1:
            self.seen = input[-1]
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            output = ResponseOutputMessage(
                id="1",
                content=[text],
                role="assistant",
                status="completed",
                type="message",
            )
        return agents.ModelResponse([output], agents.Usage(), None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError


async def openai_agents_round(
    given: dict[str, Any],
    name: str,
    id: str,
    arguments: dict[str, Any],
    heard: list[Any],
) -> Any:
    agents.set_tracing_disabled(True)
    model = FakeModel(name, id, json.dumps(arguments))
    agent: Any = agents.Agent(name="one", model=model, **given)
    result = await agents.Runner.run(agent, "go")
    assert result.final_output == "done"
    return model.seen["output"]


# ---- the same with the adapters of this package


async def run_langchain(session: Any, *call: Any, **more: Any) -> Any:
    from segue.adapters import langchain

    tools = await langchain.tools(session, **more)
    return await langchain_round({"tools": tools}, *call)


async def run_pydantic_ai(
    session: Any, name: str, id: str, arguments: Any, heard: list[Any], **more: Any
) -> Any:
    from segue.adapters import pydantic_ai

    def hear(tool: str, segment: Any) -> None:
        heard.append(segment.text)

    tools = await pydantic_ai.tools(session, on_segment=hear, **more)
    return await pydantic_ai_round({"tools": tools}, name, id, arguments, heard)


async def run_openai_agents(
    session: Any, name: str, id: str, arguments: Any, heard: list[Any], **more: Any
) -> Any:
    from segue.adapters import openai_agents

    async def hear(tool: str, segment: Any) -> None:
        heard.append(segment.text)

    tools = list(await openai_agents.tools(session, on_segment=hear, **more))
    return await openai_agents_round({"tools": tools}, name, id, arguments, heard)


ROUNDS = {
    "langchain": langchain_round,
    "pydantic_ai": pydantic_ai_round,
    "openai_agents": openai_agents_round,
}
RUNS: dict[str, Run] = {
    "langchain": run_langchain,
    "pydantic_ai": run_pydantic_ai,
    "openai_agents": run_openai_agents,
}
