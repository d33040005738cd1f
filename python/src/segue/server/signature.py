"""The signature of a handler: decodes and checks the arguments, describes them as JSON
Schema, and calls the function.

The parameters become a Struct of msgspec, so one pass over the received bytes makes the
values. Parameters that need pydantic stay JSON in this pass, and a model of pydantic
reads them (models.py). A parameter that is annotated with a context is not an argument:
it gets the context of the call.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_origin

import msgspec

from .. import schema
from ..names import unknown_names
from . import depends, docstring, models
from .context import Context
from .models import Models

__all__ = ["BadArguments", "Signature"]

_EMPTY = inspect.Parameter.empty
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_values: Callable[[Any], tuple[Any, ...]] = msgspec.structs.astuple


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
    try:
        return typing.get_type_hints(target, localns=names, include_extras=True)
    except NameError as error:
        raise NameError(_misnamed(function, target, error), name=error.name) from error


def _misnamed(function: Any, target: Any, error: NameError) -> str:
    """Says whose annotation has a name that is not defined."""
    told: dict[str, Any] = getattr(target, "__annotations__", {})
    found = [key for key, text in told.items() if error.name and error.name in str(text)]
    where = f" of {found[0]!r}" if found else ""
    return f"{docstring.named(function)}: the annotation{where}: {error}"


def is_context(hint: Any) -> bool:
    if isinstance(hint, type):
        return issubclass(hint, Context)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return any(is_context(one) for one in get_args(hint))
    return False


class _Loose(msgspec.Struct):
    """The params of a call. The member `arguments` stays JSON text and is decoded
    separately.
    """

    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_decode_loose = msgspec.json.Decoder(_Loose).decode
_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# The message of msgspec for an object at the top.
_MISSING = re.compile("Object missing required field `[^`]+`")


def argument_names(params: bytes) -> list[str]:
    """Returns the names of the arguments in the params of a call."""
    try:
        return list(_decode_names(_decode_loose(params).arguments))
    except msgspec.MsgspecError:  # the arguments are not an object
        return []


def unknown_arguments(params: bytes, known: Iterable[str]) -> list[str]:
    """Returns the names of the arguments in the params of a call that are not known."""
    names = set(known)
    return [name for name in argument_names(params) if name not in names]


def _refuse_method(function: Callable[..., Any], shown: str) -> None:
    """Refuses a function of a class body, whose `self` no call can pass.

    Raises:
        TypeError: the function is a method that is not bound to an object.
    """
    scope = getattr(function, "__qualname__", "").split(".")[-2:-1]
    if isinstance(function, (classmethod, staticmethod)):
        raise TypeError(
            f"{shown} is a {type(function).__name__}: decorate it outside of the class, "
            "as server.tool(Class.name)"
        )
    if not inspect.isfunction(function) or scope in ([], ["<locals>"]):
        return
    first = next(iter(inspect.signature(function).parameters), "")
    if first in ("self", "cls"):
        raise TypeError(
            f"{shown} is a method, and no call passes its {first!r}: make an object and "
            "add its method, as server.tool(Class().name)"
        )


class Signature:
    """The signature of a handler.

    Attributes:
        function: the handler.
        shown: its name, for messages.
        description: the function's description, from its docstring.
        names: the names of the parameters that are arguments, in order.
        required: the names of the arguments without a default.
        schema: the JSON Schema of all arguments.
        composites: the arguments that are arrays or objects, with their schemas. Where
            arguments are strings, such an argument is a JSON text.
        returns: the annotation of the return value; Any when there is none.
        needs: the dependencies, by the parameter's name.
        call: calls the function with the values of the arguments, the context, and the
            values of the dependencies by name.
    """

    def __init__(self, function: Callable[..., Any], forbid_extra: bool = False) -> None:
        self.function = function
        self.shown = docstring.named(function)
        self.description, self._about = docstring.parse(function)
        hints = type_hints(function)
        self.returns = hints.get("return", Any)
        self.wants_context = False
        self._context_name = ""
        self._context_at = 0  # its place among the other parameters; -1 = it has a name
        self._by_place: list[str] = []  # the parameters that have no name for callers
        self.needs: dict[str, depends.Dependency] = {}
        self._fields: list[inspect.Parameter] = []
        self.types: dict[str, Any] = {}
        self._extra: str | None = None
        self._extra_type: Any = Any
        self._forbid_extra = forbid_extra
        _refuse_method(function, self.shown)
        for parameter in inspect.signature(function).parameters.values():
            self._take(parameter, hints.get(parameter.name, Any))
        self.names = [field.name for field in self._fields]
        self._keywords = [one.name for one in self._fields if one.kind is _KEYWORD]
        self._models = Models(self._fields, self.types)
        self.required = [one.name for one in self._fields if self._is_required(one)]
        self._use_types()
        self.call = self._make_call()

    @property
    def _is_closed(self) -> bool:
        """Whether unknown arguments are an error."""
        return self._forbid_extra and self._extra is None

    def _take(self, parameter: inspect.Parameter, hint: Any) -> None:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(
                f"{self.shown}: *{parameter.name} cannot be an argument, because "
                "arguments have names: use a parameter that is a list"
            )
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            self._by_place.append(parameter.name)
        need = depends.dependency_of(self.function, parameter, hint)
        if need is not None:
            depends.check(need)
            self.needs[parameter.name] = need
        elif is_context(hint):
            self.wants_context = True
            self._context_name = parameter.name
            depends.check_context(self.function, parameter.name, hint)
            is_keyword = parameter.kind is _KEYWORD
            self._context_at = -1 if is_keyword else len(self._fields)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._extra = parameter.name
            self._extra_type = hint
        else:
            self._fields.append(parameter)
            about = self._about.get(parameter.name)
            hint = models.marked(hint, parameter.default)
            try:
                self.types[parameter.name] = schema.described(hint, about)
                schema.uses_pydantic(hint)
            except TypeError as error:
                place = f"{self.shown}: the type of {parameter.name!r}: "
                raise TypeError(f"{place}{error}") from error

    def _use_types(self) -> None:
        """Makes the schema, `decode` and `convert` of the parameters' types."""
        models = self._models
        try:
            plain = self._struct(None)
            made = schema.json_schema(plain, is_read=True)
            own = self._struct(msgspec.Raw) if models else plain
            self._unpack = schema.strict_decoder(self._params_of(own))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self.shown}: {self._place_of_misfit()}{error}") from error
        self.schema = models.add_schema(made, self.names)
        self._tell_defaults()
        self._check_defaults()
        self.schema.pop("additionalProperties", None)
        if self._extra:
            self._tell_extra()
        elif self._is_closed:
            self.schema["additionalProperties"] = False
        self._loose = schema.lax_converter(self._struct(Any) if models else plain)
        self.composites = schema.composite_members(self.schema)

    def _place_of_misfit(self) -> str:
        """Names the first parameter whose type cannot be used."""
        for one in self._fields:
            if one.name not in self._models.fields:
                try:
                    schema.json_schema(self.types[one.name], is_read=True)
                    schema.strict_decoder(self.types[one.name])
                except (TypeError, ValueError):
                    return f"the type of {one.name!r}: "
        return ""

    def convert(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """As `decode`, for values that are decoded, or are strings."""
        given = {name: self._parsed(name, value) for name, value in given.items()}
        values = _values(self._loose(given))
        made = self._models.convert(values) if self._models else values
        if self._extra is None:
            return made
        convert = schema.converter(self._extra_type)
        return (*made, self._extras(given, convert))

    def _parsed(self, name: str, value: Any) -> Any:
        """Returns a value with a string parsed as JSON if the argument needs that."""
        if not isinstance(value, str) or name not in self.composites:
            return value
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"Expected a JSON text ({error}) - at `$.{name}`") from None

    def _read(self, params: bytes) -> tuple[Any, ...]:
        values = _values(self._unpack(params).arguments)
        return self._models.decode(values) if self._models else values

    def decode(self, params: bytes) -> tuple[Any, ...]:
        """Returns the values of the arguments in the params of a call. A dict of the
        arguments that have no parameter follows if the function has `**kwargs`.

        Raises:
            msgspec.MsgspecError, ValueError: an argument does not fit.
        """
        made, _ = schema.with_whole_numbers(self._read, params)
        if self._extra is None:
            return made
        given = _decode_names(_decode_loose(params).arguments)
        decode = schema.decoder(self._extra_type)
        return (*made, self._extras(given, lambda raw: decode(bytes(raw))))

    def _struct(self, stands_for_model: Any) -> Any:
        """Makes the Struct of the arguments. A parameter for pydantic has the given type,
        or is left out if that is None.
        """
        fields: list[Any] = []
        for one in self._fields:
            own = self._models.fields.get(one.name)
            if own is None:
                fields.append(self._struct_field(one))
            elif stands_for_model is not None:
                absent = msgspec.field(name=own.name, default=msgspec.UNSET)
                fields.append((one.name, stands_for_model, absent))
        return msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=self._is_closed
        )

    def _params_of(self, model: Any) -> Any:
        field: Any = ("arguments", model)
        if all(name in self._models for name in self.required):
            field = ("arguments", model, msgspec.field(default_factory=model))
        return msgspec.defstruct("Params", [field])

    def _is_required(self, parameter: inspect.Parameter) -> bool:
        own = self._models.fields.get(parameter.name)
        return parameter.default is _EMPTY if own is None else own.is_required

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
            if told is None or "default" in told or field.name in self._models:
                continue
            if field.default is not _EMPTY:
                try:
                    told["default"] = msgspec.json.decode(schema.encode(field.default))
                except (TypeError, ValueError):
                    # JSON cannot represent this default, for example a sentinel object
                    pass

    def _check_defaults(self) -> None:
        """Refuses a default that a client could not send. A default that JSON does not
        have, such as a sentinel object, is the function's own matter."""
        for field in self._fields:
            default = field.default
            is_json = isinstance(default, (bool, int, float, str, list, dict))
            if not is_json or isinstance(default, enum.Enum):
                continue
            try:
                schema.checker(self.types[field.name])(default)
            except (msgspec.ValidationError, TypeError, ValueError) as error:
                raise TypeError(
                    f"{self.shown}: the default {default!r:.60} of {field.name!r} "
                    f"does not fit its type: {schema.reason(error)}"
                ) from None

    def _tell_extra(self) -> None:
        """Adds the type of `**kwargs` to the schema."""
        told = schema.json_schema(self._extra_type, is_read=True)
        parts = told.pop("$defs", {})
        own = self.schema.setdefault("$defs", {})
        if any(own.get(key, part) != part for key, part in parts.items()):
            raise TypeError(
                f"{self.shown}: the type of **{self._extra} has a part with the "
                "same name as a part of another parameter's type"
            )
        own.update(parts)
        if not own:
            del self.schema["$defs"]
        self.schema["additionalProperties"] = told or True

    def _extras(
        self, given: dict[str, Any], read: Callable[[Any], Any]
    ) -> dict[str, Any]:
        """Reads the arguments that have no parameter of their own."""
        known, made = self.schema["properties"], {}
        for name, one in given.items():
            if name in known:
                continue
            if name in self.needs or (self.wants_context and name == self._context_name):
                raise ValueError(unknown_names([name], list(known)))
            try:
                made[name] = read(one)
            except (msgspec.MsgspecError, ValueError) as error:
                why, _, place = schema.reason(error).partition(" - at `$")
                raise ValueError(f"{why} - at `$.{name}{place or '`'}") from None
        return made

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
                text = unknown_names(unknown, known, what.partition(" ")[0])
                return BadArguments(f"Invalid arguments for {what}: {text}")
        why = schema.reason(error).replace("$.arguments", "$")
        why = schema.with_values(why.removesuffix(" - at `$`"), self.schema)
        if _MISSING.fullmatch(why):
            why = self._all_missing(params) or why
        return BadArguments(f"Invalid arguments for {what}: {why}")

    def _all_missing(self, params: bytes | None) -> str:
        """Names all missing arguments, because msgspec names the first one only."""
        given = () if params is None else argument_names(params)
        missing = [f"`{name}`" for name in self.required if name not in given]
        plural = "s" if len(missing) > 1 else ""
        text = f"Object missing required field{plural} {', '.join(missing)}"
        return text if missing and params is not None else ""

    def _make_call(self) -> Callable[..., Any]:
        """Returns `call`."""
        function, at = self.function, self._context_at
        if self._keywords or self._extra or self.needs or at < 0:
            return self._call_by_name
        if not self.wants_context:
            return lambda values, context, found=None: function(*values)
        if not self._fields:
            return lambda values, context, found=None: function(context)
        if at == 0:
            return lambda values, context, found=None: function(context, *values)
        return lambda values, context, found=None: function(
            *values[:at], context, *values[at:]
        )

    def _call_by_name(
        self,
        values: tuple[Any, ...],
        context: Context | None,
        found: dict[str, Any] | None = None,
    ) -> Any:
        named = {**dict(zip(self.names, values, strict=False)), **(found or {})}
        extra: dict[str, Any] = values[len(self.names)] if self._extra else {}
        if self.wants_context:
            named[self._context_name] = context
        first = [named.pop(name) for name in self._by_place]
        return self.function(*first, **named, **extra)
