"""An installed wheel finds the certificates of authorities where distributions have them.

    certificates.py [--apart]

It runs as root, with the Python that has the wheel. In a mount namespace of its own,
/etc/ssl and /etc/pki are empty, and then get one file after the other. A client connects
to a server with TLS each time. With --apart, mounts of the namespace that it is started
in reach no other namespace; a changed root directory needs this. Standard library and
segue only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "python"))
from ports import free_port  # noqa: E402

SERVER = """
import sys

import segue

server = segue.Server("certified")
server.run(http=sys.argv[1], cert_file=sys.argv[2], key_file=sys.argv[3])
"""
CLIENT = """
import asyncio
import sys

import segue


async def main():
    async with segue.connect(sys.argv[1]) as session:
        await session.list_tools()


asyncio.run(asyncio.wait_for(main(), 30))
"""
HIDDEN = [Path("/etc/ssl"), Path("/etc/pki")]
PLACES = [
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
]


def make_certificate(directory: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, stderr=subprocess.DEVNULL)  # fmt: skip


def connects(url: str, **variables: str) -> bool:
    environment = {"PATH": os.environ["PATH"], "NO_PROXY": "localhost", **variables}
    command = [sys.executable, "-c", CLIENT, url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not done.returncode or "ertificate" in done.stderr, done.stderr
    return not done.returncode


def check(directory: Path) -> None:
    certificate = directory / "cert.pem"
    port = free_port()
    command = [sys.executable, "-c", SERVER, f"localhost:{port}", certificate,
               directory / "key.pem"]  # fmt: skip
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        while " listens on https://" not in (line := server.stderr.readline()):
            assert line, f"the server ended with {server.wait()}"
        url = f"https://localhost:{port}/mcp"
        assert not connects(url)
        assert connects(url, SSL_CERT_FILE=str(certificate))
        for place in map(Path, PLACES):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(certificate, place)
            assert connects(url), place
            assert not connects(url, SSL_CERT_FILE="/dev/null"), place
            place.unlink()
        print(f"certificates of authorities: ok, {len(PLACES)} places")
    finally:
        server.kill()
        server.wait()


def main() -> None:
    options = ["--propagation", "unchanged"] if "--apart" in sys.argv else []
    if len(sys.argv) > 1 and not options:
        for place in HIDDEN:
            subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        check(Path(sys.argv[1]))
        return
    made = [place for place in HIDDEN if not place.exists()]
    with tempfile.TemporaryDirectory() as directory:
        make_certificate(Path(directory))
        for place in made:
            place.mkdir()
        again = [sys.executable, "-B", __file__, directory]
        try:
            subprocess.run(["unshare", "--mount", *options, *again], check=True)
        finally:
            for place in made:
                place.rmdir()


main()
