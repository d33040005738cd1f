"""Who is at the other end of a session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..content import Icon

__all__ = ["Implementation", "Peer"]

_MODERN = "2026-07-28"
_TASKS = "io.modelcontextprotocol/tasks"


class Implementation(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """The name and version a program gives itself."""

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """The server as it introduced itself, at the last connection.

    Attributes:
        protocol_version: The revision that is spoken, such as "2026-07-28".
        server: Its name and version.
        capabilities: What it can do, as JSON has it.
        instructions: For the model that uses the server.
    """

    protocol_version: str
    server: Implementation
    capabilities: dict[str, Any]
    instructions: str | None = None

    @property
    def era(self) -> Literal["modern", "legacy"]:
        """ "modern" is 2026-07-28 and newer, without a handshake; "legacy" what was
        before, back to 2024-11-05."""
        version = self.protocol_version
        return "modern" if version[:2] == "20" and version >= _MODERN else "legacy"

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions of the protocol that it offers, by name."""
        told = self.capabilities.get("extensions")
        return told if isinstance(told, dict) else {}

    @property
    def dialects(self) -> list[str]:
        """In which ways it can show work that takes long, by the name of their proposal.

        What a server does not announce in its capabilities is not in the list.
        """
        found = []
        tasks = self.capabilities.get("tasks")
        if isinstance(tasks, dict):
            found.append("tasks-2025" if self.era == "legacy" else "tasks-draft")
            modes = tasks.get("requests")
            if _mentions(tasks.get("responseModes")) or _mentions(modes, "responseModes"):
                found.append("SEP-1905 streaming")
        extension = self.extensions.get(_TASKS)
        if isinstance(extension, dict):
            found.append("SEP-2663 tasks")
            if _mentions(extension.get("streaming")) or _mentions(extension, "events"):
                found.append("SEP-2694 task events")
        for name, dialect in _BY_CAPABILITY.items():
            if self.capabilities.get(name) not in (None, False):
                found.append(dialect)
        return found


_BY_CAPABILITY = {
    "partialResults": "SEP-2998 partial results",
    "allowPartial": "PR-776 partial results",
    "resumableRequests": "SEP-975 resumable requests",
}


def _mentions(value: object, name: str | None = None) -> bool:
    """Is the member there and not false?"""
    if name is not None:
        value = value.get(name) if isinstance(value, dict) else None
    return value not in (None, False)


class _Told(msgspec.Struct, rename="camel"):
    protocol_version: str = ""
    server_info: Implementation = Implementation()
    capabilities: dict[str, Any] = {}
    instructions: str | None = None


def read_peer(raw: bytes | str) -> Peer:
    """What `segue_session_peer` tells."""
    told: _Told
    try:
        told = msgspec.json.decode(raw, type=_Told)
    except msgspec.ValidationError:
        # A server may call itself what it likes: that is no reason not to use it.
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
