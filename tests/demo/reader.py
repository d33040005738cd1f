"""The demo's second reader, in Python: it reads the task of the first from its first
segment.

Usage: reader.py URL STATE OUTPUT. STATE is the state file of the first reader, whose
third word is a token of the task. The output on standard error is for the conductor.
"""

import asyncio
import contextlib
import os
import sys

import segue


def say(line):
    print(f"reader {line}", file=sys.stderr, flush=True)


async def read(url, token, output):
    era = os.environ.get("SEGUE_DEMO_ERA") or "auto"
    count = 0
    # The environment's proxy is not for this machine. The first connection may be cut.
    async with segue.connect(url, era=era, proxy="", connect_attempts=20) as session:
        first = session.resume(token)
        # the request has ended by itself
        with contextlib.suppress(segue.NotResumableError):
            first.detach()
        task = session.task(first.id)
        with open(output, "wb") as file:
            async for segment in task:
                count += 1
                if segment.number != count:
                    raise RuntimeError(f"segment {segment.number} after {count - 1}")
                file.write(segment.text.encode())
                say(f"at {count}")
        result = await task.result()
        if result.is_error:
            raise RuntimeError(f"the tool refused: {result.text}")


def main():
    url, state, output = sys.argv[1:]
    with open(state) as file:
        token = file.read().split(maxsplit=2)[2].strip()
    try:
        asyncio.run(read(url, token, output))
    except Exception as error:
        say(f"failed {type(error).__name__}: {error}")
        sys.exit(1)
    say("done")


main()
