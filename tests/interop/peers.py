"""The peers of the matrix: how each is started, and which eras it is tested in."""
import os
import sys
from dataclasses import dataclass, field

HERE = "tests/interop"
DEPS = os.path.abspath("build/deps")
# `run` gives each half of the matrix directories of its own.
NAME = os.environ.get("SEGUE_INTEROP", "interop")
OUT = os.path.abspath(f"build/{NAME}")
NODE = f"{DEPS}/peers/{NAME}"
PYTHON = [sys.executable, "-B"]
BOTH = ("modern", "legacy")


@dataclass
class Peer:
    name: str
    client: list = None  # the command; the era and Segue's server follow
    client_eras: tuple = BOTH
    ours: tuple = ()  # options of Segue's server
    server: list = None
    # How Segue's client connects -> the options of the peer's server. A version is
    # requested with the option legacy; the server knows only that one.
    server_eras: dict = field(default_factory=lambda: {era: [] for era in BOTH})
    place: str = None  # where the set-up has built it, or why it has not

    @property
    def lack(self):
        """Returns why the peer cannot be tested on this machine, or None."""
        reason = f"{self.place}/missing"
        if self.place and os.path.exists(reason):
            with open(reason, encoding="utf-8") as file:
                return file.read().strip()
        return None


def only(version):
    return {version: ["--versions", version]}


PEERS = (
    Peer("typescript", ["node", f"{NODE}/ts_client.mjs"],
         server=["node", f"{NODE}/ts_server.mjs"],
         server_eras={"modern": [], "legacy": [], "fallback": ["--legacy"],
                      **only("2025-06-18"), **only("2025-03-26")}),
    Peer("typescript 1", ["node", f"{NODE}/ts_client.mjs", "--sdk1"], ("legacy",),
         server=["node", f"{NODE}/ts_server.mjs", "--sdk1"],
         server_eras={"legacy": [], "fallback": []}),
    Peer("typescript tasks", ["node", f"{NODE}/ts_tasks.mjs"], BOTH),
    Peer("typescript 1 tasks", ["node", f"{NODE}/ts1_tasks.mjs"], ("legacy",)),
    Peer("python", [*PYTHON, f"{HERE}/py_client.py"],
         server=[*PYTHON, f"{HERE}/py_server.py"]),
    Peer("go", [f"{DEPS}/go/peer", "client"], server=[f"{DEPS}/go/peer", "server"],
         server_eras={"modern": [], "legacy": [], **only("2025-06-18"),
                      **only("2025-03-26")},
         place=f"{DEPS}/go"),
    Peer("rust", [f"{DEPS}/rust/debug/peer", "client"],
         server=[f"{DEPS}/rust/debug/peer", "server"],
         server_eras={"modern": [], "legacy": [], **only("2025-06-18"),
                      **only("2025-03-26")},
         place=f"{DEPS}/rust"),
)

AUTHORIZATION_SERVER = [*PYTHON, f"{HERE}/auth/authorization_server.py"]
# Clients that get tokens for Segue's server, and servers that require tokens of Segue's
# client; the URL or the issuer follows.
AUTHORIZED_CLIENTS = {
    "typescript": ["node", f"{NODE}/ts_auth_client.mjs"],
    "typescript 1": ["node", f"{NODE}/ts_auth_client.mjs", "--sdk1"],
    "python": [*PYTHON, f"{HERE}/auth/py_client.py"],
}
AUTHORIZING_SERVERS = {
    "typescript": ["node", f"{NODE}/ts_auth_server.mjs"],
    "python": [*PYTHON, f"{HERE}/auth/py_server.py"],
}
