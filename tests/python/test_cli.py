"""The command ``segue``, as child processes, over stdio and HTTP."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from segue.tokens import TokenFile

SERVER = Path(__file__).with_name("cli_server.py")
STDIO = shlex.join([sys.executable, str(SERVER)])
DEADLINE = 120


@contextmanager
def serving(store: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(store)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.terminate()
            server.wait(DEADLINE)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("store") / "tasks.db") as (_, url):
        yield url


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> str:
    if request.param == "stdio":
        return STDIO
    address: str = request.getfixturevalue("url")
    return address


class Command:
    """Runs the command with its own file of tokens."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **os.environ,
            "SEGUE_TOKENS": str(directory / "tokens.json"),
            "NO_PROXY": "127.0.0.1",
            "COLUMNS": "200",
            "TERM": "dumb",
        }
        self.environment.pop("SEGUE_BEARER", None)

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(
            [sys.executable, "-m", "segue.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.directory,
            **more,
        )

    def __call__(self, *words: str, code: int = 0) -> str:
        """Runs the command; returns standard output, and keeps standard error in
        `err`."""
        with self.start(*words) as process:
            out, self.err = process.communicate(timeout=DEADLINE)
        assert process.returncode == code, (out, self.err)
        return out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    def lines(self, *words: str, code: int = 0) -> list[Any]:
        out = self(*words, "--json", code=code)
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def segue(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path)


# ---- listing


def test_tools(segue: Command, target: str) -> None:
    rows = dict(line.split("\t", 1) for line in segue("tools", target).splitlines())
    assert rows["add"] == "a:integer [b:integer]\tAdds two numbers."
    assert set(rows) >= {"show", "count", "gate", "picture", "fail"}


def test_tools_as_json(segue: Command, url: str) -> None:
    (add,) = [tool for tool in segue.json("tools", url) if tool["name"] == "add"]
    assert add["inputSchema"]["required"] == ["a"]
    assert segue.json("tools", url, "add") == add
    segue("tools", url, "nothing", code=2)
    assert "no tool 'nothing'" in segue.err


def test_response_modes(segue: Command, tmp_path: Path) -> None:
    """The chosen modes reach the server."""
    heard = tmp_path / "heard"
    server = shlex.join(["sh", "-c", f"tee {heard} | exec {STDIO}"])
    words = ["call", server, "count", "to=2", "--era", "legacy", "--response-mode"]
    segue(*words, "task", "--response-mode", "streaming")
    assert '"responseModes":["task","streaming"]' in heard.read_text()
    segue(*words, "task")
    assert '"responseModes":["task"]' in heard.read_text()
    segue(*words, "sometimes", code=2)


def test_resources_and_prompts(segue: Command, url: str) -> None:
    assert "notes://today\ttext/plain\tOf today" in segue("resources", url)
    found = segue.json("resources", url)
    assert [item["uri"] for item in found["resources"]] == ["notes://today"]
    assert [item["uriTemplate"] for item in found["resourceTemplates"]] == [
        "notes://{day}"
    ]
    assert segue("read", url, "notes://today") == "nothing planned\n"
    segue("read", url, "notes://monday", "-o", "file")
    assert (segue.directory / "file").read_text() == "monday"
    assert segue("prompts", url) == "review\tcode [style]\tAsks for a review.\n"
    assert segue("prompt", url, "review", "code=x") == "Review (short): x\n"
    (message,) = segue.json("prompt", url, "review", "code=x")["messages"]
    assert message["content"] == {"type": "text", "text": "Review (short): x"}


def test_inspect(segue: Command, target: str) -> None:
    told = segue.json("inspect", target)["eras"]
    assert told["modern"]["protocolVersion"] == "2026-07-28"
    assert told["legacy"]["protocolVersion"] == "2025-11-25"
    for era in told.values():
        assert era["server"]["name"] == "command-line"
        assert era["server"]["version"] == "7"
        assert era["instructions"] == "Be kind."
        assert era["counts"] == {
            "tools": 11,
            "resources": 1,
            "prompts": 1,
            "resource templates": 1,
        }
        assert {"tools", "resources", "prompts"} <= set(era["capabilities"])
    assert "SEP-2663 tasks" in told["modern"]["dialects"]
    text = segue("inspect", target, "--era", "legacy")
    assert "legacy: 2025-11-25" in text and "modern" not in text
    assert "command-line 7" in text


PAINT = """
import enum
import msgspec
import segue

server = segue.Server("paint")

class Color(enum.Enum):
    red = "red"
    blue = "blue"

class Dot(msgspec.Struct):
    color: Color
    next: "Dot | None" = None

@server.tool
def paint(color: Color, colors: list[Color], dot: Dot) -> str:
    return color.value
"""


def test_inspect_shows_the_values_of_an_enum(segue: Command, tmp_path: Path) -> None:
    file = tmp_path / "paint.py"
    file.write_text(PAINT)
    text = segue("inspect", str(file), "--era", "modern")
    values = '"enum":["red","blue"]'
    for line in ("takes    color {", "takes    colors {"):
        shown = text.split(line)[1].split("\n")[0]
        assert values in shown and "$ref" not in shown
    # a definition that refers to itself stays a reference
    assert '"$ref"' in text.split("takes    dot {")[1].split("\n")[0]
    assert "color:string colors:array" in segue("tools", str(file))


# ---- calls


def test_call(segue: Command, target: str) -> None:
    assert segue("call", target, "add", "a=2", "b=3") == "5\n"
    assert segue.err == ""
    assert segue("call", target, "picture") == "[image image/png, 5 bytes]\n"


def test_a_call_as_json_is_the_result_of_the_wire(segue: Command, url: str) -> None:
    result = segue.json("call", url, "add", "a=2")
    assert result["content"] == [{"type": "text", "text": "3"}]


def test_arguments_are_typed_by_the_schema(segue: Command, url: str) -> None:
    assert segue(
        "call", url, "show", "word=5", "tags=a", "tags=b", 'place={"x":1}', "ratio=1"
    ) == ("('5', ['a', 'b'], Place(x=1, y=0), 'good', 1.0)\n")
    (segue.directory / "word").write_text("from a file")
    assert "'from a file'" in segue("call", url, "show", "word=@word")
    assert "'bad'" in segue(
        "call", url, "show", "--args", '{"word":"x","mood":"good"}', "mood=bad"
    )


def test_arguments_from_standard_input(segue: Command) -> None:
    with segue.start(
        "call", STDIO, "add", "--args", "-", stdin=subprocess.PIPE
    ) as process:
        out, _ = process.communicate('{"a": 4}', timeout=DEADLINE)
    assert (out, process.returncode) == ("5\n", 0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add"], "missing: a (integer)"),
        (["add", "a=x"], "a: 'x' is not integer"),
        (["add", "a"], "'a' is not of the form key=value"),
        (["ad", "a=1"], "the server has no tool 'ad': did you mean add?"),
        (["add", "--args", "[]"], "not a JSON object"),
        (["add", "a=@nowhere"], "nowhere: No such file"),
        (
            ["add", "a=@h.py"],
            "a: the content of the file h.py, 'import segue\\n', is not",
        ),
        (["add", "a:=@h.py"], "h.py, 'import segue\\n', is not JSON"),
        (["add", "--args", "@h.py"], "--args: the content of the file h.py, "),
    ],
)
def test_wrong_usage_is_2_and_says_why(
    segue: Command, words: list[str], why: str
) -> None:
    (segue.directory / "h.py").write_text("import segue\n")
    assert segue("call", STDIO, *words, code=2) == ""
    assert why in segue.err
    assert segue.json("call", STDIO, *words, code=2)["error"]["message"] in segue.err


def test_a_stream(segue: Command, target: str) -> None:
    assert segue("call", target, "count", "to=3", "--stream") == "1\n2\n3\n"
    assert segue.json("task", "ls") == []


def test_a_stream_as_json(segue: Command, target: str) -> None:
    events = segue.lines("call", target, "count", "to=3", "--stream")
    segments = [event for event in events if event["event"] == "segment"]
    assert [event["number"] for event in segments] == [1, 2, 3]
    assert segments[0]["content"] == {"type": "text", "text": "1\n"}
    assert events[-1]["event"] == "result"
    texts = [block["text"] for block in events[-1]["result"]["content"]]
    assert "".join(texts) == "1\n2\n3\n"
    progress = [event["progress"] for event in events if event["event"] == "progress"]
    assert progress == sorted(progress)


def test_without_a_stream_the_result_comes_whole(segue: Command, url: str) -> None:
    assert segue("call", url, "count", "to=3") == "1\n2\n3\n"
    assert segue("call", url, "count", "to=3", "--no-task") == "1\n2\n3\n"
    assert segue("call", url, "count", "to=2", "--era", "legacy", "-s") == "1\n2\n"


def test_a_tool_that_fails_is_1(segue: Command, url: str) -> None:
    assert segue("call", url, "fail", "why=tired", code=1) == "tired\n"
    assert segue.json("call", url, "fail", "why=tired", code=1)["isError"] is True


def test_an_error_of_the_protocol_is_3(segue: Command, target: str) -> None:
    assert segue("call", target, "refuse", code=3) == ""
    assert "not today" in segue.err
    error = segue.json("call", target, "refuse", code=3)["error"]
    assert (error["code"], error["data"]) == (4711, {"until": "tomorrow"})


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_no_connection_is_4(segue: Command) -> None:
    for server in ("/does/not/exist", "false", f"http://127.0.0.1:{closed_port()}/mcp"):
        for words in (["tools", server], ["call", server, "add", "a=1"]):
            segue(*words, code=4)
            assert segue.err.startswith("segue: ")
            assert "Traceback" not in segue.err


def test_a_timeout_is_6(segue: Command, url: str, fifo: str) -> None:
    segue("call", url, "plain_gate", f"fifo={fifo}", "--timeout", "0.2", code=6)


def test_questions_have_answers(segue: Command, target: str) -> None:
    assert segue("call", target, "greet", "--answer", "value=Ada") == "Hello, Ada!\n"
    assert segue("call", target, "greet") == "Hello, stranger!\n"
    assert "Declined" in segue.err


def test_answers_are_used_in_order(segue: Command, target: str) -> None:
    answers = ["--answer", "value=true", "--answer"]
    assert segue("call", target, "book", *answers, "value=red") == "True red\n"
    segue("call", target, "book", *answers, "value=green", code=1)
    assert "Declined: value=green: the choices are red, blue" in segue.err
    assert "Traceback" not in segue.err


def test_the_log_of_a_tool(segue: Command, url: str) -> None:
    assert segue("call", url, "chatty", "--log", "info") == "done\n"
    assert "warning: thinking" in segue.err
    assert segue("call", url, "chatty") == "done\n"
    assert segue.err == ""


def test_a_reader_that_goes_is_no_failure(segue: Command) -> None:
    command = shlex.join([sys.executable, "-m", "segue.cli", "call", STDIO, "count"])
    done = subprocess.run(
        ["bash", "-c", f"{command} to=20000 -s | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        env=segue.environment,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout == "1\n"
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


# ---- tasks


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Waits for the first segment and presses Ctrl-C; returns what is printed then."""
    assert process.stdout is not None
    assert process.stdout.readline() == "before\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, (out, err)
    return out, err


def left_task(segue: Command, url: str, fifo: str, *more: str) -> str:
    """Leaves a task by Ctrl-C; returns the id that the command printed."""
    process = segue.start("call", url, "gate", f"fifo={fifo}", "--stream", *more)
    _, err = interrupt(process)
    found = re.search(r"segue task resume (\w+)", err)
    assert found, err
    return found[1]


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_ctrl_c_leaves_a_task_that_can_be_resumed(
    segue: Command, url: str, fifo: str, era: str
) -> None:
    """The task goes on; resume shows the rest, and forgets the task."""
    name = left_task(segue, url, fifo, "--era", era)
    (listed,) = segue.json("task", "ls")
    assert (listed["id"], listed["tool"], listed["target"]) == (name, "gate", url)
    assert "token" not in listed
    assert f"{name}\tgate\tworking\t" in segue("task", "ls")
    assert segue.json("task", "get", name)["status"] == "working"
    process = segue.start("task", "resume", name)
    Path(fifo).write_text("all")
    out, err = process.communicate(timeout=DEADLINE)
    assert (out, process.returncode) == ("after all\n", 0), err
    assert segue.json("task", "ls") == []
    assert segue("task", "resume", name, code=2) == ""
    assert "no saved task" in segue.err


def test_watch_begins_at_the_first_segment(segue: Command, url: str, fifo: str) -> None:
    name = left_task(segue, url, fifo)
    process = segue.start("task", "watch", name, "--json")
    Path(fifo).write_text("x")
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    texts = [
        event["content"]["text"]
        for event in map(json.loads, out.splitlines())
        if event["event"] == "segment"
    ]
    assert texts == ["before\n", "after x\n"]


def test_a_task_that_is_resumed_may_be_left_again(
    segue: Command, url: str, fifo: str
) -> None:
    name = left_task(segue, url, fifo)
    process = segue.start("task", "watch", name)
    _, err = interrupt(process)
    assert f"segue task resume {name}" in err
    process = segue.start("task", "resume", name, "--result")
    Path(fifo).write_text("x")
    out, err = process.communicate(timeout=DEADLINE)
    assert (out, process.returncode) == ("before\nafter x\n", 0), err


def test_cancel_ends_the_task(segue: Command, url: str, fifo: str) -> None:
    name = left_task(segue, url, fifo)
    saved = json.loads((segue.directory / "tokens.json").read_text())["tasks"][0]
    assert segue.json("task", "cancel", name) == {"id": name, "cancelled": True}
    assert segue.json("task", "ls") == []
    # The token still finds a task that was cancelled.
    by_token = saved["token"], "--server", url
    assert segue.json("task", "get", *by_token)["status"] == "cancelled"
    segue("task", "resume", *by_token, code=7)
    Path(fifo).write_text("")  # lets the tool's thread end


def test_detach_prints_the_id(segue: Command, url: str, fifo: str) -> None:
    name = segue("call", url, "gate", f"fifo={fifo}", "--detach").strip()
    assert [task["id"] for task in segue.json("task", "ls", "--refresh")] == [name]
    assert "working" in segue("task", "get", name)
    process = segue.start("task", "resume", name)
    Path(fifo).write_text("x")
    out, err = process.communicate(timeout=DEADLINE)
    assert (out, process.returncode) == ("before\nafter x\n", 0), err


def test_ctrl_c_cancels_a_plain_call(segue: Command, url: str, fifo: str) -> None:
    process = segue.start("call", url, "plain_gate", f"fifo={fifo}", "--stream")
    _, err = interrupt(process)
    assert "cancelled" in err
    assert "segue task" not in err
    assert segue.json("task", "ls") == []
    Path(fifo).write_text("")


def test_rm_forgets(segue: Command, url: str, fifo: str) -> None:
    name = left_task(segue, url, fifo)
    segue("task", "rm", name)
    assert segue.json("task", "ls") == []
    segue("task", "rm", name, code=2)
    segue("task", "rm", code=2)
    assert segue.json("task", "rm", "--ended") == {"removed": []}
    Path(fifo).write_text("")


def test_a_damaged_file_of_tokens_is_8(segue: Command) -> None:
    (segue.directory / "tokens.json").write_text("{")
    segue("task", "ls", code=8)
    assert "damaged" in segue.err


# ---- at a terminal


def at_terminal(segue: Command, *words: str, typed: bytes = b"") -> str:
    """Runs the command at a terminal; returns what a person would see, without
    colours."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "segue.cli", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**segue.environment, "TERM": "xterm"},
        close_fds=True,
    )
    os.close(terminal)
    os.write(main, typed)  # stays in the terminal until it is read
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # Linux reports EIO when the other end has closed
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert process.wait(DEADLINE) == 0, seen
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def test_a_person_sees_a_bar_and_the_text_whole(segue: Command, url: str) -> None:
    seen = at_terminal(segue, "call", url, "count", "to=20", "--stream", "--no-task")
    lines = [line.strip() for line in re.split("[\r\n]+", seen)]
    assert [line for line in lines if line.isdigit()] == [str(n) for n in range(1, 21)]
    assert "━" in seen
    assert "/20" in seen


def test_a_person_is_asked(segue: Command, url: str) -> None:
    seen = at_terminal(segue, "call", url, "greet", typed=b"Ada\n")
    assert "The server asks: What is your name?" in seen
    assert "Hello, Ada!" in seen


def test_a_person_sees_a_table(segue: Command, url: str) -> None:
    seen = at_terminal(segue, "tools", url)
    assert re.search(r"TOOL +ARGUMENTS +DESCRIPTION", seen)
    assert re.search(r"add +a:integer \[b:integer\] +Adds two numbers\.", seen)


# ---- the command itself


def test_a_lost_server_is_told(segue: Command, tmp_path: Path, fifo: str) -> None:
    """Each attempt to reconnect prints a line for the person."""
    with serving(tmp_path / "tasks.db") as (server, url):
        process = segue.start("call", url, "gate", f"fifo={fifo}", "--stream")
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "before\n"
        server.kill()
        try:
            lost = re.compile(
                r"the connection .* is lost \(.+\): attempt \d+ to reach it again"
            )
            assert any(lost.match(line) for line in process.stderr)
        finally:
            process.kill()
            process.communicate(timeout=DEADLINE)


def test_help_and_version(segue: Command) -> None:
    assert re.fullmatch(r"segue \d+\.\d+\.\d+\n", segue("--version"))
    for words in ([], ["task"]):
        assert "Usage:" in segue(*words, code=2) + segue.err
    for words in ([], ["call"], ["task"], ["task", "watch"]):
        assert "Usage:" in segue(*words, "--help")
    segue("oops", code=2)
    assert "No such command" in segue.err


def test_completion_knows_commands_and_saved_tasks(segue: Command) -> None:
    """Asks as bash does, with the script that --install-completion installs."""
    assert "--install-completion" in segue("--help")
    saved = TokenFile(segue.directory / "tokens.json").put(
        target="http://h/", tool="report", token="t"
    )
    for words, wanted in (("segue ta", "task"), ("segue task get ", saved.id)):
        segue.environment.update(
            _SEGUE_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(words.count(" ")),
        )
        assert wanted in segue().split()


def test_a_task_that_is_lost_is_7_and_noted(segue: Command, url: str, fifo: str) -> None:
    name = left_task(segue, url, fifo)
    other = TokenFile(segue.directory / "tokens.json")
    segue("task", "cancel", name)
    lost = other.put(target=url, tool="gate", token="sg1.damaged", task_id="no-such-task")
    segue("task", "watch", lost.id, code=7)
    assert [task.status for task in other.all()] == ["lost"]
    assert segue.json("task", "rm", "--ended") == {"removed": [lost.id]}
    Path(fifo).write_text("")


def test_headers_are_for_urls(segue: Command) -> None:
    segue("tools", STDIO, "-H", "A: b", code=2)
    assert "need a URL" in segue.err
