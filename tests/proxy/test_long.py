"""Calls that run for long: heartbeats, tasks after a time, handles."""

import re
import signal
import sys
import tempfile
import unittest
from pathlib import Path

import peers
import tokens
import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "kill_matrix"))
import postgres_server  # noqa: E402


def text_of(message):
    return message["result"]["content"][0]["text"]


class Long(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.place = Path(self.directory.name)
        self.go = peers.Pipe(self.place / "go")
        self.addCleanup(self.go.close)
        self.log = peers.Pipe(self.place / "calls")
        self.addCleanup(self.log.close)

    def test_a_host_that_waits_for_signs_of_life_gets_them(self):
        with peers.proxy("--heartbeat", "20ms") as client:
            client.begin("tools/call", {"name": "sleep", "_meta": {"progressToken": 5}})
            seen = [client.wait_note("notifications/progress")["params"]["progress"]
                    for _ in range(4)]
            self.assertEqual(seen, sorted(set(seen)), "progress has to grow")

    def test_a_call_becomes_a_task_after_a_time(self):
        with web.Listening("--task-after", "50ms") as proxy:
            client = web.Web(proxy.url)
            made = client.tool("sleep", task={})
            self.assertEqual(made["result"]["task"]["status"], "working")

    def start_by_handle(self, client, name="sleep", **arguments):
        words = text_of(client.tool(name, arguments))
        return re.search(r"handle is (\S{20,})\. Call", words).group(1)

    def test_a_client_without_tasks_gets_a_handle_and_cancels(self):
        above = [*peers.UPSTREAM, "--log", self.log.path]
        with peers.proxy("--task-after", "50ms", "--handle", upstream=above) as client:
            handle = self.start_by_handle(client)
            status = text_of(client.tool("segue_proxy_status", {"handle": handle}))
            self.assertIn("still runs", status)
            self.assertIn("still runs", text_of(
                client.tool("segue_proxy_result", {"handle": handle})))
            client.tool("segue_proxy_cancel", {"handle": handle})
            self.log.wait(2)
            self.assertIn("error", client.tool("segue_proxy_result", {"handle": handle}))
            error = client.tool("segue_proxy_result", {"handle": "0" * 32})["error"]
            self.assertEqual(error["code"], -32602)

    def test_the_result_comes_by_the_handle_in_another_session(self):
        with web.Listening("--task-after", "50ms", "--handle") as proxy:
            handle = self.start_by_handle(web.Web(proxy.url, version="2025-06-18"),
                                          "later", go=self.go.path)
            self.go.let()
            other = web.Web(proxy.url, version="2025-06-18")
            while True:
                told = text_of(other.tool("segue_proxy_result", {"handle": handle}))
                if "still runs" not in told:
                    break
            self.assertEqual(told, "later")

    def result_of(self, client, handle):
        while True:
            told = client.tool("segue_proxy_result", {"handle": handle})
            if "result" not in told or "still runs" not in text_of(told):
                return told

    def serve(self, *options, hints=False, **more):
        proxy = web.Listening("--task-after", "50ms", "--handle", *options, **{
            "upstream": [*peers.UPSTREAM, "--log", self.log.path, *["--hints"] * hints],
            **more})
        self.addCleanup(proxy.__exit__)
        return proxy

    def old(self, proxy):
        return web.Web(proxy.url, version="2025-06-18")

    def test_a_tool_of_three_minutes_serves_a_host_that_gives_up_after_one(self):
        """An answer stands for the 20 s of --task-after, and the tool ends after nine of
        them: three minutes. `make demo-proxy` shows the same in real time."""
        asked = 0
        with peers.proxy("--task-after", "50ms", "--heartbeat", "20ms", "--handle",
                         upstream=[*peers.UPSTREAM, "--log", self.log.path]) as client:
            handle = self.start_by_handle(client, "later", go=self.go.path)
            while True:
                told = text_of(client.tool("segue_proxy_result", {"handle": handle}))
                asked += 1
                if "still runs" not in told:
                    break
                if asked == 9:
                    self.go.let()
            self.assertEqual(told, "later")
            self.assertGreater(asked, 9)
            self.assertEqual(len(self.log.take()), 1)

    def test_a_host_whose_minute_begins_anew_with_progress_gets_the_result(self):
        """Each report of progress stands for the 15 s of --heartbeat."""
        with peers.proxy("--heartbeat", "20ms") as client:
            number = client.begin("tools/call", {
                "name": "later", "arguments": {"go": self.go.path},
                "_meta": {"progressToken": 5}})
            for _ in range(12):
                client.wait_note("notifications/progress")
            self.go.let()
            self.assertEqual(text_of(client.wait(number)), "later")

    def test_a_handle_outlives_the_proxy(self):
        store = ("--store", str(self.place / "tasks.db"))
        first = self.serve(*store)
        handle = self.start_by_handle(self.old(first), "later", go=self.go.path)
        first_call = self.start_by_handle(self.old(first), "work")
        self.go.let()
        self.assertEqual(text_of(self.result_of(self.old(first), handle)), "later")
        first.end(signal.SIGKILL)
        second = self.serve(*store)
        client = self.old(second)
        self.assertEqual(text_of(self.result_of(client, handle)), "later")
        told = client.tool("segue_proxy_status", {"handle": handle})
        self.assertIn("has ended", text_of(told))
        error = self.result_of(client, first_call)["error"]
        self.assertEqual(error["data"]["reason"], "outcome_unknown")
        self.assertEqual(len(self.log.take()), 2)

    def test_a_call_with_a_handle_that_may_run_twice_goes_on_in_the_next_proxy(self):
        options = ("--store", str(self.place / "tasks.db"), "--trust-hints")
        go = self.place / "gone"
        first = self.serve(*options, hints=True)
        handle = self.start_by_handle(self.old(first), "work", go=str(go))
        first.end(signal.SIGKILL)
        go.touch()
        second = self.serve(*options, hints=True)
        self.assertEqual(text_of(self.result_of(self.old(second), handle)), "worked")
        self.assertEqual(len(self.log.take()), 2)

    def test_another_proxy_on_the_store_knows_the_handle(self):
        database = postgres_server.Postgres(str(self.place))
        self.addCleanup(database.close)
        store = ("--store", database.url(database.port))
        first, second = self.serve(*store), self.serve(*store)
        handle = self.start_by_handle(self.old(first), "later", go=self.go.path)
        other = self.old(second)
        told = other.tool("segue_proxy_status", {"handle": handle})
        self.assertIn("still runs", text_of(told))
        self.go.let()
        self.assertEqual(text_of(self.result_of(other, handle)), "later")
        self.assertEqual(len(self.log.take()), 1)

    def test_a_handle_belongs_to_its_principal(self):
        authority = tokens.Authority(self.place)
        proxy = self.serve(*authority.options())
        ada, bob = (web.Web(proxy.url, version="2025-06-18",
                            token=authority.token(name, proxy.url))
                    for name in ("ada", "bob"))
        handle = self.start_by_handle(ada, "later", go=self.go.path)
        for tool in ("segue_proxy_result", "segue_proxy_status", "segue_proxy_cancel"):
            error = bob.tool(tool, {"handle": handle})["error"]
            self.assertEqual(error["code"], -32602)
        self.go.let()
        self.assertEqual(text_of(self.result_of(ada, handle)), "later")
        self.assertIn("error", bob.tool("segue_proxy_result", {"handle": handle}))

    def test_a_result_that_is_an_error_comes_by_the_handle(self):
        client = self.old(self.serve())
        handle = self.start_by_handle(client, "late_error", go=self.go.path)
        self.go.let()
        error = self.result_of(client, handle)["error"]
        self.assertEqual((error["code"], error["message"]), (-32042, "late"))

    def test_a_proxy_on_pipes_ends_with_its_client_while_a_handle_is_open(self):
        with peers.proxy("--task-after", "50ms", "--handle") as client:
            self.start_by_handle(client)
            self.assertEqual(client.close(), 0)


if __name__ == "__main__":
    unittest.main()
