"""The end of a proxy that listens, and what its health checks say."""

import json
import signal
import unittest

import peers
import stage
import upstream
import web


class Ends(stage.Stage):
    def serve(self, *options, **more):
        return self.listen("--log-level", "info", *options, **more)

    def checks(self, proxy):
        return [web.get(proxy.url, path)[0] for path in ("/health", "/health/ready")]

    def test_calls_under_way_end_well_and_new_ones_are_refused(self):
        proxy = self.serve()
        client = web.Web(proxy.url)
        self.assertEqual(self.checks(proxy), [200, 200])
        call = client.begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}})
        self.log.wait(1)
        proxy.process.send_signal(signal.SIGTERM)
        proxy.wait_line("asked to end")
        self.assertEqual(self.checks(proxy), [503, 503])
        self.assertEqual(web.get(proxy.url, "/health/live")[0], 200)
        refused = client.begin("tools/call", {"name": "odd"}).getresponse()
        self.assertEqual(refused.status, 503)
        self.assertIn(b"server_ending", refused.read())
        self.go.let()
        answer = client.finish(call)
        self.assertEqual(answer["result"]["content"][0]["text"], "later")
        self.assertEqual(proxy.process.wait(peers.PATIENCE), 0)

    def test_a_call_on_an_idle_connection_is_refused_and_not_cut(self):
        """A balancer may have sent a call on it at that moment. It sends the call to
        another replica only if the call was refused, because it may have run else."""
        proxy = self.serve()
        client = web.Web(proxy.url)
        idle = web.connect(client.where)
        self.addCleanup(idle.close)
        idle.request("GET", "/health/live")
        self.assertEqual(idle.getresponse().read(), b"ok\n")
        proxy.process.send_signal(signal.SIGTERM)
        proxy.wait_line("asked to end")
        idle.request("POST", client.where.path, json.dumps({
            "jsonrpc": "2.0", "id": 9, "method": "tools/call",
            "params": {"name": "odd"}}), client.headers)
        refused = idle.getresponse()
        self.assertEqual(refused.status, 503)
        self.assertEqual(refused.headers["Connection"], "close")
        self.assertIn(b"server_ending", refused.read())
        self.assertEqual(proxy.process.wait(peers.PATIENCE), 0)

    def test_further_signals_change_nothing(self):
        for round in range(20):
            proxy = self.serve()
            for number in [signal.SIGTERM] + [signal.SIGINT, signal.SIGTERM] * 4:
                if proxy.process.poll() is None:
                    proxy.process.send_signal(number)
            with self.subTest(round=round):
                self.assertEqual(proxy.process.wait(peers.PATIENCE), 0)

    def test_a_call_that_does_not_end_is_let_go_after_a_time(self):
        proxy = self.serve("--drain", "50ms")
        client = web.Web(proxy.url)
        call = client.begin("tools/call", {"name": "sleep"})
        self.addCleanup(call.close)
        self.log.wait(1)
        self.assertEqual(proxy.end(), 0)

    def test_a_task_is_let_go_in_the_store(self):
        options = (*self.sqlite(), "--task-after", "0", "--trust-hints", "--drain",
                   "50ms")
        above = self.upstream("--hints")
        first = self.serve(*options, upstream=above)
        go = self.place / "gone"
        made = web.Web(first.url).tool("work", {"go": str(go)}, task={})
        self.log.wait(1)
        self.assertEqual(first.end(), 0)
        go.touch()
        second = self.serve(*options, upstream=above)
        answer = web.Web(second.url).call("tasks/result", {
            "taskId": made["result"]["task"]["taskId"]})
        self.assertEqual(answer["result"]["content"][0]["text"], "worked")
        self.assertEqual(second.end(), 0)

    def test_it_is_not_ready_while_no_upstream_can_be_used(self):
        program = self.place / "server"
        words = f"#!/bin/sh\nexec {' '.join(peers.UPSTREAM)}\n"
        program.write_text(words)
        program.chmod(0o755)
        proxy = self.serve(upstream=[str(program)])
        client = web.Web(proxy.url)
        program.chmod(0)
        self.assertIn("error", client.tool("die"))
        proxy.wait_line("not ready: ")
        self.assertEqual(self.checks(proxy), [200, 503])
        program.chmod(0o755)
        proxy.wait_line("ready: an upstream can be used again")
        self.assertEqual(self.checks(proxy), [200, 200])
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def test_the_only_upstream_may_fail_at_the_start(self):
        program = self.place / "server"
        program.write_text(f"#!/bin/sh\nexec {' '.join(peers.UPSTREAM)}\n")
        program.chmod(0)
        proxy = self.serve(upstream=[str(program)])
        self.assertEqual(self.checks(proxy), [200, 503])
        client = web.Web(proxy.url)
        self.assertEqual(client.call("tools/list")["result"]["tools"], [])
        program.chmod(0o755)
        proxy.wait_line("ready: an upstream can be used again")
        self.assertEqual(self.checks(proxy), [200, 200])
        tools = client.call("tools/list")["result"]["tools"]
        self.assertIn("odd", [tool["name"] for tool in tools])
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def test_the_only_upstream_may_be_away_at_the_start(self):
        above = self.serve()
        port = above.url.split(":")[2].split("/")[0]
        url = above.url
        above.end(signal.SIGKILL)
        proxy = self.serve("--start-timeout", "1s", url, upstream=[])
        self.assertEqual(self.checks(proxy), [200, 503])
        self.serve(port=port)
        proxy.wait_line("ready: an upstream can be used again")
        self.assertEqual(self.checks(proxy), [200, 200])
        self.assertEqual(web.Web(proxy.url).tool("odd")["result"], upstream.ODD)

    def test_an_upstream_over_http_is_asked_until_it_answers(self):
        above = self.serve()
        port = above.url.split(":")[2].split("/")[0]
        proxy = self.serve(above.url, upstream=[])
        client = web.Web(proxy.url)
        above.end(signal.SIGKILL)
        call = client.begin("tools/call", {"name": "odd"})
        proxy.wait_line("not ready: ")
        self.assertEqual(self.checks(proxy), [200, 503])
        self.serve(port=port)
        proxy.wait_line("ready: an upstream can be used again")
        self.assertEqual(self.checks(proxy), [200, 200])
        client.finish(call)

    def rest(self, proxy):
        """Ends the proxy, and returns what is left of its log."""
        proxy.process.terminate()
        return proxy.process.communicate(timeout=peers.PATIENCE)[1]

    def test_it_stays_ready_while_a_program_that_died_starts_again(self):
        proxy = self.serve()
        client = web.Web(proxy.url)
        for _ in range(3):
            self.assertIn("error", client.tool("die"))
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            self.assertEqual(self.checks(proxy), [200, 200])
        self.assertNotIn("not ready", self.rest(proxy))

    def test_it_is_ready_when_an_upstream_has_forgotten_the_session(self):
        above = self.serve()
        port = above.url.split(":")[2].split("/")[0]
        proxy = self.serve(above.url, upstream=[])
        client = web.Web(proxy.url)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        above.end(signal.SIGKILL)
        self.serve(port=port)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.checks(proxy), [200, 200])

    def test_an_upstream_that_is_back_is_usable_while_another_one_is(self):
        """The one that was lost before carries the readiness when the other one goes."""
        first, second = self.serve(), self.serve()
        port = first.url.split(":")[2].split("/")[0]
        self.write_config(a={"url": first.url}, b={"url": second.url})
        proxy = self.serve("--config", str(self.file), "--drain", "50ms", upstream=[])
        client = web.Modern(proxy.url)
        first.end(signal.SIGKILL)
        call = client.begin("tools/call", {"name": "a_odd"})
        proxy.wait_line("attempt 2 begins")
        self.serve(port=port)
        client.finish(call)
        second.end(signal.SIGKILL)
        lost = client.begin("tools/call", {"name": "b_odd"})
        self.addCleanup(lost.close)
        proxy.wait_line("attempt 2 begins")
        self.assertEqual(self.checks(proxy), [200, 200])
        self.assertNotIn("not ready", self.rest(proxy))

    def test_it_is_not_ready_when_a_program_cannot_start_after_a_pause(self):
        program = self.place / "server"
        program.write_text(f"#!/bin/sh\nexec {' '.join(peers.UPSTREAM)}\n")
        program.chmod(0o755)
        proxy = self.serve("--idle", "1ms", upstream=[str(program)])
        client = web.Web(proxy.url)
        self.assertIn("result", client.tool("odd"))
        proxy.wait_line("so its session is closed")
        program.chmod(0)
        self.assertEqual(client.tool("odd")["error"]["data"]["reason"],
                         "upstream_unavailable")
        self.assertEqual(self.checks(proxy), [200, 503])
        program.chmod(0o755)
        proxy.wait_line("ready: an upstream can be used again")
        self.assertEqual(self.checks(proxy), [200, 200])


if __name__ == "__main__":
    unittest.main()
