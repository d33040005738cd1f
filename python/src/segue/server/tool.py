"""Tools: functions that a model calls."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec

from .. import _segue, schema
from ..content import Icon, Result, Unknown
from ..failures import PUBLIC, McpError, ToolError
from ..names import unknown_names
from ..schema import member_names
from .context import Context
from .item import Item, log, named, safe_text
from .output import Output, Unfit
from .signature import BadArguments, unknown_arguments
from .unstructured import Declared
from .values import block_of, blocks_of, has_content, is_block

__all__ = ["TaskPolicy", "Tool", "ToolAnnotations"]

TaskPolicy = Literal["never", "may", "must"]
_POLICIES = {"never": 0, "may": 1, "must": 2}
_INCREMENTAL, _RESTARTABLE, _UNSTOPPABLE, _RESUMABLE, _STORED = 1, 2, 4, 8, 16
_reply = _segue.call_reply


class ToolAnnotations(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Hints for a client that decides whether to call a tool. The client need not trust
    the hints."""

    title: str | None = None
    """Name for people."""
    read_only_hint: bool | None = None
    """True: the tool changes nothing."""
    destructive_hint: bool | None = None
    """True: the tool may delete or overwrite."""
    idempotent_hint: bool | None = None
    """True: a second call with the same arguments changes nothing more."""
    open_world_hint: bool | None = None
    """True: the tool deals with things outside, such as the web."""


def seconds(value: float | None) -> int | None:
    """Converts seconds to milliseconds, the unit of the library's options.

    Raises:
        TypeError: the value is no number.
    """
    if value is not None and not isinstance(value, (int, float)):
        raise TypeError(f"a time has to be a number of seconds, not {value!r}")
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
    is_open = schema.get("additionalProperties") is not False
    if forbid_extra is None:
        forbid_extra = not (is_open or schema.get("patternProperties"))
    if not forbid_extra:
        return None
    return member_names(schema) if is_open else list(schema.get("properties", ()))


class Tool(Item):
    """A tool. `Server.tool` makes it and explains the arguments."""

    item = _segue.ITEM_TOOL
    what = "tool"
    method = "tools/call"

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
        structured_default: bool | None = None,
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
        reads = self.signature.wants_context or self.signature.needs
        if restartable and self.kind.streams and not reads:
            log.warning(
                "the tool %r is restartable, but takes no segue.Context: after a crash "
                "it begins again, and its callers get segments twice; ctx.resumed says "
                "where to continue",
                self.key,
            )
        self._known = _known_names(input_schema, forbid_extra)
        try:
            self._output = Output.of(self._value_type(), structured, structured_default)
        except TypeError as error:
            raise TypeError(f"the tool {self.key!r}: {error}") from error
        if output_schema and structured is None and self._output and self._output.wraps:
            self._output = None  # the schema of the application does not say `result`
        self._declared = Declared(self._value_type(), structured, structured_default)
        self._is_text = self._output is None and self._declared.is_text
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
            output_schema = self._output.schema
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

    def options(self) -> _segue.ItemOptions:
        return self._options

    def _value_type(self) -> Any:
        """Returns the declared type of the value that ends a call."""
        returns = self.signature.returns
        if get_origin(returns) is collections.abc.Generator:
            return get_args(returns)[2]
        return Any if self.kind.streams else returns

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
        if self._is_text and type(value) is str:
            _reply(call, value)
        elif isinstance(value, Result):
            self._reply_result(call, value)
        elif self._output is not None:
            self._reply_structured(call, value, self._output)
        else:
            self._declared.check(self.key, value)
            self._reply_plain(call, value)

    def _reply_plain(self, call: _segue.Call, value: Any) -> None:
        if value is None:
            _reply(call)
        elif isinstance(value, (list, tuple)) and (
            has_content(value) or all(is_block(one) for one in value)
        ):
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

    def _reply_structured(self, call: _segue.Call, value: Any, output: Output) -> None:
        raw = output.encode(self.key, value)
        if value and type(value) is list and all(type(one) is str for one in value):
            _reply(call, None, blocks_of(value), raw)
        else:
            _reply(call, output.text(value, raw), None, raw)

    def _structured(self, value: Any) -> bytes:
        output = self._output
        return schema.encode(value) if output is None else output.encode(self.key, value)

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
        if isinstance(value, Result):
            return value.content
        is_list = isinstance(value, (list, tuple)) and has_content(value)
        return value if is_list else (value,)

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

    def _log_failure(self, error: BaseException) -> None:
        if isinstance(error, Unfit):
            log.error("%s %r failed: %s", self.what, self.key, error)
        else:
            super()._log_failure(error)

    def told(self, error: Exception, is_exposed: bool) -> Exception:
        if isinstance(error, BadArguments):
            return ToolError(str(error))
        if isinstance(error, PUBLIC):
            return error
        if isinstance(error, Unfit):
            instead = f"The result of {self.key} does not fit its declared type"
            return McpError(-32603, safe_text(error, is_exposed, instead))
        return ToolError(safe_text(error, is_exposed, f"The tool {self.key} failed"))
