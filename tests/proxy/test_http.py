"""segue-proxy over HTTP, below and above, and what is left of calls after kill -9."""

import signal
import unittest

import stage
import upstream
import web
from stage import text_of


class Http(unittest.TestCase):
    def test_a_result_is_the_same_over_http_below_and_above(self):
        with web.Listening() as near, web.Listening(
                near.url, upstream=None) as far:
            for url in (near.url, far.url):
                client = web.Web(url)
                self.assertEqual(client.hello["serverInfo"]["name"], "odd-server")
                self.assertEqual(client.tool("odd")["result"], upstream.ODD)
                self.assertEqual(client.tool("failing")["error"]["code"], -32042)
                self.assertEqual(web.get(url, "/health")[0], 200)
            self.assertEqual(far.end(), 0)
            self.assertEqual(near.end(), 0)

    def test_progress_passes_over_http_below_and_above(self):
        with web.Listening() as near, web.Listening(
                near.url, upstream=None) as far:
            client = web.Web(far.url)
            client.tool("steps", _meta={"progressToken": 7})
            progress = [note["params"]["progress"] for note in client.notes
                        if note["method"] == "notifications/progress"]
            self.assertEqual(progress, [0.5, 1.5, 2.5])


class Killed(stage.Stage):
    """The proxy is killed with -9 while a call runs, and another one takes over."""

    def setUp(self):
        super().setUp()
        self.store = self.sqlite()
        self.gone = self.place / "gone"

    def serve(self, *options, hints=False):
        return self.listen(*self.store, "--task-after", "0", *options,
                           upstream=self.upstream(*["--hints"] * hints))

    def begin(self, proxy):
        client = web.Web(proxy.url)
        made = client.tool("work", {"go": str(self.gone)}, task={})
        return made["result"]["task"]["taskId"]

    def result_of(self, proxy, task):
        return web.Web(proxy.url).call("tasks/result", {"taskId": task})

    def use_database(self):
        self.store = self.postgres()

    def follow(self):
        with self.serve() as first, self.serve() as second:
            self.gone.touch()
            task = self.begin(first)
            self.assertEqual(text_of(self.result_of(second, task)), "worked")

    def test_two_proxies_on_one_database_follow_each_other(self):
        self.use_database()
        self.follow()

    def test_two_proxies_on_one_file_follow_each_other(self):
        self.follow()

    def test_a_call_that_may_have_run_is_not_sent_again(self):
        with self.serve() as first:
            task = self.begin(first)
            self.log.wait(1)
            first.end(signal.SIGKILL)
        self.gone.touch()
        with self.serve() as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["error"]["data"]["reason"], "outcome_unknown")
            self.assertEqual(len(self.log.take()), 1)

    def test_hints_that_are_not_trusted_change_nothing(self):
        with self.serve(hints=True) as first:
            task = self.begin(first)
            self.log.wait(1)
            first.end(signal.SIGKILL)
        with self.serve(hints=True) as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["error"]["data"]["reason"], "outcome_unknown")
            self.assertEqual(len(self.log.take()), 1)

    def test_a_call_that_may_run_twice_is_sent_again(self):
        self.is_sent_again()

    def test_a_call_on_a_database_that_may_run_twice_is_sent_again(self):
        self.use_database()
        self.is_sent_again()

    def is_sent_again(self):
        with self.serve("--trust-hints", hints=True) as first:
            task = self.begin(first)
            self.log.wait(1)
            first.end(signal.SIGKILL)
        if "postgresql:" in self.store[1]:
            stage.Database.end_leases()
        self.gone.touch()
        with self.serve("--trust-hints", hints=True) as second:
            answer = self.result_of(second, task)
            self.assertEqual(answer["result"]["content"][0]["text"], "worked")
            self.assertEqual(len(self.log.take()), 2)

    def test_a_plain_call_is_in_the_store_too(self):
        """The next proxy finds the call whose client is gone, and ends it."""
        with self.serve("--task-after", "1h") as first:
            self.begin_plain(first, "work", {})
            first.end(signal.SIGKILL)
        with self.serve("--log-level", "info") as second:
            line = second.wait_line("outcome unknown")
            self.assertIn("tools/call work: outcome_unknown", line)
            self.assertEqual(len(self.log.take()), 1)

    def test_a_plain_call_that_may_run_twice_is_sent_again(self):
        with self.serve("--task-after", "1h", "--trust-hints", hints=True) as first:
            self.begin_plain(first, "work", {})
            first.end(signal.SIGKILL)
        with self.serve("--trust-hints", hints=True):
            self.assertEqual(self.log.wait(2)[0], "work")

    def test_a_call_that_asks_for_a_task_is_in_the_store_from_the_start(self):
        with self.serve("--task-after", "1h") as first:
            self.begin_plain(first, "work", {}, web.Modern(first.url, web.TASKS))
            first.end(signal.SIGKILL)
        with self.serve("--log-level", "info") as second:
            line = second.wait_line("outcome unknown")
            self.assertIn("tools/call work: outcome_unknown", line)
            self.assertEqual(len(self.log.take()), 1)

    def test_a_call_that_asks_for_a_task_and_may_run_twice_is_sent_again(self):
        with self.serve("--task-after", "1h", "--trust-hints", hints=True) as first:
            self.begin_plain(first, "work", {}, web.Modern(first.url, web.TASKS))
            first.end(signal.SIGKILL)
        with self.serve("--trust-hints", hints=True):
            self.assertEqual(self.log.wait(2)[0], "work")

    def test_a_stored_call_that_became_a_task_is_one_in_the_next_proxy(self):
        with self.serve("--task-after", "50ms", "--trust-hints", hints=True) as first:
            client = web.Modern(first.url, web.TASKS)
            made = client.tool("work", {"go": str(self.gone)})["result"]
            self.assertEqual(made["resultType"], "task")
            self.log.wait(1)
            first.end(signal.SIGKILL)
        self.gone.touch()
        with self.serve("--trust-hints", hints=True) as second:
            client = web.Modern(second.url, web.TASKS)
            self.log.wait(2)
            task = {"status": "working"}
            while task["status"] == "working":
                task = client.call("tasks/get", {"taskId": made["taskId"]})["result"]
            self.assertEqual(task["result"]["content"][0]["text"], "worked")

    def begin_plain(self, proxy, name, arguments, client=None):
        connection = (client or web.Web(proxy.url)).begin("tools/call", {
            "name": name, "arguments": arguments})
        self.addCleanup(connection.close)
        self.log.wait(1)
        return connection


class Closed(stage.Stage):
    """The client of a plain call closes its connection."""

    def close_during_a_call(self, *options):
        proxy = self.listen("--log-level", "info", *options)
        client = web.Modern(proxy.url)
        connection = client.begin("tools/call", {"name": "sleep", "arguments": {}})
        self.log.wait(1)
        connection.close()
        return client

    def test_a_call_is_cancelled_where_the_client_asked_for_that(self):
        self.close_during_a_call("--on-close", "cancel")
        self.assertEqual(self.log.wait(2), ["cancelled", {}])

    def test_a_call_goes_on(self):
        client = self.close_during_a_call()
        self.assertEqual(client.tool("odd")["result"]["content"],
                         upstream.ODD["content"])
        self.assertEqual([line[0] for line in self.log.take()], ["sleep", "odd"])


class Resumed(stage.Stage):
    """A call of a killed proxy goes on at its upstream, which keeps tasks or honours
    keys: a second proxy, over HTTP."""

    def near(self, *options, store="near.db", port=0):
        return self.listen(*self.sqlite(store), *options, port=port)

    def far(self, url):
        return self.listen(*self.sqlite("far.db"), "--task-after", "0", url, upstream=[])

    def resume(self, near):
        with self.far(near.url) as first:
            made = web.Web(first.url).tool("later", {"go": self.go.path}, task={})
            self.log.wait(1)
            first.end(signal.SIGKILL)
        with self.far(near.url) as second:
            self.go.let()
            answer = web.Web(second.url).call("tasks/result", {
                "taskId": made["result"]["task"]["taskId"]})
            self.assertEqual(text_of(answer), "later")
            self.assertEqual(len(self.log.take()), 1)

    def test_a_task_of_the_upstream_is_followed(self):
        self.resume(self.near("--task-after", "0"))

    def test_a_call_with_a_key_is_found_again(self):
        self.resume(self.near("--task-after", "1h"))

    def begin_and_lose(self, repeat):
        """Begins a call, kills the upstream, starts another one without its memory, and
        returns the answer."""
        near = self.near("--task-after", "1h")
        port = near.url.split(":")[2].split("/")[0]
        self.write_config(a={"url": near.url, "tools": {"later": {"repeat": repeat}}})
        with self.listen("--config", str(self.file), upstream=[]) as far:
            client = web.Web(far.url)
            call = client.begin("tools/call", {
                "name": "later", "arguments": {"go": self.go.path}})
            self.log.wait(1)
            near.end(signal.SIGKILL)
            self.near("--task-after", "1h", store="other.db", port=port)
            self.go.let()
            return client.finish(call)

    def test_a_call_is_never_sent_again_where_the_configuration_says_so(self):
        answer = self.begin_and_lose("never")
        self.assertEqual(answer["error"]["data"]["reason"], "outcome_unknown")
        self.assertEqual(len(self.log.take()), 1)

    def test_a_call_with_a_key_is_sent_again_otherwise(self):
        answer = self.begin_and_lose("hint")
        self.assertEqual(text_of(answer), "later")
        self.assertEqual(len(self.log.take()), 2)


if __name__ == "__main__":
    unittest.main()
