#!/usr/bin/env python3
"""Segue's HTTP request reader compared with llhttp (Node) and http-parser, over the
fuzz corpus and mutants of it.

A request that Segue accepts must be accepted by both others with the same method,
target, headers and body, must end at the same byte, and both must decide the same about
keeping the connection. When Segue refuses a request that one of them accepts, a rule
below must explain it: an intended strictness, which finds its own evidence in the bytes
of that request. Where Segue waits for more, the others must wait, too. A difference
without explanation fails the run, and so does a rule that was never needed.

    run.py [--count N] [--seconds S] [--seed S] [--keep]    N mutants, 100000 by default
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "tests/fuzz"))
import corpus  # noqa: E402
CONTROL_BYTES = 4  # control bytes of a fuzz input, before the bytes of the connection
BATCH = 10000
TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
VISIBLE = rb"[^\0-\x08\x0a-\x1f\x7f]"
EXTENSION = rb';%s(=(%s|"((?!["\\])%s|\\%s)*"))?' % (TOKEN, TOKEN, VISIBLE, VISIBLE)
BOTH = ("node", "http-parser")


class Facts:
    """One request, cut by simple means to find evidence in: raw bytes, first line,
    header lines, the rest behind the head."""

    def __init__(self, raw):
        self.raw = raw
        text = raw.lstrip(b"\r\n")
        parts = re.split(rb"\r?\n\r?\n", text, maxsplit=1)
        self.lines = re.split(rb"\r?\n", parts[0])
        self.first, self.headers = self.lines[0], self.lines[1:]
        self.rest = parts[1] if len(parts) > 1 else b""

    def values(self, name):
        pairs = (line.split(b":", 1) for line in self.headers if b":" in line)
        return [value.strip(b" \t\r") for key, value in pairs
                if key.strip(b" \t").lower() == name]

    def has(self, pattern, where=None):
        return re.search(pattern, self.raw if where is None else where, re.S | re.I)

    def any_line(self, pattern):
        """Returns whether a line of the head, or of possible trailers, matches."""
        lines = self.headers + re.split(rb"\r?\n", self.rest)
        return any(re.search(pattern, line, re.S) for line in lines)

    def any_header(self, pattern):
        return any(re.search(pattern, line, re.S) for line in self.headers)

    def target(self):
        return (self.first.split(b" ") + [b""])[1]

    def is_old(self):
        return self.first.endswith(b"HTTP/1.0")


def is_host(text):
    return re.fullmatch(rb"(\[[0-9A-Fa-f:.]{2,}\]|[A-Za-z0-9._~-]+)(:\d{0,5})?", text)


def authority(facts):
    found = re.match(rb"https?://([^/?]*)", facts.target(), re.I)
    return found and found[1]


def options(facts):
    return b",".join(facts.values(b"connection")).split(b",")


def bad_chunk_line(facts, pattern):
    """Returns whether a chunked body has a line of this form that may belong to a
    chunk."""
    return facts.values(b"transfer-encoding") and any(
        re.fullmatch(pattern, line, re.S) for line in facts.rest.split(b"\r\n"))


def loose_chunk(body):
    """Returns whether the data of a chunk has something other than CR LF behind it."""
    at = 0
    while line := re.compile(rb"([0-9A-Fa-f\x80-\xff]+)[^\n]*\n").match(body, at):
        size = int(re.sub(rb"[\x80-\xff]", b"0", line[1]), 16)
        at = line.end() + size + 2
        if not size or at > len(body):
            return False
        if body[at - 2:at] != b"\r\n":
            return True
    return False


# Rules that not every version of the other parsers needs: llhttp 9.3 or 9.4.
BY_VERSION = {"the value of Content-Length is followed by a tab",
              "the value of Transfer-Encoding is followed by a tab",
              "Content-Length and Transfer-Encoding must not both be sent"}
WAITING = "more is waited for"  # Segue's answer in place of a fault

# (Segue's fault, who may accept the request, why refusing is right, evidence).
REFUSED = [
    ("a line is not ended by CR LF", BOTH, "CR or LF alone may be a line end or not",
     lambda f: f.has(rb"(?<!\r)\n|\r[^\n]") or loose_chunk(f.rest)),
    (WAITING, ("http-parser",), "CR alone ends no line, nor does CR and a byte",
     lambda f: f.has(rb"\r[^\n]")),
    ("the input is not HTTP", BOTH, "LF alone is no empty line",
     lambda f: f.has(rb"^(\r\n){0,2}\n")),
    ("the HTTP method has a character that is not allowed", BOTH,
     "CR alone is no empty line",
     lambda f: f.has(rb"^(\r\n){0,2}\r+(?!\n)")),
    ("there are too many empty lines before the request", BOTH, "two are enough",
     lambda f: f.has(rb"^(\r\n){3}")),
    ("the request target has a byte that is not allowed", BOTH,
     "blanks, controls, fragments and bytes beyond ASCII stand in no target",
     lambda f: not re.fullmatch(rb"\S+ [!-\"$-~]+ [^ ]*", f.first)),
    ("the request line has no HTTP version", BOTH, "no HTTP/0.9, and one blank before it",
     lambda f: not re.fullmatch(rb"[^ ]+ [^ ]+ HTTP/\d\.\d", f.first)),
    ("only HTTP/1.1 and HTTP/1.0 are supported", BOTH, "others mean other things",
     lambda f: re.search(rb" HTTP/(?!1\.[01])\d\.\d$", f.first)),
    ("the method CONNECT is not supported", BOTH, "CONNECT has no path",
     lambda f: f.first.startswith(b"CONNECT ")),
    ("a header is continued on a second line", ("http-parser",), "RFC 9112 5.2",
     lambda f: f.any_line(rb"^[ \t]")),
    ("a header name has a character that is not allowed", ("http-parser",),
     "CR alone ends nothing",
     lambda f: f.any_line(rb"^\r")),
    ("a header name is followed by a blank", ("http-parser",), "RFC 9112 5.1",
     lambda f: f.any_line(rb"^[^:]*[ \t][^:]*(:|$)")),
    ("a header value has a control character", ("http-parser",), "RFC 9110 5.5",
     lambda f: f.any_line(rb"[\0-\x08\x0a-\x1f\x7f]")),
    ("the request has no Host header", BOTH, "RFC 9112 3.2",
     lambda f: not f.values(b"host")),
    ("the request has several Host headers", BOTH, "RFC 9112 3.2",
     lambda f: len(f.values(b"host")) > 1),
    ("the Host header is malformed", BOTH, "RFC 9112 3.2",
     lambda f: not all(map(is_host, f.values(b"host")))),
    ("the request target is neither a path nor a URL", BOTH, "RFC 9112 3.2",
     lambda f: not re.match(rb"/|https?://", f.target(), re.I) and
     (f.target() != b"*" or not f.first.startswith(b"OPTIONS "))),
    ("the host in the request target is malformed", BOTH, "RFC 9112 3.2.2",
     lambda f: authority(f) is not None and not is_host(authority(f))),
    ("the request target and the Host header name different hosts", BOTH,
     "one of two machines takes the other one",
     lambda f: authority(f) and
     authority(f).lower() not in [value.lower() for value in f.values(b"host")]),
    ("the Connection header is malformed", BOTH, "RFC 9110 7.6.1",
     lambda f: any(option.strip(b" \t") and not re.fullmatch(TOKEN, option.strip(b" \t"))
                   for option in options(f))),
    ("the value of Content-Length is followed by a tab", ("node",),
     "older ones refuse it",
     lambda f: f.any_header(rb"^(?i:content-length):[^\t]*\d *\t")),
    ("the value of Transfer-Encoding is followed by a tab", ("node",),
     "beside Upgrade it looks at no coding",
     lambda f: f.any_header(rb"^(?i:transfer-encoding):[^\t]*chunked *\t") and
     f.values(b"upgrade")),
    ("Content-Length and Transfer-Encoding must not both be sent", BOTH, "RFC 9112 6.1",
     lambda f: f.values(b"content-length") and f.values(b"transfer-encoding")),
    ("Transfer-Encoding is not allowed in HTTP/1.0", BOTH, "RFC 9112 6.1",
     lambda f: f.is_old() and f.values(b"transfer-encoding")),
    ("Transfer-Encoding is repeated", BOTH, "chunked twice is an error",
     lambda f: len(f.values(b"transfer-encoding")) > 1),
    ("the only supported transfer coding is chunked", BOTH, "we undo no other",
     lambda f: set(map(bytes.lower, f.values(b"transfer-encoding"))) - {b"chunked"}),
    ("the only supported value of Expect is 100-continue", BOTH, "RFC 9110 10.1.1",
     lambda f: f.values(b"expect") and
     [value.lower() for value in f.values(b"expect")] != [b"100-continue"]),
    ("the size of a chunk is malformed", BOTH,
     "1*HEXDIG, 16 are enough; http-parser takes bytes beyond ASCII for the digit 0",
     lambda f: bad_chunk_line(f, rb"[0-9A-Fa-f]{17,}.*|[0-9A-Fa-f]*[\x80-\xff].*")),
    ("the extension of a chunk is malformed", BOTH, "RFC 9112 7.1.1, without blanks",
     lambda f: f.has(rb"\r[^\n]", f.rest) or bad_chunk_line(
         f, rb"[0-9A-Fa-f]+(?!(%s)*$)[; \t\x80-\xff].*" % EXTENSION)),
    ("a chunk is longer than its size", ("http-parser",), "any two bytes will do for it",
     lambda f: loose_chunk(f.rest)),
    ("the extensions of chunks are too long", BOTH, "1 KiB is enough",
     lambda f: sum(map(len, re.findall(rb";[^\r\n]*", f.rest))) > 1024),
    ("a trailer has the name of a header that must not be a trailer", BOTH,
     "RFC 9110 6.5.1",
     lambda f: f.has(rb"\n(host|accept|expect|origin|mcp-(name|method|session-id|"
                     rb"protocol-version)|connection|content-(type|length)|"
                     rb"authorization|last-event-id|transfer-encoding):", f.rest)),
]

CLOSE_SEEN = "we see close also among tabs, empty elements and other options"

# (who, why one keeps the connection and the other closes it, evidence).
KEPT = [
    (BOTH, "Proxy-Connection is no header of HTTP, they take it for Connection",
     lambda f: f.values(b"proxy-connection") or f.has(rb"\nproxy-connection:", f.rest)),
    (BOTH, "HTTP/1.0: they overlook keep-alive beside a tab or an empty element",
     lambda f: f.is_old() and
     f.any_header(rb"^(?i:connection):([ \t]*,|.*(\t|,[ \t]*(,|$)))")),
    (BOTH, CLOSE_SEEN,
     lambda f: b"close" in [option.strip(b" \t").lower() for option in options(f)]),
]

# (who refuses, why Segue accepts, evidence).
ACCEPTED = [
    (("http-parser",), "it takes names that begin with Transfer-Encoding for it",
     lambda f: f.any_header(rb"^(?i:transfer-encoding)[^: \t]")),
    (BOTH, "any token is a method, they have a list",
     lambda f: not re.match(METHODS, f.first)),
]

METHODS = rb"(DELETE|GET|HEAD|POST|PUT|OPTIONS|TRACE|PATCH|PURGE) "


def name_of(rule):
    return rule[0] if isinstance(rule[0], str) else rule[1]


def explain(rules, who, facts, used, said=None):
    for rule in rules:
        if rule[1] == CLOSE_SEEN and said != "close":
            continue
        judges, evidence = (rule[1], rule[3]) if rules is REFUSED else (rule[0], rule[2])
        if rules is REFUSED and said != rule[0]:
            continue
        if who in judges and evidence(facts):
            used[(name_of(rule), who)] += 1
            return True
    return False


def plain(request):
    """Returns the parts that both must agree on, in one form."""
    return (request["method"], request["target"], request["body"], request["end"],
            [[name.lower(), value.strip(" \t")] for name, value in request["headers"]])


def compare(document, ours, who, theirs, used):
    """Returns a complaint, or None; counts the rules that it needed in `used`."""
    start, facts = 0, None
    for i, mine in enumerate(ours["requests"]):
        before, facts = facts, Facts(document[start:mine["end"]])
        if i >= len(theirs["requests"]):
            # Node changes its decision about the earlier request when trailers come.
            if before and theirs["fault"] in ("HPE_CLOSED_CONNECTION", "stopped") and \
                    explain(KEPT, who, before, used):
                return None
            if explain(ACCEPTED, who, facts, used):
                return None
            return f"request {i}: we accept, it says {theirs['fault'] or 'more'}"
        other = theirs["requests"][i]
        if plain(mine) != plain(other):
            return f"request {i}: we read {plain(mine)}, it reads {plain(other)}"
        if mine["keeps"] != other["keeps"]:
            said = "keep" if mine["keeps"] else "close"
            if explain(KEPT, who, facts, used, said):
                return None
            return f"request {i}: keep-alive is {mine['keeps']} and {other['keeps']}"
        if not mine["keeps"]:
            return None
        start = mine["end"]
    if len(theirs["requests"]) == len(ours["requests"]):
        return None
    extra = theirs["requests"][len(ours["requests"])]
    facts = Facts(document[start:extra["end"]])
    said = ours["fault"] or WAITING
    if explain(REFUSED, who, facts, used, said):
        return None
    return f"we say {said!r}, it accepts {plain(extra)}"


LINES = [
    b"Host: a", b"Host: b", b"Host: a:80", b"host:a", b"Host: [::1]:8080", b"Host:",
    b"Host: a,b", b"Host: u@a", b"Content-Length: 3", b"Content-Length: 0",
    b"Content-Length: 5", b"Content-Length: 03", b"Content-Length: 3, 3",
    b"Content-Length: +3", b"Content-Length: 3 ", b"Content-Length: 0x3",
    b"Content-Length: 18446744073709551619", b"Content-Length:", b"content-length:3",
    b"Content-Length : 3", b"Content-Length\t: 3", b" Content-Length: 3",
    b"Transfer-Encoding: chunked", b"transfer-encoding: CHUNKED",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity", b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked;a", b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding:", b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: chunk\r\n ed", b"Connection: close", b"Connection: keep-alive",
    b"Connection: Keep-Alive, Close", b"Connection: upgrade", b"Connection: te, close",
    b"Connection: close;x", b"Connection: clos", b"Connection: ,close,", b"Connection:",
    b"Connection: close x", b"Connection: closex, keep-alive", b"connection:\tclose\t",
    b"Connection: keep-alive-ish", b"Connection: xclose", b"Connection: close upgrade",
    b"Content-Length: 3\t", b"Content-Length:\t3", b"Transfer-Encoding: \tchunked",
    b"Transfer-Encoding: chunked \t", b"Expect:\t100-continue\t", b"Host:\ta\t",
    b"Proxy-Connection: close", b"Proxy-Connection: keep-alive", b"Keep-Alive: 300",
    b"Upgrade: h2c", b"Upgrade: websocket", b"Expect: 100-continue", b"Expect: x",
    b"X: y", b"X:", b"X: \xc3\xa4", b"X: a\tb", b"X: a\0b", b"X: a\x7fb", b"X: a\x01b",
    b"X", b": y", b"X Y: z", b"X\0: y", b"X(: y", b"X: a\rb", b"X: a\r", b"X: a\r\n\tb",
    b"X: y  \t ", b"Accept: */*", b"Mcp-Method: tools/call", b"TE: trailers",
]
FIRSTS = [
    b"GET / HTTP/1.1", b"POST /mcp HTTP/1.1", b"POST / HTTP/1.0", b"DELETE /a HTTP/1.1",
    b"OPTIONS * HTTP/1.1", b"HEAD / HTTP/1.1", b"PUT / HTTP/1.1", b"GET  / HTTP/1.1",
    b"GET /  HTTP/1.1", b"GET / HTTP/1.1 ", b"GET /?a=b?c HTTP/1.1", b"GET /#a HTTP/1.1",
    b"GET http://a/ HTTP/1.1", b"GET http://a:80/x?y HTTP/1.1", b"GET HTTPS://a HTTP/1.1",
    b"GET http://b/ HTTP/1.1", b"GET http://u@a/ HTTP/1.1", b"GET //a HTTP/1.1",
    b"GET * HTTP/1.1", b"get / HTTP/1.1", b"GET /\xc3\xa4 HTTP/1.1", b"GET / HTTP/1.2",
    b"GET / HTTP/2.0", b"GET / HTTP/0.9", b"GET /", b"CONNECT a:443 HTTP/1.1",
    b"CONNECT / HTTP/1.1", b"PRI * HTTP/2.0", b"GET /a b HTTP/1.1", b"GET\t/ HTTP/1.1",
    b"GET /\"<>\\^`{|} HTTP/1.1", b"PATCH / HTTP/1.1", b"FOO / HTTP/1.1",
    b"GET ftp://a/ HTTP/1.1", b"GET http://[::1]:80/ HTTP/1.1",
    b"GET http://a?b HTTP/1.1",
]
BODIES = [
    b"", b"abc", b"abcde", b"0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n",
    b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"3;a=b\r\nabc\r\n0;c\r\n\r\n",
    b"3;a=\"b;\\\"\"\r\nabc\r\n0\r\n\r\n", b"3 ;a\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\r\n\r\n", b"0\r\nContent-Length: 3\r\n\r\n",
    b"0\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\nConnection: close\r\n\r\n",
    b"03\r\nabc\r\n000\r\n\r\n", b"3\nabc\n0\n\n", b"3\r\nabcd\r\n0\r\n\r\n",
    b"0x3\r\nabc\r\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n", b"A\r\n0123456789\r\n0\r\n\r\n",
    b"00000000000000003\r\nabc\r\n0\r\n\r\n", b"0000000000000003\r\nabc\r\n0\r\n\r\n",
    b"10000000000000003\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc\r\n0\r\n\r\n",
    b"3;\r\nabc\r\n0\r\n\r\n", b"3;a=\r\nabc\r\n0\r\n\r\n", b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    b"3\t\r\nabc\r\n0\r\n\r\n", b"3;a = b\r\nabc\r\n0\r\n\r\n",
    b"0\r\nX: y\r\n z\r\n\r\n",
    b"3;a=\"b\"c\r\nabc\r\n0\r\n\r\n", b"3;a=\"\nb\"\r\nabc\r\n0\r\n\r\n",
    b"0\r\nUpgrade: h2c\r\n\r\n", b"0\r\nX: y\r\n\r\n\r\n", b"0\r\n X: y\r\n\r\n",
]
GOOD_FIRSTS = [
    b"GET / HTTP/1.1", b"POST /mcp HTTP/1.1", b"DELETE /a HTTP/1.1", b"HEAD / HTTP/1.1",
    b"OPTIONS * HTTP/1.1", b"PUT /?a=b?c HTTP/1.1", b"GET http://a/ HTTP/1.1",
    b"GET http://A:80/x?y HTTP/1.1", b"GET HTTPS://a HTTP/1.1", b"GET //a HTTP/1.1",
    b"GET /\"<>\\^`{|} HTTP/1.1", b"GET http://a?b HTTP/1.1",
]
GOOD_LINES = [
    b"X: y", b"X:", b"X:y", b"X: \xc3\xa4", b"X: a\tb", b"X: y  \t ", b"Accept: */*, a/b",
    b"Mcp-Method: tools/call", b"TE: trailers", b"Connection: keep-alive",
    b"Connection: te", b"Connection: closed", b"Connection: upgrade", b"Upgrade: h2c",
    b"Upgrade: websocket", b"Expect: 100-continue", b"Keep-Alive: 300", b"Trailer: X",
    b"Connection: Upgrade, HTTP2-Settings", b"!#$%&'*+-.^_`|~: x", b"Content-Type: a/b",
    b"X: Content-Length: 7", b"X: \"a\\\"b\"", b"Content-Lengt: 9", b"Content-Lengthx: 9",
    b"Transfer-Encodin: chunked", b"Transfer-Encodingx: chunked", b"Connectionx: close",
]
GOOD_CHUNKS = [
    b"0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
    b"03\r\nabc\r\n000\r\n\r\n", b"A\r\n0123456789\r\n0\r\n\r\n",
    b"b\r\n0123456789a\r\n0\r\n\r\n", b"4\r\n\r\n\r\n\r\n0\r\n\r\n",
    b"3;a=b\r\nabc\r\n0;c\r\n\r\n", b"3;a=\"b;\\\"\"\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\r\nZ:\r\n\r\n", b"0\r\nUpgrade: h2c\r\n\r\n",
    b"0000000000000003\r\nabc\r\n0\r\n\r\n", b"0\r\nProxy-Connection: close\r\n\r\n",
]
BITS = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b":", b",", b";", b"\0", b"\x7f",
    b"\x0b", b"\x80", b"0", b"1", b"f", b"HTTP/1.1", b"close", b"chunked", b"/", b"*",
    b"http://", b"\"", b"\\", b"=", b"#", b"?", b"@", b"[", b"]", b"GET / HTTP/1.1\r\n",
]


def compose(chance):
    """Makes requests of parts, most of them valid."""
    document = chance.choice((b"", b"", b"", b"\r\n", b"\r\n\r\n", b"\r\n" * 3, b"\n",
                              b"\r"))
    for _ in range(chance.choice((1, 1, 2, 3))):
        good = chance.randrange(3) > 0
        lines = [chance.choice(GOOD_FIRSTS if good else FIRSTS)]
        lines += [b"Host: a"] * (good or bool(chance.randrange(8)))
        framing = chance.randrange(3)
        lines += [[], [b"Content-Length: 3"], [b"Transfer-Encoding: chunked"]][framing]
        lines += chance.sample(GOOD_LINES if good else LINES,
                               chance.choice((0, 0, 1, 1, 2, 4)))
        chance.shuffle(rest := lines[1:])
        end = b"\r\n" if good or chance.randrange(10) else b"\n"
        document += end.join([lines[0], *rest]) + end * 2
        if good or chance.randrange(2):
            document += chance.choice(
                ((b"",), (b"abc", b"abc\r\n"), GOOD_CHUNKS)[framing])
        else:
            document += chance.choice(BODIES)
    return document


def mutate(chance, document, other):
    """Changes some bytes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(document) + 1)
        to = min(len(document), at + chance.choice((1, 1, 2, 4, 16)))
        kind = chance.randrange(7)
        if kind == 0:
            document = document[:at] + bytes([chance.randrange(256)]) + document[at + 1:]
        elif kind == 1:
            document = document[:at] + document[to:]
        elif kind == 2:
            document = document[:at] + chance.choice(BITS) + document[at:]
        elif kind == 3:
            document = document[:at] + chance.choice(BITS) + document[to:]
        elif kind == 4:
            document = document[:to] + document[at:]
        elif kind == 5 and other:
            start = chance.randrange(len(other))
            document = document[:at] + other[start:start + chance.randrange(1, 40)] + \
                document[chance.choice((at, to)):]
        elif kind == 6 and b"\r\n" in document:
            # At the ends of lines, where parsers differ.
            at = chance.choice([m.start() for m in re.finditer(rb"\r\n", document)])
            document = document[:at] + chance.choice(BITS) + \
                document[at + chance.choice((0, 1, 2)):]
    return document


def documents(count, seed, until):
    stored = [data[CONTROL_BYTES:] for data in corpus.read("http1").values()]
    yield from stored
    chance = random.Random(seed)
    for _ in range(count):
        if until and time.monotonic() > until:
            return
        document = compose(chance) if chance.randrange(4) else chance.choice(stored)
        if chance.randrange(2):
            document = mutate(chance, document, chance.choice(stored))
        yield document


def build(scratch):
    cc = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2"]
    flags += ["-I", TOP / "core/include", "-I", TOP / "core"]
    sources = sorted((TOP / "core/wire").glob("http1*.c"))
    sources += [TOP / f"core/base/{name}.c" for name in ("mem", "buf")]
    subprocess.run([*cc, *flags, HERE / "ours.c", *sources, "-o", scratch / "ours"],
                   check=True)
    subprocess.run([*cc, "-std=c11", "-O2", HERE / "theirs.c", "-lhttp_parser", "-o",
                    scratch / "theirs"], check=True)


def judge(scratch, batch):
    """Returns what Segue, Node and http-parser read of each document."""
    blob = b"".join(struct.pack("<I", len(document)) + document for document in batch)
    told = []
    for command in ([scratch / "ours"], ["node", HERE / "node.mjs"],
                    [scratch / "theirs"]):
        done = subprocess.run(command, input=blob, stdout=subprocess.PIPE, check=True)
        told.append([json.loads(line) for line in done.stdout.splitlines()])
        if len(told[-1]) != len(batch):
            sys.exit("http_oracle: a judge lost documents")
    return zip(*told)


def self_check():
    """Checks that a wrong result of any of the three is noticed."""
    used = {(name_of(rule), who): 0 for rule in REFUSED + KEPT + ACCEPTED for who in BOTH}
    document = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET"
    truth = {"method": "POST", "target": "/", "body": "x", "keeps": True,
             "end": len(document) - 3,
             "headers": [["Host", "a"], ["Content-Length", "1"]]}
    told = {"requests": [truth], "fault": ""}

    def with_lie(**lie):
        return {"requests": [{**truth, **lie}], "fault": ""}

    lies = [with_lie(method="GET"), with_lie(target="/x"), with_lie(body=""),
            with_lie(keeps=False), with_lie(end=len(document)),
            with_lie(headers=[["Host", "a"]]), {"requests": [], "fault": "no"},
            {"requests": [truth, truth], "fault": ""}]
    for who in BOTH:
        if compare(document, told, who, told, used):
            sys.exit("http_oracle: the truth was not believed")
        for lie in lies:
            if not compare(document, told, who, lie, used):
                sys.exit(f"http_oracle: a lie of {who} was believed: {lie}")
        for rule in REFUSED:
            refusal = {"requests": [], "fault": rule[0]}
            if not compare(document, refusal, who, told, used):
                sys.exit(f"http_oracle: believed without evidence: {rule[0]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float, help="instead of a count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the programs")
    options = parser.parse_args()
    count = options.count
    if count is None:
        count = 10**9 if options.seconds else 100000
    until = time.monotonic() + options.seconds if options.seconds else None
    self_check()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="http_oracle_"))
    used = {(name_of(rule), who): 0 for rule in REFUSED + KEPT + ACCEPTED for who in BOTH}
    total = accepted = wrong = 0
    try:
        build(scratch)
        source = documents(count, options.seed, until)
        while batch := list(itertools.islice(source, BATCH)):
            for document, (ours, node, other) in zip(batch, judge(scratch, batch)):
                total += 1
                accepted += len(ours["requests"])
                for who, theirs in zip(BOTH, (node, other)):
                    complaint = compare(document, ours, who, theirs, used)
                    if complaint:
                        wrong += 1
                        if wrong <= 20:
                            print(f"{document!r}: {who}: {complaint}")
    finally:
        if options.keep:
            print(scratch)
        else:
            shutil.rmtree(scratch)
    for rule in REFUSED + KEPT + ACCEPTED:
        times = [used[(name_of(rule), who)] for who in BOTH]
        print(f"{times[0]:7} {times[1]:7} {name_of(rule)}")
        if not any(times) and name_of(rule) not in BY_VERSION:
            wrong += 1
            print("        a rule that nothing needed")
    print(f"{total} documents, {accepted} requests accepted, "
          f"{wrong} differences unexplained")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
