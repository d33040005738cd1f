"""A chat host: it has the tools of two servers, and shows each piece of a result as it
comes. The model is a stand-in that chooses the tool whose description has most words of
the question. Put a real model into `choose`.

    python chat.py                 a conversation that is in this file
    python chat.py - <questions    each line of the input is a question
"""

import asyncio
import contextlib
import re
import sys
from pathlib import Path

import segue

HERE = Path(__file__).resolve().parent
SERVERS = ["report.py", "answer.py"]
QUESTIONS = [
    "Please write a report about the texts",
    "A question about bread: which dough tastes better?",
    "Sing a song",
]


Tools = dict[str, tuple[segue.Tool, segue.Session]]


def choose(question: str, tools: Tools) -> tuple[str, dict[str, str]] | None:
    """Returns the name of the tool to call and its arguments, as a model would."""

    def words(text: str | None) -> set[str]:
        return set(re.findall(r"[a-z]{4,}", (text or "").lower()))

    def score(name: str) -> int:
        return len(words(question) & words(tools[name][0].description))

    best = max(tools, key=score)
    if not score(best):
        return None
    takes_question = "question" in tools[best][0].input_schema["properties"]
    return best, {"question": question} if takes_question else {}


async def answer(question: str, tools: Tools) -> None:
    print(f"you: {question}")
    chosen = choose(question, tools)
    if chosen is None:
        print("model: I have no tool for this.")
        return
    name, arguments = chosen
    print(f"model: I call {name}.")
    _, session = tools[name]
    async with session.stream(name, arguments) as stream:
        async for segment in stream:
            for line in (segment.text or "").splitlines():
                print(f"  {line}", flush=True)


async def main() -> None:
    questions = sys.stdin if sys.argv[1:] == ["-"] else QUESTIONS
    tools: Tools = {}
    async with contextlib.AsyncExitStack() as stack:
        for name in SERVERS:
            command = [sys.executable, str(HERE / name), "serve"]
            session = await stack.enter_async_context(segue.connect(command))
            for tool in await session.list_tools():
                tools[tool.name] = (tool, session)
        for question in questions:
            await answer(question.strip(), tools)


if __name__ == "__main__":
    asyncio.run(main())
