"""Upstreams over HTTP that misbehave: each call is told what is wrong, the memory is
bounded, the upstream can be used again at once, and the others go on meanwhile."""

import unittest

import bad_http_server
import stage
import upstream
from test_faults import peak_of

BOUND_KIB = 300 * 1024
FAILED, UNKNOWN, LATE = "upstream_failed", "outcome_unknown", "timeout"


class Http(stage.Stage):
    def setUp(self):
        super().setUp()
        self.bad = bad_http_server.Server()
        self.addCleanup(self.bad.close)

    def check(self, tool, reason, words, **more):
        """The call ends with this reason, while another upstream answers."""
        with self.configured(bad={"url": self.bad.url, **more},
                             other=self.server()) as client:
            number = client.begin("tools/call", {"name": f"bad_{tool}"})
            for _ in range(3):
                self.assertEqual(client.tool("other_odd")["result"], upstream.ODD)
            error = client.wait(number)["error"]
            self.assertEqual((error["data"]["reason"], error["data"]["upstream"]),
                             (reason, "bad"), error)
            self.assertIn(words, error["message"])
            self.assertEqual(client.tool("bad_good")["result"], bad_http_server.GOOD)
            self.assertLess(peak_of(client.process.pid), BOUND_KIB)

    def test_an_answer_that_never_comes(self):
        self.check("never", LATE, "did not answer in time", timeout=300)

    def test_an_answer_that_is_no_answer(self):
        self.check("html", FAILED, "neither JSON nor an event stream")
        self.check("no_json", FAILED, "the answer of the server is invalid")
        self.check("no_answer", FAILED, "the answer of the server is invalid")
        self.check("server_error", FAILED, "HTTP status 500")

    def test_an_answer_that_is_cut_off(self):
        self.check("cut", UNKNOWN, "may have run, so it is not sent again")
        self.check("cut_stream", UNKNOWN, "may have run, so it is not sent again")

    def test_an_answer_of_a_hundred_megabytes(self):
        for tool in ("large_body", "large_event", "endless_line"):
            self.check(tool, FAILED, "max_message_bytes is 67108864")

    def test_a_stream_without_end(self):
        self.check("flood", LATE, "did not answer in time", timeout=1000)
        self.check("drip", LATE, "did not answer in time", timeout=300)


if __name__ == "__main__":
    unittest.main()
