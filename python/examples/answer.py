"""Answers from documents (RAG without a network): the sentences of a directory are scored
by the words of the question, rare words count more, and the best ones are streamed, each
with a link to its file.

    python answer.py                    a client that starts the server and asks
    python answer.py "Why is it so?"    the same with your question
    python answer.py serve              the server, on standard input and output
"""

import asyncio
import collections
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import segue

LIBRARY = Path(__file__).resolve().parents[2] / "core" / "examples" / "library"
MOST = 3  # sentences of an answer

server = segue.Server("answer")


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def find(question: str) -> list[tuple[Path, str]]:
    """Returns the best sentences and their files; the best one is first."""
    lines = [
        (file, line)
        for file in sorted(LIBRARY.glob("*.txt"))
        for line in file.read_text().splitlines()
    ]
    uses = collections.Counter(word for _, line in lines for word in words_of(line))
    asked = words_of(question)
    scored = [
        (sum(1000 // uses[word] for word in asked & words_of(line)), file, line)
        for file, line in lines
    ]
    best = sorted(scored, key=lambda one: -one[0])[:MOST]
    return [(file, line) for score, file, line in best if score]


@server.tool
async def ask(question: str) -> AsyncIterator[object]:
    """Answers a question about bees, bread, bridges, clocks or tides."""
    found = await asyncio.to_thread(find, question)
    if not found:
        raise segue.ToolError("the library says nothing about this")
    for file, line in found:
        yield f"{line}\n"
        yield segue.ResourceLink(file.as_uri(), name=file.name)


async def main() -> None:
    question = (sys.argv[1:] or ["Where do bees find flowers, and how do they tell?"])[0]
    async with (
        segue.connect([sys.executable, __file__, "serve"]) as session,
        session.stream("ask", question=question) as stream,
    ):
        async for segment in stream:
            if isinstance(segment.content, segue.ResourceLink):
                print(f"    from {segment.content.name}")
            else:
                print(segment.text, end="")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
