"""``key=value`` on the command line becomes the type that the tool's schema wants."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

from segue.cli import arguments, target
from segue.cli.codes import UsageError
from segue.cli.screen import Screen
from segue.cli.target import Access, connect, parse_access, parse_target

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "where": {"$ref": "#/$defs/Where"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "word_or_number": {"type": ["string", "integer"]},
        "level": {"enum": [1, 2]},
        "colour": {"enum": ["red", "green"]},
        "any": {},
        "circle": {"$ref": "#/properties/circle"},
    },
    "$defs": {"Where": {"type": "object", "properties": {"x": {"type": "integer"}}}},
}


def one(pair: str) -> Any:
    (value,) = arguments.build([pair], SCHEMA).values()
    return value


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("name=Ada", "Ada"),
        ("name=5", "5"),
        ("name=true", "true"),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("name=@@at", "@at"),
        ("count=5", 5),
        ("count=5.0", 5),
        ("count=-3", -3),
        ("ratio=5", 5),
        ("ratio=0.5", 0.5),
        ("on=true", True),
        ("on=no", False),
        ("on=ON", True),
        ("tags=a", ["a"]),
        ('tags=["a","b"]', ["a", "b"]),
        ("sizes=7", [7]),
        ('where={"x":1}', {"x": 1}),
        ("maybe=null", None),
        ("maybe=4", 4),
        ("word_or_number=4", 4),
        ("word_or_number=four", "four"),
        ("level=2", 2),
        ("colour=red", "red"),
        ("any=5", 5),
        ("any=hello", "hello"),
        ("any:={}", {}),
        ("name:=5", 5),
        ("circle=5", 5),
    ],
)
def test_values_have_the_type_of_the_schema(pair: str, value: Any) -> None:
    assert one(pair) == value
    assert type(one(pair)) is type(value)


@pytest.mark.parametrize(
    "pair",
    [
        "count=five",
        "count=5.5",
        "count=true",
        "on=2",
        "ratio=NaN",
        "where=5",
        "sizes=x",
        "name:=oops",
        "count",
        "=5",
        "name=@/does/not/exist",
        "where=" + "[" * 100_000,
    ],
)
def test_what_does_not_fit_is_refused(pair: str) -> None:
    with pytest.raises(UsageError):
        one(pair)


def test_a_list_is_made_of_what_is_said_again() -> None:
    built = arguments.build(
        ["tags=a", "tags=b", 'tags=["c"]', "sizes=1", "sizes=2"], SCHEMA
    )
    assert built == {"tags": ["a", "b", "c"], "sizes": [1, 2]}
    with pytest.raises(UsageError, match="given twice"):
        arguments.build(["count=1", "count=2"], SCHEMA)


def test_a_value_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("5\n")
    assert one(f"name=@{tmp_path}/text") == "5\n"
    assert one(f"count=@{tmp_path}/text") == 5
    assert one(f"any:=@{tmp_path}/text") == 5
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        one(f"name=@{tmp_path}/bytes")


def test_what_is_missing_is_said_with_its_type() -> None:
    schema = {**SCHEMA, "required": ["name", "count"]}
    with pytest.raises(UsageError, match=r"missing: count \(integer\)"):
        arguments.build(["name=x"], schema)
    assert arguments.build(["count=1"], schema, {"name": "x"}) == {
        "name": "x",
        "count": 1,
    }


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    for schema in (SCHEMA, {**SCHEMA, "additionalProperties": False}):
        with pytest.raises(UsageError, match='"coumt", did you mean "count"'):
            arguments.build(["coumt=1"], schema)
        with pytest.raises(UsageError, match='"coumt", did you mean "count"'):
            arguments.build([], schema, {"coumt": 1})
    with pytest.raises(UsageError, match="the tool takes no arguments"):
        arguments.build(["x=1"], {"type": "object", "additionalProperties": False})


def test_an_unknown_name_is_sent_where_the_schema_allows_other_names() -> None:
    allowing: list[dict[str, Any]] = [
        {**SCHEMA, "additionalProperties": True},
        {**SCHEMA, "additionalProperties": {"type": "array"}},
        {**SCHEMA, "patternProperties": {"^u": {}}},
        {"type": "object"},
    ]
    for schema in allowing:
        assert arguments.build(["unknown=[1]"], schema) == {"unknown": [1]}
    branched = {"oneOf": [{"properties": {"unknown": {"type": "array"}}}]}
    assert arguments.build(["unknown=[1]"], branched) == {"unknown": [1]}


def test_all_arguments_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all.json").write_text('{"a": 1}')
    assert arguments.read_json('{"a": 1}') == {"a": 1}
    assert arguments.read_json(f"@{tmp_path}/all.json") == {"a": 1}
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 2}'))
    assert arguments.read_json("-") == {"a": 2}
    for wrong in ("[]", "5", "{", ""):
        with pytest.raises(UsageError):
            arguments.read_json(wrong)


@pytest.mark.parametrize(
    "schema",
    [{"properties": 5}, {"properties": {"a": 5}}, {"properties": {"a": {"type": 5}}}],
)
def test_a_schema_that_is_none_does_no_harm(schema: dict[str, Any]) -> None:
    assert arguments.build(["a=1"], schema) == {"a": 1}


def test_servers() -> None:
    assert parse_target("http://h/mcp") == "http://h/mcp"
    assert parse_target("node x.js 'a b'") == ["node", "x.js", "a b"]
    for wrong in ("", "  ", "'open", "ftp://h/", "nowhere.py -v", "x.py:server"):
        with pytest.raises(UsageError):
            parse_target(wrong)


MAKES = "import segue\nserver = segue.Server('made')\n"


GUARD = "if __name__ == '__main__':\n    "


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        (MAKES, True),
        (MAKES + GUARD + "print('a')\n", True),
        (MAKES + GUARD + "server.run()\n", False),
        (MAKES + GUARD + "server.run(None, store='tasks.db')\n", False),
        (MAKES + GUARD + "asyncio.run(server.serve())\n", False),
        (MAKES + "server.run()\n", False),
        (MAKES + GUARD + "server.run(http='127.0.0.1:8000', store=store)\n", True),
        (MAKES + GUARD + "server.run('127.0.0.1:8000')\n", True),
        (MAKES + GUARD + "server.run(**options)\n", True),
        (MAKES + "asyncio.run(server.serve('127.0.0.1:8000'))\n", True),
        (MAKES + GUARD + "uvicorn.run(server.asgi())\n", True),
        ("from segue import Server\nserver = Server('made')\n", True),
        ("from .segue import Server\n", False),
        ("def f(:\n", True),
        ("from mcp.server import Server\n", False),
    ],
)
def test_a_file_that_does_not_serve_stdio_is_imported(
    text: str, is_run: bool, tmp_path: Path
) -> None:
    place = tmp_path / "my srv"
    place.mkdir()
    file = place / "my server.py"
    file.write_text(text)
    run = ["-m", "segue.cli", "run", "--or-program"]
    wanted = [*run, str(file)] if is_run else [str(file)]
    assert parse_target(str(file))[1:] == wanted
    more = ["--", "-v"] if is_run else ["-v"]
    assert parse_target(f"'{file}' -v")[1:] == [*wanted, *more]
    assert parse_target(f"{file}:server")[1:6] == [*run, f"{file}:server"]


@pytest.mark.parametrize(
    ("text", "store"),
    [
        (GUARD + "server.run(http=8000, store='tasks.db')\n", "tasks.db"),
        (GUARD + "server.run(http=8000, store='a')\nserver.run('b', store='a')\n", "a"),
        (GUARD + "asyncio.run(server.serve(8000, store='redis://h'))\n", "redis://h"),
        (GUARD + "server.run(http=8000)\n", None),
        (GUARD + "server.run(http=8000, store=None)\n", None),
        (GUARD + "server.run(http=8000, store=place)\n", None),
        (GUARD + "server.run(8000, store='a')\nserver.run(8001, store='b')\n", None),
        (GUARD + "print('a', store='tasks.db')\n", None),
    ],
)
def test_the_store_of_run_is_used(tmp_path: Path, text: str, store: str | None) -> None:
    file = tmp_path / "x.py"
    file.write_text(MAKES + text)
    kept = [] if store is None else ["--store", store]
    run = ["--or-program", str(file), *kept]
    assert parse_target(str(file))[4:] == run
    assert parse_target(f"{file} -v")[4:] == [*run, "--", "-v"]


def test_an_executable_file_chooses_its_own_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("x.py")
    file.write_text(MAKES)
    file.chmod(0o755)
    assert parse_target("x.py")[-2:] == ["--or-program", "x.py"]
    file.write_text("#!/usr/bin/env python3\n" + MAKES)
    assert parse_target("x.py -v") == ["./x.py", "-v"]


def test_a_command_that_does_not_answer_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = asyncio.Event()

    class Told(Screen):
        def note(self, text: str) -> None:
            assert text.startswith("sleep 1000 does not answer on its standard output")
            told.set()

    async def work() -> None:
        words = ["sleep", "1000"]
        waiting = connect(Told(), words, Access()).__aenter__()
        connecting = asyncio.ensure_future(waiting)
        await told.wait()
        connecting.cancel()
        await asyncio.wait([connecting])

    monkeypatch.setattr(target, "_SILENCE", 0.01)
    asyncio.run(asyncio.wait_for(work(), 60))


def test_headers_and_bearer(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    access = parse_access(["X-A: 1", "X-B:2"], f"@{tmp_path}/token", "auto")
    assert access.headers == {"X-A": "1", "X-B": "2"}
    assert access.bearer == "abc"
    for wrong in ("nothing", ": x"):
        with pytest.raises(UsageError):
            parse_access([wrong], None, "auto")
    with pytest.raises(UsageError):
        parse_access([], "@/does/not/exist", "auto")
