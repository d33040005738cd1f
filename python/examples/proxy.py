"""segue-proxy in front of two servers, by the configuration in mcp.json: they are one
server, with the names and limits of that file, and a call survives the end of the proxy.

    python proxy.py          a client that starts the proxy and uses it
    segue proxy --config mcp.json --listen 127.0.0.1:8000 --store tasks.db
"""

import asyncio
import os
import sys
from pathlib import Path

import segue

HERE = Path(__file__).resolve().parent
PROXY = [sys.executable, "-m", "segue.cli", "proxy", "--config", "mcp.json"]


async def main() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # for "python3"
    async with segue.connect(PROXY, cwd=str(HERE), env={"PATH": path}) as session:
        for tool in sorted(await session.list_tools(), key=lambda tool: tool.name):
            print(f"{tool.name}: {tool.description}")
        async with session.stream("ask", question="How wrong is a clock?") as stream:
            async for segment in stream:
                if segment.text is not None:
                    print(segment.text, end="")
        told = (await session.call("summary")).structured
        print(f"{told['files']} files, {told['words']} words")


if __name__ == "__main__":
    asyncio.run(main())
