"""The servers that tests/interop/through.py puts behind segue-proxy, and what its
clients do with each. In a command and in a step {dir} is a fresh directory and {page} the
URL of a page."""
import os
import subprocess
import sys
from dataclasses import dataclass

import peers

SERVERS = f"{peers.DEPS}/servers"
NPM = f"{SERVERS}/node_modules/.bin"
PIP = f"{SERVERS}/venv/bin"
PIP1 = f"{SERVERS}/venv1/bin"
SENTENCE = "snow \u2603, emoji \U0001F600, tab\t, newline\n, quote \""
LISTS = [["hello"], ["tools/list"]]
ITEMS = [["resources/list"], ["resources/templates/list"], ["prompts/list"]]


@dataclass
class Upstream:
    name: str
    command: list
    steps: list
    modern: bool = False  # whether it also speaks 2026-07-28
    prepare: object = None  # called with the directory
    place: str = None  # as of peers.Peer
    short: bool = True  # whether the short form has it
    # What the server keeps in its memory: the second words of steps.
    remembered: tuple = ()
    # Whether it offers more to a client that answers questions, as the proxy does.
    offers_more: bool = False
    # Whether it serves HTTP and prints its URL. The others are programs on pipes.
    listens: bool = False
    # The command of the same server for a client without the proxy, if that client cannot
    # use the transport.
    reference: list = None

    lack = peers.Peer.lack


def make_files(directory):
    with open(f"{directory}/a.txt", "w", encoding="utf-8") as file:
        file.write("first\nsecond\n")


def make_repository(directory):
    fixed = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
             "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    make_files(directory)
    for words in (["init", "-q", "-b", "main"], ["add", "."],
                  ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q",
                   "-m", "begin"]):
        subprocess.run(["git", "-C", directory, *words], check=True,
                       env={**os.environ, **fixed})


def call(name, /, **arguments):
    return ["tools/call", name, arguments]


class Failing(list):
    """A step that the server has to refuse. Any other step has to succeed without the
    proxy, or its cell says that the peer cannot do it."""


# The tools that all servers of the matrix have.
JUDGED = [*LISTS, *ITEMS, call("greet", name="Ada"), call("repeat", text=SENTENCE),
          call("add", a=40, b=2), call("media"), Failing(call("fail")),
          call("steps", n=3, delayMs=1), Failing(call("no_such_tool")),
          Failing(["resources/read", "test://nowhere"])]

EVERYTHING = [f"{NPM}/mcp-server-everything"]
EVERYTHING_STEPS = [
        *LISTS, *ITEMS, call("echo", message=SENTENCE), call("get-sum", a=2, b=3),
        call("get-tiny-image"), call("get-structured-content", location="Chicago"),
        call("get-annotated-message", messageType="error", includeImage=True),
        call("get-resource-links", count=3),
        call("trigger-long-running-operation", duration=0.2, steps=2),
        Failing(call("get-sum", a="x")), Failing(call("no_such_tool")),
        ["prompts/get", "simple-prompt"],
        ["prompts/get", "args-prompt", {"city": "Bonn"}],
        ["resources/read", "demo://resource/static/document/features.md"],
        Failing(["resources/read", "demo://nowhere"])]
FASTMCP = [f"{PIP}/python", "-B", f"{peers.HERE}/fastmcp_server.py"]
FASTMCP_STEPS = [
    *LISTS, *ITEMS, call("add", a=40, b=2), call("steps", n=3), Failing(call("fail")),
    Failing(call("no_such_tool")), ["resources/read", "test://greeting"],
    ["resources/read", "test://greeting/Ada"],
    Failing(["resources/read", "test://nowhere"]),
    ["prompts/get", "ask", {"topic": "rain"}]]


def listening(path, *command):
    return [sys.executable, "-B", f"{peers.HERE}/through_listening.py", path, *command]


UPSTREAMS = (
    Upstream("everything", EVERYTHING, EVERYTHING_STEPS, offers_more=True),
    Upstream("everything http", listening("/mcp", *EVERYTHING, "streamableHttp"),
             EVERYTHING_STEPS, offers_more=True, listens=True, short=False),
    Upstream("everything sse", listening("/sse", *EVERYTHING, "sse"), EVERYTHING_STEPS,
             offers_more=True, listens=True, reference=EVERYTHING),
    Upstream("filesystem", [f"{NPM}/mcp-server-filesystem", "{dir}"], [
        *LISTS, call("list_allowed_directories"), call("list_directory", path="{dir}"),
        call("read_text_file", path="{dir}/a.txt"),
        call("write_file", path="{dir}/b.txt", content=SENTENCE),
        call("read_text_file", path="{dir}/b.txt"),
        Failing(call("read_text_file", path="/etc/passwd")),
        call("directory_tree", path="{dir}")], prepare=make_files),
    Upstream("git", [f"{PIP}/mcp-server-git", "-r", "{dir}"], [
        *LISTS, call("git_status", repo_path="{dir}"), call("git_log", repo_path="{dir}"),
        call("git_show", repo_path="{dir}", revision="HEAD"),
        call("git_create_branch", repo_path="{dir}", branch_name="other"),
        call("git_branch", repo_path="{dir}", branch_type="local"),
        Failing(call("git_show", repo_path="{dir}", revision="nothing"))],
        prepare=make_repository),
    Upstream("fetch", [f"{PIP}/mcp-server-fetch", "--ignore-robots-txt",
                       "--allow-private-ips"], [
        *LISTS, ["prompts/list"], call("fetch", url="{page}"),
        call("fetch", url="{page}", raw=True), Failing(call("fetch", url="{page}no")),
        ["prompts/get", "fetch", {"url": "{page}"}]]),
    Upstream("time", [f"{PIP}/mcp-server-time"], [
        *LISTS, call("convert_time", source_timezone="Europe/Berlin", time="12:30",
                     target_timezone="Asia/Tokyo"),
        Failing(call("convert_time", source_timezone="Nowhere", time="12:30",
                     target_timezone="Asia/Tokyo"))]),
    Upstream("sqlite", [f"{PIP1}/mcp-server-sqlite", "--db-path", "{dir}/x.db"], [
        *LISTS, ["resources/list"], ["prompts/list"],
        call("create_table", query="CREATE TABLE t (a INTEGER, b TEXT)"),
        call("write_query", query="INSERT INTO t VALUES (1, 'x'), (2, 'y')"),
        call("read_query", query="SELECT * FROM t ORDER BY a"), call("list_tables"),
        Failing(call("read_query", query="SELECT * FROM nowhere")),
        call("append_insight", insight="two rows"),
        ["resources/read", "memo://insights"]], remembered=("memo://insights",)),
    Upstream("playwright", [f"{NPM}/playwright-mcp"], LISTS),
    Upstream("fastmcp", FASTMCP, FASTMCP_STEPS, modern=True),
    Upstream("fastmcp http", listening("/mcp", *FASTMCP), FASTMCP_STEPS, modern=True,
             listens=True, short=False),
    Upstream("typescript", ["node", f"{peers.NODE}/ts_server.mjs"], JUDGED, modern=True),
    Upstream("typescript http", ["node", f"{peers.NODE}/ts_server.mjs", "--http", "0"],
             JUDGED, modern=True, listens=True),
    Upstream("typescript legacy", ["node", f"{peers.NODE}/ts_server.mjs", "--versions",
                                   "2025-03-26"], JUDGED, short=False),
    Upstream("typescript 1", ["node", f"{peers.NODE}/ts_server.mjs", "--sdk1"], JUDGED),
    Upstream("python", [sys.executable, "-B", f"{peers.HERE}/py_server.py"], JUDGED,
             modern=True),
    Upstream("python http", [sys.executable, "-B", f"{peers.HERE}/py_server.py", "--http",
                             "0"], JUDGED, modern=True, listens=True, short=False),
    Upstream("python 1", [f"{PIP1}/python", "-B", f"{peers.HERE}/py1_server.py"], [
        *JUDGED, ["resources/read", "test://template/7/data"],
        ["prompts/get", "ask", {"topic": "rain"}]]),
    Upstream("go", [f"{peers.DEPS}/go/peer", "server"], JUDGED, modern=True,
             place=f"{peers.DEPS}/go"),
    Upstream("go http", [f"{peers.DEPS}/go/peer", "server", "--http", "0"], JUDGED,
             modern=True, place=f"{peers.DEPS}/go", listens=True, short=False),
    Upstream("go legacy", [f"{peers.DEPS}/go/peer", "server", "--versions",
                           "2025-06-18"], JUDGED, place=f"{peers.DEPS}/go", short=False),
    Upstream("rust", [f"{peers.DEPS}/rust/debug/peer", "server"], JUDGED, modern=True,
             place=f"{peers.DEPS}/rust"),
    Upstream("rust http", [f"{peers.DEPS}/rust/debug/peer", "server", "--http", "0"],
             JUDGED, modern=True, place=f"{peers.DEPS}/rust", listens=True, short=False),
    Upstream("rust legacy", [f"{peers.DEPS}/rust/debug/peer", "server", "--versions",
                             "2025-06-18"], JUDGED, place=f"{peers.DEPS}/rust",
             short=False),
)
PY = f"{peers.HERE}/through_record.py"
TS = f"{peers.NODE}/through_record.mjs"
INSPECTOR = f"{peers.DEPS}/inspector"


@dataclass
class Client:
    name: str
    command: list
    eras: tuple = peers.BOTH
    place: str = None  # as of peers.Peer
    # Whether all steps are in one session. Otherwise a server that is started for each
    # session has forgotten what an earlier step has told it.
    one_session: bool = True

    lack = peers.Peer.lack


CLIENTS = (
    Client("python", [sys.executable, "-B", PY]),
    Client("typescript", ["node", TS]),
    Client("typescript 1", ["node", TS, "--sdk1"], ("legacy",)),
    Client("fastmcp", [f"{PIP}/python", "-B", PY, "--fastmcp"], ("legacy",)),
    Client("python 1", [f"{PIP1}/python", "-B", PY, "--sdk1"], ("legacy",)),
    Client("go", [f"{peers.DEPS}/go/peer", "record"], place=f"{peers.DEPS}/go"),
    Client("rust", [f"{peers.DEPS}/rust/debug/peer", "record"],
           place=f"{peers.DEPS}/rust"),
    Client("inspector", [sys.executable, "-B", f"{peers.HERE}/through_inspector.py",
                         INSPECTOR], place=INSPECTOR, one_session=False),
)
