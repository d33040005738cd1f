"""The stage of a test of segue-proxy: a directory, the log of the upstream and the byte
for which its tool "later" waits, the proxies that the test has started, and the file of
`--config`. The stage ends with the test."""

import atexit
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import peers
import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "kill_matrix"))
import postgres_server  # noqa: E402
import redis_server  # noqa: E402


def text_of(message):
    assert "result" in message, message
    return message["result"]["content"][0]["text"]


def start_redis(case):
    """Starts a Redis server that ends with the test. case: a test with a directory."""
    redis = redis_server.Redis(str(case.place))
    case.addCleanup(redis.output.close)
    case.addCleanup(redis.holder.close)
    case.addCleanup(redis.end, signal.SIGKILL)
    return redis


class Database:
    """One PostgreSQL server for all tests, because a start takes seconds. It ends with
    this process."""

    server = None
    schemas = 0

    @classmethod
    def begin(cls):
        place = tempfile.mkdtemp()
        cls.server = postgres_server.Postgres(place)
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        atexit.register(cls.server.close)

    @classmethod
    def url(cls):
        """Returns the URL of a store that no other test has."""
        if not cls.server:
            cls.begin()
        cls.schemas += 1
        return f"{cls.server.url(cls.server.port)}?schema=test{cls.schemas}"

    @classmethod
    def end_leases(cls):
        """Ends the leases in the store of the last URL, as if their time were over. Its
        proxies were killed."""
        subprocess.run(
            [f"{cls.server.programs}/psql", "-q", cls.server.url(cls.server.port), "-c",
             f"UPDATE test{cls.schemas}.lease SET ms = 0, seen = 0"], check=True)


class Stage(unittest.TestCase):
    log_options = ()  # further options of the upstream

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.log = self.pipe("log")
        self.go = self.pipe("go")
        self.file = self.place / "mcp.json"

    def pipe(self, name):
        pipe = peers.Pipe(self.place / name)
        self.addCleanup(pipe.close)
        return pipe

    def upstream(self, *options):
        """Returns the command of an upstream that writes the log."""
        return [*peers.UPSTREAM, "--log", self.log.path, *self.log_options, *options]

    def sqlite(self, name="tasks.db"):
        return ("--store", str(self.place / name))

    def postgres(self):
        return ("--store", Database.url())

    # ---- proxies ----

    def listen(self, *options, upstream=None, **more):
        """Starts a proxy that listens. upstream: a command, [] = none."""
        proxy = web.Listening(*options, **{
            "upstream": self.upstream() if upstream is None else upstream, **more})
        self.addCleanup(proxy.__exit__)
        return proxy

    def stdio(self, *options, upstream=None, **more):
        """Starts a proxy on pipes, and returns its client."""
        client = peers.proxy(*options, upstream=upstream or self.upstream(), **more)
        self.addCleanup(client.__exit__)
        return client

    # ---- the file of --config ----

    def server(self, *arguments, **more):
        """Returns an entry of the file."""
        return {"command": peers.UPSTREAM[0],
                "args": [*peers.UPSTREAM[1:], *arguments], **more}

    def write_config(self, **servers):
        self.file.write_text(json.dumps({"mcpServers": servers}))

    def configured(self, *options, **servers):
        """Starts a proxy on pipes in front of these servers, and returns its client."""
        self.write_config(**servers)
        client = peers.Client([peers.PROXY, *options, "--config", str(self.file)])
        self.addCleanup(client.__exit__)
        return client

    def names(self, client):
        return {tool["name"] for tool in client.call("tools/list")["result"]["tools"]}
