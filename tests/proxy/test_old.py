"""Upstreams that speak the transport HTTP+SSE of 2024-11-05."""

import json
import tempfile
import unittest
from pathlib import Path

import peers
import upstream
import web
from old_server import OldServer


def text_of(message):
    assert "result" in message, message
    return message["result"]["content"][0]["text"]


class Old(unittest.TestCase):
    def client(self, url, *options, **more):
        return peers.Client([peers.PROXY, *options, url], **more)

    def test_everything_passes(self):
        can = {"elicitation": {}, "sampling": {}, "roots": {}}
        with OldServer() as old, self.client(old.url, capabilities=can) as client:
            self.assertEqual(client.hello["serverInfo"]["name"], "odd-server")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            self.assertEqual(client.tool("failing")["error"]["code"], -32042)
            client.tool("steps", _meta={"progressToken": "p"})
            steps = [note["params"]["progress"] for note in client.notes
                     if note["method"] == "notifications/progress"]
            self.assertEqual(steps, [0.5, 1.5, 2.5])
            client.answers["roots/list"] = lambda params: {"result": {"roots": []}}
            told = client.tool("ask", {"method": "roots/list"})
            self.assertEqual(told["result"]["structuredContent"],
                             {"result": {"roots": []}})
            client.call("resources/subscribe", {"uri": "x:1"})
            client.wait_note("notifications/resources/updated")
            client.tool("grow")
            client.wait_note("notifications/tools/list_changed")
            self.assertEqual(client.close(), 0)
            self.assertEqual(old.cuts, 0)

    def test_a_client_over_http_has_several_calls_at_once(self):
        with OldServer() as old, web.Listening(old.url, upstream=None) as proxy:
            client = web.Web(proxy.url)
            waiting = client.begin("tools/call", {"name": "sleep"})
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            waiting.close()
            self.assertEqual(old.streams, 1)

    def test_a_relative_endpoint_belongs_to_the_directory(self):
        with OldServer(endpoint="messages?session={name}") as old, \
                self.client(old.url) as client:
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)

    def test_an_endpoint_of_another_origin_is_refused(self):
        with OldServer(endpoint="http://127.0.0.2:1/messages?session={name}") as old:
            self.assertEqual(self.client(old.url, start=False).close(), 3)

    def test_a_server_that_ends_its_stream_is_taken_up_again(self):
        with OldServer() as old, self.client(old.url) as client:
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            number = client.begin("tools/call", {"name": "sleep", "_meta": {
                "progressToken": 1}})
            client.wait_note("notifications/progress")
            old.cut()
            error = client.wait(number)["error"]
            self.assertEqual(error["data"]["reason"], "outcome_unknown")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            self.assertEqual(old.streams, 2)

    def test_the_type_sse_of_a_configuration_tries_nothing_else(self):
        with OldServer() as old, tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "mcp.json"
            for url, words in ((old.url, None), (old.url + "/nothing", "404")):
                path.write_text(json.dumps({"mcpServers": {
                    "old": {"type": "sse", "url": url}}}))
                client = peers.Client([peers.PROXY, "--config", str(path)],
                                      start=not words)
                if not words:
                    self.assertEqual(client.tool("odd")["result"], upstream.ODD)
                self.assertEqual(client.close(), 3 if words else 0)
                self.assertIn(words or "", "\n".join(client.errors))
            self.assertEqual(old.refused, 0)

    def test_a_subscription_outlives_the_stream(self):
        with OldServer() as old, self.client(old.url) as client:
            client.call("resources/subscribe", {"uri": "x:1"})
            client.wait_note("notifications/resources/updated")
            old.cut()
            client.wait_note("notifications/resources/updated")

    def test_a_wrong_path_is_still_told(self):
        with OldServer() as old:
            client = self.client(old.url + "/nothing", start=False)
            self.assertEqual(client.close(), 3)
            self.assertIn("405", "\n".join(client.errors))


if __name__ == "__main__":
    unittest.main()
