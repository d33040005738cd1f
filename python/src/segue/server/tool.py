"""Tools: functions that a model calls."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec

from .. import _segue, errors, schema
from ..content import (
    Audio,
    EmbeddedResource,
    Icon,
    Image,
    ResourceLink,
    Result,
    Text,
    Unknown,
)
from ..failures import McpError, ToolError
from .context import Context
from .item import Item, named, safe_text
from .names import unknown_names
from .signature import BadArguments, unknown_arguments
from .values import block_of, blocks_of, is_block

__all__ = ["TaskPolicy", "Tool", "ToolAnnotations"]

TaskPolicy = Literal["never", "may", "must"]
_POLICIES = {"never": 0, "may": 1, "must": 2}
_INCREMENTAL, _RESTARTABLE, _UNSTOPPABLE, _RESUMABLE, _STORED = 1, 2, 4, 8, 16
_CONTENT = (Result, Text, Image, Audio, ResourceLink, EmbeddedResource, Unknown)
_reply = _segue.call_reply


class ToolAnnotations(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Hints for a client that decides whether to call a tool. The client need not trust
    the hints."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


def seconds(value: float | None) -> int | None:
    """Converts seconds to milliseconds, the unit of the library's options."""
    return None if value is None else round(value * 1000)


def joined(scopes: str | Sequence[str] | None) -> str | None:
    """Joins a list of scopes with blanks. A string is returned unchanged."""
    if scopes is None or isinstance(scopes, str):
        return scopes or None
    return " ".join(scopes) or None


def _known_names(
    schema: dict[str, Any] | None, forbid_extra: bool | None
) -> list[str] | None:
    """Returns the names of the arguments of a schema that the application has written,
    if other names are an error, or else None.
    """
    if not schema:
        return None
    if forbid_extra is None:
        is_open = schema.get("additionalProperties") is not False
        forbid_extra = not (is_open or schema.get("patternProperties"))
    return list(schema.get("properties", ())) if forbid_extra else None


class Tool(Item):
    """A tool. `Server.tool` makes it and explains the arguments."""

    item = _segue.ITEM_TOOL
    what = "tool"

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | dict[str, Any] | None = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        structured: bool | None = None,
        task: TaskPolicy = "never",
        ttl: float | None = None,
        poll: float | None = None,
        promote_after: float | None = None,
        restartable: bool = False,
        resumable: bool = False,
        resume_after: float | None = None,
        resume_within: float | None = None,
        unstoppable: bool = False,
        stored: bool = False,
        incremental: bool | None = None,
        scopes: str | Sequence[str] | None = None,
        thread: bool = True,
        forbid_extra: bool | None = None,
    ) -> None:
        is_generated = not input_schema
        super().__init__(function, thread, is_generated and forbid_extra is not False)
        if task not in _POLICIES:
            raise ValueError(
                f"task has to be one of {', '.join(_POLICIES)}, not {task!r}"
            )
        self.key = name or named(function)
        self._known = _known_names(input_schema, forbid_extra)
        self._output: Any = None
        self._wraps = False
        if structured is not False:
            self._find_output(structured is True)
        self._flags = (
            _INCREMENTAL * (self.kind.streams if incremental is None else incremental)
            | _RESTARTABLE * restartable
            | _UNSTOPPABLE * unstoppable
            | _RESUMABLE * resumable
            | _STORED * stored
        )
        self._options: _segue.ItemOptions = {
            "flags": self._flags,
            "task": _POLICIES[task],
            "ttl_ms": seconds(ttl),
            "poll_ms": seconds(poll),
            "promote_after_ms": seconds(promote_after),
            "scopes": joined(scopes),
            "resume_min_wait_ms": seconds(resume_after),
            "resume_max_wait_ms": seconds(resume_within),
        }
        if output_schema is None and self._output is not None:
            output_schema = self._output_schema()
        told = {
            "name": self.key,
            "title": title,
            "description": description or self.signature.description,
            "inputSchema": self.signature.schema if is_generated else input_schema,
            "outputSchema": output_schema,
            "annotations": annotations,
            "icons": icons,
            "_meta": meta,
        }
        self._told = {key: value for key, value in told.items() if value is not None}

    def describe(self) -> dict[str, Any]:
        return self._told

    def options(self) -> _segue.ItemOptions:
        return self._options

    # ---- structured results

    def _find_output(self, always: bool) -> None:
        """Finds the output type, which is the type of the returned value, if results are
        structured.
        """
        returns = self.signature.returns
        if get_origin(returns) is collections.abc.Generator:
            returns = get_args(returns)[2]
        elif self.kind.streams:
            return
        if returns is Any or (
            isinstance(returns, type) and issubclass(returns, _CONTENT)
        ):
            return
        if schema.is_object_type(returns):
            self._output = returns
        elif always:
            self._output, self._wraps = returns, True
        if self._output is not None:
            self._check = schema.converter(self._output)

    def _output_schema(self) -> dict[str, Any]:
        made = schema.json_schema(self._output)
        if not self._wraps:
            return made
        parts = made.pop("$defs", None)
        wrapped = {
            "type": "object",
            "properties": {"result": made},
            "required": ["result"],
        }
        return {**wrapped, "$defs": parts} if parts else wrapped

    def _structured(self, value: Any) -> bytes:
        """Returns the value as JSON. A dict or list is checked against the declared type
        first."""
        if self._output is not None and isinstance(value, (dict, list)):
            try:
                self._check(value)
            except Exception as error:
                raise McpError(
                    -32603,
                    f"The result of {self.key} does not fit its declared type: "
                    f"{schema.reason(error)}",
                ) from error
        return schema.encode({"result": value} if self._wraps else value)

    # ---- a call

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        if self._known is not None:
            unknown = unknown_arguments(params, self._known)
            if unknown:
                text = unknown_names(unknown, self._known)
                raise BadArguments(f"Invalid arguments for tool {self.key}: {text}")
        try:
            return self.signature.decode(params)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.signature.bad(f"tool {self.key}", error, params) from None

    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        kind = type(value)
        if kind is str and self._output is None:
            _reply(call, value)
        elif value is None and self._output is None:
            _reply(call)
        elif isinstance(value, Result):
            self._reply_result(call, value)
        elif self._output is not None:
            raw = self._structured(value)
            _reply(call, raw.decode(), None, raw)
        elif isinstance(value, (list, tuple)) and all(is_block(one) for one in value):
            _reply(call, None, blocks_of(value))
        elif isinstance(value, (dict, list, tuple)) and not isinstance(value, Unknown):
            self._reply_json(call, value)
        else:
            block = block_of(value)
            if isinstance(block, bytes):
                _reply(call, None, [block])
            elif is_block(value) or isinstance(value, (bytes, bytearray, memoryview)):
                _reply(call, block)
            else:
                self._reply_json(call, value)

    def _reply_json(self, call: _segue.Call, value: Any) -> None:
        raw = schema.encode(value)
        _reply(call, raw.decode(), None, raw if raw[:1] == b"{" else None)

    def _reply_result(self, call: _segue.Call, result: Result) -> None:
        if result.meta is not None:
            _segue.call_set_field(call, "_meta", schema.encode(result.meta))
        structured = None
        if result.structured is not None:
            structured = self._structured(result.structured)
        is_bare = not (result.content or self.kind.streams)
        text = structured.decode() if structured and is_bare else None
        _reply(call, text, blocks_of(result.content), structured, result.is_error)

    def pieces(self, value: Any) -> Iterable[Any]:
        return value.content if isinstance(value, Result) else (value,)

    def last_word(self, value: Any, last: Any) -> Any:
        """Returns the parts of a yielded Result that are sent only at the end of the
        call. The blocks of the Result are sent at once.
        """
        if not isinstance(value, Result):
            return last
        last = last or Result()
        return Result(
            [],
            last.structured if value.structured is None else value.structured,
            last.is_error or value.is_error,
            {**(last.meta or {}), **(value.meta or {})} or None,
        )

    def told(self, error: Exception, is_exposed: bool) -> Exception:
        if isinstance(error, BadArguments):
            return ToolError(str(error))
        if isinstance(error, errors.Error):
            return error
        return ToolError(safe_text(error, is_exposed, f"The tool {self.key} failed"))
