"""SIGHUP: the configuration is read anew, and no call is lost."""

import json
import signal
import unittest

import peers
import stage
import upstream
import web


class Reload(stage.Stage):
    def start(self, *options, **servers):
        return self.configured("--log", "json", "--log-level", "info", *options,
                               **servers)

    def hang_up(self, client):
        client.process.send_signal(signal.SIGHUP)

    def wait_names(self, client, wanted):
        """Waits for the changes of the list until it has these names and no others."""
        while self.names(client) != wanted:
            client.wait_note("notifications/tools/list_changed")

    def all_of(self, prefix, *changed):
        names = {prefix + tool["name"] for tool in upstream.TOOLS}
        for old, new in changed:
            names.remove(prefix + old)
            names.add(prefix + new)
        return names

    def test_a_new_upstream_starts_and_one_that_is_gone_ends(self):
        client = self.start(a=self.server(prefix="a_"), b=self.server(prefix="b_"))
        self.assertEqual(client.tool("a_odd")["result"], upstream.ODD)
        client.begin("tools/call", {"name": "a_sleep", "_meta": {"progressToken": 1}})
        note = client.wait_note("notifications/progress")
        pid = int(note["params"]["message"].split()[1])
        client.send({"method": "notifications/cancelled", "params": {
            "requestId": client.last_id}})
        self.write_config(b=self.server(prefix="b_"), c=self.server(prefix="c_"))
        self.hang_up(client)
        self.wait_names(client, self.all_of("b_") | self.all_of("c_"))
        self.assertEqual(client.tool("c_odd")["result"], upstream.ODD)
        self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)
        self.assertIn("error", client.tool("a_odd"))
        peers.wait_until_gone(pid)
        self.assertEqual(client.close(), 0)

    def test_a_call_of_an_upstream_that_is_gone_ends_well(self):
        client = self.start(a=self.server("--log", self.log.path, prefix="a_"),
                            b=self.server(prefix="b_"))
        number = client.begin("tools/call", {
            "name": "a_later", "arguments": {"go": self.go.path}})
        self.log.wait(1)
        self.write_config(b=self.server(prefix="b_"))
        self.hang_up(client)
        self.wait_names(client, self.all_of("b_"))
        self.go.let()
        self.assertEqual(client.wait(number)["result"]["content"][0]["text"], "later")
        self.assertEqual(client.close(), 0)

    def test_tools_that_changed_are_told_and_the_upstream_stays(self):
        client = self.start(a=self.server(prefix=""))
        pid = self.pid_of(client)
        self.write_config(a=self.server(prefix="", tools={
            "odd": {"name": "even"}, "sleep": {"timeout": 50}}))
        self.hang_up(client)
        self.wait_names(client, self.all_of("", ("odd", "even")))
        self.assertEqual(client.tool("even")["result"], upstream.ODD)
        self.assertEqual(client.tool("sleep")["error"]["data"]["reason"], "timeout")
        self.assertEqual(pid, self.pid_of(client, "work"))

    def pid_of(self, client, name="sleep"):
        client.begin("tools/call", {"name": name, "_meta": {"progressToken": 1}})
        note = client.wait_note("notifications/progress")
        return note["params"]["message"]

    def test_an_upstream_with_another_command_is_replaced_without_a_gap(self):
        client = self.start(a=self.server(prefix=""))
        number = client.begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}})
        self.write_config(a=self.server("--extra", prefix=""))
        self.hang_up(client)
        while "extra" not in self.names(client):
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.go.let()
        self.assertEqual(client.wait(number)["result"]["content"][0]["text"], "later")
        self.assertEqual(client.call("resources/read", {"uri": "t:5"})
                         ["result"]["contents"][0]["uri"], "t:5")
        self.assertEqual(client.close(), 0)

    def test_a_new_command_that_fails_leaves_the_old_one(self):
        client = self.start(a=self.server(prefix=""))
        self.write_config(a={"command": "/nowhere/program", "prefix": ""})
        self.hang_up(client)
        self.wait_event(client, "upstream_failed")
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(client.close(), 0)

    def wait_event(self, client, event, but_not=None):
        while True:
            line = json.loads(client.error_lines.get(timeout=peers.PATIENCE))
            self.assertNotEqual(line["event"], but_not)
            if line["event"] == event:
                return line

    def test_a_file_that_is_wrong_is_told_and_changes_nothing(self):
        client = self.start(a=self.server(prefix=""))
        for words in ("{", json.dumps({"mcpServers": {"a": {}}}),
                      json.dumps({"mcpServers": {}})):
            self.file.write_text(words)
            self.hang_up(client)
            self.assertIn(str(self.file), self.wait_event(client, "config_invalid")[
                "message"])
            self.wait_event(client, "config_refused")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(client.close(), 0)

    def test_an_upstream_that_failed_is_tried_again(self):
        script = self.place / "server"
        client = self.start(a=self.server(prefix="a_"),
                            b={"command": str(script), "prefix": "b_"})
        self.assertEqual(self.names(client), self.all_of("a_"))
        while "in 4000 ms" not in self.wait_event(client, "upstream_waits")["message"]:
            pass
        script.write_text(f"#!/bin/sh\nexec {' '.join(peers.UPSTREAM)}\n")
        script.chmod(0o755)
        self.hang_up(client)
        # at once: a proxy that still waits says before that the upstream failed
        self.wait_event(client, "upstream_open", but_not="upstream_failed")
        self.wait_names(client, self.all_of("a_") | self.all_of("b_"))
        self.assertEqual(client.tool("b_odd")["result"], upstream.ODD)
        self.assertEqual(client.close(), 0)

    def test_over_http_a_session_outlives_the_old_configuration(self):
        self.write_config(a=self.server(prefix=""))
        with web.Listening("--log-level", "info", "--config", str(self.file),
                           upstream=None) as proxy:
            client = web.Web(proxy.url)
            call = client.begin("tools/call", {
                "name": "later", "arguments": {"go": self.go.path}})
            self.write_config(a=self.server("--extra", prefix=""))
            proxy.process.send_signal(signal.SIGHUP)
            proxy.wait_line("ends after its calls")
            self.assertEqual(client.tool("extra")["result"]["content"][0]["text"],
                             "extra")
            self.go.let()
            answer = client.finish(call)
            self.assertEqual(answer["result"]["content"][0]["text"], "later")
            self.assertEqual(proxy.end(), 0)

    def test_without_a_file_a_proxy_on_pipes_ends_as_before(self):
        # nohup ignores the signal, and programs inherit that
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        with peers.proxy() as client:
            client.process.send_signal(signal.SIGHUP)
            self.assertEqual(client.process.wait(peers.PATIENCE), -signal.SIGHUP)


if __name__ == "__main__":
    unittest.main()
