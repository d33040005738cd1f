"""A page in Chromium uses Segue's server from another origin (CORS). From an allowed
origin everything works, streams and sessions included; from another origin nothing
does.

    browser.py BIN

BIN holds fixture_server. One JSON line per check, as cells.py prints them. Without
Chromium it prints that. Standard library only.
"""
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PAGE_SECONDS = 40
WORKS = {
    "session": ["string", True, 204],
    "call": "Hello, browser!",
    "stream": ["text/event-stream", [f'"progress":{n}' for n in (1, 2, 3)], True],
    "refusal": [400, -32020],
}


class Pages(http.server.ThreadingHTTPServer):
    """Serves the page, and receives its results."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = queue.Queue()
        self.origin = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(os.path.join(HERE, "browser.html"), "rb") as file:
            self.answer(file.read())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"")
        self.server.seen.put(json.loads(body))

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def look(program, pages, endpoint):
    """Opens the page in the browser; returns its results."""
    directory = tempfile.mkdtemp(prefix="segue-browser.")
    child = subprocess.Popen(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         # without this option Chromium prints the page and ends
         "--remote-debugging-port=0",
         "--no-proxy-server", f"--user-data-dir={directory}",
         f"{pages.origin}/?endpoint={endpoint}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)  # it starts child processes, which end with it
    try:
        return pages.seen.get(timeout=PAGE_SECONDS)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        shutil.rmtree(directory, ignore_errors=True)


def report(what, state, reason=""):
    print(json.dumps({"what": what, "state": state, "reason": reason}), flush=True)


def main():
    program = next(filter(None, map(shutil.which, NAMES)), None)
    pages, others = Pages(), Pages()
    with subprocess.Popen(
            [f"{sys.argv[1]}/fixture_server", "--http", "127.0.0.1", "--cors", "1",
             "--drain", "500", "--origins", pages.origin],
            stdout=subprocess.PIPE, text=True) as server:
        endpoint = server.stdout.readline().strip()
        for what, served, wanted in (
                ("a page of an allowed origin may call", pages, WORKS),
                ("a page of another origin may not", others,
                 dict.fromkeys(WORKS, "TypeError"))):
            if not program:
                report(what, "missing", "no Chromium on this machine")
                continue
            try:
                seen = look(program, served, endpoint)
                report(what, "green" if seen == wanted else "FAILED", f"it saw {seen}"
                       if seen != wanted else "")
            except queue.Empty:
                report(what, "FAILED", f"nothing seen within {PAGE_SECONDS} s")
        server.terminate()


main()
