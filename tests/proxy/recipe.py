"""What the tests of the recipes share: the blocks of a page, and the programs that it
needs, with the ports, the files and the upstreams of the test."""

import configparser
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import peers
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


def unit(page, index):
    """Returns a unit of systemd."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(blocks(page, "ini")[index])
    return parser


class Manager:
    """The end of systemd at which services tell their state (sd_notify(3))."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(peers.PATIENCE)
        self.environment = {**os.environ, "NOTIFY_SOCKET": str(path)}

    def next(self):
        return self.socket.recv(65536).decode()

    def wait(self, state):
        """Waits for a message that has this line."""
        told = ""
        while state not in told.split("\n"):
            told = self.next()
        return told

    def close(self):
        self.socket.close()


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

    def listen(self, command, **more):
        """Starts a proxy by the words of a page."""
        program, *words = shlex.split(command)
        self.assertEqual(Path(program).name, "segue-proxy")
        at = words.index("--listen")
        address = words[at + 1]
        self.assertEqual(words[at], "--listen")
        port = address.rsplit(":", 1)[1]
        del words[at:at + 2]
        proxy = web.Listening(*words, "--log-level", "info", upstream=None, port=port,
                              **more)
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

    def manager(self, name="notify"):
        manager = Manager(self.place / name)
        self.addCleanup(manager.close)
        return manager

    def haproxy(self, page):
        """Starts HAProxy, and returns when it serves. It is systemd's service, too."""
        file = self.place / "haproxy.cfg"
        file.write_text(page)
        told = self.manager("haproxy")
        process = subprocess.Popen(
            [fronts.find_program("haproxy"), "-Ws", "-f", str(file)],
            env=told.environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        told.wait("READY=1")
