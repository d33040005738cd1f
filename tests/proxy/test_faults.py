"""Upstreams that misbehave: bounded, told, and the others go on. Several upstreams of one
configuration."""

import subprocess
import unittest
from pathlib import Path

import peers
import stage
import upstream
from stage import text_of


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
            self.assertEqual(text_of(client.tool("bytes")), "after bytes")
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
            self.assertIn("max_message_bytes is 67108864", error["message"])
            self.assertLess(peak_of(client.process.pid), 400 * 1024)
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

    def test_answers_that_fit_nothing_are_told_a_few_times(self):
        for how, words in (("unknown", "no request waits"), ("twice", "no request waits"),
                           ("malformed", "something invalid")):
            with peers.proxy("--log-level", "info") as client:
                told = client.tool("answer_more", {"count": 1000, "how": how})
                self.assertEqual(text_of(told), "first")
                self.assertEqual(client.tool("odd")["result"], upstream.ODD)
                self.assertEqual(client.close(), 0)
                lines = [line for line in client.errors if words in line]
                self.assertIn(len(lines), range(1, 13), client.errors[-20:])

    def test_an_upstream_that_never_answers_is_told(self):
        with peers.proxy("--timeout", "200ms") as client:
            error = client.tool("sleep")["error"]
            self.assertEqual(error["data"]["reason"], "timeout")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)


class Several(stage.Stage):
    def test_two_upstreams_are_one_list_and_one_that_fails_is_left_out(self):
        with self.configured(a=self.server(), b=self.server(env={"X": "1"}),
                             c={"command": "/nowhere/program"}) as client:
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
        with self.configured("--start-timeout", "3s", a=self.server(),
                             b=self.server("--mute")) as client:
            self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)

    def test_an_upstream_that_floods_does_not_hold_the_others_up(self):
        with self.configured(a=self.server(), b=self.server()) as client:
            client.call("logging/setLevel", {"level": "error"})
            number = client.begin("tools/call", {"name": "b_flood_forever"})
            for _ in range(20):
                self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)
            self.assertLess(peak_of(client.process.pid), 400 * 1024)
            client.send({"method": "notifications/cancelled",
                         "params": {"requestId": number}})

    def test_the_others_go_on_while_one_misbehaves(self):
        rules = {"sleep": {"timeout": 500}}
        with self.configured(a=self.server(), b=self.server(tools=rules)) as client:
            for name, arguments in (
                    ("sleep", {}), ("garbage", {}), ("bytes", {}), ("flood", {}),
                    ("large", {"bytes": 100 * 1024 * 1024}),
                    ("long_garbage", {"megabytes": 100}), ("leave_pipe", {}),
                    ("die", {})):
                number = client.begin("tools/call", {"name": f"b_{name}",
                                                     "arguments": arguments})
                for _ in range(3):
                    self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)
                told = client.wait(number)
                self.assertTrue("result" in told or "reason" in told["error"]["data"],
                                (name, told))
            self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)

    def test_tools_are_renamed_hidden_and_described_anew(self):
        with self.configured(a=self.server(prefix="x-", tools={
                "odd": {"name": "even", "description": "new"}, "die": {"hidden": True},
                "sleep": {"timeout": 100}})) as client:
            tools = {tool["name"]: tool
                     for tool in client.call("tools/list")["result"]["tools"]}
            self.assertEqual(tools["x-even"]["description"], "new")
            self.assertNotIn("x-die", tools)
            self.assertIn("error", client.tool("x-die"))
            self.assertEqual(client.tool("x-even")["result"], upstream.ODD)
            error = client.tool("x-sleep")["error"]
            self.assertEqual(error["data"]["reason"], "timeout")

    def test_an_upstream_that_closes_its_input_is_started_again(self):
        with self.configured(a=self.server(prefix=""), b=self.server()) as client:
            number = client.begin("tools/call", {"name": "close_input", "_meta": {
                "progressToken": 1}})
            client.wait_note("notifications/progress")
            self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)
            # the loss is seen when the next message is written
            error = client.tool("odd")["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            error = client.wait(number)["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_check_says_what_each_upstream_can_do(self):
        self.write_config(a=self.server(), c={"command": "/nowhere/program"})
        told = subprocess.run([peers.PROXY, "--check", "--config", str(self.file)],
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
                             ({"a": self.server(url="http://x")}, "only one of them"),
                             ({"a": self.server(args=[1])}, "mcpServers.a.args"),
                             ({"a": self.server(timeout="1")}, "mcpServers.a.timeout"),
                             ({}, "names no upstream")):
            self.write_config(**servers)
            client = peers.Client([peers.PROXY, "--config", str(self.file)], start=False)
            self.assertEqual(client.close(), 2)
            self.assertIn(why, "\n".join(client.errors))


if __name__ == "__main__":
    unittest.main()
