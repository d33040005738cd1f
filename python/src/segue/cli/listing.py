"""Implements ``segue tools``, ``resources``, ``read``, ``prompts``, ``prompt``,
``inspect``."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import segue
from segue.cli.codes import Exit, UsageError
from segue.cli.screen import Screen, describe_resource
from segue.cli.target import Access, Era, connect
from segue.tokens import Target

__all__ = ["inspect", "prompt", "prompts", "read", "resources", "tools"]


async def tools(
    screen: Screen, target: Target, access: Access, *, name: str | None
) -> Exit:
    """Lists the tools, or shows the tool `name` with its schemas."""
    async with connect(screen, target, access) as session:
        found = await session.list_tools()
    if name is not None:
        named = [tool for tool in found if tool.name == name]
        if not named:
            raise UsageError(f"the server has no tool {name!r}")
        wire = _wire(named[0])
        screen.json(wire) if screen.as_json else screen.pretty(wire)
        return Exit.OK
    if screen.as_json:
        screen.json([_wire(tool) for tool in found])
        return Exit.OK
    rows = [(tool.name, _signature(tool), _first_line(tool)) for tool in found]
    screen.table(("TOOL", "ARGUMENTS", "DESCRIPTION"), rows)
    return Exit.OK


async def resources(screen: Screen, target: Target, access: Access) -> Exit:
    """Lists resources and templates."""
    async with connect(screen, target, access) as session:
        found, templates = await asyncio.gather(
            _or_none(session.list_resources()),
            _or_none(session.list_resource_templates()),
        )
    if screen.as_json:
        screen.json(
            {
                "resources": [_wire(item) for item in found],
                "resourceTemplates": [_wire(item) for item in templates],
            }
        )
        return Exit.OK
    rows = [(item.uri, item.mime_type or "", _first_line(item)) for item in found]
    rows += [
        (item.uri_template, item.mime_type or "", _first_line(item)) for item in templates
    ]
    screen.table(("URI", "TYPE", "DESCRIPTION"), rows)
    return Exit.OK


async def read(
    screen: Screen, target: Target, access: Access, uri: str, output: Path | None
) -> Exit:
    """Reads a resource and shows it, or writes its bytes to the file `output`."""
    async with connect(screen, target, access) as session:
        result = await session.read_resource(uri)
    if output is not None:
        try:
            output.write_bytes(b"".join(_bytes(part) for part in result.contents))
        except OSError as error:
            raise UsageError(f"{output}: {error.strerror}") from error
        screen.note(f"{output}: {output.stat().st_size} bytes")
    elif screen.as_json:
        screen.json(_wire(result))
    else:
        for part in result.contents:
            screen.text(describe_resource(_wire(part)))
    return Exit.OK


async def prompts(screen: Screen, target: Target, access: Access) -> Exit:
    """Lists prompts."""
    async with connect(screen, target, access) as session:
        found = await session.list_prompts()
    if screen.as_json:
        screen.json([_wire(item) for item in found])
        return Exit.OK
    rows = [
        (
            item.name,
            " ".join(
                one.name if one.required else f"[{one.name}]" for one in item.arguments
            ),
            _first_line(item),
        )
        for item in found
    ]
    screen.table(("PROMPT", "ARGUMENTS", "DESCRIPTION"), rows)
    return Exit.OK


async def prompt(
    screen: Screen, target: Target, access: Access, name: str, pairs: Sequence[str]
) -> Exit:
    """Gets a prompt with its arguments and shows its messages."""
    arguments = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair!r} is not of the form key=value")
        arguments[key] = value
    async with connect(screen, target, access) as session:
        result = await session.get_prompt(name, arguments)
    if screen.as_json:
        screen.json(_wire(result))
        return Exit.OK
    for message in _wire(result)["messages"]:
        content = message["content"]
        screen.note(f"{message['role']}:")
        screen.blocks(content if isinstance(content, list) else [content])
    return Exit.OK


async def inspect(screen: Screen, target: Target, access: Access) -> Exit:
    """Shows the server's name, the revisions that it speaks, and what it can do.

    The command connects once in each era to find out whether the server speaks both eras.
    If the user chose an era, the command connects only in this era.
    """
    eras: list[Era] = ["modern", "legacy"] if access.era == "auto" else [access.era]
    told: dict[str, Any] = {}
    failure: segue.Error | None = None
    lines = _Lines()
    for era in eras:
        try:
            told[era] = await _introduction(screen, target, access, era, lines.begin())
        except segue.Error as error:
            failure = error
    if not told:
        assert failure is not None
        raise failure
    if screen.as_json:
        screen.json({"eras": told})
        return Exit.OK
    for era in eras:
        if era in told:
            _show_introduction(screen, era, told[era])
        else:
            screen.text(f"{era}: not supported\n")
    return Exit.OK


class _Lines:
    """What several runs of a command write to standard error. A line that an earlier run
    has written is not printed again."""

    def __init__(self) -> None:
        self._printed: Counter[str] = Counter()

    def begin(self) -> Callable[[str], object]:
        """Returns what takes the lines of the next run."""
        run: Counter[str] = Counter()

        def take(line: str) -> None:
            run[line] += 1
            if run[line] > self._printed[line]:
                self._printed[line] += 1
                print(line, file=sys.stderr, flush=True)

        return take


async def _introduction(
    screen: Screen,
    target: Target,
    access: Access,
    era: Era,
    on_stderr: Callable[[str], object],
) -> dict[str, Any]:
    chosen = Access(access.headers, access.bearer, era)
    options: segue.ConnectOptions = {}
    if not isinstance(target, str):
        options["on_stderr"] = on_stderr
    async with connect(screen, target, chosen, options) as session:
        peer = session.peer
        told: dict[str, Any] = {
            "protocolVersion": peer.protocol_version,
            "server": _wire(peer.server),
            "capabilities": peer.capabilities,
            "extensions": sorted(peer.extensions),
            "dialects": list(peer.dialects),
            "instructions": peer.instructions,
        }
        counts = {}
        for kind, listed in (
            ("tools", session.list_tools),
            ("resources", session.list_resources),
            ("prompts", session.list_prompts),
        ):
            if kind in peer.capabilities:
                told[kind] = [_wire(item) for item in await _or_none(listed())]
                counts[kind] = len(told[kind])
        if "resources" in peer.capabilities:
            templates = await _or_none(session.list_resource_templates())
            told["resourceTemplates"] = [_wire(item) for item in templates]
            counts["resource templates"] = len(templates)
        told["counts"] = counts
    return told


def _show_introduction(screen: Screen, era: str, told: Mapping[str, Any]) -> None:
    server = told["server"]
    named = " ".join(str(server[key]) for key in ("name", "version") if key in server)
    counts = ", ".join(
        f"{count} {kind if count != 1 else kind[:-1]}"
        for kind, count in told["counts"].items()
    )
    capabilities = " ".join(sorted(told["capabilities"])) or "none"
    screen.text(f"{era}: {told['protocolVersion']}")
    rows = [
        ("server", named),
        ("capabilities", capabilities),
        ("extensions", " ".join(told["extensions"]) or "none"),
        ("dialects", ", ".join(told["dialects"]) or "none"),
        ("has", counts or "nothing to list"),
        ("instructions", told["instructions"] or ""),
    ]
    for name, value in rows:
        if value:
            screen.text(f"  {name:13} {value}")
    for tool in told.get("tools", ()):
        screen.text(f"  tool {tool['name']}")
        for label, schema in (
            ("takes", tool["inputSchema"]),
            ("gives", tool.get("outputSchema")),
        ):
            for line in _members(schema or {}):
                screen.text(f"    {label:8} {line}")
    screen.text("\n")


def _members(schema: Mapping[str, Any]) -> list[str]:
    """Returns a line for each member of a schema: its name, its own schema as JSON, and
    whether it is required."""
    properties = _properties(schema)
    required = schema.get("required") or ()
    return [
        f"{name}{'' if name in required else '?'} {_compact(part)}"
        for name, part in properties.items()
    ]


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of a schema and their schemas. A reference to a definition that
    has no references itself, such as an enum, is replaced by the definition."""
    known = {
        f"#/{place}/{name}": part
        for place in ("$defs", "definitions")
        for name, part in (schema.get(place) or {}).items()
        if isinstance(part, dict) and not _has_reference(part)
    }
    properties: dict[str, Any] = schema.get("properties") or {}
    return {name: _replaced(part, known) for name, part in properties.items()}


def _has_reference(part: Any) -> bool:
    parts = part.values() if isinstance(part, dict) else part
    return isinstance(part, (dict, list)) and (
        "$ref" in part or any(map(_has_reference, parts))
    )


def _replaced(part: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_replaced(one, known) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: _replaced(value, known) for key, value in part.items()}
    found = known.get(made["$ref"]) if isinstance(made.get("$ref"), str) else None
    if found is None:
        return made
    return {**found, **{key: value for key, value in made.items() if key != "$ref"}}


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _bytes(part: Any) -> bytes:
    """Returns the bytes of a resource; text as UTF-8."""
    data: bytes = part.blob if part.blob is not None else (part.text or "").encode()
    return data


def _wire(item: Any) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(item)
    return told


async def _or_none(listed: Any) -> list[Any]:
    """Returns the list, or an empty list when the server does not support this kind of
    list.
    """
    try:
        return list(await listed)
    except segue.RemoteError as error:
        if error.code == -32601:
            return []
        raise


def _first_line(item: Any) -> str:
    text = item.description or item.title or ""
    return str(text).strip().partition("\n")[0]


def _signature(tool: Any) -> str:
    """Returns the names of the tool's arguments. The names of optional arguments are in
    brackets."""
    properties = _properties(tool.input_schema)
    required = tool.input_schema.get("required") or ()
    names = []
    for name, part in properties.items():
        kind = part.get("type") if isinstance(part, dict) else None
        shown = f"{name}:{kind}" if isinstance(kind, str) else str(name)
        names.append(shown if name in required else f"[{shown}]")
    return " ".join(names)
