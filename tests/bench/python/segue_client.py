"""The client of the Python SDK on a server that it starts.

segue_client.py calls WINDOW MILLISECONDS COMMAND...
segue_client.py stream SEGMENTS BYTES COMMAND...

calls: echo, WINDOW in flight. stream: one call; each segment reaches an `async for`,
which reads its number and its text. It prints the longest time that a turn of the loop
took, with the result collected as well and without.
"""

import asyncio
import json
import sys
import time

import segue

WARM = 200
TEXT = "The quick brown fox"


def say(name: str, value: float) -> None:
    print(json.dumps({"name": name, "value": round(value, 4)}))


async def calls(session: segue.Session, window: int, run_ms: int) -> None:
    async def caller(end: float) -> int:
        count = 0
        while time.perf_counter() < end:
            result = await session.call("echo", text=TEXT)
            assert result.text == TEXT
            count += 1
        return count

    for _ in range(WARM):
        await session.call("echo", text=TEXT)
    begin, cpu = time.perf_counter(), time.process_time()
    end = begin + run_ms / 1000
    done = sum(await asyncio.gather(*(caller(end) for _ in range(window))))
    say("calls_per_s", done / (time.perf_counter() - begin))
    say("client_cpu_us", (time.process_time() - cpu) / done * 1e6)


class Turns:
    """Measures the longest turn of the loop, as a task beside the stream sees it:
    processor time of its thread, so that other work on the machine does not count."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.loop = asyncio.get_running_loop()
        self.last = time.thread_time()
        self.ends = False
        self.loop.call_soon(self.turn)

    def turn(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self.last)
        self.last = now
        if not self.ends:
            self.loop.call_soon(self.turn)


async def stream(session: segue.Session, segments: int, size: int) -> None:
    async def once(count: int, collect: bool = True) -> None:
        number = 0
        arguments = {"n": count, "bytes": size}
        async for segment in session.stream("stream", arguments, collect=collect):
            number += 1
            assert segment.number == number
            assert len(segment.text or "") == size
        assert number == count

    await once(segments // 10)
    begin, cpu = time.perf_counter(), time.process_time()
    await once(segments)
    say("segments_per_s", segments / (time.perf_counter() - begin))
    say("client_cpu_us", (time.process_time() - cpu) / segments * 1e6)
    for collect, name in (
        (False, "longest_turn_ms"),
        (True, "longest_turn_collecting_ms"),
    ):
        turns = Turns()
        await once(segments, collect)
        turns.ends = True
        say(name, turns.longest * 1000)


async def main() -> None:
    kind, first, second, *command = sys.argv[1:]
    async with segue.connect(command, max_result_bytes=1 << 30) as session:
        what = {"calls": calls, "stream": stream}[kind]
        await what(session, int(first), int(second))


asyncio.run(main())
