"""Segments of an upstream reach each client while the upstream still makes the result.
The upstream is made with the Python SDK (.ci/python place)."""

import json
import re
import signal
import subprocess
import threading
import unittest

import peers
import stage
import web

SDK = str(peers.ROOT / "build" / "deps" / "python" / "bin" / "python")
SERVER = [SDK, "-B", str(peers.HERE / "segments_server.py")]
PARTS = [f"part {number}\n" for number in range(1, 6)]
AT_ONCE = ("--task-after", "0")


def events(connection):
    """Yields the messages of an answer that is an event stream."""
    try:
        for line in connection.getresponse():
            if line.startswith(b"data:") and line[5:].strip():
                yield json.loads(line[5:])
    finally:
        connection.close()


def texts(blocks):
    return [block["text"] for block in blocks]


class Pieces:
    """PR 776: the result comes in several responses."""

    def __init__(self, url):
        self.client = web.Web(url)

    def stream(self, name, **arguments):
        """Yields the texts of the segments, and at last the result."""
        whole = []
        for message in events(self.client.begin("tools/call", {
                "name": name, "arguments": arguments, "_meta": {"allowPartial": True}})):
            result = message["result"]
            for block in result["content"]:
                yield block["text"]
            whole += result["content"]
            if not result.get("_meta", {}).get("hasMore"):
                yield {**result, "content": whole}


class Notified:
    """SEP-2998: parts of the result come as notifications."""

    def __init__(self, url):
        self.client = web.Modern(url, {"partialResults": {}})

    def stream(self, name, **arguments):
        for message in events(self.client.begin("tools/call", {
                "name": name, "arguments": arguments,
                "_meta": {"partialResultToken": "t"}})):
            if message.get("method") == "notifications/tools/partial_result":
                yield from texts(message["params"]["content"])
            elif "result" in message:
                yield message["result"]


class Events:
    """SEP-2694: a task has a stream of events."""

    def __init__(self, url):
        self.client = web.Modern(url, web.TASKS)

    def make(self, name, **arguments):
        made = self.client.tool(name, arguments)["result"]
        assert made["resultType"] == "task", made
        return made["taskId"]

    def follow(self, task, **more):
        """Yields the events of a task, and at last its result."""
        for message in events(self.client.begin("tasks/stream", {
                "taskId": task, **more})):
            if message.get("method") == "notifications/tasks/event":
                yield message["params"]
        told = self.client.call("tasks/get", {"taskId": task})["result"]
        assert "result" in told, told
        yield told["result"]

    def stream(self, name, **arguments):
        for found in self.follow(self.make(name, **arguments)):
            if found.get("type") == "dev.segue.content.partial":
                yield from texts(found["payload"]["content"])
            elif "type" not in found:
                yield found


class Streaming:
    """SEP-1905: a task of 2025-11-25 is answered with its segments."""

    def __init__(self, url):
        self.client = web.Web(url, capabilities={
            "tasks": {"responses": {"modes": ["task", "streaming"]}}})

    def stream(self, name, **arguments):
        task = None
        for message in events(self.client.begin("tools/call", {
                "name": name, "arguments": arguments,
                "task": {"responseModes": ["streaming"]}})):
            result = message.get("result", {})
            task = result.get("task", {}).get("taskId", task)
            yield from texts(result.get("partial-content", []))
        yield self.client.call("tasks/result", {"taskId": task})["result"]


class Upstream(stage.Stage):
    """The stage with the upstream of segments_server.py."""

    def command(self, *options):
        return [*SERVER, self.log.path, *options]

    def serve(self, log=None):
        """Starts the upstream over HTTP, and returns its URL. Upstreams with the same log
        have the same store."""
        command = [*SERVER, (log or self.log).path, "--http"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.server = process
        seen = []
        for line in process.stderr:
            if match := re.search(r"http://\S+", line):
                return match[0]
            seen.append(line)
        raise EOFError("".join(seen))

    def front(self, *options):
        """Starts a proxy in front of the upstream over HTTP."""
        return self.listen(*options, self.upstream_url, upstream=[])

    def front_old(self, *options):
        return self.listen(*options, upstream=self.command("--old"))

    def step_through(self, stream, wanted):
        """Lets the upstream send each segment when the client has the one before it."""
        for text in wanted:
            self.go.let()
            self.assertEqual(next(stream), text)
        return stream

    def play(self, client, name, wanted=PARTS):
        stream = self.step_through(client.stream(name, go=self.go.path), wanted)
        return next(stream)

    def let_all(self, count):
        for _ in range(count):
            self.go.let()


class Live(Upstream):
    def setUp(self):
        super().setUp()
        self.upstream_url = self.serve()

    def check(self, kind, proxy, *tools):
        for tool in tools:
            with self.subTest(tool=tool):
                result = self.play(kind(proxy.url), tool)
                self.assertEqual("".join(texts(result["content"])), "".join(PARTS))

    def test_a_client_of_further_responses_sees_each_segment(self):
        self.check(Pieces, self.front(), "task", "plain")

    def test_a_client_of_notifications_sees_each_segment(self):
        self.check(Notified, self.front(), "task", "plain")

    def test_a_client_of_event_streams_sees_each_segment(self):
        self.check(Events, self.front(*AT_ONCE), "task", "plain")

    def test_a_client_of_streamed_tasks_sees_each_segment(self):
        self.check(Streaming, self.front(), "task", "plain")

    def test_calls_that_are_cancelled_on_close_show_segments_too(self):
        proxy = self.front("--on-close", "cancel", *AT_ONCE)
        for kind in (Pieces, Notified, Events, Streaming):
            self.check(kind, proxy, "task", "plain")


class LiveOld(Upstream):
    """An upstream of 2025-11-25."""

    def test_each_client_sees_each_segment_of_a_task(self):
        proxy = self.front_old(*AT_ONCE)
        for kind in (Pieces, Notified, Events, Streaming):
            with self.subTest(kind=kind):
                self.play(kind(proxy.url), "task")

    def test_clients_see_each_segment_of_a_plain_call(self):
        proxy = self.front_old(*AT_ONCE)
        for kind in (Pieces, Notified, Events):
            with self.subTest(kind=kind):
                self.play(kind(proxy.url), "plain")


class Results(Upstream):
    """A result is equal to the one without the proxy, whatever was shown before it."""

    names = ("task", "plain", "words", "anew", "withdrawn", "rich")

    def outcome(self, client, name):
        self.let_all(5)
        result = client.tool(name, {"go": self.go.path})["result"]
        self.drain()
        return json.dumps(result)

    def drain(self):
        """Takes the bytes that the tool did not need."""
        self.go.take()
        self.go.rest = b""

    def compare(self, url, kind):
        self.upstream_url = url
        for name in self.names:
            with self.subTest(name=name):
                proxy = self.front()
                self.assertEqual(self.outcome(kind(proxy.url), name),
                                 self.outcome(kind(url), name))

    def test_for_a_client_of_2026_07_28(self):
        self.compare(self.serve(), web.Modern)

    def test_for_a_client_of_2025_11_25(self):
        self.compare(self.serve(), web.Web)

    def test_for_an_upstream_of_2025_11_25(self):
        direct = peers.Client(self.command("--old"))
        self.addCleanup(direct.__exit__)
        through = self.stdio(upstream=self.command("--old"))
        for name in self.names:
            with self.subTest(name=name):
                self.assertEqual(self.outcome(through, name), self.outcome(direct, name))

    def shown(self, name, steps, *options):
        """Returns the events of a task: each segment, or "replace"."""
        proxy = self.listen(*AT_ONCE, *options, self.serve(), upstream=[])
        client = Events(proxy.url)
        self.let_all(steps)
        found = []
        *told, result = client.follow(client.make(name, go=self.go.path))
        for event in told:
            payload = event["payload"]
            if event["type"] == "dev.segue.content.partial":
                found += [(payload.get("index"), text)
                          for text in texts(payload["content"])]
            elif event["type"] == "dev.segue.replace":
                found.append("replace")
        return found, texts(result["content"])

    def test_text_that_grows_stays_one_block(self):
        found, result = self.shown("words", 5)
        self.assertEqual([text for _, text in found], [
            "one", " two \u00e9\u0001\"", " three", "next", " end"])
        self.assertEqual(result, ["one two \u00e9\u0001\" three end", "next"])

    def test_replaced_segments_are_replaced(self):
        found, result = self.shown("anew", 5)
        self.assertEqual(found[2], "replace")
        self.assertEqual([text for _, text in found[3:]], result)
        self.assertEqual(result, ["right", "more", "last"])

    def test_withdrawn_segments_are_withdrawn(self):
        found, result = self.shown("withdrawn", 3)
        self.assertEqual((found[-1], result), ("replace", []))

    def test_a_slow_reader_gets_the_whole_result(self):
        """The client reads when more was made than a connection and its log hold."""
        self.upstream_url = self.serve()
        for options in ((), ("--on-close", "cancel")):
            with self.subTest(options=options):
                proxy = self.front(*options)
                stream = Pieces(proxy.url).stream("large", count=200)
                first = next(stream)
                self.assertTrue(first.startswith("0 x"))
                *_, result = stream
                numbers = [text.split()[0] for text in texts(result["content"])]
                self.assertEqual(numbers, [str(number) for number in range(200)])


class Handles(Upstream):
    """A call that was answered with a handle. The clock of the proxy moves only when the
    test says so."""

    def answer(self, client, number):
        """Lets time pass until the call gets a message."""
        for _ in range(60):
            client.call("ping")  # behind its answer nothing of this second is to come
            for index, note in enumerate(client.notes):
                if note.get("id") == number:
                    return client.notes.pop(index)["result"]
            self.clock.advance(1)
        raise TimeoutError

    def test_the_handle_replaces_the_segments_that_the_result_has(self):
        self.clock = peers.Clock(self.place)
        self.addCleanup(self.clock.close)
        client = self.stdio("--handle", upstream=self.command("--old"),
                            program=peers.CLOCKED, env=self.clock.environment)
        number = client.begin("tools/call", {
            "name": "plain", "arguments": {"go": self.go.path},
            "_meta": {"allowPartial": True}})
        self.go.let()
        self.assertEqual(texts(client.wait(number)["result"]["content"]), PARTS[:1])
        told = self.answer(client, number)
        self.assertEqual(told["_meta"]["mergeStrategy"], "replace")
        [words] = texts(told["content"])
        handle = {"handle": re.search(r"handle is (\S{20,})\. Call", words)[1]}
        self.let_all(4)
        result = client.tool("segue_proxy_result", handle)["result"]
        self.assertEqual(texts(result["content"]), PARTS)
        self.assertEqual(self.log.take(), [["plain"]])

    def slow(self, name, **arguments):
        """Starts a call whose client reads one segment and then nothing. Returns the
        stream when the proxy has no room for more."""
        self.clock = peers.Clock(self.place)
        self.addCleanup(self.clock.close)
        self.proxy = self.listen(
            "--handle", "--on-close", "cancel", "--log-level", "debug",
            self.serve(), upstream=[],
            program=peers.CLOCKED, env=self.clock.environment)
        stream = Pieces(self.proxy.url).stream(name, **arguments)
        self.assertTrue(next(stream).startswith("0 x"))
        self.proxy.wait_line("until the client has read more")
        return stream

    def let_time_pass(self, other):
        for _ in range(21):
            self.clock.advance(1)
            other.call("ping")

    def test_a_slow_reader_gets_the_handle(self):
        """The call is to be answered with a handle while its log has no room."""
        stream = self.slow("large", count=200)
        threading.Thread(target=self.proxy.process.stderr.read, daemon=True).start()
        other = web.Web(self.proxy.url)
        self.let_time_pass(other)
        *_, told = stream
        self.assertEqual(told["_meta"]["mergeStrategy"], "replace")
        words = told["content"][-1]["text"]
        handle = {"handle": re.search(r"handle is (\S{20,})\. Call", words)[1]}
        result = other.tool("segue_proxy_result", handle)["result"]
        numbers = [text.split()[0] for text in texts(result["content"])]
        self.assertEqual(numbers, [str(number) for number in range(200)])

    def test_a_slow_reader_that_leaves_before_the_handle_cancels_the_call(self):
        stream = self.slow("endless")
        self.let_time_pass(web.Web(self.proxy.url))
        self.proxy.wait_line("of endless is created")
        stream.close()
        self.assertEqual(self.log.wait(1), ["endless ended"])
        self.proxy.wait_line("of endless has failed")


class Large(Upstream):
    """The log of a call has no room."""

    def test_a_result_that_is_too_large_ends_the_call_of_the_upstream(self):
        """The log is full at a segment, or at the checkpoint before one, which is
        larger."""
        proxy = self.listen(self.serve(), upstream=[])
        for count, less in (1, 0), (2, 40):
            with self.subTest(less=less):
                *_, last = events(web.Web(proxy.url).begin("tools/call", {
                    "name": "full", "arguments": {"size": 67108864 - 16384 - less}}))
                self.assertIn("max_log_bytes", str(last))
                self.assertEqual(self.log.wait(count), ["full ended"])


class Killed(Upstream):
    """The proxy ends by `kill -9` in the middle, and the next one goes on."""

    def setUp(self):
        super().setUp()
        self.upstream_url = self.serve()

    def texts_of(self, found):
        return [text for event in found
                if event.get("type") == "dev.segue.content.partial"
                for text in texts(event["payload"]["content"])]

    def kill(self, name, steps, shown):
        """The upstream makes one step for each number in `shown`, until the client has
        that many segments. Then the proxy is killed, and the upstream makes the rest of
        the `steps`. Returns all events of the task at the next proxy, and its result."""
        options = (*AT_ONCE, *self.sqlite(f"{name}{len(shown)}.db"))
        first = self.front(*options)
        client = Events(first.url)
        task = client.make(name, go=self.go.path)
        stream, found = client.follow(task), []
        self.log.wait(1)
        for count in shown:
            self.go.let()
            while len(self.texts_of(found)) < count:
                found.append(next(stream))
        first.end(signal.SIGKILL)
        client = Events(self.front(*options).url)
        after = found[-1]["seq"] if found else None
        stream = client.follow(task, **({} if after is None else {"after": after}))
        self.let_all(steps - len(shown))
        *rest, result = stream
        *again, _ = client.follow(task)
        self.assertEqual([event["seq"] for event in again],
                         sorted({event["seq"] for event in again}))
        self.assertEqual(found + rest, again)
        self.assertEqual(self.log.take(), [[name]])
        self.log.lines.clear()
        return self.texts_of(again), result

    def test_a_task_of_the_upstream_goes_on(self):
        for shown in ([], [1], [1, 2, 3], [1, 2, 3, 4, 5]):
            with self.subTest(shown=len(shown)):
                told, result = self.kill("task", 5, shown)
                self.assertEqual(told, PARTS)
                self.assertEqual(texts(result["content"]), PARTS)

    def test_a_plain_call_with_a_key_goes_on(self):
        told, result = self.kill("plain", 5, [1, 2])
        self.assertEqual(told, PARTS)
        self.assertEqual(texts(result["content"]), PARTS)

    def test_many_segments_go_on(self):
        told, result = self.kill("many", 2, [40])
        self.assertEqual(told, [str(number) for number in range(80)])
        self.assertEqual(texts(result["content"]), told)

    def test_text_that_grows_goes_on(self):
        for shown in ([1], [1, 2], [1, 2, 3], [1, 2, 3, 4]):
            with self.subTest(shown=len(shown)):
                told, result = self.kill("words", 5, shown)
                self.assertEqual(len(told), 5)
                self.assertEqual(texts(result["content"]),
                                 ["one two \u00e9\u0001\" three end", "next"])

    def test_replaced_segments_go_on(self):
        told, result = self.kill("anew", 5, [1, 2, 3])
        self.assertEqual(texts(result["content"]), ["right", "more", "last"])
        self.assertEqual(told[-3:], ["right", "more", "last"])

    def test_an_upstream_that_has_forgotten_the_key_runs_again(self):
        """The result is that of the second run, and has nothing of the first. Where the
        digest shows another run, its segments are held back until the result. The third
        segment has no digest, because it continues a block before the last one. Then the
        segments of the second run are shown."""
        for shown in range(1, 4):
            with self.subTest(shown=shown):
                options = (*AT_ONCE, *self.sqlite(f"forgot{shown}.db"))
                self.upstream_url = self.serve(self.pipe(f"first{shown}"))
                first = self.front(*options)
                client = Events(first.url)
                task = client.make("own", go=self.go.path)
                stream, found = client.follow(task), []
                for count in range(1, shown + 1):
                    self.go.let()
                    while len(self.texts_of(found)) < count:
                        found.append(next(stream))
                first.end(signal.SIGKILL)
                self.server.kill()
                self.server.wait()
                self.upstream_url = self.serve(self.pipe(f"second{shown}"))
                client = Events(self.front(*options).url)
                self.let_all(4)
                *rest, result = client.follow(task)
                name = f"second{shown}"
                whole = [f"{name} 1 and more", f"{name} 2", f"{name} 3"]
                steps = [f"{name} 1", f"{name} 2", " and more", f"{name} 3"]
                self.assertEqual(texts(result["content"]), whole)
                self.assertEqual(self.texts_of(rest)[shown:],
                                 steps if shown == 3 else whole)


if __name__ == "__main__":
    unittest.main()
