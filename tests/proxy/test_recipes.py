"""The recipes of core/docs/recipes, and the two commands of README.md: what a page shows
is read from the page and run, with the ports, the files and the upstreams of the test."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import unittest

import peers
import recipe
import stage
import upstream
import web

SDK = str(peers.ROOT / "build" / "deps" / "python" / "bin" / "python")


class Hosts(recipe.Recipe):
    def test_each_entry_starts_a_proxy(self):
        count = 0
        for block in recipe.blocks("hosts.md", "json"):
            ((_, servers),) = json.loads(block).items()
            for entry in servers.values():
                self.run_entry([entry["command"], *entry["args"]])
                count += 1
        self.assertEqual(count, 5)

    def run_entry(self, words):
        for start in (["segue-proxy"], ["uvx", "--from", "segue-mcp", "segue", "proxy"],
                      ["npx", "-y", "segue-mcp", "proxy"]):
            if words[:len(start)] == start:
                words = words[len(start):]
                break
        else:
            self.fail(words)
        if "--config" in words:
            words[words.index("--config") + 1] = str(self.path)
        else:
            words[words.index("--") + 1:] = peers.UPSTREAM
        with peers.Client([peers.PROXY, *words]) as client:
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            tools = client.call("tools/list")["result"]["tools"]
            names = [tool["name"] for tool in tools]
            self.assertIn("segue_proxy_result", names)
            self.assertEqual(client.close(), 0)


class Readme(recipe.Recipe):
    UPSTREAM = "npx -y @modelcontextprotocol/server-everything"

    def test_its_commands_stand_before_a_server(self):
        text = (peers.ROOT / "README.md").read_text()
        _, _, text = text.partition("\n## In front of a server that exists\n")
        (pair,) = re.findall(r"^```sh\n(.*?)^```$", text.partition("\n## ")[0],
                             re.M | re.S)
        host, listening = self.change(pair, **{
            self.UPSTREAM: shlex.join(peers.UPSTREAM),
            "calls.db": str(self.place / "calls.db"),
            "127.0.0.1:8000": f"127.0.0.1:{self.free_port()}"}).splitlines()
        program, *words = shlex.split(host)
        self.assertEqual(program, "segue-proxy")
        with peers.Client([peers.PROXY, *words]) as client:
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
            tools = client.call("tools/list")["result"]["tools"]
            self.assertIn("segue_proxy_result", [tool["name"] for tool in tools])
            self.assertEqual(client.close(), 0)
        self.assertTrue((self.place / "calls.db").exists())
        proxy = self.listen(listening)
        self.assertEqual(web.Web(proxy.url).tool("odd")["result"], upstream.ODD)
        self.assertEqual(proxy.end(), 0)


class Nginx(recipe.Recipe):
    def test_nginx_passes_calls_and_their_progress_on(self):
        near, front = self.free_port(), self.free_port()
        certificate, key = self.place / "mcp.pem", self.place / "mcp.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", str(key), "-out", str(certificate)], check=True,
            capture_output=True)
        (command,) = recipe.blocks("nginx.md", "sh")
        (page,) = recipe.blocks("nginx.md", "nginx")
        proxy = self.listen(self.change(command, **{
            ":8000": f":{near}", "tasks.db": str(self.place / "tasks.db"),
            "mcp.json": str(self.path)}) + " --drain 50ms")
        self.nginx(self.change(page, **{
            "listen 443": f"listen 127.0.0.1:{front}", ":8000": f":{near}",
            "/etc/ssl/mcp.pem": str(certificate), "/etc/ssl/mcp.key": str(key)}))
        url = f"https://localhost:{front}/mcp"
        client = web.Web(url, authority=str(certificate))
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.take_large(client)
        go = peers.Pipe(self.place / "go")
        self.addCleanup(go.close)
        call = client.begin("tools/call", {"name": "sleep", "arguments": {},
                                           "_meta": {"progressToken": 1}})
        response = call.getresponse()
        # the progress arrives although the call never ends
        event = next(line for line in response if line.startswith(b"data: {"))
        self.assertIn(b"notifications/progress", event)
        call.close()
        self.assertEqual(web.get(url, "/health/ready", str(certificate))[0], 200)
        self.assertEqual(proxy.end(), 0)


class Systemd(recipe.Recipe):
    def test_the_unit_starts_reads_anew_and_drains(self):
        service = recipe.unit("systemd.md", 0)["Service"]
        words = self.change(service["ExecStart"], **{
            ":8000": f":{self.free_port()}", "/etc/mcp.json": str(self.path),
            "/var/lib/segue-proxy": str(self.place)})
        told = self.manager()
        proxy = self.listen(words, env=told.environment)
        self.assertEqual(service["Type"], "notify")
        told.wait("READY=1")
        client = web.Web(proxy.url)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(service["ExecReload"], "/bin/kill -HUP $MAINPID")
        proxy.process.send_signal(signal.SIGHUP)
        self.assertRegex(told.wait("RELOADING=1"), r"\nMONOTONIC_USEC=[1-9][0-9]+$")
        told.wait("READY=1")
        self.assertIn("config_read", proxy.wait_line("was read anew"))
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        drain = shlex.split(words)[shlex.split(words).index("--drain") + 1]
        self.assertGreater(int(service["TimeoutStopSec"].rstrip("s")),
                           int(drain.rstrip("s")))
        self.assertEqual(proxy.end(), 0)
        told.wait("STOPPING=1")

    def test_systemd_accepts_the_units(self):
        analyze = shutil.which("systemd-analyze")
        if not analyze:
            self.fail("systemd-analyze is missing. It is in the package systemd")
        for page, names in (
                ("systemd.md", ("segue-proxy.service", "segue-proxy.socket")),
                ("rolling.md", ("segue-proxy@.service",))):
            for block, name in zip(recipe.blocks(page, "ini"), names, strict=True):
                text = block.replace("/usr/bin/segue-proxy", peers.PROXY)
                (self.place / name).write_text(text)
            checked = names[0].replace("@.", "@8001.")
            told = subprocess.run(
                [analyze, "verify", "--man=no", str(self.place / checked)],
                capture_output=True, text=True)
            ours = [line for line in told.stderr.splitlines() if "segue" in line]
            self.assertEqual((told.returncode, ours), (0, []), told.stderr)

    def test_the_socket_of_systemd_is_served(self):
        """The socket is made here as systemd makes it: descriptor 3, LISTEN_FDS."""
        where = recipe.unit("systemd.md", 1)["Socket"]["ListenStream"]
        self.assertEqual(where, "127.0.0.1:8000")
        url = self.activate(peers.PROXY, "--listen", "systemd", "--config",
                            str(self.path))
        self.assertEqual(web.Web(url).tool("odd")["result"], upstream.ODD)

    def test_a_server_in_python_takes_the_socket_and_feeds_the_watchdog(self):
        (program,) = recipe.blocks("systemd.md", "python")
        (self.place / "notes.py").write_text(program)
        told = self.manager()
        url = self.activate(SDK, "-B", str(self.place / "notes.py"),
                            WATCHDOG_USEC="100000", **told.environment)
        client = web.Web(url)  # the kernel holds the connection until it is served
        self.assertEqual(recipe.text_of(client.tool("note", {"text": "x"})), "noted: x")
        told.wait("READY=1")
        told.wait("WATCHDOG=1")
        told.wait("WATCHDOG=1")
        self.process.terminate()
        told.wait("STOPPING=1")
        self.assertEqual(self.process.wait(peers.PATIENCE), 0)

    def activate(self, *command, **environment):
        """Starts a service as systemd does at the first connection."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        script = f"exec 3<&{listening.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\""
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", *command], pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)
        return f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"


class ServiceManager(recipe.Recipe):
    """What the proxy tells systemd, and what it does with wrong variables."""

    def start(self, **environment):
        proxy = web.Listening("--config", str(self.path), upstream=None,
                              env={**os.environ, **environment})
        self.addCleanup(proxy.__exit__)
        return proxy

    def test_the_watchdog_is_fed_while_the_event_loop_runs(self):
        told = self.manager()
        proxy = self.start(**told.environment, WATCHDOG_USEC="20000")
        for _ in range(3):
            told.wait("WATCHDOG=1")
        proxy.process.send_signal(signal.SIGSTOP)  # as a loop that hangs
        os.waitid(os.P_PID, proxy.process.pid, os.WSTOPPED)
        told.socket.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:  # what was sent before
                told.next()
        told.socket.settimeout(0.2)
        self.assertRaises(TimeoutError, told.next)
        told.socket.settimeout(peers.PATIENCE)
        proxy.process.send_signal(signal.SIGCONT)
        told.wait("WATCHDOG=1")
        self.assertEqual(proxy.end(), 0)

    def test_the_watchdog_of_another_process_is_not_fed(self):
        told = self.manager()
        proxy = self.start(**told.environment, WATCHDOG_USEC="2000",
                           WATCHDOG_PID=str(os.getpid()))
        self.assertEqual(told.next(), "READY=1")
        self.assertEqual(proxy.end(), 0)
        self.assertEqual(told.next(), "STOPPING=1")

    def test_an_abstract_socket_is_one(self):
        name = f"segue-test-{os.getpid()}"
        told = recipe.Manager(f"\0{name}")
        self.addCleanup(told.close)
        self.assertEqual(self.start(NOTIFY_SOCKET=f"@{name}").end(), 0)
        self.assertEqual([told.next(), told.next()], ["READY=1", "STOPPING=1"])

    def test_an_upstream_does_not_inherit_the_variables(self):
        told = self.manager()
        seen = self.place / "environment"
        entry = json.loads(self.path.read_text())["mcpServers"]["a"]
        entry["args"] = ["-c", f"env > {seen}; exec \"$@\"", "sh", entry["command"],
                         *entry["args"]]
        entry["command"] = "sh"
        self.path.write_text(json.dumps({"mcpServers": {"a": entry}}))
        self.start(**told.environment, WATCHDOG_USEC="1000000")
        names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
        self.assertFalse(names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})

    def test_wrong_variables_are_told_and_change_nothing(self):
        nobody = str(self.place / "nobody")
        for sentence, variables in (
                ("neither an absolute path nor @", {"NOTIFY_SOCKET": "relative"}),
                ("neither an absolute path nor @", {"NOTIFY_SOCKET": "/" + 200 * "x"}),
                ("cannot notify the service manager", {"NOTIFY_SOCKET": nobody}),
                ("not a number of at least 2000", {"NOTIFY_SOCKET": nobody,
                                                   "WATCHDOG_USEC": "12 s"})):
            with self.subTest(variables):
                proxy = self.start(**variables)
                proxy.wait_line(sentence)
                self.assertEqual(web.Web(proxy.url).tool("odd")["result"], upstream.ODD)
                self.assertEqual(proxy.end(), 0)


class Replicas(recipe.Recipe):
    def setUp(self):
        super().setUp()
        redis = stage.start_redis(self)
        ports = [self.free_port() for _ in range(3)]
        key, *commands = recipe.blocks("replicas.md", "sh")[0].splitlines()
        subprocess.run(["sh", "-c", key], cwd=self.place, check=True)
        changes = {":6379/": f":{redis.port}/", "mcp.json": str(self.path),
                   "seal.key": str(self.place / "seal.key")}
        self.replicas = [
            self.listen(self.change(command, **changes, **{
                f":800{i + 1}": f":{ports[i]}"}) + " --task-after 0 --drain 3s")
            for i, command in enumerate(commands)]
        (page,) = recipe.blocks("replicas.md", "nginx")
        self.nginx(self.change(page, **{
            ":8001": f":{ports[0]}", ":8002": f":{ports[1]}",
            "listen 8080": f"listen 127.0.0.1:{ports[2]}"}))
        self.url = f"http://127.0.0.1:{ports[2]}/mcp"

    def test_one_session_is_served_by_both(self):
        client = web.Web(self.url)
        for _ in range(4):
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.take_large(client)
        pids = {recipe.text_of(client.tool("pid")) for _ in range(4)}
        self.assertEqual(len(pids), 2)  # each replica has its own upstream

    def test_a_replica_that_ends_costs_no_call_and_no_task(self):
        first = self.replicas[0]
        made = web.Web(first.url).tool("work", {"go": str(self.place / "gone")}, task={})
        self.log.wait(1)
        client = web.Web(self.url)
        (self.place / "gone").touch()
        first.process.send_signal(signal.SIGTERM)
        for _ in range(6):
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(first.process.wait(peers.PATIENCE), 0)
        for _ in range(4):  # nginx may try the replica that is gone
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        task = made["result"]["task"]["taskId"]
        second = web.Web(self.replicas[1].url)
        result = second.call("tasks/result", {"taskId": task})
        self.assertEqual(recipe.text_of(result), "worked")
        self.assertEqual([line[0] for line in self.log.take()].count("work"), 2)


if __name__ == "__main__":
    unittest.main()
