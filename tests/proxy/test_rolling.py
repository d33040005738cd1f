"""A rolling deployment as core/docs/recipes says: two replicas of segue-proxy on one
Redis are replaced one after the other, behind HAProxy and behind nginx, under load. Each
call is answered, and has run once."""

import json
import re
import subprocess
import threading
import unittest

import peers
import recipe
import stage
import upstream
import web

CALLERS = 4
CALLS_BETWEEN = 20  # calls of all callers before the next step


class Load:
    """Callers, each with a session, who call one after the other until they are told to
    end. Each call has an argument of its own."""

    def __init__(self, connect):
        self.ends = threading.Event()
        self.changed = threading.Condition()
        self.answered, self.faults = [], []
        self.threads = [threading.Thread(target=self.run, args=(connect(), number))
                        for number in range(CALLERS)]
        for thread in self.threads:
            thread.start()

    def run(self, client, number):
        count = 0
        while not self.ends.is_set():
            count += 1
            try:
                answer = client.tool("odd", {"n": f"{number}.{count}"})
                fault = None if answer.get("result") == upstream.ODD else answer
            except Exception as error:
                fault = error
            with self.changed:
                self.answered.append(f"{number}.{count}")
                if fault:
                    self.faults.append((f"{number}.{count}", fault))
                self.changed.notify_all()

    def wait_calls(self):
        """Waits until CALLS_BETWEEN further calls were answered."""
        with self.changed:
            wanted = len(self.answered) + CALLS_BETWEEN
            assert self.changed.wait_for(lambda: len(self.answered) >= wanted,
                                         peers.PATIENCE), "no call is answered"

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(peers.PATIENCE)


class Rolling(recipe.Recipe):
    def setUp(self):
        super().setUp()
        self.calls = self.place / "calls.txt"
        self.path.write_text(json.dumps({"mcpServers": {"a": {
            "command": peers.UPSTREAM[0], "prefix": "",
            "args": [*peers.UPSTREAM[1:], "--log", str(self.calls)]}}}))
        redis = stage.start_redis(self)
        key = recipe.blocks("replicas.md", "sh")[0].splitlines()[0]
        subprocess.run(["sh", "-c", key], cwd=self.place, check=True)
        self.service = self.change(
            recipe.unit("rolling.md", 0)["Service"]["ExecStart"],
            **{":6379/": f":{redis.port}/", "/etc/mcp.json": str(self.path),
               "/etc/segue/seal.key": str(self.place / "seal.key")})
        self.ports = {name: self.free_port() for name in ("8001", "8002")}
        self.proxies = {name: self.start(name) for name in self.ports}

    def start(self, name):
        """Starts an instance of the service, and returns when it says that it serves."""
        told = recipe.Manager(self.place / f"notify{name}.{self.id_of_start()}")
        self.addCleanup(told.close)
        command = self.service.replace("%i", str(self.ports[name]))
        proxy = self.listen(command, env=told.environment)
        told.wait("READY=1")
        return proxy

    starts = 0

    def id_of_start(self):
        self.starts += 1
        return self.starts

    def restart(self, name):
        """Does what `systemctl restart` does."""
        self.assertEqual(self.proxies[name].end(), 0)
        self.proxies[name] = self.start(name)

    def commands(self):
        """Returns the names of the instances that the page restarts, in its order."""
        lines = recipe.blocks("rolling.md", "sh")[0].splitlines()
        self.assertRegex(lines.pop(1), "^sleep [0-9]+$")  # the test does wait_used
        names = [re.fullmatch(r"systemctl restart segue-proxy@(\d+)", line)[1]
                 for line in lines]
        self.assertEqual(names, list(self.ports))
        return names

    def deploy_under_load(self, url, **more):
        def connect():
            return web.Web(url, **more)

        names = self.commands()
        load = Load(connect)
        try:
            load.wait_calls()
            for name in names:
                self.restart(name)
                self.wait_used(connect(), name)
                load.wait_calls()
        finally:
            load.end()
        self.assertEqual(load.faults, [])
        ran = [line[1]["n"] for line in
               map(json.loads, self.calls.read_text().splitlines()) if line[0] == "odd"]
        self.assertEqual(sorted(ran), sorted(load.answered))  # each of them once

    def wait_used(self, client, name):
        """Waits until the balancer sends calls to the new replica, as the page does."""
        new = recipe.text_of(web.Web(self.proxies[name].url).tool("pid"))
        while recipe.text_of(client.tool("pid")) != new:
            pass

    def test_behind_haproxy(self):
        front = self.free_port()
        certificate, key = self.place / "mcp.pem", self.place / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", str(key), "-out", str(certificate)], check=True,
            capture_output=True)
        both = self.place / "both.pem"
        both.write_text(certificate.read_text() + key.read_text())
        (page,) = recipe.blocks("haproxy.md", "haproxy")
        self.haproxy(self.change(page, **{
            ":443": f"127.0.0.1:{front}", "/etc/ssl/mcp.pem": str(both),
            "127.0.0.1:8001": f"127.0.0.1:{self.ports['8001']}",
            "127.0.0.1:8002": f"127.0.0.1:{self.ports['8002']}"}))
        url = f"https://localhost:{front}/mcp"
        self.take_large(web.Web(url, authority=str(certificate)))
        self.deploy_under_load(url, authority=str(certificate))

    def test_behind_nginx(self):
        front = self.free_port()
        (page,) = recipe.blocks("replicas.md", "nginx")
        self.nginx(self.change(page, **{
            ":8001": f":{self.ports['8001']}", ":8002": f":{self.ports['8002']}",
            "listen 8080": f"listen 127.0.0.1:{front}"}))
        self.deploy_under_load(f"http://127.0.0.1:{front}/mcp")


if __name__ == "__main__":
    unittest.main()
