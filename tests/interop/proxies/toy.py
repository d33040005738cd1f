"""A toy upstream for the self-test: a server on sockets that streams SSE, chunked to a
client of HTTP/1.1.

    /steps     the next event is sent when the last one was reported as received
    /buffered  the same without X-Accel-Buffering: no
    /silent    one event, then nothing for `quiet` seconds, then the last one

It notes what it saw of each request.
"""
import queue
import socket
import threading

EVENTS = 5
STEP_SECONDS = 10
CLOSED_SECONDS = 20


class Seen:
    """One request."""

    def __init__(self, line):
        self.line = line
        self.late = 0  # events whose arrival was not reported in time
        self.closed = False  # closed by the proxy, in the middle of the stream


class Toy:
    def __init__(self, quiet=0.0, step_seconds=STEP_SECONDS):
        self.quiet = quiet
        self.step_seconds = step_seconds
        self.arrived = queue.Queue()
        self.done = queue.Queue()  # items: Seen
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # close() alone would leave accept() waiting.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            head = read_request(client)
            if not head:
                return  # a check whether the port is open
            seen = Seen(head.split("\r\n")[0])
            try:
                self.answer(client, seen)
            except OSError:
                seen.closed = True
            self.done.put(seen)

    def answer(self, client, seen):
        path, version = seen.line.split()[1:3]
        chunked = version == "HTTP/1.1"
        head = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream",
                "Cache-Control: no-store", "Connection: close"]
        if path != "/buffered":
            head.append("X-Accel-Buffering: no")
        if chunked:
            head.append("Transfer-Encoding: chunked")
        client.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        if path == "/silent":
            self.be_silent(client, seen, chunked)
        else:
            self.step(client, seen, chunked)
        if chunked and not seen.closed:
            client.sendall(b"0\r\n\r\n")

    def step(self, client, seen, chunked):
        for number in range(EVENTS):
            send_event(client, number, chunked)
            try:
                while self.arrived.get(timeout=self.step_seconds) != number:
                    pass
            except queue.Empty:
                seen.late += 1

    def be_silent(self, client, seen, chunked):
        send_event(client, 0, chunked)
        client.settimeout(self.quiet)
        try:
            seen.closed = client.recv(1) == b""
        except socket.timeout:
            client.settimeout(None)
            send_event(client, 1, chunked)


def read_request(client):
    """Reads the body of a request, too; returns its head, or "" when none came."""
    client.settimeout(CLOSED_SECONDS)
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(4096)
        if not more:
            return ""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.decode().split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    while len(body) < length:
        body += client.recv(4096)
    client.settimeout(None)
    return head.decode()


def send_event(client, number, chunked):
    event = b"data: %d\n\n" % number
    client.sendall(b"%x\r\n%s\r\n" % (len(event), event) if chunked else event)
