"""Calls that run for long: heartbeats, tasks after a time, handles."""

import re
import signal
import unittest

import peers
import stage
import tokens
import web
from stage import text_of

GIVES_UP = 60  # seconds after which a host gives up


class Long(stage.Stage):
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

    def test_a_call_with_a_key_that_asks_for_a_task_is_one_at_once(self):
        key = {"dev.segue/idempotencyKey": "0123456789abcdef"}
        with web.Listening("--task-after", "1h") as proxy:
            made = web.Web(proxy.url).tool("sleep", task={}, _meta=key)
            self.assertEqual(made["result"]["task"]["status"], "working")

    def start_by_handle(self, client, name="sleep", **arguments):
        words = text_of(client.tool(name, arguments))
        return re.search(r"handle is (\S{20,})\. Call", words).group(1)

    def test_a_client_without_tasks_gets_a_handle_and_cancels(self):
        with self.stdio("--task-after", "50ms", "--handle") as client:
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

    def serve(self, *options, hints=False):
        return self.listen("--task-after", "50ms", "--handle", *options,
                           upstream=self.upstream(*["--hints"] * hints))

    def old(self, proxy):
        return web.Web(proxy.url, version="2025-06-18")

    def test_a_handle_outlives_the_proxy(self):
        store = self.sqlite()
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
        options = (*self.sqlite(), "--trust-hints")
        go = self.place / "gone"
        first = self.serve(*options, hints=True)
        handle = self.start_by_handle(self.old(first), "work", go=str(go))
        first.end(signal.SIGKILL)
        go.touch()
        second = self.serve(*options, hints=True)
        self.assertEqual(text_of(self.result_of(self.old(second), handle)), "worked")
        self.assertEqual(len(self.log.take()), 2)

    def test_another_proxy_on_the_store_knows_the_handle(self):
        store = self.postgres()
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


class Minutes(stage.Stage):
    """A tool of three minutes, and hosts that give up after one. The clock of the proxy
    moves only when the test says so, second by second. `make demo-proxy` shows the same
    in real time."""

    def setUp(self):
        super().setUp()
        self.clock = peers.Clock(self.place)
        self.addCleanup(self.clock.close)

    def start(self, *options):
        return self.stdio(*options, program=peers.CLOCKED, env=self.clock.environment)

    def within_a_minute(self, client, is_it):
        """Lets time pass until the host gets a message of this kind. A host that waits
        for a minute gives up."""
        for _ in range(GIVES_UP):
            client.call("ping")  # behind its answer nothing of this second is to come
            for index, note in enumerate(client.notes):
                if is_it(note):
                    return client.notes.pop(index)
            self.clock.advance(1)
        raise TimeoutError(f"the host gave up: {client.notes}")

    def ask(self, client, name, arguments):
        number = client.begin("tools/call", {"name": name, "arguments": arguments})
        return number, lambda note: note.get("id") == number

    def test_a_host_that_gives_up_after_a_minute_gets_the_result_by_a_handle(self):
        with self.start("--handle") as client:
            _, is_answer = self.ask(client, "later", {"go": self.go.path})
            self.log.wait(1)
            words = text_of(self.within_a_minute(client, is_answer))
            handle = {"handle": re.search(r"handle is (\S{20,})\. Call", words).group(1)}
            while self.clock.seconds < 180:
                _, is_answer = self.ask(client, "segue_proxy_result", handle)
                self.assertIn("still runs",
                              text_of(self.within_a_minute(client, is_answer)))
            number, _ = self.ask(client, "segue_proxy_result", handle)
            self.go.let()
            self.assertEqual(text_of(client.wait(number)), "later")
            self.assertEqual(len(self.log.take()), 1)

    def test_a_host_whose_minute_begins_anew_with_progress_gets_the_result(self):
        with self.start() as client:
            number = client.begin("tools/call", {
                "name": "later", "arguments": {"go": self.go.path},
                "_meta": {"progressToken": 5}})
            self.log.wait(1)
            seen = []
            while self.clock.seconds < 180:
                note = self.within_a_minute(
                    client, lambda note: note.get("method") == "notifications/progress")
                seen.append(note["params"]["progress"])
            self.assertEqual(seen, sorted(set(seen)), "progress has to grow")
            self.assertEqual(len(seen), 12, "one each 15 s")
            self.go.let()
            self.assertEqual(text_of(client.wait(number)), "later")

    def test_without_help_the_host_gives_up(self):
        """The clock of the test does what it has to."""
        with self.start() as client:
            _, is_answer = self.ask(client, "later", {"go": self.go.path})
            self.log.wait(1)
            with self.assertRaises(TimeoutError):
                self.within_a_minute(client, is_answer)
            self.go.let()


if __name__ == "__main__":
    unittest.main()
