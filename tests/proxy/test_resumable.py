"""Calls that resume: at an upstream of SEP-975, and for clients of the proxy, also when
another proxy on the same store takes the call over."""

import json
import signal
import unittest

import resumable_server
import stage
import test_promoted
import test_segments
import web
from stage import text_of

POLICY = "notifications/requests/resumePolicy"


class Upstream(stage.Stage):
    """The upstream offers to repeat its answers. It honours no keys."""

    def setUp(self):
        super().setUp()
        self.server = resumable_server.Server()
        self.addCleanup(self.server.close)

    def front(self, *options):
        return self.listen(*self.sqlite(), *options, self.server.url, upstream=[])

    def test_an_answer_that_was_cut_off_is_fetched(self):
        client = web.Web(self.front().url)
        self.assertEqual(self.server.declared["resumableRequests"], {})
        call = client.begin("tools/call", {"name": "later",
                                           "_meta": {"progressToken": 5}})
        job = self.server.wait_call()
        for cut in range(2):
            job.say(f"cut {cut}")
            job.cut()
            self.assertEqual(self.server.wait_resume(), cut + 2)
        job.end("done")
        self.assertEqual(text_of(client.finish(call)), "done")
        self.assertEqual([note["params"]["message"] for note in client.notes],
                         ["cut 0", "cut 1"])
        self.assertTrue(self.server.calls.empty())

    def test_the_proxy_stays_ready_while_it_fetches_the_answer(self):
        proxy = self.front("--log-level", "info")
        client = web.Web(proxy.url)
        call = client.begin("tools/call", {"name": "later"})
        job = self.server.wait_call()
        for cut in range(2):
            job.say(f"cut {cut}")
            job.cut()
            self.server.wait_resume()
            self.assertEqual(web.get(proxy.url, "/health/ready")[0], 200)
        job.end("done")
        self.assertEqual(text_of(client.finish(call)), "done")
        proxy.process.terminate()
        self.assertNotIn("not ready", proxy.process.communicate()[1])

    def test_the_next_proxy_fetches_the_answer(self):
        for kind in (test_promoted.Handshake, test_promoted.Modern):
            with self.subTest(kind=kind):
                first = self.front("--task-after", "0")
                client = kind(first.url)
                task = client.make("later")
                job = self.server.wait_call()
                job.say("said")
                test_promoted.poll(lambda: "statusMessage" in client.look(task))
                first.end(signal.SIGKILL)
                second = self.front("--task-after", "0")
                self.server.wait_resume()
                job.end("done")
                self.assertEqual(text_of(kind(second.url).outcome(task)), "done")
                self.assertTrue(self.server.calls.empty())
                second.end()


class Held:
    """What a client keeps of a call that resumes."""

    def __init__(self, number):
        self.number = number
        self.token = self.last_event = None


class Client(web.Web):
    """A client of SEP-975."""

    def __init__(self, url):
        super().__init__(url, capabilities={"resumableRequests": {}})

    def read(self, held, connection):
        """Yields the messages of a stream, and notes the id of each event."""
        response = connection.getresponse()
        if response.headers.get_content_type() == "application/json":
            yield json.loads(response.read())
            connection.close()
            return
        data = b""
        for line in response:
            if line.startswith(b"id:"):
                held.last_event = line[3:].strip().decode()
            elif line.startswith(b"data:"):
                data = line[5:].strip()
            elif not line.strip() and data:  # the event has ended
                yield json.loads(data)
                data = b""
        connection.close()

    def start(self, name, arguments, **meta):
        """Calls a tool. Returns what is kept of the call, its connection, and its
        messages after the policy."""
        connection = self.begin("tools/call", {
            "name": name, "arguments": arguments, "_meta": meta})
        held = Held(self.last_id)
        messages = self.read(held, connection)
        policy = next(messages)
        assert policy["method"] == POLICY, policy
        assert policy["params"]["requestId"] == held.number, policy
        held.token = policy["params"]["resumeToken"]
        return held, connection, messages

    def resume(self, held):
        """Yields the messages of the call that are left."""
        self.headers["Last-Event-ID"] = held.last_event
        connection = self.post({"id": held.number, "method": "requests/resume",
                                "params": {"resumeToken": held.token}})
        del self.headers["Last-Event-ID"]
        return self.read(held, connection)

    def end(self, held):
        *_, last = self.resume(held)
        assert last["id"] == held.number, last
        return last

    def status(self, held):
        return self.call("requests/getStatus", {
            "requestId": held.number, "resumeToken": held.token})["result"]


class Clients(stage.Stage):
    """The upstream resumes nothing."""

    def cut(self, proxy, name="later", **arguments):
        """Begins a call and closes its connection. The client of "work" has seen its
        progress, so what the proxy wrote before is in the store."""
        held, connection, messages = Client(proxy.url).start(name, arguments,
                                                             progressToken=5)
        self.log.wait(1)
        if name == "work":
            self.assertEqual(next(messages)["method"], "notifications/progress")
        connection.close()
        return held

    def test_a_call_that_was_cut_off_resumes(self):
        for options in ((), ("--on-close", "cancel"), self.sqlite()):
            with self.subTest(options=options):
                proxy = self.listen(*options)
                held = self.cut(proxy, go=self.go.path)
                self.go.let()
                self.assertEqual(text_of(Client(proxy.url).end(held)), "later")
                self.assertEqual(len(self.log.take()), 1)
                self.log.lines.clear()

    def test_a_call_resumes_at_another_proxy_while_the_first_one_runs_it(self):
        for store in (self.sqlite(), self.postgres()):
            with self.subTest(store=store[1].split(":")[0]):
                first, second = self.listen(*store), self.listen(*store)
                held = self.cut(first, go=self.go.path)
                client = Client(second.url)
                self.assertEqual(client.status(held)["status"], "processing")
                self.go.let()
                self.assertEqual(text_of(client.end(held)), "later")
                self.assertEqual(len(self.log.take()), 1)
                self.log.lines.clear()

    def kill(self, *options, above=(), **arguments):
        """Cuts a call off, kills the proxy, and returns the answer from the next one."""
        first = self.listen(*self.sqlite(), *options, upstream=self.upstream(*above))
        held = self.cut(first, "work", **arguments)
        first.end(signal.SIGKILL)
        (self.place / "gone").touch()
        second = self.listen(*self.sqlite(), *options, upstream=self.upstream(*above))
        return Client(second.url).end(held)

    def test_the_next_proxy_sends_a_call_again_that_may_run_twice(self):
        told = self.kill("--trust-hints", above=["--hints"],
                         go=str(self.place / "gone"))
        self.assertEqual(text_of(told), "worked")
        self.assertEqual(len(self.log.take()), 2)

    def test_the_next_proxy_sends_a_call_again_by_its_key(self):
        told = self.kill(above=["--keys"], go=str(self.place / "gone"))
        self.assertEqual(text_of(told), "worked")
        first, second = self.log.take()
        self.assertEqual(first, second)

    def test_the_next_proxy_says_that_any_other_outcome_is_unknown(self):
        told = self.kill()
        self.assertEqual(told["error"]["data"]["reason"], "outcome_unknown")
        self.assertEqual(len(self.log.take()), 1)


class Segments(test_segments.Upstream):
    """The upstream sends segments, and the client of PR 776 resumes."""

    def setUp(self):
        super().setUp()
        self.upstream_url = self.serve()

    def pieces(self, messages, wanted):
        """Lets the upstream send each segment when the client has the one before it."""
        for words in wanted:
            self.go.let()
            self.assertEqual(self.told(next(messages)), [words])

    def told(self, message):
        return test_segments.texts(message["result"]["content"])

    def check(self, name, go_on):
        """Cuts a call off after two segments. go_on: returns the proxy at which the
        client resumes."""
        first = self.front(*self.sqlite())
        held, connection, messages = Client(first.url).start(
            name, {"go": self.go.path}, allowPartial=True)
        self.pieces(messages, test_segments.PARTS[:2])
        connection.close()
        rest = Client(go_on(first).url).resume(held)
        self.pieces(rest, test_segments.PARTS[2:])
        last = list(rest)
        self.assertEqual([self.told(message) for message in last], [[]] * len(last))
        self.assertEqual(self.log.take(), [[name]])

    def test_segments_go_on_where_the_client_was_cut_off(self):
        self.check("plain", lambda first: first)

    def test_segments_go_on_at_another_proxy(self):
        self.check("plain", lambda first: self.front(*self.sqlite()))

    def next(self, first):
        first.end(signal.SIGKILL)
        return self.front(*self.sqlite())

    def test_segments_go_on_at_the_next_proxy(self):
        self.check("plain", self.next)

    def test_segments_of_a_task_go_on_at_the_next_proxy(self):
        self.check("task", self.next)


class Repeated(test_segments.Upstream):
    """A client of SEP-2998 repeats its call with the key."""

    def setUp(self):
        super().setUp()
        self.upstream_url = self.serve()

    def call(self, proxy, name):
        client = web.Modern(proxy.url, {
            "partialResults": {}, "extensions": {"dev.segue/idempotency": {}}})
        connection = client.begin("tools/call", {
            "name": name, "arguments": {"go": self.go.path}, "_meta": {
                "partialResultToken": "t",
                "dev.segue/idempotencyKey": "0123456789abcdef"}})
        return connection, test_segments.events(connection)

    def parts(self, messages):
        """Yields the text of each part, and at last the result."""
        for message in messages:
            if message.get("method") == "notifications/tools/partial_result":
                yield from test_segments.texts(message["params"]["content"])
            elif "result" in message:
                yield message["result"]

    def check(self, name, go_on):
        first = self.front(*self.sqlite())
        connection, messages = self.call(first, name)
        shown = self.step_through(self.parts(messages), test_segments.PARTS[:2])
        connection.close()
        shown.close()
        again = self.parts(self.call(go_on(first), name)[1])
        for words in test_segments.PARTS[:2]:
            self.assertEqual(next(again), words)
        result = next(self.step_through(again, test_segments.PARTS[2:]))
        self.assertEqual("".join(test_segments.texts(result["content"])),
                         "".join(test_segments.PARTS))
        self.assertEqual(self.log.take(), [[name]])

    def test_at_the_same_proxy(self):
        self.check("plain", lambda first: first)

    def test_at_another_proxy(self):
        self.check("plain", lambda first: self.front(*self.sqlite()))

    def test_at_the_next_proxy(self):
        def kill(first):
            first.end(signal.SIGKILL)
            return self.front(*self.sqlite())

        self.check("plain", kill)


if __name__ == "__main__":
    unittest.main()
