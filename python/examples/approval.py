"""An approval half-way: the tool prepares a release, asks the user, and goes on or gives
up. The question reaches the user of whichever client has called.

    python approval.py          a client that says yes, then one that says no
    python approval.py serve    the server, on standard input and output
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import segue

HOSTS = ["alpha", "beta", "gamma"]

server = segue.Server("approval")


@server.tool(task="may")
async def release(version: str, ctx: segue.Context) -> AsyncIterator[str]:
    """Releases a version to all hosts, if the user agrees."""
    yield f"{version} is built\n"
    try:
        agreed = await ctx.ask(f"Release {version} to {len(HOSTS)} hosts?", bool)
    except segue.Declined:
        agreed = False
    if not agreed:
        yield f"{version} is withdrawn\n"
        return
    for host in HOSTS:
        yield f"{host} runs {version}\n"


async def call(version: str, answer: bool) -> None:
    def on_elicit(request: segue.ElicitRequest) -> segue.ElicitResult:
        print(f"{request.message} {'yes' if answer else 'no'}")
        return segue.ElicitResult("accept", {"value": answer})

    command = [sys.executable, __file__, "serve"]
    async with (
        segue.connect(command, on_elicit=on_elicit) as session,
        session.stream("release", version=version) as stream,
    ):
        async for segment in stream:
            print(segment.text, end="")


async def main() -> None:
    await call("1.2.0", True)
    await call("1.3.0", False)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
