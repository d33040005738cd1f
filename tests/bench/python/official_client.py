"""The client of the official Python SDK on a server that it starts, for the same calls.

official_client.py calls WINDOW MILLISECONDS COMMAND..."""

import json
import sys
import time
import warnings

import anyio
from mcp import Client, StdioServerParameters

warnings.simplefilter("ignore")
WARM = 200
TEXT = "The quick brown fox"


def say(name: str, value: float) -> None:
    print(json.dumps({"name": name, "value": round(value, 4)}))


async def main() -> None:
    _, window, run_ms, command, *arguments = sys.argv[1:]
    done = 0
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(server, mode="2026-07-28", cache=None) as client:

        async def caller(end: float) -> None:
            nonlocal done
            while time.perf_counter() < end:
                result = await client.call_tool("echo", {"text": TEXT})
                assert result.content[0].text == TEXT
                done += 1

        for _ in range(WARM):
            await client.call_tool("echo", {"text": TEXT})
        begin, cpu = time.perf_counter(), time.process_time()
        async with anyio.create_task_group() as group:
            for _ in range(int(window)):
                group.start_soon(caller, begin + int(run_ms) / 1000)
        say("calls_per_s", done / (time.perf_counter() - begin))
        say("client_cpu_us", (time.process_time() - cpu) / done * 1e6)


anyio.run(main)
