"""Resources, templates of resources, and prompts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .. import _segue, errors, schema
from ..content import Annotations, Icon
from ..failures import PUBLIC, McpError
from . import layers
from .completion import Suggestions, limited, parse_params
from .context import Context
from .item import (
    Item,
    decode_params,
    log,
    named,
    rpc_error,
)
from .tool import joined, seconds
from .values import contents_of, messages_of, piece_of

if TYPE_CHECKING:
    from .hosting import Hosting

__all__ = ["Prompt", "Resource"]

_VARIABLE = re.compile(r"\{\+?([^{}]*)\}")
_NOT_FOUND = -32002


class Completing(Item):
    """An item that can suggest values for its arguments."""

    suggestions: Suggestions

    def __init__(
        self, function: Callable[..., Any], thread: bool, forbid: bool = False
    ) -> None:
        super().__init__(function, thread, forbid)
        self.suggestions = Suggestions(self.signature.types)

    @property
    def completes(self) -> bool:
        return bool(self.suggestions)

    def told(self, error: Exception, is_exposed: bool) -> Exception:
        return rpc_error(error, is_exposed)

    def complete(self, host: Hosting, call: _segue.Call, params: bytes) -> None:
        around = self._around("completion/complete")
        if around:
            context = Context(call, host, self)
            _segue.call_watch(call, context._on_event)
            host.running.add(context)
            work = self._complete_in(around, call, params, context)
            context._task = task = host.spawn(work)
            task.add_done_callback(functools.partial(self._unbegun, call, context))
        else:
            host.spawn(self._complete(call, params, self.owner.expose_errors))

    async def _complete_in(
        self,
        around: tuple[layers.Middleware, ...],
        call: _segue.Call,
        params: bytes,
        context: Context,
    ) -> None:
        """Answers a completion inside middlewares."""
        try:
            inner = _CompletionCall(self, call, params, context)
            values = [str(one) for one in await layers.run(around, inner)]
            _segue.call_set_completion(call, *limited(values))
            _segue.call_complete(call)
            _segue.call_free(call)
        except BaseException as error:
            self._failed(call, error, context)
        finally:
            context._host.ended(context)

    async def _complete(self, call: _segue.Call, params: bytes, is_exposed: bool) -> None:
        try:
            try:
                values, total, has_more = await self.suggestions.answer(params)
            except Exception as error:
                if not isinstance(error, PUBLIC):
                    log.exception(
                        "%s %r: the function that suggests values failed",
                        self.what,
                        self.key,
                    )
                self._tell_failure(call, self.told(error, is_exposed))
            else:
                _segue.call_set_completion(call, values, total, has_more)
                _segue.call_complete(call)
        except errors.Error as error:
            log.debug(
                "%s %r: the suggestions could not be sent: %s", self.what, self.key, error
            )
        finally:
            _segue.call_free(call)


class _CompletionCall(layers.Call):
    """A completion as its middlewares get it."""

    __slots__ = ()
    _item: Completing

    @property
    def method(self) -> layers.Method:
        return "completion/complete"

    @property
    def _may_be_nothing(self) -> bool:
        return False

    @property
    def arguments(self) -> dict[str, Any]:
        name, typed, others = parse_params(self._params)
        return {**others, name: typed}

    @arguments.setter
    def arguments(self, value: dict[str, Any]) -> None:
        raise AttributeError("the arguments of a completion cannot be changed")

    async def _handle(self) -> list[str]:
        return await self._item.suggestions.suggest(self._params)


# ---- resources


class Resource(Completing):
    """A resource, or a template of resources if its URI has variables."""

    what = "resource"
    method = "resources/read"
    expected = (*Item.expected, FileNotFoundError)

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | dict[str, Any] | None = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        ttl: float | None = None,
        scope: Literal["private", "public"] = "private",
        scopes: str | Sequence[str] | None = None,
        thread: bool = True,
    ) -> None:
        super().__init__(function, thread)
        self.key, self.mime_type = uri, mime_type
        self.variables = _VARIABLE.findall(uri)
        is_template = "{" in uri or "}" in uri
        self.item = _segue.ITEM_RESOURCE_TEMPLATE if is_template else _segue.ITEM_RESOURCE
        self._options: _segue.ItemOptions = {
            "read_ttl_ms": seconds(ttl),
            "read_scope": {"private": 0, "public": 1}[scope],
            "scopes": joined(scopes),
        }
        told = {
            "uriTemplate" if is_template else "uri": uri,
            "name": name or named(function),
            "title": title,
            "description": description or self.signature.description,
            "mimeType": mime_type,
            "size": size,
            "annotations": annotations,
            "icons": icons,
            "_meta": meta,
        }
        self._told = {key: value for key, value in told.items() if value is not None}

    def check(self) -> None:
        super().check()
        takes = set(self.signature.names)
        given = set(self.variables)
        if not takes <= given or set(self.signature.required) - given or given - takes:
            raise TypeError(
                f"resource {self.key!r} has the variables {sorted(given)}, but "
                f"{named(self.function)} takes {sorted(takes)}"
            )

    def options(self) -> _segue.ItemOptions:
        return self._options

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        return self.arguments_of(call, self.given(call, params))

    def given(self, call: _segue.Call, params: bytes) -> dict[str, Any]:
        return {
            name: _segue.call_argument_text(call, name) or "" for name in self.variables
        }

    def arguments_of(self, call: _segue.Call, given: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self.signature.convert(given)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.signature.bad(f"resource {self.key}", error) from None

    def block(self, value: Any) -> str | bytes:
        return piece_of(value)

    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        if context._has_sent or (self.kind.streams and value is None):
            if value is not None:
                raise TypeError(
                    f"resource {self.key!r} has sent contents, and then returned a "
                    f"{type(value).__name__}: send that value too, and return nothing"
                )
            _segue.call_reply(call)
            return
        if value is None:
            raise McpError(_NOT_FOUND, "Resource not found")
        uri = _segue.call_name(call)
        _segue.call_reply(call, None, contents_of(value, uri, self.mime_type))

    def told(self, error: Exception, is_exposed: bool) -> Exception:
        if isinstance(error, (errors.NotFoundError, FileNotFoundError)):
            return McpError(_NOT_FOUND, "Resource not found")
        return rpc_error(error, is_exposed)


# ---- prompts


class Prompt(Completing):
    """A prompt."""

    item = _segue.ITEM_PROMPT
    what = "prompt"
    method = "prompts/get"

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        scopes: str | Sequence[str] | None = None,
        thread: bool = True,
        forbid_extra: bool = True,
    ) -> None:
        super().__init__(function, thread, forbid_extra)
        if self.kind.streams:
            raise TypeError(
                f"{named(function)}: a prompt cannot be a generator: return its messages"
            )
        self.key = name or named(function)
        self._options: _segue.ItemOptions = {"scopes": joined(scopes)}
        told = {
            "name": self.key,
            "title": title,
            "description": description or self.signature.description,
            "arguments": [self._argument(one) for one in self.signature.names],
            "icons": icons,
            "_meta": meta,
        }
        self._told = {key: value for key, value in told.items() if value is not None}

    def _argument(self, name: str) -> dict[str, Any]:
        told: dict[str, Any] = {"name": name}
        about = self.signature.schema["properties"].get(name, {}).get("description")
        own = self.signature.composites.get(name)
        if own is not None:
            own = {key: value for key, value in own.items() if key != "description"}
            hint = f"A JSON text that fits this schema: {schema.encode(own).decode()}"
            about = f"{about} {hint}" if about else hint
        if about:
            told["description"] = about
        if name in self.signature.required:
            told["required"] = True
        return told

    def options(self) -> _segue.ItemOptions:
        return self._options

    def arguments(self, call: _segue.Call, params: bytes) -> tuple[Any, ...]:
        try:
            return self.signature.convert(decode_params(params).arguments)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.signature.bad(f"prompt {self.key}", error, params) from None

    def reply(self, call: _segue.Call, value: Any, context: Context) -> None:
        if value is None:
            raise TypeError(f"the prompt {self.key!r} has returned no message, but None")
        _segue.call_reply(call, None, messages_of(value))
