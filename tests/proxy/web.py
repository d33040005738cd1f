"""A client of Streamable HTTP for the tests of segue-proxy, and the proxy as a process
that listens."""

import http.client
import json
import re
import signal
import ssl
import subprocess
import urllib.parse

import peers


class Listening:
    """A proxy with --listen on a free port. Its port is in the line that it prints."""

    def __init__(self, *options, upstream=peers.UPSTREAM, port=0, program=peers.PROXY,
                 **more):
        where = ["--", *upstream] if upstream else []
        self.process = subprocess.Popen(
            [program, "--listen", f"127.0.0.1:{port}", *options, *where],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
        self.before = []
        for line in self.process.stderr:
            match = re.match(r"segue-proxy: serving (http\S+)", line)
            if match:
                break
            self.before.append(line.rstrip("\n"))
        else:
            raise EOFError("\n".join(self.before))
        self.url = match.group(1)

    def wait_line(self, words):
        """Waits for a line of standard error that has these words."""
        for line in self.before:
            if words in line:
                return line
        for line in self.process.stderr:
            if words in line:
                return line
        raise EOFError(words)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.communicate(timeout=peers.PATIENCE)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stderr.closed:
            self.process.communicate()


def connect(where, authority=None):
    """Returns a connection; authority: a file of certificates, for https."""
    if where.scheme == "http":
        return http.client.HTTPConnection(where.netloc, timeout=peers.PATIENCE)
    return http.client.HTTPSConnection(
        where.netloc, timeout=peers.PATIENCE,
        context=ssl.create_default_context(cafile=authority))


class Web:
    """A session of the handshake revisions over HTTP."""

    authority = None

    def __init__(self, url, version="2025-11-25", capabilities=None, token=None,
                 authority=None):
        self.where = urllib.parse.urlsplit(url)
        self.authority = authority
        self.headers = {"Accept": "application/json, text/event-stream",
                        "Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.last_id = 0
        self.event_id = None
        self.notes = []
        self.hello = self.call("initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "web", "version": "1"}})["result"]
        self.headers["MCP-Protocol-Version"] = version
        self.post({"method": "notifications/initialized"}).close()

    def post(self, message):
        """Sends a message and returns the connection, whose answer was not read."""
        connection = connect(self.where, self.authority)
        body = json.dumps({"jsonrpc": "2.0", **message})
        connection.request("POST", self.where.path, body, self.headers)
        return connection

    def begin(self, method, params=None):
        self.last_id += 1
        return self.post({"id": self.last_id, "method": method, "params": params or {}})

    def finish(self, connection):
        """Reads the answer, JSON or an event stream."""
        response = connection.getresponse()
        session = response.headers.get("Mcp-Session-Id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        assert response.status < 500, (response.status, response.read())
        if response.headers.get_content_type() == "application/json":
            message = json.loads(response.read())
        else:
            message = self.last_event(response)
        connection.close()
        return message

    def last_event(self, response):
        for line in response:
            if line.startswith(b"id:"):
                self.event_id = line[3:].strip().decode()
            if not line.startswith(b"data:") or not line[5:].strip():
                continue
            message = json.loads(line[5:])
            if "id" in message and "method" not in message:
                return message
            self.notes.append(message)
        raise EOFError("the stream ended without an answer")

    def call(self, method, params=None):
        return self.finish(self.begin(method, params))

    def resume(self):
        """Reads on behind the last event of a stream that ended without the answer."""
        connection = connect(self.where, self.authority)
        connection.request("GET", self.where.path, headers={
            **self.headers, "Accept": "text/event-stream",
            "Last-Event-ID": self.event_id})
        return self.finish(connection)

    def tool(self, name, arguments=None, **more):
        params = {"name": name, "arguments": arguments or {}, **more}
        return self.call("tools/call", params)

    def open_stream(self, answers=None):
        """Opens the stream of the session (GET)."""
        connection = http.client.HTTPConnection(self.where.netloc, timeout=peers.PATIENCE)
        connection.request("GET", self.where.path, headers=self.headers)
        return Stream(connection, answers)

    def delete(self):
        connection = http.client.HTTPConnection(self.where.netloc, timeout=peers.PATIENCE)
        connection.request("DELETE", self.where.path, headers=self.headers)
        connection.getresponse().read()
        connection.close()


class Stream:
    """An event stream that the server keeps open: messages are read one by one."""

    def __init__(self, connection, answers=None):
        self.connection = connection
        self.answers = answers or {}
        self.response = connection.getresponse()
        assert self.response.status == 200, self.response.status

    def next(self):
        for line in self.response:
            if line.startswith(b"data:") and line[5:].strip():
                return json.loads(line[5:])
        raise EOFError("the stream has ended")

    def wait(self, method):
        while True:
            message = self.next()
            if message.get("method") == method:
                return message

    def wait_question(self, method, client):
        """Waits for a question and answers it as the client."""
        message = self.wait(method)
        answer = {"id": message["id"], "result": self.answers[method]}
        answered = client.post(answer)
        answered.getresponse().read()
        answered.close()

    def close(self):
        self.response.close()
        self.connection.close()


TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


class Modern(Web):
    """A client of 2026-07-28, which has no sessions: what it can do is in each request.
    It supports tasks if its capabilities say so (TASKS)."""

    def __init__(self, url, capabilities=None):
        self.where = urllib.parse.urlsplit(url)
        self.headers = {"Accept": "application/json, text/event-stream",
                        "Content-Type": "application/json",
                        "MCP-Protocol-Version": "2026-07-28"}
        self.last_id = 0
        self.notes = []
        self.capabilities = capabilities or {}

    def post(self, message):
        params = message["params"]
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "web", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities}
        message["params"] = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        self.headers["Mcp-Method"] = message["method"]
        self.headers.pop("Mcp-Name", None)
        if name := params.get("name", params.get("uri", params.get("taskId"))):
            self.headers["Mcp-Name"] = name
        return super().post(message)


def get(url, path, authority=None):
    connection = connect(urllib.parse.urlsplit(url), authority)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body
