"""The signature of a handler: decodes and checks the arguments, describes them as JSON
Schema, and calls the function.

The parameters become a Struct of msgspec (or a model of pydantic, if a parameter needs
pydantic), so one pass over the received bytes makes the values. A parameter that is
annotated with a context is not an argument: it gets the context of the call.
"""

from __future__ import annotations

import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_origin

import msgspec

from .. import schema
from . import docstring
from .context import Context
from .names import unknown_names

__all__ = ["BadArguments", "Signature"]

_EMPTY = inspect.Parameter.empty
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_Decode = Callable[[bytes], tuple[Any, ...]]


class BadArguments(Exception):
    """The arguments of a call do not fit the handler's parameters. The text says which
    argument does not fit, and why."""


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the annotations of a function, even if they refer to local names of the
    code that made the function."""
    function = docstring.unwrapped(function)
    target = function if inspect.isroutine(function) else type(function).__call__
    names: dict[str, Any] = {}
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError:
        frame: types.FrameType | None = sys._getframe(1)
        while frame:
            names = {**frame.f_locals, **names}
            frame = frame.f_back
        return typing.get_type_hints(target, localns=names, include_extras=True)


def _is_context(hint: Any) -> bool:
    if isinstance(hint, type):
        return issubclass(hint, Context)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_context(one) for one in get_args(hint))
    return False


class _Loose(msgspec.Struct):
    """The params of a call. The member `arguments` stays JSON text and is decoded
    separately.
    """

    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_decode_loose = msgspec.json.Decoder(_Loose).decode
_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def unknown_arguments(params: bytes, known: Iterable[str]) -> list[str]:
    """Returns the names of the arguments in the params of a call that are not known."""
    try:
        given = _decode_names(_decode_loose(params).arguments)
    except msgspec.MsgspecError:  # the arguments are not an object
        return []
    return [name for name in given if name not in set(known)]


class Signature:
    """The signature of a handler.

    Attributes:
        function: the handler.
        description: the function's description, from its docstring.
        names: the names of the parameters that are arguments, in order.
        required: the names of the arguments without a default.
        schema: the JSON Schema of all arguments.
        returns: the annotation of the return value; Any when there is none.
    """

    def __init__(self, function: Callable[..., Any], forbid_extra: bool = False) -> None:
        self.function = function
        self.description, self._about = docstring.parse(function)
        hints = type_hints(function)
        self.returns = hints.get("return", Any)
        self.wants_context = False
        self._context_at: int | str = 0
        self._fields: list[inspect.Parameter] = []
        self.types: dict[str, Any] = {}
        self._extra: str | None = None
        self._forbid_extra = forbid_extra
        for parameter in inspect.signature(function).parameters.values():
            self._take(parameter, hints.get(parameter.name, Any))
        self.names = [field.name for field in self._fields]
        self.required = [one.name for one in self._fields if one.default is _EMPTY]
        self._keywords = [one.name for one in self._fields if one.kind is _KEYWORD]
        self._is_pydantic = any(
            schema.uses_pydantic(tp) for tp in self.types.values()
        ) or any(schema.uses_pydantic(type(one.default)) for one in self._fields)
        if self._is_pydantic or any(_is_field(one.default) for one in self._fields):
            self._use_pydantic()
        else:
            self._use_msgspec()
        self.call = self._make_call()

    @property
    def _is_closed(self) -> bool:
        """Whether unknown arguments are an error."""
        return self._forbid_extra and self._extra is None

    def _take(self, parameter: inspect.Parameter, hint: Any) -> None:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(
                f"{self.function!r}: *{parameter.name} cannot be an argument, because "
                "arguments have names: use a parameter that is a list"
            )
        if _is_context(hint):
            self.wants_context = True
            is_keyword = parameter.kind is _KEYWORD
            self._context_at = parameter.name if is_keyword else len(self._fields)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._extra = parameter.name
        else:
            self._fields.append(parameter)
            about = self._about.get(parameter.name)
            self.types[parameter.name] = schema.described(hint, about)

    # ---- msgspec

    def _use_msgspec(self) -> None:
        fields = [self._struct_field(parameter) for parameter in self._fields]
        try:
            model = msgspec.defstruct(
                "Arguments",
                fields,
                kw_only=True,
                forbid_unknown_fields=self._is_closed,
            )
            self.schema = schema.json_schema(model)
            decode = msgspec.json.Decoder(model).decode
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self.function!r}: {error}") from error
        self.schema.setdefault("properties", {})
        self._tell_defaults()
        if self._extra:
            self.schema["additionalProperties"] = True
        values = msgspec.structs.astuple
        envelope: Any = msgspec.defstruct(
            "Params",
            [("arguments", model) if self.required else ("arguments", model, model)]
            if self.required
            else [("arguments", model, msgspec.field(default_factory=model))],
        )
        unpack = msgspec.json.Decoder(envelope).decode
        if self._extra is None:
            self.decode: _Decode = lambda params: values(unpack(params).arguments)
        else:
            self.decode = lambda params: self._with_extra(
                params, lambda raw: values(decode(raw))
            )
        self.convert: Callable[[dict[str, Any]], tuple[Any, ...]] = lambda given: values(
            msgspec.convert(given, model, strict=False)
        )

    def _struct_field(self, parameter: inspect.Parameter) -> Any:
        name, hint, default = (
            parameter.name,
            self.types[parameter.name],
            parameter.default,
        )
        if default is _EMPTY:
            return (name, hint)
        if default is None or isinstance(default, (str, int, float, enum.Enum)):
            return (name, hint, default)
        if isinstance(default, (list, dict, set)):
            return (name, hint, msgspec.field(default_factory=default.copy))
        return (name, hint, msgspec.field(default_factory=lambda: default))

    def _tell_defaults(self) -> None:
        """Adds to the schema the default values that msgspec leaves out, if JSON can
        represent the values."""
        for field in self._fields:
            told = self.schema["properties"].get(field.name)
            if field.default is not _EMPTY and told is not None and "default" not in told:
                try:
                    told["default"] = msgspec.json.decode(schema.encode(field.default))
                except (TypeError, ValueError):
                    # JSON cannot represent this default, for example a sentinel object
                    pass

    def _with_extra(
        self, params: bytes, decode: Callable[[bytes], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """Returns the values of the arguments, followed by a dict of the arguments that
        have no parameter of their own.
        """
        raw = bytes(_decode_loose(params).arguments)
        given = msgspec.json.decode(raw, type=dict[str, Any])
        extra = {name: one for name, one in given.items() if name not in self.types}
        return (*decode(raw), extra)

    # ---- pydantic

    def _use_pydantic(self) -> None:
        import pydantic

        extra: Any = "forbid" if self._is_closed else "ignore"
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(self._fields):
            # The field has an alias, because the parameter's own name may clash with a
            # name of the model's class.
            default = ... if parameter.default is _EMPTY else parameter.default
            hint = schema.aliased(self.types[parameter.name], parameter.name)
            fields[f"argument{number}"] = (hint, default)
        config = pydantic.ConfigDict(extra=extra)
        model: Any = pydantic.create_model("Arguments", __config__=config, **fields)
        self.schema = model.model_json_schema(by_alias=True)
        self.schema.pop("title", None)
        for field in self.schema.setdefault("properties", {}).values():
            field.pop("title", None)
        if self._extra:
            self.schema["additionalProperties"] = True

        def values(made: Any) -> tuple[Any, ...]:
            return tuple([getattr(made, name) for name in fields])

        def decode(raw: bytes) -> tuple[Any, ...]:
            return values(model.model_validate_json(raw))

        if self._extra is None:
            self.decode = lambda params: decode(bytes(_decode_loose(params).arguments))
        else:
            self.decode = lambda params: self._with_extra(params, decode)
        self.convert = lambda given: values(model.model_validate(given))

    # ---- calling

    def bad(
        self, what: str, error: Exception, params: bytes | None = None
    ) -> BadArguments:
        """Makes the error for the caller. Unknown arguments among the `params` are named
        first, because a misspelt name is the cause of other problems."""
        if params is not None and self._is_closed:
            known = list(self.schema["properties"])
            unknown = unknown_arguments(params, known)
            if unknown:
                text = unknown_names(unknown, known)
                return BadArguments(f"Invalid arguments for {what}: {text}")
        why = schema.reason(error).replace("$.arguments", "$")
        why = why.removesuffix(" - at `$`")
        if why == "Object missing required field `arguments`":
            why = f"Object missing required field `{self.required[0]}`"
        return BadArguments(f"Invalid arguments for {what}: {why}")

    def _make_call(self) -> Callable[[tuple[Any, ...], Context | None], Any]:
        """Returns the function that calls the handler with the values and the context."""
        function, at = self.function, self._context_at
        if self._keywords or self._extra or isinstance(at, str):
            return self._call_by_name
        if not self.wants_context:
            return lambda values, context: function(*values)
        if not self._fields:
            return lambda values, context: function(context)
        if at == 0:
            return lambda values, context: function(context, *values)
        return lambda values, context: function(*values[:at], context, *values[at:])

    def _call_by_name(self, values: tuple[Any, ...], context: Context | None) -> Any:
        named = dict(zip(self.names, values, strict=False))
        first = [named.pop(one.name) for one in self._fields if one.kind is not _KEYWORD]
        extra: dict[str, Any] = values[len(self.names)] if self._extra else {}
        if self.wants_context:
            if isinstance(self._context_at, str):
                named[self._context_at] = context
            else:
                first.insert(self._context_at, context)
        return self.function(*first, **named, **extra)


def _is_field(value: Any) -> bool:
    if "pydantic" not in sys.modules:
        return False
    from pydantic.fields import FieldInfo

    return isinstance(value, FieldInfo)
