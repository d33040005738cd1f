"""Upstreams with a path of their own: each path is an MCP server by itself, with its
tools, its sessions and its store."""

import hashlib
import json
import re
import signal
import subprocess
import time
import unittest

import peers
import stage
import tokens
import upstream
import web
from stage import text_of

ALL = {tool["name"] for tool in upstream.TOOLS}
WRONG = 2  # exit status


class Paths(stage.Stage):
    def serve(self, *options, log_level="info", **servers):
        """Starts a proxy that listens, in front of these servers."""
        if servers:
            self.write_config(**servers)
        return self.listen("--log-level", log_level, "--config", str(self.file), *options,
                           upstream=[])

    def entry(self, *arguments, **more):
        return self.server("--log", self.log.path, *arguments, **more)

    def url(self, proxy, path):
        return proxy.url[:proxy.url.index("/", 8)] + path

    def at(self, proxy, path, kind=web.Web, **more):
        return kind(self.url(proxy, path), **more)

    def status(self, proxy, path):
        """Returns the status of a request at a path; 400 = a server is there."""
        where = web.urllib.parse.urlsplit(self.url(proxy, path))
        connection = web.connect(where)
        connection.request("POST", where.path, "{}", {
            "Content-Type": "application/json", "Accept": "application/json"})
        status = connection.getresponse().status
        connection.close()
        return status

    def wait_for(self, proxy, path):
        """Waits until the server of a new path has read its store."""
        end = time.monotonic() + peers.PATIENCE
        while self.status(proxy, path) == 503:
            self.assertLess(time.monotonic(), end)

    def wait_for_names(self, client, names):
        """Waits until the tools of a path have these names."""
        end = time.monotonic() + peers.PATIENCE
        while self.names(client) != names:
            self.assertLess(time.monotonic(), end)

    def read_anew(self, proxy, words, **servers):
        """Changes the file, and waits for these words in the log."""
        self.write_config(**servers)
        proxy.process.send_signal(signal.SIGHUP)
        return proxy.wait_line(words)


class Served(Paths):
    def test_each_path_is_a_server_of_its_own(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry("--extra", path="/b"),
                           c=self.entry(), d=self.entry())
        for path in ("/b", "/mcp"):  # the first one was read
            proxy.wait_line(f"serving {self.url(proxy, path)}")
        for path, names in (("/a", ALL), ("/b", ALL | {"extra"}),
                            ("/mcp", {p + name for p in ("c_", "d_") for name in ALL})):
            client = self.at(proxy, path)
            self.assertEqual(self.names(client), names)
            own = "segue-proxy" if path == "/mcp" else "odd-server"
            self.assertEqual(client.hello["serverInfo"]["name"], own)
        self.assertEqual(self.at(proxy, "/a").tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.status(proxy, "/c"), 404)
        self.assertEqual(proxy.end(), 0)

    def test_upstreams_may_share_a_path(self):
        proxy = self.serve(a=self.entry(path="/x"), b=self.entry(path="/x"),
                           c=self.entry(path="/mcp"))
        self.assertEqual(self.names(self.at(proxy, "/x")),
                         {p + name for p in ("a_", "b_") for name in ALL})
        self.assertEqual(self.names(self.at(proxy, "/mcp")), ALL)
        self.assertEqual(self.at(proxy, "/x").tool("b_odd")["result"], upstream.ODD)

    def test_a_session_belongs_to_its_path(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry(path="/b"))
        client = self.at(proxy, "/a")
        client.where = web.urllib.parse.urlsplit(self.url(proxy, "/b"))
        lost = client.begin("ping")
        self.assertEqual(lost.getresponse().status, 404)
        lost.close()

    def test_a_list_that_changes_is_told_at_its_path(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry(path="/b"))
        clients = [self.at(proxy, path) for path in ("/a", "/b")]
        streams = [client.open_stream() for client in clients]
        clients[0].tool("grow")
        streams[0].wait("notifications/tools/list_changed")
        self.assertEqual(self.names(clients[0]), ALL | {"grown"})
        self.assertEqual(self.names(clients[1]), ALL)
        for client, uri in zip(clients, ("t:a", "t:b")):
            client.call("resources/subscribe", {"uri": uri})
        for stream, uri in zip(streams, ("t:a", "t:b")):
            note = stream.wait("notifications/resources/updated")
            self.assertEqual(note["params"]["uri"], uri)
            stream.close()

    def test_each_session_may_have_an_upstream_at_its_path(self):
        proxy = self.serve("--per", "session", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        clients = [self.at(proxy, path) for path in ("/a", "/b", "/a", "/b")]
        pids = [text_of(client.tool("pid")) for client in clients]
        self.assertEqual(len(set(pids)), 4)
        clients[0].delete()
        peers.wait_until_gone(int(pids[0]))
        for client, pid in zip(clients[1:], pids[1:]):
            self.assertEqual(text_of(client.tool("pid")), pid)

    def test_a_handle_is_known_at_its_path(self):
        proxy = self.serve("--handle", "--task-after", "50ms", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        a, b = (self.at(proxy, path, version="2025-06-18") for path in ("/a", "/b"))
        words = text_of(a.tool("later", {"go": self.go.path}))
        handle = {"handle": words.split("handle is ")[1].split(".")[0]}
        self.assertEqual(b.tool("segue_proxy_result", handle)["error"]["code"], -32602)
        self.go.let()
        told = "still runs"
        while "still runs" in told:
            told = text_of(a.tool("segue_proxy_result", handle))
        self.assertEqual(told, "later")

    def test_calls_at_each_path_end_before_the_proxy(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry(path="/b"))
        clients = [self.at(proxy, path) for path in ("/a", "/b")]
        calls = [client.begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}}) for client in clients]
        self.log.wait(2)
        proxy.process.send_signal(signal.SIGTERM)
        self.go.let()
        self.go.let()
        for client, call in zip(clients, calls):
            self.assertEqual(text_of(client.finish(call)), "later")
        self.assertEqual(proxy.process.wait(peers.PATIENCE), 0)

    def test_one_path_with_an_upstream_keeps_the_proxy_ready(self):
        program = self.place / "server"
        program.write_text(f"#!/bin/sh\nexec {' '.join(peers.UPSTREAM)}\n")
        program.chmod(0)
        proxy = self.serve(a={"command": str(program), "path": "/a"},
                           b=self.entry(path="/b"))
        proxy.wait_line("not ready: no upstream can be used at /a")
        self.assertEqual(web.get(proxy.url, "/health/ready")[0], 200)
        self.assertEqual(self.names(self.at(proxy, "/a")), set())
        self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
        program.chmod(0o755)
        proxy.wait_line("ready: an upstream can be used again at /a")
        self.assertEqual(self.at(proxy, "/a").tool("odd")["result"], upstream.ODD)


class Authorized(Paths):
    def test_a_principal_is_the_same_at_each_path(self):
        authority = tokens.Authority(self.place)
        proxy = self.serve(*authority.options(), "--resource", "https://x.example/",
                           "--per", "principal", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        pids = set()
        for path in ("/a", "/b"):
            ada, bob = (self.at(proxy, path, token=authority.token(
                name, "https://x.example/")) for name in ("ada", "bob"))
            pids |= {text_of(ada.tool("pid")), text_of(bob.tool("pid"))}
            self.assertEqual(self.status(proxy, path), 401)
        self.assertEqual(len(pids), 4)
        status, body = web.get(proxy.url, "/.well-known/oauth-protected-resource")
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(body)["resource"], "https://x.example/")

    def test_a_token_of_the_file_is_valid_at_each_path(self):
        digest = hashlib.sha256(b"secret").hexdigest()
        (self.place / "tokens").write_text(f"ada {digest}\n")
        proxy = self.serve("--tokens", str(self.place / "tokens"),
                           a=self.entry(path="/a"), b=self.entry(path="/b"))
        for path in ("/a", "/b"):
            self.assertEqual(self.status(proxy, path), 401)
            client = self.at(proxy, path, token="secret")
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)


class Refused(Paths):
    def refused(self, sentence, *options, **server):
        self.write_config(a=self.entry(**server))
        told = subprocess.run(
            [peers.PROXY, *options, "--config", str(self.file)], text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, WRONG, told.stderr)
        self.assertIn(f"{self.file}: mcpServers.a.path {sentence}", told.stderr)
        self.assertEqual(self.log.take(), [])

    def test_a_path_needs_a_listener(self):
        self.refused("needs --listen", path="/a")

    def test_a_path_is_a_path_that_nobody_else_has(self):
        http = ("--listen", "127.0.0.1:0")
        for path in ("a", "", "/a b", "/a?b", "/a#b", "/\u00e4"):
            self.refused("has to begin with /", *http, path=path)
        for path in ("/health", "/health/ready", "/health/live", "/.well-known/x"):
            self.refused("is a path that the proxy needs itself", *http, path=path)
        self.refused("is not a string", *http, path=1)

    def test_the_path_of_the_others_is_such_a_path_too(self):
        self.write_config(a=self.entry(path="/a"), b=self.entry())
        for path, why in (("/health", "is a path that the proxy needs itself"),
                          ("mcp", "has to begin with /")):
            told = subprocess.run(
                [peers.PROXY, "--listen", "127.0.0.1:0", "--path", path, "--config",
                 str(self.file)], text=True, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=peers.PATIENCE)
            self.assertEqual(told.returncode, WRONG, told.stderr)
            self.assertRegex(told.stderr, f"^segue-proxy: --path: '{path}': {why}.*\n$")

    def test_tokens_of_a_server_need_the_url_of_all_paths(self):
        issuer = ("--listen", "127.0.0.1:0", "--issuer", "https://a.example")
        self.refused("needs --resource", *issuer, path="/a")

    def test_a_proxy_on_pipes_refuses_a_path_that_comes_later(self):
        client = self.configured("--log-level", "info", a=self.entry())
        self.write_config(a=self.entry(path="/a"))
        client.process.send_signal(signal.SIGHUP)
        seen = ""
        while "is not used" not in seen:
            seen += client.error_lines.get(timeout=peers.PATIENCE)
        self.assertIn("mcpServers.a.path needs --listen", seen)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(client.close(), 0)

    def test_a_check_tells_the_paths(self):
        self.write_config(a=self.server(path="/a"), b=self.server())
        told = subprocess.run(
            [peers.PROXY, "--check", "--config", str(self.file)], text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, 0, told.stderr)
        parts = told.stdout.split("b: ok")
        self.assertIn("\n  path /a\n", parts[0])
        self.assertIn("\n  path /mcp\n", parts[1])


class Stores(Paths):
    """Each path has its own store, which the next proxy takes over."""

    def two(self):
        return {"a": self.entry("--hints", path="/a"),
                "b": self.entry("--hints", path="/a/b")}

    def begin(self, proxy, path, gone):
        made = self.at(proxy, path).tool("work", {"go": str(gone)}, task={})
        return made["result"]["task"]["taskId"]

    def take_over(self, *store, end=signal.SIGKILL):
        """Tasks at both paths go on at a second proxy; each is known at its path. end:
        SIGTERM = the first proxy lets them go, so that no lease has to end."""
        options = (*store, "--task-after", "0", "--trust-hints", "--drain", "50ms")
        gone = self.place / "gone"
        first = self.serve(*options, **self.two())
        made = {path: self.begin(first, path, gone) for path in ("/a", "/a/b")}
        self.log.wait(2)
        first.end(end)
        gone.touch()
        second = self.serve(*options)
        for path, other in (("/a", "/a/b"), ("/a/b", "/a")):
            asked = {"taskId": made[path]}
            self.assertIn("error", self.at(second, other).call("tasks/get", asked))
            self.assertEqual(text_of(self.at(second, path).call("tasks/result", asked)),
                             "worked")
        self.assertEqual(len(self.log.take()), 4)
        self.assertEqual(second.end(), 0)

    def wait_for_the_upstream(self, **others):
        """The next proxy starts before the upstream of a task can."""
        up, gone = self.place / "up", self.place / "gone"
        up.touch()
        options = (*self.sqlite(), "--task-after", "0", "--trust-hints")
        late = self.entry("--hints", "--until", str(up), path="/a", prefix="")
        first = self.serve(*options, a=late, b=self.entry(path="/b"), **others)
        asked = {"taskId": self.begin(first, "/a", gone)}
        self.log.wait(1)
        first.end(signal.SIGKILL)
        up.unlink()
        gone.touch()
        second = self.serve(*options)
        client = self.at(second, "/a")
        got = client.call("tasks/get", asked)
        self.assertEqual(got["result"]["status"], "working", got)
        return up, second, client, asked

    def test_a_task_waits_for_an_upstream_that_starts_late(self):
        up, proxy, client, asked = self.wait_for_the_upstream()
        up.touch()
        self.assertEqual(text_of(client.call("tasks/result", asked)), "worked")
        self.assertEqual(proxy.end(), 0)

    def test_a_task_waits_also_when_its_path_has_another_upstream(self):
        up, proxy, client, asked = self.wait_for_the_upstream(
            c=self.entry(path="/a", prefix="c_"))
        self.assertEqual(client.tool("c_odd")["result"], upstream.ODD)
        up.touch()
        self.assertEqual(text_of(client.call("tasks/result", asked)), "worked")
        self.assertEqual(proxy.end(), 0)

    def test_a_task_that_waits_is_there_for_the_next_proxy(self):
        others = {"c": self.entry(path="/a", prefix="c_")}
        up, proxy, _, asked = self.wait_for_the_upstream(**others)
        self.assertEqual(proxy.end(), 0)
        up.touch()
        third = self.serve(*self.sqlite(), "--task-after", "0", "--trust-hints")
        self.assertEqual(text_of(self.at(third, "/a").call("tasks/result", asked)),
                         "worked")

    def test_a_task_that_waits_can_be_cancelled(self):
        _, proxy, client, asked = self.wait_for_the_upstream(
            c=self.entry(path="/a", prefix="c_"))
        client.call("tasks/cancel", asked)
        self.assertEqual(client.call("tasks/get", asked)["result"]["status"],
                         "cancelled")
        self.assertEqual(proxy.end(), 0)

    def test_a_task_that_waits_stays_in_the_store_of_a_path_that_goes(self):
        others = {"c": self.entry(path="/a", prefix="c_")}
        up, proxy, _, asked = self.wait_for_the_upstream(**others)
        self.read_anew(proxy, "/a is no longer served", b=self.entry(path="/b"))
        up.touch()
        self.read_anew(proxy, f"serving {self.url(proxy, '/a')}",
                       a=self.entry("--hints", path="/a", prefix=""), **others)
        self.wait_for(proxy, "/a")
        self.assertEqual(text_of(self.at(proxy, "/a").call("tasks/result", asked)),
                         "worked")

    def leave_to_others(self, *store, end):
        """A proxy whose upstream is down takes no task from the one whose is up."""
        options = (*store, "--task-after", "0", "--trust-hints", "--drain", "50ms")
        gone, usable = self.place / "gone", {"a": self.entry("--hints", path="/a")}
        first = self.serve(*options, **usable)
        asked = {"taskId": self.begin(first, "/a", gone)}
        self.log.wait(1)
        second = self.serve(*options, a=self.entry(
            "--until", str(self.place / "never"), path="/a"))
        first.end(end)
        gone.touch()
        client = self.at(second, "/a")
        got = client.call("tasks/get", asked)
        self.assertEqual(got["result"]["status"], "working", got)
        third = self.serve(*options, **usable)
        self.assertEqual(text_of(self.at(third, "/a").call("tasks/result", asked)),
                         "worked")
        self.assertEqual(text_of(client.call("tasks/result", asked)), "worked")

    def test_a_proxy_without_its_upstream_leaves_tasks_to_others(self):
        self.leave_to_others(*self.sqlite(), end=signal.SIGKILL)

    def test_a_proxy_without_its_upstream_leaves_tasks_in_redis_to_others(self):
        redis = stage.start_redis(self)
        self.leave_to_others("--store", f"redis://127.0.0.1:{redis.port}/",
                             end=signal.SIGTERM)

    def test_files_have_the_path_in_their_names(self):
        self.take_over(*self.sqlite("tasks.db"))
        names = {file.name for file in self.place.glob("tasks*db")}
        # tasks.db is for upstreams without a path
        self.assertEqual(names, {"tasks.a.db", "tasks.a_b_363e289cb38ee0cc.db"})

    def test_redis_has_a_prefix_for_each_path(self):
        redis = stage.start_redis(self)
        self.take_over("--store", f"redis://127.0.0.1:{redis.port}/?prefix=mine",
                       end=signal.SIGTERM)
        keys = subprocess.run(
            ["redis-cli", "--no-raw", "-p", str(redis.port), "keys", "*"], text=True,
            capture_output=True, check=True).stdout
        self.assertEqual(set(re.findall(r'"\{([^}]*)\}', keys)),
                         {"mine-a", "mine-a_b_363e289cb38ee0cc"})

    def test_postgresql_has_a_schema_for_each_path(self):
        self.take_over(*self.postgres(), end=signal.SIGTERM)

    def test_two_proxies_follow_each_other_at_each_path(self):
        options = (*self.sqlite(), "--task-after", "0")
        gone = self.place / "gone"
        gone.touch()
        first, second = self.serve(*options, **self.two()), self.serve(*options)
        for path in ("/a", "/a/b"):
            task = self.begin(first, path, gone)
            answer = self.at(second, path).call("tasks/result", {"taskId": task})
            self.assertEqual(text_of(answer), "worked")

    def test_a_store_that_cannot_be_opened_ends_the_start_and_no_reload(self):
        (self.place / "tasks.a.db").mkdir()
        self.write_config(a=self.entry(path="/a"))
        told = subprocess.run(
            [peers.PROXY, *self.sqlite(), "--listen", "127.0.0.1:0", "--config",
             str(self.file)], text=True, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=peers.PATIENCE)
        self.assertEqual(told.returncode, 1, told.stderr)
        sentence = "the store of the path /a cannot be opened"
        self.assertIn(sentence, told.stderr)
        proxy = self.serve(*self.sqlite(), b=self.entry(path="/b"))
        self.read_anew(proxy, sentence, a=self.entry(path="/a"), b=self.entry(path="/c"))
        proxy.wait_line("is not used")
        self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
        self.assertEqual([self.status(proxy, path) for path in ("/a", "/c")], [404, 404])
        self.assertEqual(proxy.end(), 0)


class Reload(Paths):
    """SIGHUP: paths come and go."""

    def test_a_path_comes_and_goes_and_comes_back(self):
        proxy = self.serve(*self.sqlite(), a=self.entry(path="/a"))
        client = self.at(proxy, "/a")
        for _ in range(2):
            self.read_anew(proxy, f"serving {self.url(proxy, '/b')}",
                           a=self.entry(path="/a"), b=self.entry(path="/b"))
            self.wait_for(proxy, "/b")
            self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
            self.read_anew(proxy, "the path /b is no longer served",
                           a=self.entry(path="/a"))
            self.assertEqual(self.status(proxy, "/b"), 404)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def test_the_first_path_may_go(self):
        proxy = self.serve(a=self.entry(), b=self.entry(path="/b"))
        self.read_anew(proxy, "/mcp is no longer served", b=self.entry(path="/b"))
        self.assertEqual(self.status(proxy, "/mcp"), 404)
        self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def test_a_call_at_a_path_that_goes_is_answered(self):
        proxy = self.serve(*self.sqlite(), a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        client = self.at(proxy, "/a")
        pid = int(text_of(client.tool("pid")))
        call = client.begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}})
        self.log.wait(2)
        self.read_anew(proxy, "/a is no longer served", b=self.entry(path="/b"))
        self.assertEqual(self.status(proxy, "/a"), 404)
        self.go.let()
        self.assertEqual(text_of(client.finish(call)), "later")
        peers.wait_until_gone(pid)
        self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def test_a_proxy_ends_while_a_call_at_a_path_that_went_runs(self):
        proxy = self.serve("--drain", "0", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        call = self.at(proxy, "/a").begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}})
        self.addCleanup(call.close)
        self.log.wait(1)
        self.read_anew(proxy, "/a is no longer served", b=self.entry(path="/b"))
        self.assertEqual(proxy.end(), 0)

    def test_an_upstream_may_move_to_another_path(self):
        proxy = self.serve(a=self.entry(path="/a"))
        self.read_anew(proxy, "/a is no longer served", a=self.entry(path="/b"))
        self.assertEqual(self.at(proxy, "/b").tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.status(proxy, "/a"), 404)

    def test_upstreams_may_trade_paths(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry("--extra", path="/b"))
        clients = [self.at(proxy, path) for path in ("/a", "/b")]
        self.read_anew(proxy, "was read anew", a=self.entry(path="/b"),
                       b=self.entry("--extra", path="/a"))
        for client, names in zip(clients, (ALL | {"extra"}, ALL)):
            self.wait_for_names(client, names)
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)

    def pids(self, clients, names):
        """Checks the tools of the paths, and returns who answers their calls."""
        for client, expected in zip(clients, names):
            self.assertEqual(self.names(client), expected)
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        return [text_of(client.tool("pid")) for client in clients]

    def test_a_session_of_one_path_is_a_new_session_at_another(self):
        """The key of --seal-key is that of all paths."""
        key = self.place / "seal.key"
        key.write_bytes(bytes(range(32)))
        key.chmod(0o600)
        proxy = self.serve("--seal-key", str(key), a=self.entry(path="/a"),
                           b=self.entry("--extra", path="/b"))
        client, other = self.at(proxy, "/a"), self.at(proxy, "/b")
        task = client.tool("later", {"go": self.go.path}, task={})
        number = task["result"]["task"]["taskId"]
        other.headers["Mcp-Session-Id"] = client.headers["Mcp-Session-Id"]
        self.assertEqual(self.names(other), ALL | {"extra"})
        self.assertIn("error", other.call("tasks/get", {"taskId": number}))
        self.go.let()
        self.assertEqual(text_of(client.call("tasks/result", {"taskId": number})),
                         "later")

    def test_upstreams_trade_their_paths_in_one_step(self):
        """All paths stay as they are until the last of the three is ready. From then on
        each of them has the tools of the next one."""
        more = {"a": [], "b": ["--extra"], "c": []}
        held = self.pipe("held")
        proxy = self.serve(log_level="debug", **{
            name: self.entry(*words, path=f"/{name}") for name, words in more.items()})
        clients = [self.at(proxy, path) for path in ("/a", "/b", "/c")]
        before = self.pids(clients, (ALL, ALL | {"extra"}, ALL))
        self.read_anew(proxy, "was read anew",
                       a=self.entry(path="/b"), b=self.entry("--extra", path="/c"),
                       c=self.entry("--held", held.path, path="/a"))
        for _ in range(2):
            proxy.wait_line("its lists were read")
        self.assertEqual(self.pids(clients, (ALL, ALL | {"extra"}, ALL)), before)
        held.let()
        for _ in range(3):
            proxy.wait_line("the next one has replaced it")
        after = self.pids(clients, (ALL, ALL, ALL | {"extra"}))
        self.assertEqual(len({*before, *after}), 6)
        self.assertEqual(proxy.end(), 0)

    def test_what_a_path_lists_can_be_called_when_one_of_two_cannot_move(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry("--extra", path="/b"))
        client = self.at(proxy, "/a")
        (before,) = self.pids([client], [ALL])
        self.read_anew(proxy, "the next one has replaced it",
                       a=self.entry("--fail", path="/b"),
                       b=self.entry("--extra", path="/a"))
        self.assertEqual(self.pids([client], [ALL | {"extra"}]), [before])
        self.assertEqual(text_of(client.tool("extra")), "extra")
        self.assertEqual(self.status(proxy, "/b"), 404)
        self.assertEqual(proxy.end(), 0)

    def test_a_name_that_becomes_free_goes_to_the_other_upstream(self):
        a, b = (self.entry(*more, path="/a", prefix="") for more in ((), ("--extra",)))
        proxy = self.serve(a=a)
        client = self.at(proxy, "/a")
        self.read_anew(proxy, "was read anew", a=a, b=b)
        self.wait_for_names(client, ALL | {"extra"})
        pid = text_of(client.tool("pid"))
        self.read_anew(proxy, "was read anew", b=b)
        self.wait_for_names(client, ALL | {"extra"})
        self.assertNotEqual(text_of(client.tool("pid")), pid)

    def test_a_server_without_lists_does_not_replace_the_one_before(self):
        proxy = self.serve("--start-timeout", "3s", a=self.entry(path="/a"))
        client = self.at(proxy, "/a")
        pid = text_of(client.tool("pid"))
        for option in ("--no-lists", "--slow-lists"):
            self.read_anew(proxy, "the server before it goes on instead",
                           a=self.entry(option, path="/a"))
            self.wait_for_names(client, ALL)
            self.assertEqual(text_of(client.tool("pid")), pid)

    def test_a_file_is_read_after_a_start_that_took_too_long(self):
        proxy = self.serve("--start-timeout", "3s", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        self.read_anew(proxy, "the server before it goes on instead",
                       a=self.entry(path="/a"), b=self.entry("--slow-lists", path="/a"),
                       c=self.entry("--mute", path="/b"))
        self.read_anew(proxy, f"serving {self.url(proxy, '/c')}", a=self.entry(path="/a"),
                       d=self.entry(path="/c"))
        self.wait_for(proxy, "/c")
        self.assertEqual(self.at(proxy, "/c").tool("odd")["result"], upstream.ODD)

    def test_who_waits_for_a_handle_at_a_path_that_goes_hears_that_it_runs(self):
        proxy = self.serve("--handle", "--task-after", "1s", a=self.entry(path="/a"),
                           b=self.entry(path="/b"))
        client = self.at(proxy, "/a", version="2025-06-18")
        words = text_of(client.tool("later", {"go": self.go.path}))
        handle = words.split("handle is ")[1].split(".")[0]
        asked = client.begin("tools/call", {
            "name": "segue_proxy_result", "arguments": {"handle": handle}})
        late = client.begin("tools/call", {
            "name": "later", "arguments": {"go": self.go.path}})
        self.log.wait(2)
        self.read_anew(proxy, "/a is no longer served", b=self.entry(path="/b"))
        self.assertIn("still runs", text_of(client.finish(asked)))
        self.go.let()
        self.go.let()
        self.assertEqual(text_of(client.finish(late)), "later")

    def test_a_move_that_fails_leaves_the_old_path(self):
        proxy = self.serve(a=self.entry(path="/a"))
        self.read_anew(proxy, "cannot be used", a={
            "command": "/nowhere/program", "path": "/b"})
        self.assertEqual(self.at(proxy, "/a").tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.status(proxy, "/b"), 404)

    def test_a_path_stays_when_its_upstream_gets_another_name(self):
        """Also while another upstream fails at once."""
        proxy = self.serve(a=self.entry(path="/a"))
        client = self.at(proxy, "/a")
        self.read_anew(proxy, "ends after its calls", bad={
            "url": "http://127.0.0.1:1/mcp", "headers": {"A": "\n"}, "path": "/bad"},
            other=self.entry(path="/a"))
        proxy.wait_line(f"serving {self.url(proxy, '/bad')}")
        while "odd" not in self.names(client):
            pass
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.names(self.at(proxy, "/bad")), set())

    def test_a_wrong_path_changes_nothing(self):
        proxy = self.serve(a=self.entry(path="/a"))
        self.read_anew(proxy, "mcpServers.b.path", a=self.entry(path="/c"),
                       b=self.entry(path="/health"))
        proxy.wait_line("is not used")
        self.assertEqual(self.at(proxy, "/a").tool("odd")["result"], upstream.ODD)
        self.assertEqual(self.status(proxy, "/c"), 404)

    def test_an_upstream_that_joins_a_path_gives_it_prefixes(self):
        proxy = self.serve(a=self.entry(path="/a"), b=self.entry(path="/b"))
        client = self.at(proxy, "/a")
        self.assertEqual(self.names(client), ALL)
        stream = client.open_stream()
        self.read_anew(proxy, "was read anew", a=self.entry(path="/a"),
                       b=self.entry(path="/b"), c=self.entry(path="/a"))
        wanted = {p + name for p in ("a_", "c_") for name in ALL}
        while self.names(client) != wanted:
            stream.wait("notifications/tools/list_changed")
        stream.close()
        self.assertEqual(self.names(self.at(proxy, "/b")), ALL)


if __name__ == "__main__":
    unittest.main()
