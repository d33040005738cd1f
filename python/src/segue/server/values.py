"""Converts the values of handlers to blocks for the library.

A block for the library is either a str, which is a block of text, or bytes, which are the
JSON of a block. Text is passed to the library without converting it to JSON here.
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

__all__ = [
    "block_of",
    "blocks_of",
    "contents_of",
    "has_content",
    "is_block",
    "json_text",
    "messages_of",
    "piece_of",
]

encode = schema.encode
_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource, Unknown)


def is_block(value: Any) -> bool:
    """Returns whether a value is a block by itself: text, content, or a segment of
    another call."""
    return isinstance(value, (str, Segment, *_BLOCKS))


def has_content(values: Iterable[Any]) -> bool:
    """Returns whether one of the values is content, or a segment of another call."""
    return any(isinstance(one, (Segment, *_BLOCKS)) for one in values)


def json_text(value: Any) -> str:
    """Converts a value to JSON, for a block of text."""
    return encode(value).decode()


def block_of(value: Any) -> str | bytes:
    """Converts one value to one block.

    str and bytes become text (bytes must be UTF-8), content stays as it is, a segment
    becomes its block, and any other value becomes JSON as text.

    Raises:
        TypeError: JSON cannot represent the value.
        ValueError: the bytes are not UTF-8. Such bytes must be wrapped in Image, Audio or
            a resource.
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
                "bytes have to be text in UTF-8: return other bytes as segue.Image, "
                "segue.Audio or segue.EmbeddedResource"
            ) from None
    if isinstance(value, str):
        return str(value)
    return json_text(value)


def blocks_of(values: Iterable[Any]) -> list[bytes]:
    """Converts values to blocks as JSON."""
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
    if isinstance(value, (Image, Audio)):
        kind = mime_type or value.mime_type
        return ResourceContents(uri, blob=value.data, mime_type=kind, meta=value.meta)
    kind = mime_type or "application/json"
    return ResourceContents(uri, text=json_text(value), mime_type=kind)


def contents_of(value: Any, uri: str, mime_type: str | None) -> list[bytes]:
    """Converts the value of a resource to the items of `contents`.

    str becomes text, bytes, Image and Audio become a blob, any other value becomes JSON.
    A list with one of the classes of content gives several items.
    """
    kinds = (ResourceContents, EmbeddedResource, Image, Audio)
    if isinstance(value, (list, tuple)) and any(isinstance(one, kinds) for one in value):
        return [encode(_contents(one, uri, mime_type)) for one in value]
    return [encode(_contents(value, uri, mime_type))]


def piece_of(value: Any) -> str | bytes:
    """Converts a value that a resource sends or yields. A str continues the text of the
    resource.

    Raises:
        TypeError: the value is neither a str nor `ResourceContents`.
    """
    if isinstance(value, EmbeddedResource):
        value = value.resource
    if isinstance(value, ResourceContents):
        return encode(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(
        "a resource can send only str (they are joined to one text) and "
        f"ResourceContents, not {type(value).__name__}: return the value from the "
        "handler instead of sending it"
    )


# ---- prompts


def _message(role: Any, content: Any, **others: Any) -> bytes:
    """Makes one message. A string becomes a block of text."""
    if isinstance(content, str):
        content = Text(content)
    elif content is None or isinstance(content, (list, tuple)):
        raise TypeError(
            "the content of a message has to be a string or one block, not "
            f"{type(content).__name__}"
        )
    return encode({"role": role, "content": content, **others})


def messages_of(value: Any) -> list[bytes]:
    """Converts the value of a prompt to messages. A string or a block is a message of the
    user.

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
