"""Stands between an HTTP server on loopback and its clients, and records what both
send.

    http_tap.py [--cut] LOG PORT

Prints its own port. Connection N is recorded in LOG.N.up and LOG.N.down, byte for byte;
when one side ends, the other side is ended, too. With --cut the relayed bytes arrive in
small pieces of changing size. POST /cut is for the tap itself: it breaks all other
connections. Standard library only.
"""
import asyncio
import contextlib
import socket
import sys

CUTS = (1, 2, 3, 5, 8, 13, 4096, 1, 60000)


def pieces(data, cut):
    if not cut:
        return [data]
    parts, at, turn = [], 0, len(data)
    while at < len(data):
        size = CUTS[turn % len(CUTS)]
        parts.append(data[at:at + size])
        at, turn = at + size, turn + 1
    return parts


async def relay(source, sink, path, cut, data=b""):
    """Relays `data` and then bytes until the end; it passes the end on, too."""
    with open(path, "wb") as log, contextlib.suppress(OSError):
        while data := data or await source.read(256 * 1024):
            log.write(data)
            log.flush()
            for piece in pieces(data, cut):
                sink.write(piece)
                await sink.drain()
            data = b""
        sink.write_eof()


class Tap:
    def __init__(self, prefix, port, cut):
        self.prefix, self.port, self.cut = prefix, port, cut
        self.count = 0
        self.open = set()

    async def serve(self, client_in, client_out):
        first = await client_in.read(256 * 1024)
        if first.startswith(b"POST /cut "):
            for out in self.open:
                out.transport.abort()
            client_out.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            client_out.close()
        elif first:
            await self.relay(client_in, client_out, first)
        else:
            client_out.close()

    async def relay(self, client_in, client_out, first):
        self.count += 1
        path = f"{self.prefix}.{self.count:04}"
        try:
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:  # the server is not there: the tap closes as well
            client_out.transport.abort()
            return
        for out in (client_out, server_out):
            out.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open |= {client_out, server_out}
        up = asyncio.create_task(
            relay(client_in, server_out, path + ".up", self.cut, first))
        down = asyncio.create_task(
            relay(server_in, client_out, path + ".down", self.cut))
        await down  # a server that has ended its answers reads no more
        up.cancel()
        self.open -= {client_out, server_out}
        for out in (client_out, server_out):
            out.close()


async def main():
    args = sys.argv[1:]
    cut = args[0] == "--cut"
    prefix, port = args[cut:]
    tap = Tap(prefix, int(port), cut)
    server = await asyncio.start_server(tap.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
