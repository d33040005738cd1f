"""Calls that run for long: heartbeats, tasks after a time, handles."""

import re
import tempfile
import unittest
from pathlib import Path

import peers
import web


def text_of(message):
    return message["result"]["content"][0]["text"]


class Long(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.go = peers.Pipe(Path(self.directory.name) / "go")
        self.addCleanup(self.go.close)

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
        return re.search(r"handle is ([0-9a-f]{32})", words).group(1)

    def test_a_client_without_tasks_gets_a_handle_and_cancels(self):
        with peers.proxy("--task-after", "50ms", "--handle") as client:
            handle = self.start_by_handle(client)
            status = text_of(client.tool("segue_proxy_status", {"handle": handle}))
            self.assertIn("still runs", status)
            self.assertIn("still runs", text_of(
                client.tool("segue_proxy_result", {"handle": handle})))
            client.tool("segue_proxy_cancel", {"handle": handle})
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


if __name__ == "__main__":
    unittest.main()
