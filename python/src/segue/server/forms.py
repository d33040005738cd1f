"""The questions of a handler as JSON, and their answers as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import msgspec

from .. import schema
from ..content import Text
from ..questions import Root

__all__ = [
    "ELICIT",
    "ROOTS",
    "SAMPLE",
    "Form",
    "decode_elicited",
    "decode_roots",
    "sample_params",
    "url_params",
]

T = TypeVar("T")
ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"


class Form(Generic[T]):
    """A type as a form. A simple type, or a choice, is a form of one field, `value`; a
    dict is the JSON Schema of a form itself."""

    def __init__(self, tp: Any) -> None:
        self._wraps = False
        self.schema: dict[str, Any]
        self._decode: Callable[[bytes], Any]
        if isinstance(tp, dict):
            self.schema, self._decode = tp, msgspec.json.decode
            return
        if not schema.is_object_type(tp):
            tp, self._wraps = msgspec.defstruct("Answer", [("value", tp)]), True
        self.schema = schema.form_schema(tp)
        self._decode = schema.decoder(tp)

    def decode(self, content: bytes) -> T:
        """Raises `msgspec.ValidationError` where an answer does not fit."""
        made: Any = self._decode(content)
        return made.value if self._wraps else made  # type: ignore[no-any-return]


class ElicitAnswer(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: msgspec.Raw = msgspec.Raw(b"{}")


class RootsAnswer(msgspec.Struct):
    roots: list[Root]


decode_elicited = msgspec.json.Decoder(ElicitAnswer).decode
decode_roots = msgspec.json.Decoder(RootsAnswer).decode


def sample_params(messages: Any, max_tokens: int, options: dict[str, Any]) -> bytes:
    """The params of sampling/createMessage. A string is a message of the user."""
    items = messages if isinstance(messages, (list, tuple)) else [messages]
    made = [
        {"role": "user", "content": Text(one)} if isinstance(one, str) else one
        for one in items
    ]
    given = {name: value for name, value in options.items() if value is not None}
    return schema.encode({"messages": made, "maxTokens": max_tokens, **given})


def url_params(message: str, url: str, elicitation_id: str) -> bytes:
    """The params of elicitation/create that sends the user to a URL."""
    return schema.encode(
        {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    )
