"""Clients and servers that nobody here wrote, with segue-proxy between them: each step
gives what it gives without the proxy.

    through.py PROXY [--short] [--packages | --others] UPSTREAM

Prints one line of JSON per step, as cells.py does. through_upstreams.py has the servers,
the clients and the steps. --packages and --others select clients and servers as run
does. The client that is not connected through the proxy is the reference; it
has the same era where the server knows it, otherwise legacy. A step fails when the
answers differ in anything but DIFFERENCES.
"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import peers
import through_upstreams as table

IN_FRONT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../proxy/in_front.py")
STEP_SECONDS = 300  # the time that the clients give each step, and the connection
# Members that belong to the connection, not to the answer. The proxy offers any call as a
# task, so it has an "execution" of its own.
DIFFERENCES = {"resultType", "ttlMs", "cacheScope", "nextCursor", "execution"}
OWN_META = "io.modelcontextprotocol/"
PAGE = b"<html><head><title>Page</title></head><body><p>Words.</p></body></html>"


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


def serve_page():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def fill(value, places):
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, list):
        return [fill(one, places) for one in value]
    if isinstance(value, dict):
        return {name: fill(one, places) for name, one in value.items()}
    return value


def common(value):
    """Leaves out what belongs to the connection."""
    if isinstance(value, list):
        return [common(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, one in value.items():
        if name == "_meta":
            one = {key: part for key, part in one.items() if not key.startswith(OWN_META)}
            if not one:
                continue
        if name not in DIFFERENCES:
            found[name] = common(one)
    return found


def said_by(text):
    """Returns the line that tells an error, or the last one: Node's last line is its
    version."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line]
    return [*lines[-1:], *errors][-1] if lines else "nothing on standard error"


def record(client, era, target, steps):
    """Returns what a client got, one object per step, and why it ended early."""
    child = subprocess.run([*client, era, *target], input=json.dumps(steps), text=True,
                           capture_output=True,
                           timeout=STEP_SECONDS * (len(steps) + 2))
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    return lines, f"it ended with {child.returncode}: {said_by(child.stderr)}"


def steps_of(upstream, client):
    return [step for step in upstream.steps
            if client.one_session or step[-1] not in upstream.remembered]


class Play:
    """A server in a directory of its own; used once, because calls change things."""

    def __init__(self, upstream, page, client):
        self.directory = tempfile.TemporaryDirectory(prefix="segue-through.")
        path = os.path.realpath(self.directory.name)
        if upstream.prepare:
            upstream.prepare(path)
        self.places = {"dir": path, "page": page}
        self.command = fill(upstream.command, self.places)
        self.steps = fill(steps_of(upstream, client), self.places)
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.terminate()
            child.communicate()
        self.directory.cleanup()

    def url_of(self, command):
        """Starts a program that prints a URL, and returns the URL."""
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.insert(0, child)
        return child.stdout.readline().strip()

    def read(self, told):
        """Returns the lines without what belongs to this play, and why they ended."""
        lines, problem = told
        path = re.escape(os.path.basename(self.places["dir"]))
        text = re.sub(path, "DIRECTORY", json.dumps(common(lines)))
        return json.loads(text), problem


def directly(upstream, page, client, era):
    with Play(upstream, page, client) as play:
        target = upstream.reference or play.command
        if upstream.listens and not upstream.reference:
            target = [play.url_of(play.command)]
        return play.read(record(client.command, era, target, play.steps))


def over_stdio(upstream, page, client, era, proxy):
    with Play(upstream, page, client) as play:
        target = [play.url_of(play.command)] if upstream.listens \
            else ["--", *play.command]
        return play.read(record(client.command, era, [proxy, *target], play.steps))


def over_http(upstream, page, client, era, proxy):
    kind = "http" if upstream.listens else "stdio"
    with Play(upstream, page, client) as play:
        url = play.url_of([sys.executable, "-B", IN_FRONT, proxy, "--", kind,
                           *play.command])
        return play.read(record(client.command, era, [url], play.steps))


def is_failure(line):
    result = line.get("result")
    return "error" in line or (isinstance(result, dict)
                               and result.get("isError") is True)


def is_same(upstream, step, wanted, got):
    """An error is an error in both; its words may name the upstream. An older server may
    tell with isError what the proxy tells with an error, that there is no such tool. A
    client of 2026-07-28 need not ask who the server is."""
    if step == ["hello"] and not got.get("result", {}).get("name"):
        return "result" in got
    if "error" in wanted or "error" in got:
        return is_failure(wanted) and is_failure(got)
    if step == ["tools/list"] and upstream.offers_more:
        return all(tool in got["result"] for tool in wanted["result"])
    return wanted == got


def compare(upstream, steps, wanted, got):
    """Yields (what, reason) for each step; the reason is None when it is well."""
    (wanted, problem), (got, why) = wanted, got
    for number, step in enumerate(steps):
        what = " ".join(str(word) for word in step[:2])
        if number >= len(wanted):
            yield what, f"missing: without the proxy: {problem}"
        elif is_failure(wanted[number]) and not isinstance(step, table.Failing):
            yield what, f"missing: without the proxy: {json.dumps(wanted[number])[:300]}"
        elif number >= len(got):
            yield what, why
        elif is_same(upstream, step, wanted[number], got[number]):
            yield what, None
        else:
            yield what, (f"{json.dumps(got[number])[:700]}, not "
                         f"{json.dumps(wanted[number])[:700]}")


PACKAGES = [client for client in table.CLIENTS if not client.place]
OTHERS = [client for client in table.CLIENTS if client.place]


def short_plays(upstream, options):
    """Yields two plays with clients that are packages, one for each era and one for each
    transport, and one play with another client; the upstreams take turns with clients
    and eras."""
    at = table.UPSTREAMS.index(upstream)
    transports = ("stdio", "http")
    if is_of_this_half(upstream.place, options):
        yield PACKAGES[1], "modern", transports[at % 2]
        yield PACKAGES[at % len(PACKAGES)], "legacy", transports[(at + 1) % 2]
    if "--packages" not in options:
        turn = at // len(OTHERS)
        yield OTHERS[at % len(OTHERS)], peers.BOTH[turn % 2], transports[(at + turn) % 2]


def is_of_this_half(needs_more, options):
    return ("--packages" if needs_more else "--others") not in options


def plays(upstream, options):
    """Yields (client, era, transport): all of them, or in the short form a few."""
    if "--short" in options:
        yield from short_plays(upstream, options)
        return
    for client in table.CLIENTS:
        for era in client.eras:
            for transport in ("stdio", "http"):
                if is_of_this_half(upstream.place or client.place, options):
                    yield client, era, transport


def say(what, reason):
    line = {"what": what, "state": "green"}
    if reason:
        missing = reason.startswith("missing: ")
        line["state"] = "missing" if missing else "FAILED"
        line["reason"] = reason.removeprefix("missing: ")
    print(json.dumps(line), flush=True)


def main():
    proxy, *rest = sys.argv[1:]
    upstream = next(one for one in table.UPSTREAMS if one.name == rest[-1])
    if upstream.lack:
        say("all cells", "missing: " + upstream.lack)
        return
    page = serve_page()
    references = {}
    for client, era, transport in plays(upstream, rest):
        row = f"{client.name} {era} | {transport}"
        if client.lack:
            say(f"{row} | all cells", "missing: " + client.lack)
            continue
        known = era if upstream.modern else "legacy"
        if (client.name, known) not in references:
            references[client.name, known] = directly(upstream, page, client, known)
        through = over_stdio if transport == "stdio" else over_http
        got = through(upstream, page, client, era, proxy)
        steps = steps_of(upstream, client)
        for what, reason in compare(upstream, steps, references[client.name, known], got):
            say(f"{row} | {what}", reason)


main()
