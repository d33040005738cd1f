"""Runs named checks and prints one JSON line for each. A check passes when it returns; it
raises Missing when the peer lacks the feature, anything else is a failure."""
import json
import sys
import urllib.parse

import anyio


class Missing(Exception):
    pass


def equal(actual, expected, what="value"):
    if actual != expected:
        raise AssertionError(f"{what} is {str(actual)[:200]}, not {str(expected)[:200]}")


async def until(check, what):
    for _ in range(500):
        if check():
            return
        await anyio.sleep(0.01)
    raise AssertionError(f"{what} did not happen")


async def cut_connections(url):
    """Makes the tap in front of the server at that URL end all other connections."""
    place = urllib.parse.urlsplit(url)
    async with await anyio.connect_tcp(place.hostname, place.port) as tap:
        await tap.send(b"POST /cut HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        equal((await tap.receive()).split()[1], b"204", "the answer of the tap")


async def rejection(awaitable):
    try:
        await awaitable
    except Exception as error:
        return error
    raise AssertionError("it was not refused")


def explain(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text[:300]


async def run_cells(cells, seconds=30):
    for what, check in cells:
        line = {"what": what, "state": "green"}
        try:
            with anyio.fail_after(seconds):
                await check()
        except Exception as error:
            line["state"] = "missing" if isinstance(error, Missing) else "FAILED"
            line["reason"] = explain(error)
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


class Cells(list):
    """A list of (name, check), filled by a decorator."""

    def add(self, what, when=True):
        def decorate(check):
            if when:
                self.append((what, check))
            return check

        return decorate
