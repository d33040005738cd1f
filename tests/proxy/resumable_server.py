"""An MCP server of 2025-11-25 over HTTP whose calls resume (SEP-975), for the tests of
segue-proxy. It is a module of the test, which says what each call sends and when its
stream is cut. The server honours no keys and keeps no tasks."""

import http.server
import json
import queue
import threading
import uuid

import peers

VERSION = "2025-11-25"


class Job:
    """A call of the tool. Its messages are numbered from 1; the first is the policy."""

    def __init__(self, message):
        self.id = message["id"]
        self.token = uuid.uuid4().hex
        self.progress_token = message["params"].get("_meta", {}).get("progressToken")
        self.changed = threading.Condition()
        self.messages = []
        self.cuts = 0
        self.note("notifications/requests/resumePolicy", {
            "requestId": self.id, "resumeToken": self.token})

    def add(self, message):
        with self.changed:
            self.messages.append({"jsonrpc": "2.0", **message})
            self.changed.notify_all()

    def note(self, method, params):
        self.add({"method": method, "params": params})

    def say(self, words):
        self.note("notifications/progress", {
            "progressToken": self.progress_token, "progress": len(self.messages),
            "message": words})

    def end(self, words):
        content = [{"type": "text", "text": words}]
        self.add({"id": self.id, "result": {"content": content}})

    def cut(self):
        """Ends the streams that have sent all messages so far."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()

    def wait(self, sent, cuts):
        """Returns the messages after the first `sent` ones; None = the stream is cut."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.messages) > sent or self.cuts > cuts)
            return self.messages[sent:] or None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, message=None, **headers):
        body = json.dumps(message).encode() if message else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, message, result, **headers):
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result},
                    **headers)

    def refuse(self, message, code, words):
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"],
                          "error": {"code": code, "message": words}})

    def stream(self, job, sent, cuts):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while (fresh := job.wait(sent, cuts)) is not None:
            for message in fresh:
                sent += 1
                self.wfile.write(f"id: {sent}\ndata: {json.dumps(message)}\n\n".encode())
                self.wfile.flush()
                if "result" in message:
                    return

    def do_GET(self):
        self.answer(405)

    def do_DELETE(self):
        self.answer(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, server = message.get("method"), self.server
        if "id" not in message or not method:
            self.answer(202)
        elif method == "initialize":
            server.declared = message["params"]["capabilities"]
            self.result(message, {
                "protocolVersion": VERSION, "capabilities": {"tools": {}},
                "serverInfo": {"name": "resumable", "version": "1"}},
                Mcp_Session_Id=uuid.uuid4().hex)
        elif method == "tools/list":
            self.result(message, {"tools": [
                {"name": "later", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            job = Job(message)
            server.jobs[job.token] = job
            server.calls.put(job)
            self.stream(job, 0, 0)
        elif method == "requests/resume":
            job = server.jobs.get(message["params"]["resumeToken"])
            if job and job.id == message["id"]:
                sent, cuts = int(self.headers.get("Last-Event-ID", 0)), job.cuts
                server.resumed.put(sent)
                self.stream(job, sent, cuts)
            else:
                self.refuse(message, -32602, "Unknown request")
        else:
            self.refuse(message, -32601, "Method not found")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.declared = {}
        self.jobs = {}
        self.calls = queue.Queue()  # each call that came
        self.resumed = queue.Queue()  # the last message that each resume had
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def handle_error(self, request, address):
        pass  # the proxy was killed

    def wait_call(self):
        return self.calls.get(timeout=peers.PATIENCE)

    def wait_resume(self):
        return self.resumed.get(timeout=peers.PATIENCE)

    def close(self):
        self.shutdown()
        self.thread.join()
        self.server_close()
