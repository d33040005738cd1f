"""Who is at the other end of a session."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..content import Icon

__all__ = ["Implementation", "Peer"]

_MODERN = "2026-07-28"


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
        """In which ways it offers work that takes long, by the number of the proposal.

        What a client asks for without the server's word (SEP-975, SEP-2998, PR 776) is
        not in the list.
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
