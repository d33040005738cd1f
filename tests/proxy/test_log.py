"""--log json: the events of the library and of the proxy, as lines of JSON."""

import json
import unittest

import peers
import stage
import upstream

SECRET = "s3cret"


class Log(stage.Stage):
    def start(self, level):
        return self.configured("--log", "json", "--log-level", level,
                               a=self.server(prefix=""))

    def events_until(self, client, name):
        """Returns the events up to the first one of this name."""
        found = []
        while not found or found[-1]["event"] != name:
            found.append(json.loads(client.error_lines.get(timeout=peers.PATIENCE)))
        return found

    def test_events_of_the_library_and_of_the_proxy_are_one_log(self):
        client = self.start("info")
        self.assertEqual(client.tool("odd", {"secret": SECRET})["result"], upstream.ODD)
        events = self.events_until(client, "call_ended")
        self.assertEqual(client.close(), 0)
        names = [event["event"] for event in events]
        self.assertIn("upstream_open", names)
        for event in events:
            self.assertEqual(list(event)[:3], ["time", "level", "event"])
            self.assertIn(event["level"], ("info", "warning", "error"))
        ended = events[-1]
        self.assertEqual((ended["item"], ended["status"]), ("odd", "ok"))
        opened = next(one for one in events if one["event"] == "upstream_open")
        self.assertEqual(opened["upstream"], "a")
        self.assertNotIn(SECRET, json.dumps(events))

    def test_calls_of_upstreams_are_events_of_the_level_debug(self):
        client = self.start("debug")
        self.assertEqual(client.tool("odd", {"secret": SECRET})["result"], upstream.ODD)
        events = self.events_until(client, "call_ended")
        self.assertEqual(client.close(), 0)
        ended = [one for one in events if one["event"] == "request_ended"
                 and one.get("item") == "odd"]
        self.assertEqual([one["status"] for one in ended], ["ok"])
        self.assertGreaterEqual(ended[0]["duration_us"], 0)
        self.assertNotIn(SECRET, json.dumps(events))


if __name__ == "__main__":
    unittest.main()
