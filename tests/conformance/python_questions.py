"""The fixtures of python_server.py that ask their client: as a task, or in rounds
before the result of a plain call. A call asks all its questions at once, or one after
another, and reports the answers. It leaves out questions whose capability the client
has not declared.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import segue


class Question(NamedTuple):
    key: str | None
    method: str
    params: dict[str, Any]


def form(message: str, name: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def elicit(key: str | None, *what: str) -> Question:
    return Question(key, "elicitation/create", form(*what))


CONFIRM = elicit("confirm", "Please confirm", "ok", "boolean")
NAME = elicit("user_name", "What is your name?", "name")
SAMPLE = Question(
    "capital_question",
    "sampling/createMessage",
    {
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": "What is the capital of France?"},
            }
        ],
        "maxTokens": 50,
    },
)
ROOTS = Question("client_roots", "roots/list", {})
TWO = (
    elicit(None, "Who are you?", "name"),
    elicit(None, "Go on?", "confirm", "boolean"),
)
TURNS = (
    elicit("step1", "Step 1: What is your name?", "name"),
    elicit("step2", "Step 2: What is your favorite color?", "color"),
)
# SEP-1034: a default for each primitive type.
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
VALUES = [("value1", "First"), ("value2", "Second"), ("value3", "Third")]
PLAIN = ["option1", "option2", "option3"]
# SEP-1330: each way to write a choice.
ENUMS = {
    "untitledSingle": {"type": "string", "enum": PLAIN},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": one, "title": f"{nth} Option"} for one, nth in VALUES],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": PLAIN}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [{"const": one, "title": f"{nth} Choice"} for one, nth in VALUES]
        },
    },
}


def whole_form(message: str, properties: dict[str, Any]) -> Question:
    schema = {"type": "object", "properties": properties}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return Question(None, "elicitation/create", params)


# ---- asking


async def ask(ctx: segue.Context, question: Question) -> str | None:
    try:
        answer = await ctx.request(question.method, question.params, key=question.key)
    except segue.UnsupportedError:
        return None
    return json.dumps(answer)


def told(answers: list[str | None]) -> str:
    """The suite wants to read "state-ok" when a state came back."""
    given = [answer for answer in answers if answer is not None]
    if not given:
        raise segue.ToolError("state-ok, answers: none")
    return f"state-ok, answers: {' '.join(given)}"


async def ask_all(ctx: segue.Context, *questions: Question) -> str:
    return told(list(await asyncio.gather(*[ask(ctx, one) for one in questions])))


async def ask_in_turn(ctx: segue.Context, *questions: Question) -> str:
    return told([await ask(ctx, one) for one in questions])


# ---- tools


def add_tools(server: segue.Server) -> None:
    @server.tool(task="must")
    async def confirm_delete(ctx: segue.Context, filename: str = "") -> str:
        """Asks before it deletes"""
        return await ask_all(ctx, CONFIRM)

    @server.tool(task="must")
    async def multi_input(ctx: segue.Context) -> str:
        """Asks twice at once"""
        return await ask_all(ctx, *TWO)

    @server.tool(task="may", promote_after=24 * 3600)
    async def test_tool_with_task(ctx: segue.Context) -> str:
        """Asks, then becomes a task"""
        text = await ask_all(ctx, NAME)
        if ctx.defer():
            await asyncio.sleep(0.1)
        return text

    @server.tool
    async def test_streaming_elicitation(ctx: segue.Context) -> str:
        """Asks in mid-call: no request may show up on the stream of the answer."""
        ctx.progress(1, 2)
        return await ask_all(ctx, CONFIRM)

    @server.tool
    async def test_sampling(ctx: segue.Context, prompt: str = "") -> str:
        """Asks a model"""
        return await ask_all(ctx, SAMPLE)

    @server.tool
    async def test_elicitation(ctx: segue.Context, message: str = "") -> str:
        """Asks a person"""
        return await ask_all(ctx, NAME)

    for name, questions in {
        "test_elicitation_sep1034_defaults": [whole_form("Please review", DEFAULTS)],
        "test_elicitation_sep1330_enums": [whole_form("Please choose", ENUMS)],
        "test_input_required_result_elicitation": [NAME],
        "test_input_required_result_sampling": [SAMPLE],
        "test_input_required_result_list_roots": [ROOTS],
        "test_input_required_result_request_state": [CONFIRM],
        "test_input_required_result_tampered_state": [CONFIRM],
        "test_input_required_result_multiple_inputs": [NAME, SAMPLE, ROOTS],
        "test_input_required_result_capabilities": [NAME, SAMPLE, ROOTS],
    }.items():
        add_asking(server, name, questions)

    @server.tool
    async def test_input_required_result_multi_round(ctx: segue.Context) -> str:
        """Asks in turn"""
        return await ask_in_turn(ctx, *TURNS)


def add_asking(server: segue.Server, name: str, questions: list[Question]) -> None:
    @server.tool(name=name, description="Asks its client")
    async def asking(ctx: segue.Context) -> str:
        return await ask_all(ctx, *questions)
