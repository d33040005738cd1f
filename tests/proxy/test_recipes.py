"""The recipes of core/docs/recipes, and the two commands of README.md: what a page shows
is read from the page and run, with the ports, the files and the upstreams of the test."""

import configparser
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import peers
import stage
import upstream
import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "kill_matrix"))
import players  # noqa: E402
from redis_server import fronts  # noqa: E402

LARGE = "x" * 2 * 1024 * 1024  # over the limit that nginx has by default
PAGES = peers.ROOT / "core" / "docs" / "recipes"
NGINX = """\
daemon off;
worker_processes 1;
pid {place}/nginx.pid;
error_log stderr notice;
{user}
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    scgi_temp_path {place}/scgi;
    uwsgi_temp_path {place}/uwsgi;
    {page}
}}
"""


def blocks(page, language):
    text = (PAGES / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def text_of(answer):
    return answer["result"]["content"][0]["text"]


class Recipe(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.place = Path(self.directory.name)
        self.log = peers.Pipe(self.place / "calls")
        self.addCleanup(self.log.close)
        self.path = self.place / "mcp.json"
        self.path.write_text(json.dumps({"mcpServers": {"a": {
            "command": peers.UPSTREAM[0], "prefix": "", "trustHints": True,
            "args": [*peers.UPSTREAM[1:], "--hints", "--log", self.log.path]}}}))

    def free_port(self):
        holder = players.hold_port()
        self.addCleanup(holder.close)
        return holder.getsockname()[1]

    def change(self, text, **changes):
        """Replaces each text of the page by that of the test; each has to be there."""
        for old, new in changes.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    def listen(self, command):
        """Starts a proxy by the words of a page."""
        program, *words = shlex.split(command)
        self.assertEqual(Path(program).name, "segue-proxy")
        at = words.index("--listen")
        address = words[at + 1]
        self.assertEqual(words[at], "--listen")
        port = address.rsplit(":", 1)[1]
        del words[at:at + 2]
        proxy = web.Listening(*words, "--log-level", "info", upstream=None, port=port)
        self.addCleanup(proxy.__exit__)
        return proxy

    def take_large(self, client):
        got = client.call("prompts/get", {"name": "p", "arguments": {"a": LARGE}})
        self.assertIn(LARGE, got["result"]["messages"][0]["content"]["text"])

    def nginx(self, page):
        file = self.place / "nginx.conf"
        file.write_text(NGINX.format(page=page, place=self.place,
                                     user="user root;" if os.getuid() == 0 else ""))
        process = subprocess.Popen(
            [fronts.find_program("nginx"), "-c", str(file), "-p", str(self.place)],
            text=True, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        for line in process.stderr:
            if "start worker process " in line:
                return
        raise EOFError("nginx did not start")


class Hosts(Recipe):
    def test_each_entry_starts_a_proxy(self):
        count = 0
        for block in blocks("hosts.md", "json"):
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


class Readme(Recipe):
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


class Nginx(Recipe):
    def test_nginx_passes_calls_and_their_progress_on(self):
        near, front = self.free_port(), self.free_port()
        certificate, key = self.place / "mcp.pem", self.place / "mcp.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", str(key), "-out", str(certificate)], check=True,
            capture_output=True)
        (command,) = blocks("nginx.md", "sh")
        (page,) = blocks("nginx.md", "nginx")
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


class Systemd(Recipe):
    def unit(self, index):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str
        parser.read_string(blocks("systemd.md", "ini")[index])
        return parser

    def test_the_unit_starts_reads_anew_and_drains(self):
        service = self.unit(0)["Service"]
        words = self.change(service["ExecStart"], **{
            ":8000": f":{self.free_port()}", "/etc/mcp.json": str(self.path),
            "/var/lib/segue-proxy": str(self.place)})
        proxy = self.listen(words)
        client = web.Web(proxy.url)
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.assertEqual(service["ExecReload"], "/bin/kill -HUP $MAINPID")
        proxy.process.send_signal(signal.SIGHUP)
        self.assertIn("config_read", proxy.wait_line("was read anew"))
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        drain = shlex.split(words)[shlex.split(words).index("--drain") + 1]
        self.assertGreater(int(service["TimeoutStopSec"].rstrip("s")),
                           int(drain.rstrip("s")))
        self.assertEqual(proxy.end(), 0)

    def test_the_socket_of_systemd_is_served(self):
        """The socket is made here as systemd makes it: descriptor 3, LISTEN_FDS."""
        where = self.unit(1)["Socket"]["ListenStream"]
        self.assertEqual(where, "127.0.0.1:8000")
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        port = listening.getsockname()[1]
        script = f"exec 3<&{listening.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\""
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", peers.PROXY, "--listen", "systemd",
             "--config", str(self.path)], pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        self.assertIn("serving", process.stderr.readline())
        client = web.Web(f"http://127.0.0.1:{port}/mcp")
        self.assertEqual(client.tool("odd")["result"], upstream.ODD)


class Replicas(Recipe):
    def setUp(self):
        super().setUp()
        redis = stage.start_redis(self)
        ports = [self.free_port() for _ in range(3)]
        key, *commands = blocks("replicas.md", "sh")[0].splitlines()
        subprocess.run(["sh", "-c", key], cwd=self.place, check=True)
        changes = {":6379/": f":{redis.port}/", "mcp.json": str(self.path),
                   "seal.key": str(self.place / "seal.key")}
        self.replicas = [
            self.listen(self.change(command, **changes, **{
                f":800{i + 1}": f":{ports[i]}"}) + " --task-after 0 --drain 3s")
            for i, command in enumerate(commands)]
        (page,) = blocks("replicas.md", "nginx")
        self.nginx(self.change(page, **{
            ":8001": f":{ports[0]}", ":8002": f":{ports[1]}",
            "listen 8080": f"listen 127.0.0.1:{ports[2]}"}))
        self.url = f"http://127.0.0.1:{ports[2]}/mcp"

    def test_one_session_is_served_by_both(self):
        client = web.Web(self.url)
        for _ in range(4):
            self.assertEqual(client.tool("odd")["result"], upstream.ODD)
        self.take_large(client)
        pids = {text_of(client.tool("pid")) for _ in range(4)}
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
        self.assertEqual(text_of(second.call("tasks/result", {"taskId": task})), "worked")
        self.assertEqual([line[0] for line in self.log.take()].count("work"), 2)


if __name__ == "__main__":
    unittest.main()
