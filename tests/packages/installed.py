"""Uses an installed wheel as the guides show: over stdio, through the proxy, and over
HTTP with a server that is killed during a call.

    installed.py [PROXY]

PROXY is the program of another package, which is then used, too. This program runs with
the Python that has the package. tests/python/quick_start.py does the same over HTTP.
`ldd` may name no library that is outside of the package, except those of the C library.
An emulator may run the programs. Prints the time that `import segue` takes. Standard
library and segue only.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import segue

sys.path.append(str(Path(__file__).parent.parent / "python"))
from ports import free_port  # noqa: E402

SERVER = """
import segue

server = segue.Server("counter")


@server.tool(task="may")
async def count(to: int):
    for number in range(1, to + 1):
        yield f"{number}\\n"


server.run()
"""
KILLED = """
import asyncio
import sys

import segue

server = segue.Server("killed")


@server.tool(task="may", restartable=True)
async def pages(to: int, ctx: segue.Context) -> str:
    first = ctx.resumed.segments if ctx.resumed else 0
    for page in range(first, to):
        await ctx.send(f"page {page + 1}\\n")
        if page == 2 and not ctx.resumed:
            await asyncio.Event().wait()  # until the server is killed
    return "done"


server.run(http=sys.argv[1], store=sys.argv[2])
"""
# Without a vdso, as in qemu, the loader lists the file itself, too, without a name.
INSIDE_LIBC = re.compile(
    r"^(\(0x|linux-vdso|/?[\w/.-]*ld-(linux|musl)"
    r"|lib(c|m|dl|rt|pthread|resolv)\.(so|musl-))"
)
# ldd of musl misses the functions that Python has for modules, and refuses static
# programs.
OF_MUSL = re.compile(
    r"^.*: (_?Py\w+: symbol not found|Not a valid dynamic program)\n", re.MULTILINE
)
DEADLINE = 240  # an emulator on a busy machine is slow


async def count(session: segue.Session) -> str:
    texts = [segment.text or "" async for segment in session.stream("count", to=3)]
    return "".join(texts)


async def over_stdio(server: Path) -> None:
    async with segue.connect([sys.executable, str(server)]) as session:
        assert await count(session) == "1\n2\n3\n"


def runs(program: Path) -> bool:
    """Whether a process of the program is there."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if (process / "exe").samefile(program) or os.fsencode(program) in words:
                return True
        except OSError:  # the process has ended, or is another user's
            continue
    return False


async def through_proxy(server: Path, program: Path, guard: Path) -> None:
    """The proxy speaks stdio with the client, and with the server. The guard of the
    server is the small program of the package."""
    command = [str(program), "--", sys.executable, str(server)]
    async with segue.connect(command) as session:
        assert await count(session) == "1\n2\n3\n"
        assert runs(guard)


def serve(server: Path, port: int) -> subprocess.Popen[str]:
    """Starts the server, and waits until it listens."""
    command = [sys.executable, server, f"127.0.0.1:{port}", server.with_suffix(".db")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while f"http://127.0.0.1:{port}/" not in (line := process.stderr.readline()):
        assert line, f"the server ended with {process.wait()}"
    return process


async def killed(server: Path) -> None:
    """Kills the server after the third segment. The next one continues the call."""
    port = free_port()
    process = serve(server, port)
    texts = []
    try:
        async with segue.connect(f"http://127.0.0.1:{port}/mcp") as session:
            async for segment in session.stream("pages", to=5):
                texts.append(segment.text or "")
                if len(texts) == 3:
                    process.kill()
                    process.wait()
                    process = serve(server, port)
    finally:
        process.kill()
        process.wait()
    assert texts[:5] == [f"page {page}\n" for page in range(1, 6)], texts


def check_libraries() -> None:
    place = Path(segue.__file__).parent
    files = [*place.glob("*.so*"), *place.glob("segue-proxy*")]
    assert len(files) == 4, files
    for file in files:
        asked = subprocess.run(["ldd", file], capture_output=True, text=True, check=False)
        unknown = OF_MUSL.sub("", asked.stderr)
        assert asked.returncode == 0 or (asked.stderr and not unknown), unknown
        for line in asked.stdout.splitlines():
            name, _, found = line.strip().partition(" => ")
            assert INSIDE_LIBC.match(name) or found.startswith(f"{place}/"), line
    print(f"ldd: ok, {len(files)} files")


def start_time() -> float:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import segue"], check=True)
    return time.monotonic() - begun


async def main() -> None:
    os.environ["NO_PROXY"] = "127.0.0.1"
    check_libraries()
    with tempfile.TemporaryDirectory() as directory:
        server = Path(directory, "server.py")
        server.write_text(SERVER, encoding="utf-8")
        await asyncio.wait_for(over_stdio(server), DEADLINE)
        print("stdio: ok")
        proxy = Path(segue.__file__).with_name("segue-proxy")
        guard = proxy.with_name("segue-proxy-guard")
        await asyncio.wait_for(through_proxy(server, proxy, guard), DEADLINE)
        print("proxy: ok")
        for proxy in map(Path, sys.argv[1:]):
            guard = proxy.parent.parent / "libexec" / "segue" / guard.name
            await asyncio.wait_for(through_proxy(server, proxy, guard), DEADLINE)
            print(f"{proxy}: ok")
        server.write_text(KILLED, encoding="utf-8")
        await asyncio.wait_for(killed(server), DEADLINE)
        print("kill and resume: ok")
    print(f"import segue: {min(start_time() for _ in range(3)):.3f} s")


asyncio.run(main())
