"""What an operator sees of a server: its metrics for Prometheus at /metrics, and its
tasks as a web page at /board. The program uses the server and prints a table of the
metrics. core/docs/recipes has a dashboard for Grafana and alerts for the same metrics.

    python dashboard.py          starts the server, calls it, prints the table
    python dashboard.py serve    serves until Ctrl-C
"""

import asyncio
import re
import sys
import urllib.request

import segue

server = segue.Server("dashboard")


@server.tool
def divide(a: int, b: int) -> float:
    """Divides a by b."""
    if b == 0:
        raise segue.ToolError("division by zero")
    return a / b


@server.tool(task="must")
def slow() -> str:
    """Is a task."""
    return "done"


def rows(text: str) -> list[tuple[str, str, int]]:
    """Returns the tool, the kind of end and the number of its calls."""
    found = []
    for labels, value in re.findall(r"^segue_calls_total\{(.*)\} (\d+)$", text, re.M):
        row = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found.append((row["gen_ai_tool_name"], row.get("error_type", "ok"), int(value)))
    return sorted(found)


async def main() -> None:
    async with server.serving(
        http="127.0.0.1:0", metrics_path="/metrics", board_path="/board"
    ) as serving:
        async with segue.connect(serving.url, raise_on_error=False) as session:
            for b in (1, 2, 0, 4):
                await session.call("divide", a=8, b=b)
            await session.call("slow")
        base = serving.url.removesuffix("/mcp")
        metrics = await asyncio.to_thread(urllib.request.urlopen, f"{base}/metrics")
        board = await asyncio.to_thread(urllib.request.urlopen, f"{base}/board/")
        print("tool    end         calls")
        for tool, end, calls in rows(metrics.read().decode()):
            print(f"{tool:8}{end:12}{calls}")
        print("board:", board.status)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run(http=8000, metrics_path="/metrics", board_path="/board")
    else:
        asyncio.run(main())
