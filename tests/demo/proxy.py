"""make demo-proxy: a host that gives up after a minute, and a tool that takes three.

Three hosts call the same tool of the same server at the same time:

  alone      without segue-proxy. It gives up after a minute, and the work goes on.
  patient    with segue-proxy. Its minute begins anew with each report of progress.
  strict     with segue-proxy --handle. It gives up after a minute whatever it hears, gets
             a handle, and asks for the result.

The last line counts. Usage: proxy.py [--minute SECONDS]
  --minute SECONDS   the length of a minute, by default 60: with 2 all lasts 6 s
  --tool SECONDS FILE   is the server: its tool takes so long, and each run is a line of
                     the file
"""

import argparse
import json
import queue
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "proxy"))
import peers  # noqa: E402

MINUTES = 3  # the time that the tool takes


class GaveUp(Exception):
    """The host waits no longer."""


class Host(peers.Client):
    """A host: it gives up when a call takes longer than its limit."""

    def __init__(self, command, limit, resets=False):
        super().__init__(command)
        self.limit = limit
        self.resets = resets
        self.heartbeats = 0
        self.longest = 0.0
        self.calls = 0

    def use(self, name, **arguments):
        """Calls a tool, and returns the text of its result."""
        self.calls += 1
        number = self.begin("tools/call", {"name": name, "arguments": arguments,
                                           "_meta": {"progressToken": self.calls}})
        start = heard = time.monotonic()
        while True:
            try:
                message = self.lines.get(timeout=max(
                    0, heard + self.limit - time.monotonic()))
            except queue.Empty:
                self.send({"method": "notifications/cancelled", "params": {
                    "requestId": number}})
                raise GaveUp from None
            if message is None:
                raise EOFError("\n".join(self.errors))
            if message.get("id") == number:
                self.longest = max(self.longest, time.monotonic() - start)
                return message["result"]["content"][0]["text"]
            if message.get("method") == "notifications/progress":
                self.heartbeats += 1
                heard = time.monotonic() if self.resets else heard


def serve(seconds, path):
    """Is an MCP server of the old kind, whose only tool is slow and reports nothing."""
    done = threading.Lock()

    def send(number, result):
        with done:
            print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}),
                  flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            send(number, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                          "serverInfo": {"name": "slow", "version": "1"}})
        elif method == "tools/list":
            send(number, {"tools": [{"name": "slow", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            with open(path, "a", encoding="utf-8") as file:
                file.write(message["params"]["arguments"]["host"] + "\n")
            timer = threading.Timer(seconds, send, (number, {
                "content": [{"type": "text", "text": "the report"}]}))
            timer.daemon = True
            timer.start()
        elif number is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": number, "error": {
                "code": -32601, "message": "Method not found"}}), flush=True)


class Demo:
    def __init__(self, minute, place):
        self.minute = minute
        self.runs = place / "runs"
        self.runs.touch()
        self.tool = [sys.executable, "-B", __file__, "--tool", str(MINUTES * minute),
                     str(self.runs)]
        self.begin = time.monotonic()
        self.found = {}

    def say(self, host, words):
        print(f"{time.monotonic() - self.begin:6.1f} s  {host:8}{words}", flush=True)

    def proxy(self, *options):
        third, quarter = (f"{self.minute * 1000 / part:.0f}ms" for part in (3, 4))
        return [peers.PROXY, "--task-after", third, "--heartbeat", quarter, *options,
                "--", *self.tool]

    def alone(self):
        with Host(self.tool, self.minute) as host:
            self.say("alone", "calls the tool")
            try:
                host.use("slow", host="alone")
            except GaveUp:
                self.say("alone", "gives up; the work goes on, and its result is lost")
                return {"gave_up": 1}
            return {"gave_up": 0}

    def patient(self):
        with Host(self.proxy(), self.minute, resets=True) as host:
            self.say("patient", "calls the tool through segue-proxy")
            words = host.use("slow", host="patient")
            self.say("patient", f"has {words!r} after {host.heartbeats} heartbeats")
            return {"results": words == "the report", "heartbeats": host.heartbeats}

    def strict(self):
        with Host(self.proxy("--handle"), self.minute) as host:
            self.say("strict", "calls the tool through segue-proxy --handle")
            words = host.use("slow", host="strict")
            handle = re.search(r"handle is (\S+)\. Call", words)[1]
            self.say("strict", "has a handle, and asks for the result")
            while True:
                words = host.use("segue_proxy_result", handle=handle)
                if "still runs" not in words:
                    break
                self.say("strict", "hears that the call still runs")
            self.say("strict", f"has {words!r}; its longest call took "
                     f"{host.longest:.1f} s")
            return {"results": words == "the report", "asked": host.calls - 1}

    def play(self):
        def run(name):
            self.found[name] = getattr(self, name)()

        names = ("alone", "patient", "strict")
        threads = [threading.Thread(target=run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.count(names)

    def count(self, names):
        """Returns whether all went as it should, and the last line."""
        if set(self.found) != set(names):
            return False, "a host failed"
        runs = self.runs.read_text().split()
        total = {key: sum(found.get(key, 0) for found in self.found.values())
                 for key in ("gave_up", "results", "heartbeats", "asked")}
        line = (f"{MINUTES * self.minute:g} s of work, hosts that give up after "
                f"{self.minute:g} s: {total['gave_up']} without the proxy got nothing, "
                f"{total['results']} with it got the result, {total['heartbeats']} "
                f"heartbeats, {total['asked']} questions by handle, {len(runs)} runs, "
                f"{len(runs) - len(set(runs))} doubled")
        is_good = (total["gave_up"] == 1 and total["results"] == 2 and
                   sorted(runs) == sorted(names))
        return is_good, line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minute", type=float, default=60)
    parser.add_argument("--tool", nargs=2)
    options = parser.parse_args()
    if options.tool:
        serve(float(options.tool[0]), options.tool[1])
        return 0
    with tempfile.TemporaryDirectory() as place:
        is_good, line = Demo(options.minute, Path(place)).play()
    print(f"proxy demo {'ok' if is_good else 'failed'}: {line}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
