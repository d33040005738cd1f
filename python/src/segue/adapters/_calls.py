"""What the adapters for frameworks of agents share: a call whose segments are told, and
which a later run of the agent can continue."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from .. import errors, schema
from .._segue import Segment
from ..client.session import Session
from ..content import Audio, EmbeddedResource, Image, ResourceLink, Result, Text

__all__ = [
    "OnSegment",
    "Tokens",
    "call",
    "media_of",
    "missing",
    "standard_blocks",
    "text_of",
    "value_of",
]

OnSegment = Callable[[str, Segment], object]
# The tokens of calls that run, by the id of the call in the framework. A file or a
# database behind such a mapping lets another process continue the calls.
Tokens = MutableMapping[str, str]


def missing(module: str, package: str, error: ImportError) -> ImportError:
    """Returns the exception for a framework that is not installed."""
    name = module.rpartition(".")[2]
    return ImportError(
        f"segue.adapters.{name} needs the package {package}: pip install {package} "
        f"({error})"
    )


async def call(
    session: Session,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    id: str | None,
    tokens: Tokens | None,
    on_segment: OnSegment | None,
) -> Result:
    """Calls a tool, or continues the call of this id, and returns its whole result. A
    result with `isError` is returned, too.

    If the caller is cancelled, a call whose token is kept goes on at the server.
    """
    key = id if tokens is not None else None

    def keep(reader: Any) -> None:
        if tokens is not None and key is not None and reader.token is not None:
            tokens[key] = reader.token

    token = tokens.get(key) if tokens is not None and key is not None else None
    try:
        if token is not None:
            task = session.resume(token, raise_on_error=False)
            async for segment in task:
                await _tell(on_segment, tool, segment)
            result = await task.result()
        else:
            async with session.stream(
                tool,
                arguments,
                on_task=keep,
                on_leave="cancel" if key is None else "detach",
                raise_on_error=False,
            ) as stream:
                async for segment in stream:
                    await _tell(on_segment, tool, segment)
            result = stream.result
    except (errors.RemoteError, errors.TaskLostError, errors.RequestCancelledError):
        if tokens is not None and key is not None:
            tokens.pop(key, None)
        raise
    if tokens is not None and key is not None:
        tokens.pop(key, None)
    return result


async def _tell(on_segment: OnSegment | None, tool: str, segment: Segment) -> None:
    told = None if on_segment is None else on_segment(tool, segment)
    if inspect.isawaitable(told):
        await told


def text_of(result: Result) -> str:
    """Returns the text of a result for a model, with the texts and links of resources."""
    parts = []
    for block in result.content:
        if isinstance(block, Text):
            parts.append(block.text)
        elif isinstance(block, EmbeddedResource):
            parts.append(block.resource.text or block.resource.uri)
        elif isinstance(block, ResourceLink):
            parts.append(f"{block.name}: {block.uri}")
    return "".join(parts)


def value_of(result: Result) -> Any:
    """Returns a result for a model: the structured value, or the text if that says more.
    The text then ends with the JSON of the structured value."""
    text, value = text_of(result), result.structured
    if value is None:
        return text
    if not text.strip():
        return value
    last = next((one.text for one in result.content[::-1] if isinstance(one, Text)), "")
    is_told = _is_json_of(value, last)
    if is_told and text == last:
        return value
    return text if is_told else f"{text}\n{schema.encode(value).decode()}"


def _is_json_of(value: Any, text: str) -> bool:
    """Returns whether a text is the JSON of a structured value, or the value inside of
    `{"result": value}` as a text."""
    inner = value.get("result") if isinstance(value, dict) and len(value) == 1 else None
    try:
        made = msgspec.json.decode(text)
    except msgspec.DecodeError:
        made = text
    return made == value or (inner is not None and inner in (made, text))


def media_of(result: Result) -> list[Image | Audio]:
    """Returns the pictures and sounds of a result."""
    return [block for block in result.content if isinstance(block, (Image, Audio))]


def standard_blocks(result: Result) -> Any:
    """Returns the content of a message of LangChain: a text, or a list of blocks if there
    are pictures or sounds."""
    media = [
        {
            "type": "image" if isinstance(block, Image) else "audio",
            "base64": base64.b64encode(block.data).decode(),
            "mime_type": block.mime_type,
        }
        for block in media_of(result)
    ]
    text = text_of(result)
    return [{"type": "text", "text": text}, *media] if media else text
