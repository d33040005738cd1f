"""The items of a server (tools, resources, templates, prompts) and the results of reading
them.

They are plain data. `msgspec.to_builtins(tool)` returns the JSON object with all members
that the protocol names (2026-07-28 schema; older revisions have fewer members).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..content import Icon, PromptMessage, ResourceContents, decode_block
from ..errors import ProtocolError

__all__ = [
    "Completion",
    "Prompt",
    "PromptArgument",
    "PromptResult",
    "ReadResult",
    "Resource",
    "ResourceTemplate",
    "Tool",
    "decode",
]


class _Item(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """The members that all items have."""

    name: str
    title: str | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)

    @property
    def label(self) -> str:
        """The text to show to a person: the title, or else the name."""
        return self.title or self.name


class Tool(_Item, frozen=True):
    """A tool, as in the answer to `tools/list`."""

    input_schema: dict[str, Any] = {}
    """JSON Schema of the arguments."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the structured result."""
    annotations: dict[str, Any] | None = None
    """What the tool does to its surroundings."""
    execution: dict[str, Any] | None = None
    """Whether calls may become tasks."""

    @property
    def label(self) -> str:
        """The text to show to a person: a title of the tool, or else its name."""
        told = (self.annotations or {}).get("title")
        return self.title or (told if isinstance(told, str) else "") or self.name


class Resource(_Item, frozen=True):
    """A resource, as in the answer to `resources/list`. `size` is in bytes."""

    uri: str
    """URI of the resource."""
    mime_type: str | None = None
    """MIME type, such as `image/png`."""
    size: int | None = None
    annotations: dict[str, Any] | None = None
    """Hints on how to use it."""


class ResourceTemplate(_Item, frozen=True):
    """A family of resources whose URIs follow one template (`uri_template`, RFC 6570)."""

    uri_template: str
    mime_type: str | None = None
    """MIME type, such as `image/png`."""
    annotations: dict[str, Any] | None = None
    """Hints on how to use it."""


class PromptArgument(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """An argument of a prompt. Its value is a string."""

    name: str
    """Name, unique in its list."""
    title: str | None = None
    """Name for people."""
    description: str | None = None
    """Text for people and models."""
    required: bool = False
    """Whether the argument must be given."""


class Prompt(_Item, frozen=True):
    """A prompt, as in the answer to `prompts/list`."""

    arguments: list[PromptArgument] = []
    """The arguments that the prompt takes."""


class ReadResult(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """The answer to `resources/read`, which stays fresh for `ttl_ms` milliseconds."""

    contents: list[ResourceContents]
    """The contents, one for each part."""
    ttl_ms: int | None = None
    cache_scope: str | None = None
    """For whom the contents may be cached."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""

    @property
    def text(self) -> str:
        """The texts of all contents, joined."""
        return "".join(part.text or "" for part in self.contents)

    @property
    def data(self) -> bytes:
        """The bytes of all contents, joined. Texts are in UTF-8."""
        return b"".join(
            (part.text or "").encode() if part.blob is None else part.blob
            for part in self.contents
        )


class PromptResult(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True):
    """The answer to `prompts/get`."""

    messages: list[PromptMessage]
    """The messages, in their order."""
    description: str | None = None
    """What the prompt is for."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class Completion(
    msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True
):
    """Suggested values of an argument, the best first. At most 100."""

    values: list[str]
    total: int | None = None
    """How many values there are in all, if the server says so."""
    has_more: bool = False
    """Whether there are more values than these."""


class ToolsPage(msgspec.Struct, rename="camel"):
    """One page of `tools/list`."""

    tools: list[Tool]
    next_cursor: str | None = None


class ResourcesPage(msgspec.Struct, rename="camel"):
    """One page of `resources/list`."""

    resources: list[Resource]
    next_cursor: str | None = None


class TemplatesPage(msgspec.Struct, rename="camel"):
    """One page of `resources/templates/list`."""

    resource_templates: list[ResourceTemplate]
    next_cursor: str | None = None


class PromptsPage(msgspec.Struct, rename="camel"):
    """One page of `prompts/list`."""

    prompts: list[Prompt]
    next_cursor: str | None = None


class _WireMessage(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: msgspec.Raw


class _WirePrompt(msgspec.Struct):
    messages: list[_WireMessage]
    description: str | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class CompletionAnswer(msgspec.Struct):
    """The answer to `completion/complete`."""

    completion: Completion


def decode(raw: bytes, kind: Any, method: str) -> Any:
    """Decodes a server's answer.

    Raises:
        ProtocolError: The answer does not fit the method; the message says where.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ProtocolError(f"{method}: {error}") from error


def read_prompt(raw: bytes) -> PromptResult:
    """Decodes the answer to `prompts/get`. Blocks of an unknown type are kept as they
    are.

    Raises:
        ProtocolError: The answer is not valid.
    """
    told = decode(raw, _WirePrompt, "prompts/get")
    messages = []
    for one in told.messages:
        block: Any = decode_block(bytes(one.content))
        messages.append(PromptMessage(one.role, block))
    return PromptResult(messages=messages, description=told.description, meta=told.meta)
