"""The description of the server at the other end of a session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..content import Icon

__all__ = ["Implementation", "Peer"]

_MODERN = "2026-07-28"


class Implementation(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """The name and version of a program, as the program itself reports them."""

    name: str = ""
    version: str = ""
    title: str | None = None
    """Name for people."""
    description: str | None = None
    """Text about the program."""
    website_url: str | None = None
    """URL of its web page."""
    icons: list[Icon] | None = None
    """Pictures, in several sizes."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """The server's description of itself at the last connection.

    Attributes:
        protocol_version: The protocol revision in use, such as "2026-07-28".
        server: The server's name and version.
        capabilities: The capabilities that the server declares, as JSON.
        instructions: The server's instructions for the model that uses it.
    """

    protocol_version: str
    server: Implementation
    capabilities: dict[str, Any]
    instructions: str | None = None

    @property
    def era(self) -> Literal["modern", "legacy"]:
        """Whether the revision in use is "modern" (2026-07-28 and newer, without
        `initialize`) or "legacy" (all older revisions, back to 2024-11-05).
        """
        version = self.protocol_version
        return "modern" if version[:2] == "20" and version >= _MODERN else "legacy"

    @property
    def extensions(self) -> dict[str, Any]:
        """The protocol extensions that the server offers, by name."""
        told = self.capabilities.get("extensions")
        return told if isinstance(told, dict) else {}

    @property
    def dialects(self) -> list[str]:
        """The ways in which the server offers long-running work, by the names of their
        proposals.

        Some proposals need no declaration of the server (SEP-975, SEP-2998, PR 776). They
        are not listed.
        """
        found = []
        tasks = self.capabilities.get("tasks")
        if isinstance(tasks, dict):
            is_draft = self.protocol_version.startswith("DRAFT")
            found.append("SEP-2557 tasks" if is_draft else "SEP-1686 tasks")
            responses = tasks.get("responses")
            modes = responses.get("modes") if isinstance(responses, dict) else None
            if isinstance(modes, list) and "streaming" in modes:
                found.append("SEP-1905 streaming")
        for name, dialect in _BY_EXTENSION.items():
            if self.extensions.get(name) not in (None, False):
                found.append(dialect)
        return found


_BY_EXTENSION = {
    "io.modelcontextprotocol/tasks": "SEP-2663 tasks",
    "dev.segue/eventStreams": "SEP-2694 task events",
    "dev.segue/idempotency": "idempotency keys",
}


class _Told(msgspec.Struct, rename="camel"):
    protocol_version: str = ""
    server_info: Implementation = Implementation()
    capabilities: dict[str, Any] = {}
    instructions: str | None = None


def read_peer(raw: bytes | str) -> Peer:
    """Parses the output of `segue_session_peer`."""
    told: _Told
    try:
        told = msgspec.json.decode(raw, type=_Told)
    except msgspec.ValidationError:
        # The server chose the values, so a value may have a wrong type. A wrong type is
        # no reason to refuse the server.
        loose = msgspec.json.decode(raw)
        told = _Told(str(loose.get("protocolVersion", "")))
        if isinstance(loose.get("capabilities"), dict):
            told.capabilities = loose["capabilities"]
    return Peer(
        protocol_version=told.protocol_version,
        server=told.server_info,
        capabilities=told.capabilities,
        instructions=told.instructions,
    )
