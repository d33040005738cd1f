"""Calls that become tasks, and the end of the proxy by `kill -9` after that. The next
proxy on the store goes on wherever the upstream allows it."""

import signal
import time
import unittest

import peers
import stage
import web
from stage import text_of

HOUR = ("--task-after", "1h")
SOON = ("--task-after", "50ms")


def poll(look):
    """Returns the first true value that `look` returns."""
    end = time.monotonic() + peers.PATIENCE
    while time.monotonic() < end:
        if found := look():
            return found
    raise TimeoutError


class Handshake:
    """A client of 2025-11-25 that takes a result in time in place of a task."""

    def __init__(self, url):
        self.client = web.Web(url, capabilities={
            "tasks": {"responses": {"modes": ["task", "immediate"]}}})

    def make(self, name, **arguments):
        """Calls a tool, and returns the id of the task that the call becomes."""
        made = self.client.tool(name, arguments, task={"responseModes": ["immediate"]})
        return made["result"]["task"]["taskId"]

    def look(self, task):
        return self.client.call("tasks/get", {"taskId": task})["result"]

    def outcome(self, task):
        """Returns a message with the result or the error of the call."""
        return self.client.call("tasks/result", {"taskId": task})


class Modern:
    """A client of 2026-07-28."""

    def __init__(self, url):
        self.client = web.Modern(url, web.TASKS)

    def make(self, name, **arguments):
        made = self.client.tool(name, arguments)
        assert made["result"].get("resultType") == "task", made
        return made["result"]["taskId"]

    def look(self, task):
        return self.client.call("tasks/get", {"taskId": task})["result"]

    def outcome(self, task):
        def ended():
            told = self.look(task)
            return told if told["status"] in ("completed", "failed") else None

        return poll(ended)


class Promoted(stage.Stage):
    on_close = "keep"
    kind = Handshake

    def near(self, *options):
        """Starts the upstream: a proxy over HTTP, which has tasks."""
        return self.listen(*self.sqlite("near.db"), *options)

    def far(self, *options, upstream=()):
        return self.listen(*self.sqlite("far.db"), "--on-close", self.on_close, *options,
                           upstream=list(upstream))

    def without_keys(self, near):
        """Configures the far proxy to use no keys at the near one."""
        self.write_config(a={"url": near.url, "prefix": "",
                             "tools": {"later": {"repeat": "never"}}})
        return ("--config", str(self.file))

    def kill_and_ask(self, *options, before=None, let=None, name="later", upstream=(),
                     **arguments):
        """Makes a task, kills the proxy, lets the tool end, and returns the outcome at
        the next proxy. before: is called with the proxy and its client before the
        kill."""
        with self.far(*options, upstream=upstream) as first:
            client = self.kind(first.url)
            task = client.make(name, **arguments)
            self.log.wait(1)
            if before:
                before(first, client, task)
            first.end(signal.SIGKILL)
        (let or self.go.let)()
        return self.kind(self.far(*options, upstream=upstream).url).outcome(task)

    def work(self, *options, upstream):
        """Makes a task of "work", which ends when it is called again after the kill."""
        go = self.place / "gone"
        return self.kill_and_ask(*SOON, *options, name="work", go=str(go), let=go.touch,
                                 upstream=self.upstream(upstream))

    def test_an_upstream_that_honours_keys_is_asked_by_the_key(self):
        self.assertEqual(text_of(self.work(upstream="--keys")), "worked")
        first, second = self.log.take()
        self.assertEqual(len(first[2]), 32)
        self.assertEqual(first, second)

    def test_a_task_of_the_upstream_that_came_first_is_followed(self):
        near = self.near("--task-after", "0")
        told = self.kill_and_ask(*HOUR, *self.without_keys(near), go=self.go.path)
        self.assertEqual(text_of(told), "later")
        self.assertEqual(len(self.log.take()), 1)

    def test_a_task_of_the_upstream_that_came_later_is_followed(self):
        """The upstream's task has come when the proxy logs it, and its token is stored
        when the status that comes after it is shown."""
        say = self.pipe("say")

        def before(proxy, client, task):
            proxy.wait_line("upstream_task")
            say.let()
            poll(lambda: "statusMessage" in client.look(task))

        near = self.near("--task-after", "200ms")
        told = self.kill_and_ask(
            "--log", "json", "--log-level", "debug", *SOON, *self.without_keys(near),
            before=before, go=self.go.path, say=say.path)
        self.assertEqual(text_of(told), "later")
        self.assertEqual(len(self.log.take()), 1)

    def test_a_call_of_trusted_hints_is_sent_again(self):
        told = self.work("--trust-hints", upstream="--hints")
        self.assertEqual(text_of(told), "worked")
        self.assertEqual(len(self.log.take()), 2)

    def test_any_other_outcome_is_unknown(self):
        told = self.kill_and_ask(*SOON, upstream=self.upstream(), go=self.go.path)
        self.assertEqual(told["error"]["data"]["reason"], "outcome_unknown")
        self.assertEqual(len(self.log.take()), 1)


class TimeToLive(stage.Stage):
    def test_a_task_has_the_time_to_live_that_its_client_asks_for(self):
        near = self.listen("--task-after", "0")
        for after in ("1h", "50ms"):
            far = self.listen("--task-after", after, near.url, upstream=[])
            made = Handshake(far.url).client.tool(
                "later", {"go": self.go.path},
                task={"ttl": 7200000, "responseModes": ["immediate"]})
            self.assertEqual(made["result"]["task"]["ttl"], 7200000)


class PromotedModern(Promoted):
    kind = Modern


class PromotedCancel(Promoted):
    on_close = "cancel"


class PromotedModernCancel(Promoted):
    kind = Modern
    on_close = "cancel"


if __name__ == "__main__":
    unittest.main()
