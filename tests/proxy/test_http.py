"""segue-proxy over HTTP, below and above, and what is left of calls after kill -9."""

import json
import os
import signal
import tempfile
import unittest
from pathlib import Path

import peers
import upstream
import web


class Http(unittest.TestCase):
    def test_a_result_is_the_same_over_http_below_and_above(self):
        with web.Listening() as near, web.Listening(
                near.url, upstream=None) as far:
            for url in (near.url, far.url):
                client = web.Web(url)
                self.assertEqual(client.hello["serverInfo"]["name"], "odd-server")
                self.assertEqual(client.tool("odd")["result"], upstream.ODD)
                self.assertEqual(client.tool("failing")["error"]["code"], -32042)
                self.assertEqual(web.get(url, "/health")[0], 200)
            self.assertEqual(far.end(), 0)
            self.assertEqual(near.end(), 0)

    def test_progress_passes_over_http_below_and_above(self):
        with web.Listening() as near, web.Listening(
                near.url, upstream=None) as far:
            client = web.Web(far.url)
            client.tool("steps", _meta={"progressToken": 7})
            progress = [note["params"]["progress"] for note in client.notes
                        if note["method"] == "notifications/progress"]
            self.assertEqual(progress, [0.5, 1.5, 2.5])


class Killed(unittest.TestCase):
    """The proxy is killed with -9 while a task runs, and another one takes over."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.place = Path(self.directory.name)
        self.log = self.place / "calls"
        self.go = self.place / "go"
        self.addCleanup(self.directory.cleanup)

    def serve(self, *options, hints=False):
        above = [*peers.UPSTREAM, "--log", str(self.log)]
        return web.Listening("--store", str(self.place / "tasks.db"), "--task-after",
                             "0", *options, upstream=above + ["--hints"] * hints)

    def begin(self, proxy):
        client = web.Web(proxy.url)
        made = client.tool("work", {"go": str(self.go)}, task={})
        return made["result"]["task"]["taskId"]

    def wait_for_calls(self, number):
        """Waits until the upstream has received so many calls."""
        import time
        end = time.monotonic() + peers.PATIENCE
        while time.monotonic() < end:
            if self.log.exists() and len(self.log.read_text().splitlines()) >= number:
                return
            os.sched_yield()
        self.fail("the upstream was not called")

    def calls(self):
        return len(self.log.read_text().splitlines())

    def result_of(self, proxy, task):
        return web.Web(proxy.url).call("tasks/result", {"taskId": task})

    def test_a_call_that_may_have_run_is_not_sent_again(self):
        with self.serve() as first:
            task = self.begin(first)
            self.wait_for_calls(1)
            first.end(signal.SIGKILL)
        self.go.touch()
        with self.serve() as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["error"]["data"]["reason"], "outcome_unknown")
            self.assertEqual(self.calls(), 1)

    def test_hints_that_are_not_trusted_change_nothing(self):
        with self.serve(hints=True) as first:
            task = self.begin(first)
            self.wait_for_calls(1)
            first.end(signal.SIGKILL)
        with self.serve(hints=True) as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["error"]["data"]["reason"], "outcome_unknown")
            self.assertEqual(self.calls(), 1)

    def test_a_call_that_may_run_twice_is_sent_again(self):
        with self.serve("--trust-hints", hints=True) as first:
            task = self.begin(first)
            self.wait_for_calls(1)
            first.end(signal.SIGKILL)
        self.go.touch()
        with self.serve("--trust-hints", hints=True) as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["result"]["content"][0]["text"], "worked")
            self.assertEqual(self.calls(), 2)


if __name__ == "__main__":
    unittest.main()
