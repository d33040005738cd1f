"""A generator of reports: each chapter is a segment, so a client shows the first one
while the second one is written. The numbers come as a structured result at the end.

    python report.py          a client that starts the server and prints the report
    python report.py serve    the server, on standard input and output
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import segue

LIBRARY = Path(__file__).resolve().parents[2] / "core" / "examples" / "library"

server = segue.Server("report")


@server.tool(task="may")
async def write_report(
    ctx: segue.Context, directory: str = str(LIBRARY)
) -> AsyncIterator[object]:
    """Writes a report about the texts in a directory."""
    files = sorted(Path(directory).glob("*.txt"))
    if not files:
        raise segue.ToolError(f"there is no text in {directory}")
    words = 0
    for number, file in enumerate(files, 1):
        text = await asyncio.to_thread(file.read_text)
        words += len(text.split())
        lines = text.splitlines()
        yield f"# {file.name}: {len(lines)} lines\n{lines[0]}\n"
        ctx.progress(number, len(files), file.name)
    yield segue.Result(structured={"files": len(files), "words": words})


async def main() -> None:
    async with (
        segue.connect([sys.executable, __file__, "serve"]) as session,
        session.stream("write_report") as stream,
    ):
        async for segment in stream:
            print(segment.text, end="")
        told = stream.result.structured
        print(f"{told['files']} files, {told['words']} words")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
