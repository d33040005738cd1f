"""A runner of builds with a live log: each line of a step is a segment as soon as the
step prints it. A step that fails ends the build, and a client that cancels ends the step.

    python build.py          a client that starts the server and runs a build
    python build.py serve    the server, on standard input and output
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator

import segue

STEPS = {
    "compile": "for name in main parse print; do echo compiling $name.c; done",
    "test": "echo 12 tests passed",
    "package": "echo packing; echo no space left on the disk; exit 3",
    "publish": "echo publishing",
}

server = segue.Server("build")


@server.tool
async def run_build(steps: list[str]) -> AsyncIterator[object]:
    """Runs steps of the build, one after the other."""
    for name in steps:
        if name not in STEPS:
            raise segue.ToolError(f"unknown step {name}, there are: {', '.join(STEPS)}")
    for name in steps:
        process = await asyncio.create_subprocess_shell(
            STEPS[name],
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,  # a group of processes, which end together
        )
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                yield f"[{name}] {line.decode(errors='replace')}"
            status = await process.wait()
        finally:
            if process.returncode is None:  # the client has cancelled the build
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if status:
            raise segue.ToolError(f"{name} failed with status {status}\n")
    yield "the build is done\n"


async def main() -> None:
    async with segue.connect([sys.executable, __file__, "serve"]) as session:
        for steps in (["compile", "test"], ["test", "package", "publish"]):
            async with session.stream("run_build", steps=steps) as stream:
                try:
                    async for segment in stream:
                        print(segment.text, end="")
                except segue.ToolError:
                    pass  # its text was the last segment


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
