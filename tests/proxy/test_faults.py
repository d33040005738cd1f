"""Upstreams that misbehave: bounded, told, and the others go on. Several upstreams of one
configuration."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import peers
import upstream


def text_of(message):
    return message["result"]["content"][0]["text"]


def peak_of(pid):
    """Returns the largest memory of a process so far, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise ValueError(pid)


class Faults(unittest.TestCase):
    def test_garbage_on_standard_output_is_dropped(self):
        with peers.proxy() as client:
            self.assertEqual(text_of(client.tool("garbage")), "after garbage")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_a_flood_of_messages_ends_in_the_answer(self):
        with peers.proxy() as client:
            self.assertEqual(text_of(client.tool("flood")), "after the flood")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_a_large_result_passes_and_a_larger_one_is_told(self):
        with peers.proxy() as client:
            size = 8 * 1024 * 1024
            self.assertEqual(len(text_of(client.tool("large", {"bytes": size}))), size)
            error = client.tool("large", {"bytes": 100 * 1024 * 1024})["error"]
            self.assertIn("reason", error["data"])
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_an_upstream_whose_child_keeps_the_pipe_is_started_again(self):
        with peers.proxy() as client:
            number = client.begin("tools/call", {"name": "leave_pipe", "_meta": {
                "progressToken": 1}})
            note = client.wait_note("notifications/progress")
            error = client.wait(number)["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            peers.wait_until_gone(int(note["params"]["message"]))

    def test_garbage_without_an_end_of_line_is_bounded(self):
        with peers.proxy() as client:
            told = client.tool("long_garbage", {"megabytes": 200})
            self.assertEqual(text_of(told), "after garbage")
            self.assertLess(peak_of(client.process.pid), 400 * 1024)

    def test_an_upstream_that_never_answers_is_told(self):
        with peers.proxy("--timeout", "200ms") as client:
            error = client.tool("sleep")["error"]
            self.assertEqual(error["data"]["reason"], "timeout")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)


class Several(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def serve(self, servers, *options):
        path = Path(self.directory.name) / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers}))
        return peers.Client([peers.PROXY, *options, "--config", str(path)])

    def one(self, **more):
        return {"command": peers.UPSTREAM[0], "args": peers.UPSTREAM[1:], **more}

    def names(self, client):
        return [tool["name"] for tool in client.call("tools/list")["result"]["tools"]]

    def test_two_upstreams_are_one_list_and_one_that_fails_is_left_out(self):
        with self.serve({"a": self.one(), "b": self.one(env={"X": "1"}),
                         "c": {"command": "/nowhere/program"}}) as client:
            names = self.names(client)
            self.assertEqual(len(names), 2 * len(upstream.TOOLS))
            self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)
            self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)
            error = client.tool("a_die")["error"]
            self.assertEqual(error["data"]["upstream"], "a")
            self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)
            client.close()
            self.assertTrue(any("/nowhere/program" in line for line in client.errors))

    def test_an_upstream_that_is_mute_does_not_hold_the_others_up(self):
        with self.serve({"a": self.one(), "b": {
                "command": peers.UPSTREAM[0], "args": [*peers.UPSTREAM[1:], "--mute"]}},
                "--start-timeout", "3s") as client:
            self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)

    def test_an_upstream_that_floods_does_not_hold_the_others_up(self):
        with self.serve({"a": self.one(), "b": self.one()}) as client:
            client.call("logging/setLevel", {"level": "error"})
            number = client.begin("tools/call", {"name": "b_flood_forever"})
            for _ in range(20):
                self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)
            self.assertLess(peak_of(client.process.pid), 400 * 1024)
            client.send({"method": "notifications/cancelled",
                         "params": {"requestId": number}})

    def test_tools_are_renamed_hidden_and_described_anew(self):
        with self.serve({"a": self.one(prefix="x-", tools={
                "odd": {"name": "even", "description": "new"}, "die": {"hidden": True},
                "sleep": {"timeout": 100}})}) as client:
            tools = {tool["name"]: tool
                     for tool in client.call("tools/list")["result"]["tools"]}
            self.assertEqual(tools["x-even"]["description"], "new")
            self.assertNotIn("x-die", tools)
            self.assertIn("error", client.tool("x-die"))
            self.assertEqual(client.tool("x-even")["result"], upstream.ODD)
            error = client.tool("x-sleep")["error"]
            self.assertEqual(error["data"]["reason"], "timeout")

    def test_an_upstream_that_closes_its_input_is_started_again(self):
        rules = {"close_input": {"timeout": 300}}
        with self.serve({"a": self.one(prefix="", tools=rules)}) as client:
            error = client.tool("close_input")["error"]
            self.assertEqual(error["data"]["reason"], "timeout")
            # the loss is seen when the next message is written
            error = client.tool("odd")["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_check_says_what_each_upstream_can_do(self):
        path = Path(self.directory.name) / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {
            "a": self.one(), "c": {"command": "/nowhere/program"}}}))
        told = subprocess.run([peers.PROXY, "--check", "--config", str(path)],
                              capture_output=True, text=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, 3)
        self.assertIn("a: ok, odd-server 7, protocol 2025-11-25", told.stdout)
        self.assertIn(f"{len(upstream.TOOLS)} tools, 1 resources, 1 templates, 1 prompts",
                      told.stdout)
        self.assertIn("tool a_odd, reads only", told.stdout)
        self.assertRegex(told.stdout, r"c: failed, .*\n(  \| .*\n)*"
                         r"  \| .*cannot start /nowhere/program: No such file")

    def test_a_file_that_is_wrong_is_told_with_its_place(self):
        for servers, why in (({"a": {}}, "mcpServers.a.command"),
                             ({"a": self.one(url="http://x")}, "only one of them"),
                             ({"a": self.one(args=[1])}, "mcpServers.a.args"),
                             ({"a": self.one(timeout="1")}, "mcpServers.a.timeout"),
                             ({}, "names no upstream")):
            path = Path(self.directory.name) / "wrong.json"
            path.write_text(json.dumps({"mcpServers": servers}))
            client = peers.Client([peers.PROXY, "--config", str(path)], start=False)
            self.assertEqual(client.close(), 2)
            self.assertIn(why, "\n".join(client.errors))


if __name__ == "__main__":
    unittest.main()
