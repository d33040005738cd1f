"""What a handler yields and returns, as blocks.

A block on its way to the library is a str, which is a block of text, or bytes, which are
the JSON of a block. Text goes as it is: no JSON is made of it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .. import schema
from .._segue import Segment
from ..content import (
    Audio,
    EmbeddedResource,
    Image,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Text,
    Unknown,
)

__all__ = ["block_of", "blocks_of", "contents_of", "is_block", "json_text", "messages_of"]

encode = schema.encode
_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource, Unknown)


def is_block(value: Any) -> bool:
    """Whether a value is a block by itself: content, or a segment to pass on."""
    return isinstance(value, (str, Segment, *_BLOCKS))


def json_text(value: Any) -> str:
    """A value as JSON, for a block of text."""
    return encode(value).decode()


def block_of(value: Any) -> str | bytes:
    """One value as one block.

    str and bytes are text (bytes are UTF-8), content is itself, a segment the block that
    it came with, and anything else its JSON as text.

    Raises:
        TypeError: the value has no form in JSON.
        ValueError: bytes that are not UTF-8; wrap them in Image, Audio or a resource.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is Text and value.annotations is None and value.meta is None:
        return value.text  # type: ignore[no-any-return]
    if kind is Segment:
        return value.data  # type: ignore[no-any-return]
    if isinstance(value, _BLOCKS):
        return encode(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise ValueError(
                "bytes are text in UTF-8; say what others are by segue.Image, "
                "segue.Audio or segue.EmbeddedResource"
            ) from None
    if isinstance(value, str):
        return str(value)
    return json_text(value)


def blocks_of(values: Iterable[Any]) -> list[bytes]:
    """Several values as JSON blocks."""
    made = []
    for value in values:
        block = block_of(value)
        made.append(encode(Text(block)) if isinstance(block, str) else block)
    return made


# ---- resources


def _contents(value: Any, uri: str, mime_type: str | None) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, str):
        return ResourceContents(uri, text=value, mime_type=mime_type or "text/plain")
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = mime_type or "application/octet-stream"
        return ResourceContents(uri, blob=bytes(value), mime_type=kind)
    if isinstance(value, EmbeddedResource):
        return value.resource
    kind = mime_type or "application/json"
    return ResourceContents(uri, text=json_text(value), mime_type=kind)


def contents_of(value: Any, uri: str, mime_type: str | None) -> list[bytes]:
    """What a resource gave, as the items of `contents`.

    str is text, bytes are a blob, anything else is JSON; a list of `ResourceContents` is
    several.
    """
    if isinstance(value, (list, tuple)) and any(
        isinstance(one, (ResourceContents, EmbeddedResource)) for one in value
    ):
        return [encode(_contents(one, uri, mime_type)) for one in value]
    return [encode(_contents(value, uri, mime_type))]


# ---- prompts


def _message(role: Any, content: Any, **others: Any) -> bytes:
    """One message; a string is a block of text here too."""
    if isinstance(content, str):
        content = Text(content)
    elif content is None or isinstance(content, (list, tuple)):
        raise TypeError(
            "the content of a message is a string or one block, not "
            f"{type(content).__name__}"
        )
    return encode({"role": role, "content": content, **others})


def messages_of(value: Any) -> list[bytes]:
    """What a prompt gave, as its messages: a string or a block is one of the user.

    Raises:
        TypeError: a message without content, or with a list of blocks.
    """
    values = value if isinstance(value, (list, tuple)) else [value]
    made = []
    for one in values:
        if isinstance(one, PromptMessage):
            made.append(_message(one.role, one.content))
        elif isinstance(one, dict) and "role" in one:
            made.append(_message(**{"content": None, **one}))
        elif isinstance(one, _BLOCKS):
            made.append(_message("user", one))
        else:
            block = block_of(one)
            text = isinstance(block, str)
            made.append(_message("user", block if text else msgspec.Raw(block)))
    return made
