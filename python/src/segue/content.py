"""Content of results and messages: blocks and results. Clients and servers use it.

Names and members are those of the specification (server/tools, "Tool Result") in Python's
spelling: `mimeType` is `mime_type`, `_meta` is `meta`. `msgspec.json.encode` and
`msgspec.to_builtins` convert every class here to the protocol's JSON, with bytes as
base64.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

import msgspec

from . import _segue, schema

__all__ = [
    "Annotations",
    "Audio",
    "Block",
    "Content",
    "EmbeddedResource",
    "Icon",
    "Image",
    "PromptMessage",
    "ResourceContents",
    "ResourceLink",
    "Result",
    "Text",
    "Unknown",
    "assistant",
    "decode_block",
    "user",
]

T = TypeVar("T")
Role = Literal["user", "assistant"]


class Annotations(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Hints on how to use a block. `priority` is from 0 to 1; times are ISO 8601."""

    audience: list[Role] | None = None
    """Who should see the block."""
    priority: float | None = None
    last_modified: str | None = None
    """When the content was last changed, as ISO 8601."""


class Icon(msgspec.Struct, omit_defaults=True, rename="camel"):
    """A picture for a tool, a resource, a prompt or a server. `src` is a URL."""

    src: str
    mime_type: str | None = None
    """MIME type, such as `image/png`."""
    sizes: list[str] | None = None
    """Sizes in pixels, such as `48x48`, or `any`."""
    theme: Literal["light", "dark"] | None = None
    """The theme of the user interface that it was made for."""


class Text(msgspec.Struct, tag_field="type", tag="text", omit_defaults=True):
    """A block of text."""

    text: str
    annotations: Annotations | None = None
    """Hints on how to use it."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


_BYTES = (bytes, bytearray, memoryview)

# The first bytes of a file, a place in it, the bytes there, and its type.
_Kinds = Sequence[tuple[bytes, int, bytes, str]]
_IMAGE_KINDS = (
    (b"\x89PNG", 0, b"", "image/png"),
    (b"\xff\xd8\xff", 0, b"", "image/jpeg"),
    (b"GIF8", 0, b"", "image/gif"),
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"BM", 0, b"", "image/bmp"),
    (b"II*\0", 0, b"", "image/tiff"),
    (b"MM\0*", 0, b"", "image/tiff"),
    (b"", 4, b"ftypavif", "image/avif"),
    (b"<svg", 0, b"", "image/svg+xml"),
)
_AUDIO_KINDS = (
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"ID3", 0, b"", "audio/mpeg"),
    (b"\xff\xfb", 0, b"", "audio/mpeg"),
    (b"\xff\xf3", 0, b"", "audio/mpeg"),
    (b"OggS", 0, b"", "audio/ogg"),
    (b"fLaC", 0, b"", "audio/flac"),
    (b"", 4, b"ftyp", "audio/mp4"),
)


def _kind_of(data: bytes, kinds: _Kinds, other: str) -> str:
    """Returns the type of a file by its first bytes; `other` if they are unknown."""
    head = bytes(data[:16])
    for first, at, then, kind in kinds:
        if head.startswith(first) and head[at:].startswith(then):
            return kind
    return other


def _not_bytes(block: Any) -> str:
    name, kind = type(block).__name__, type(block.data).__name__
    return (
        f"the data of segue.{name} are bytes, not {kind}: for a file write "
        f"segue.{name}(pathlib.Path(...).read_bytes())"
    )


class Image(
    msgspec.Struct, tag_field="type", tag="image", omit_defaults=True, rename="camel"
):
    """A block with a picture. Without a `mime_type`, its first bytes say what it is;
    "image/png" if they are unknown."""

    data: bytes
    """The picture."""
    mime_type: str = msgspec.field(name="mimeType", default_factory=str)
    annotations: Annotations | None = None
    """Hints on how to use it."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""

    def __post_init__(self) -> None:
        if not isinstance(self.data, _BYTES):
            raise TypeError(_not_bytes(self))
        if not self.mime_type:
            self.mime_type = _kind_of(self.data, _IMAGE_KINDS, "image/png")


class Audio(
    msgspec.Struct, tag_field="type", tag="audio", omit_defaults=True, rename="camel"
):
    """A block with a sound. Without a `mime_type`, its first bytes say what it is;
    "audio/wav" if they are unknown."""

    data: bytes
    """The sound."""
    mime_type: str = msgspec.field(name="mimeType", default_factory=str)
    annotations: Annotations | None = None
    """Hints on how to use it."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""

    def __post_init__(self) -> None:
        if not isinstance(self.data, _BYTES):
            raise TypeError(_not_bytes(self))
        if not self.mime_type:
            self.mime_type = _kind_of(self.data, _AUDIO_KINDS, "audio/wav")


class ResourceLink(
    msgspec.Struct,
    tag_field="type",
    tag="resource_link",
    omit_defaults=True,
    rename="camel",
):
    """A block that names a resource, which the reader may fetch. `size` is in bytes."""

    uri: str
    """URI of the resource."""
    name: str
    """Name, unique in its list."""
    title: str | None = None
    """Name for people."""
    description: str | None = None
    """Text for people and models."""
    mime_type: str | None = None
    """MIME type, such as `image/png`."""
    size: int | None = None
    annotations: Annotations | None = None
    """Hints on how to use it."""
    icons: list[Icon] | None = None
    """Pictures, in several sizes."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class ResourceContents(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The contents of a resource: `text`, or bytes in `blob`."""

    uri: str
    """URI of the contents."""
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    """MIME type, such as `image/png`."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class EmbeddedResource(
    msgspec.Struct, tag_field="type", tag="resource", omit_defaults=True
):
    """A block that contains a resource."""

    resource: ResourceContents
    annotations: Annotations | None = None
    """Hints on how to use it."""
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)
    """Additional data (`_meta`)."""


class Unknown(dict[str, Any]):
    """A block of a type that this version does not know, as its JSON object."""

    @property
    def type(self) -> str:
        """The type of the block, or "" if it has none."""
        return str(self.get("type", ""))


Block = Union[Text, Image, Audio, ResourceLink, EmbeddedResource]  # noqa: UP007
"""The blocks that the specification names."""
Content = Union[Block, Unknown]  # noqa: UP007
"""Any block."""

_BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
_decode_known = msgspec.json.Decoder(Block).decode
_encode = msgspec.json.encode


def decode_block(block: bytes | str | dict[str, Any]) -> Content:
    """Makes a block from its JSON, as text or as an object.

    A block of an unknown type, or a block that does not fit its type, becomes `Unknown`.
    A block of another program therefore never raises an exception.

    Raises:
        msgspec.DecodeError: the text is not JSON.
    """
    made: Content
    try:
        if isinstance(block, dict):
            made = msgspec.convert(block, Block)
        else:
            made = _decode_known(block)
        return made
    except msgspec.ValidationError:
        value = block if isinstance(block, dict) else msgspec.json.decode(block)
        return Unknown(value if isinstance(value, dict) else {"type": "", "value": value})


_segue.set_block_decoder(decode_block)  # decodes Segment.content


# ---- messages of prompts


class PromptMessage(msgspec.Struct):
    """A message of a prompt: its speaker and one block."""

    role: Role
    """Who speaks."""
    content: Block
    """The block."""


def _block(value: str | Block) -> Block:
    return Text(value) if isinstance(value, str) else value


def user(content: str | Block) -> PromptMessage:
    """Makes a prompt message of the user. A string becomes a block of text."""
    return PromptMessage("user", _block(content))


def assistant(content: str | Block) -> PromptMessage:
    """Makes a prompt message of the model. A string becomes a block of text."""
    return PromptMessage("assistant", _block(content))


# ---- results


class Result(msgspec.Struct, omit_defaults=True, dict=True):
    """The result of a tool.

    Attributes:
        content: the blocks.
        structured: the value of `structuredContent`; None when it is missing.
        is_error: True = the tool failed, and the blocks say why.
        meta: the value of `_meta`.
    """

    # msgspec leaves out an empty list whose default is the type `list`. The default here
    # is another function, so an empty list is encoded too, as the protocol requires.
    content: list[Content] = msgspec.field(default_factory=lambda: [])  # noqa: PIE807
    structured: Any = msgspec.field(name="structuredContent", default=None)
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | Content | Sequence[str | Content] = (),
            structured: Any = None,
            is_error: bool = False,
            meta: dict[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        content: Any = self.content
        if type(content) is list:
            for block in content:
                if type(block) not in _BLOCKS:
                    break
            else:
                return
        if isinstance(content, (str, dict, *_BLOCKS)):
            content = [content]
        self.content = [
            Text(block) if isinstance(block, str) else block for block in content
        ]

    @classmethod
    def from_json(cls, raw: bytes | str) -> Result:
        """Decodes the JSON text of a result of `tools/call`.

        Raises:
            msgspec.DecodeError: the text is not JSON, or not the result of a tool.
        """
        raw = raw.encode() if isinstance(raw, str) else raw
        try:
            wire: Any = _decode_result(raw)
            result = cls(wire.content, wire.structured, wire.is_error, wire.meta)
        except msgspec.ValidationError:
            loose = _decode_loose(raw)
            blocks = [decode_block(bytes(block)) for block in loose.content]
            result = cls(blocks, loose.structured, loose.is_error, loose.meta)
        kept: Any = vars(result)
        kept["raw"] = raw
        return result

    @property
    def raw(self) -> bytes:
        """The JSON of the result: as it was received, or as it would be sent when the
        result was made here.
        """
        raw: bytes | None = self.__dict__.get("raw")
        return _encode(self) if raw is None else raw

    @property
    def text(self) -> str:
        """The texts of all blocks, joined."""
        return "".join([block.text for block in self.content if type(block) is Text])

    def decode(self, type: type[T]) -> T:
        """Decodes the structured content, or else the text as JSON. If the structured
        content is `{"result": value}`, the value is decoded. The whole content is decoded
        if the value does not fit the type. If the type declares a member `result`, the
        whole content comes first.

        Args:
            type: a type that msgspec can decode to, or a model of pydantic.

        Raises:
            msgspec.ValidationError: the value does not fit the type. pydantic raises its
            own exception.
        """
        decode = schema.decoder(type)
        whole = self.structured
        if whole is None:
            return decode(self.text.encode())
        if not isinstance(whole, dict) or list(whole) != ["result"]:
            return decode(_encode(whole))
        ways = [whole["result"], whole]
        if schema.has_member(type, "result"):
            ways.reverse()
        try:
            return decode(_encode(ways[0]))
        except (msgspec.ValidationError, ValueError):
            with contextlib.suppress(msgspec.ValidationError, ValueError):
                return decode(_encode(ways[1]))
            raise


class _Known(msgspec.Struct):
    content: list[Block] = []
    structured: Any = msgspec.field(name="structuredContent", default=None)
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


class _Loose(msgspec.Struct):
    content: list[msgspec.Raw] = []
    structured: Any = msgspec.field(name="structuredContent", default=None)
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_decode_result = msgspec.json.Decoder(_Known).decode
_decode_loose = msgspec.json.Decoder(_Loose).decode
