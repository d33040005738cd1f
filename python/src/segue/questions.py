"""The questions that a server asks its client: to the user (elicitation), to a model
(sampling), for the roots.

Members are those of the specification (client/elicitation, client/sampling, client/roots)
in Python's spelling. Clients and servers use these classes.
"""

from __future__ import annotations

from typing import Any, Generic, Literal

import msgspec
from typing_extensions import TypeVar

from .content import Text, decode_block

__all__ = [
    "ElicitRequest",
    "ElicitResult",
    "Root",
    "SampleMessage",
    "SampleRequest",
    "SampleResult",
]

T = TypeVar("T", default=dict[str, Any])


class ElicitRequest(msgspec.Struct, omit_defaults=True):
    """A question to the user.

    Attributes:
        message: the text that the user reads.
        schema: the flat JSON Schema of the form (`mode` "form").
        mode: "form", or "url": the user is sent to `url` instead.
        id: the `elicitationId` of mode "url".
    """

    message: str
    schema: dict[str, Any] | None = msgspec.field(name="requestedSchema", default=None)
    mode: str | None = None
    url: str | None = None
    id: str | None = msgspec.field(name="elicitationId", default=None)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class ElicitResult(msgspec.Struct, Generic[T], omit_defaults=True):
    """The user's answer. `content` is set when `action` is "accept"."""

    action: Literal["accept", "decline", "cancel"]
    content: T | None = None

    @property
    def accepted(self) -> bool:
        """Whether the user has accepted."""
        return self.action == "accept"


class SampleMessage(msgspec.Struct):
    """A message of a conversation with a model. `text` joins the texts of the message."""

    role: Literal["user", "assistant"]
    """Who speaks."""
    content: Any
    """The blocks."""

    @property
    def text(self) -> str:
        """The texts of all blocks, joined."""
        return _text_of(self.content)


class SampleRequest(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A question to a model. `max_tokens` is the maximum length of the answer."""

    messages: list[SampleMessage]
    """The conversation so far."""
    max_tokens: int
    system_prompt: str | None = None
    """A system prompt for the model."""
    temperature: float | None = None
    """The temperature for the model."""
    stop_sequences: list[str] | None = None
    """Texts at which the model stops."""
    model_preferences: dict[str, Any] | None = None
    """Which model the server would like."""
    include_context: str | None = None
    """Which context the client adds."""
    tools: list[dict[str, Any]] | None = None
    """Tools that the model may use."""
    tool_choice: dict[str, Any] | None = None
    """Whether the model must use a tool."""
    metadata: dict[str, Any] | None = None
    """Data for the provider of the model."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class SampleResult(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A model's answer.

    Attributes:
        role: usually "assistant".
        content: one block or a list of blocks; `text` joins their texts.
        model: the name of the model.
        stop_reason: why the model stopped: "endTurn", "maxTokens", "stopSequence",
            "toolUse" or another.
    """

    role: Literal["user", "assistant"]
    content: Any
    model: str = msgspec.field(default_factory=lambda: "unknown")
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The texts of all blocks, joined."""
        return _text_of(self.content)

    @classmethod
    def from_json(cls, raw: bytes) -> SampleResult:
        """Decodes a model's answer and its blocks.

        Raises:
            msgspec.DecodeError: the text is not a model's answer.
        """
        made = _decode_sample(raw)
        blocks = made.content if isinstance(made.content, list) else [made.content]
        made.content = [decode_block(one) for one in blocks if isinstance(one, dict)]
        return made


class Root(msgspec.Struct, omit_defaults=True):
    """A root: a directory or file that the client works in, as a `file://` URI."""

    uri: str
    """A `file://` URI."""
    name: str | None = None
    """Name for people."""


def _text_of(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    texts = []
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Text):
            texts.append(block.text)
        elif isinstance(block, dict) and block.get("type") == "text":
            texts.append(str(block.get("text", "")))
    return "".join(texts)


_decode_sample = msgspec.json.Decoder(SampleResult).decode
