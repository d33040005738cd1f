"""Converts Python types to JSON Schema (2020-12), and checks values against Python types.

msgspec does both tasks. A type that contains a type or a constraint of pydantic, or a
constraint of annotated_types, is passed to pydantic as a whole.

Both follow one rule for JSON: a value is accepted if it has the JSON type that the schema
says. "5" is not an integer, and 5.0 is one. Types that JSON lacks, such as dates, paths
and bytes, are strings.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import math
import re
import typing
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import PurePath
from typing import Annotated, Any, TypeVar, get_origin
from urllib.parse import unquote

import msgspec

from .readers import classes_of, uses_pydantic
from .refine import refine

__all__ = [
    "Header",
    "checker",
    "composite_members",
    "converter",
    "decoder",
    "encode",
    "has_member",
    "is_object_type",
    "json_schema",
    "member_names",
    "reason",
    "uses_pydantic",
    "with_whole_numbers",
]

T = TypeVar("T")
JsonSchema = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Header:
    """Marks an argument of a tool that HTTP clients also send in a header
    (`x-mcp-header`).

    `region: Annotated[str, Header("Region")]` is also sent as `Mcp-Param-Region`, so that
    proxies can route by it (2026-07-28 basic/transports/streamable-http).
    """

    name: str
    """Name of the header."""


# ---- pydantic, if a type needs it (readers.py)


def _adapter(tp: Any) -> Any:
    import pydantic

    return pydantic.TypeAdapter(tp)


# ---- values


def _cached(make: Callable[[Any], T]) -> Callable[[Any], T]:
    """Returns a function like `make` that caches its results by type. Results for types
    that cannot be hashed, such as Annotated with a list, are not cached.
    """
    kept = lru_cache(maxsize=1024)(make)

    def get(tp: Any) -> T:
        try:
            return kept(tp)
        except TypeError:
            return make(tp)

    return get


# the types that are strings in JSON, and that msgspec does not know
_TEXT_FORMATS: dict[type, str] = {
    PurePath: "path",
    ipaddress.IPv4Address: "ipv4",
    ipaddress.IPv6Address: "ipv6",
    ipaddress.IPv4Network: "ipv4network",
    ipaddress.IPv6Network: "ipv6network",
    ipaddress.IPv4Interface: "ipv4interface",
    ipaddress.IPv6Interface: "ipv6interface",
}


def _text_format(kind: Any) -> str | None:
    """Returns the format of a class whose objects are strings in JSON, or None."""
    if not isinstance(kind, type):
        return None
    found = [_TEXT_FORMATS[one] for one in kind.__mro__ if one in _TEXT_FORMATS]
    return found[0] if found else None


def _decode_other(tp: Any, value: Any) -> Any:
    """Makes a value of a type that msgspec does not know."""
    kind = get_origin(tp) or tp
    if isinstance(value, kind):
        return value
    is_text = _text_format(kind) is not None
    if is_text and isinstance(value, str):
        return kind(value)
    wanted = "str" if is_text else kind.__name__
    raise TypeError(f"Expected `{wanted}`, got `{type(value).__name__}`")


def strict_decoder(tp: Any) -> Callable[[bytes], Any]:
    """Returns the decoder of msgspec for a type."""
    return msgspec.json.Decoder(tp, dec_hook=_decode_other).decode


def lax_converter(tp: Any) -> Callable[[Any], Any]:
    """Returns the converter of msgspec for a type, which reads strings, too."""
    return lambda value: msgspec.convert(value, tp, strict=False, dec_hook=_decode_other)


def _make_decoder(tp: Any) -> Callable[[bytes], Any]:
    if uses_pydantic(tp):
        decode: Any = partial(_adapter(tp).validate_json, strict=True)
    else:
        decode = strict_decoder(tp)
    return lambda raw: with_whole_numbers(decode, raw)[0]


def _make_converter(tp: Any) -> Callable[[Any], Any]:
    if uses_pydantic(tp):
        return typing.cast("Callable[[Any], Any]", _adapter(tp).validate_python)
    return lax_converter(tp)


def _make_checker(tp: Any) -> Callable[[Any], bytes]:
    if uses_pydantic(tp):
        return _value_checker(tp)
    return _json_checker(strict_decoder(tp))


def _value_checker(tp: Any) -> Callable[[Any], bytes]:
    import pydantic

    root: Any = pydantic.RootModel
    # Dataclasses do not check their fields when they are made, so they are read again.
    # Bytes are base64, as msgspec has them. Models inside have a config of their own.
    config = pydantic.ConfigDict(
        revalidate_instances="always", val_json_bytes="base64", ser_json_bytes="base64"
    )
    model: Any = type("Value", (root[tp],), {"model_config": config})

    def check(value: Any) -> bytes:
        # pydantic does not read an object of a model again, but writing it tells whether
        # the fields have their types.
        made = model.model_validate(value)
        text: str = made.model_dump_json(by_alias=True, warnings="error")
        return text.encode()

    return check


def _json_checker(decode: Callable[[bytes], Any]) -> Callable[[Any], bytes]:
    return lambda value: with_whole_numbers(decode, encode(value))[1]


def decoder(tp: type[T]) -> Callable[[bytes], T]:
    """Returns a function that decodes JSON to this type, and raises if the JSON does not
    fit."""
    return _decoders(tp)


def converter(tp: type[T]) -> Callable[[Any], T]:
    """Returns a function that converts decoded values or strings to this type."""
    return _converters(tp)


def checker(tp: Any) -> Callable[[Any], bytes]:
    """Returns a function that raises if a value does not fit this type. The function
    returns the JSON of the value that fits: with 5 in place of 5.0, and with what
    pydantic makes of lenient data.

    msgspec reads the JSON, so objects of a subclass fit. pydantic reads the value,
    because it may write a model in another form than it reads.
    """
    return _checkers(tp)


_checkers = _cached(_make_checker)
_decoders = _cached(_make_decoder)
_converters = _cached(_make_converter)


def _encode_other(value: Any) -> Any:
    if _text_format(type(value)) is not None:
        return str(value)
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    if hasattr(value, "__pydantic_serializer__"):
        return _adapter(type(value)).dump_python(value, mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=_encode_other).encode


def encode(value: Any) -> bytes:
    """Encodes to JSON: what msgspec knows, paths, and models of pydantic.

    Raises:
        TypeError: the value has no JSON.
        ValueError: the value has NaN or an infinity, which msgspec writes as null.
    """
    raw = _encode(value)
    if b"null" in raw:
        refuse_no_number(value)
    return raw


def without_json(tp: Any) -> Any:
    """Returns a class in a type whose objects cannot be encoded as JSON, or None if there
    is no such class."""
    for one in classes_of(tp):
        try:
            is_custom = isinstance(
                msgspec.inspect.type_info(one), msgspec.inspect.CustomType
            )
        except (TypeError, ValueError, RuntimeError):
            continue
        if is_custom and not any(hasattr(one, name) for name in _ENCODED):
            return one
    return None


# what makes objects of a class that msgspec does not know values of JSON: paths, and what
# pydantic reads
_ENCODED = (
    "__fspath__",
    "model_dump",
    "__pydantic_serializer__",
    "__get_pydantic_core_schema__",
)


def refuse_no_number(value: Any) -> None:
    """Raises ValueError if a value has NaN or an infinity, at any depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                name = "NaN" if math.isnan(one) else "infinity"
                raise ValueError(f"JSON has no {name}: {one!r} cannot be sent")
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        elif isinstance(one, msgspec.Struct) or dataclasses.is_dataclass(one):
            fields: Any = dataclasses.fields
            names = getattr(one, "__struct_fields__", None) or [
                field.name for field in fields(one)
            ]
            waiting += [getattr(one, name, None) for name in names]
        elif hasattr(one, "model_dump") or hasattr(one, "__pydantic_serializer__"):
            waiting.append(_encode_other(one))


def whole_numbers(raw: bytes) -> bytes | None:
    """Returns the JSON text with 5 in place of 5.0, because both are integers in JSON
    Schema. Returns None if the text has no such number."""
    has_any = False

    def read(text: str) -> Any:
        nonlocal has_any
        value = float(text)
        if not value.is_integer() or abs(value) >= 2**53:
            return msgspec.Raw(text.encode())
        has_any = True
        return int(value)

    try:
        made = msgspec.json.Decoder(float_hook=read).decode(raw)
    except msgspec.MsgspecError:
        return None
    return msgspec.json.encode(made) if has_any else None


def with_whole_numbers(decode: Callable[[bytes], T], raw: bytes) -> tuple[T, bytes]:
    """Decodes a JSON text, if need be with 5 in place of 5.0. Returns the value, and the
    text that fits.

    Raises:
        msgspec.MsgspecError, ValueError: the text does not fit.
    """
    try:
        return decode(raw), raw
    except (msgspec.MsgspecError, ValueError):
        whole = whole_numbers(raw)
        if whole is None:
            raise
    return decode(whole), whole


def reason(error: Exception) -> str:
    """Returns one line for the caller that says why a value does not fit."""
    errors: Any = getattr(error, "errors", None)
    if callable(errors):
        parts = []
        found: Any = errors()
        for one in found:
            place = ".".join(str(step) for step in one.get("loc", ()))
            parts.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
        return "; ".join(parts)
    return str(error)


_NO_VALUE = re.compile(r"Invalid enum value .* - at `\$(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")
# the most values of an enum that an error lists
_MOST_VALUES = 20


def with_values(why: str, made: JsonSchema) -> str:
    """Adds to the text of a wrong enum value the values that the schema has at its
    place."""
    found = _NO_VALUE.fullmatch(why)
    values = list(_values_at(made, made, _STEP.findall(found[1]))) if found else []
    if not values:
        return why
    shown = ", ".join(
        json.dumps(one, ensure_ascii=False) for one in values[:_MOST_VALUES]
    )
    more = ", ..." if len(values) > _MOST_VALUES else ""
    return f"{why}; it is one of {shown}{more}"


def _values_at(top: JsonSchema, one: Any, steps: list[str]) -> Iterator[Any]:
    """Yields the values of the enums at a place; a step "" is an item of an array or a
    value of an object."""
    if not isinstance(one, dict):
        return
    if "$ref" in one:
        one = top.get("$defs", {}).get(one["$ref"].rpartition("/")[2], {})
    for part in (*one.get("anyOf", ()), *one.get("oneOf", ())):
        yield from _values_at(top, part, steps)
    if not steps:
        yield from [one["const"]] if "const" in one else one.get("enum", ())
    elif steps[0]:
        yield from _values_at(top, one.get("properties", {}).get(steps[0]), steps[1:])
    else:
        for name in ("items", "additionalProperties"):
            yield from _values_at(top, one.get(name), steps[1:])


# ---- schemas


def _inline_top(schema: JsonSchema, parts: dict[str, JsonSchema]) -> JsonSchema:
    """Replaces a reference at the top of a schema by the schema to which the reference
    leads, and keeps the definitions that this schema needs.
    """
    name = schema.get("$ref", "").rpartition("/")[2]
    if name and len(schema) == 1:
        schema = parts[name]
        if f'"#/$defs/{name}"'.encode() not in msgspec.json.encode(parts):
            parts = {key: part for key, part in parts.items() if key != name}
    schema = {key: value for key, value in schema.items() if key != "title"}
    if schema.get("required") == []:
        del schema["required"]
    if parts:
        schema["$defs"] = parts
    return schema


def json_schema(tp: Any, *, is_read: bool = False) -> JsonSchema:
    """Returns the JSON Schema of a type.

    Args:
        is_read: True = the schema tells all values that are read as the type, such as
            numbers for a Decimal. False = only those that are written. The names and the
            types of a model's fields may differ, too.

    Raises:
        TypeError: the type has no JSON Schema, such as a class that neither msgspec nor
            pydantic knows.
    """
    if uses_pydantic(tp):
        mode = "validation" if is_read else "serialization"
        made: JsonSchema = _adapter(tp).json_schema(by_alias=True, mode=mode)
        return _inline_top(made, made.pop("$defs", {}))
    schemas, parts = msgspec.json.schema_components(
        (tp,), ref_template="#/$defs/{name}", schema_hook=_schema_other
    )
    refine(tp, schemas[0], parts, is_read=is_read)
    return _inline_top(schemas[0], parts)


def _schema_other(tp: Any) -> JsonSchema:
    form = _text_format(get_origin(tp) or tp)
    if form is not None:
        return {"type": "string", "format": form}
    raise TypeError(
        f"JSON has no form of `{getattr(tp, '__name__', tp)}`: use a type of JSON, a "
        "dataclass, a TypedDict, a Struct of msgspec or a model of pydantic"
    )


def is_object_type(tp: Any) -> bool:
    """Returns whether values of the type are JSON objects. Only objects can be structured
    results."""
    if tp in (None, type(None), Any) or isinstance(tp, (str, TypeVar)):
        return False
    try:
        return json_schema(tp, is_read=True).get("type") == "object"
    except (TypeError, ValueError, RuntimeError):
        return False


_BRANCHES = ("allOf", "anyOf", "oneOf", "then", "else", "if", "dependentSchemas")


def member_names(schema: JsonSchema) -> list[str]:
    """Returns the names of the members that a schema of objects declares: at the top, and
    in its branches and references."""
    names: dict[str, None] = {}
    left, seen = [schema], set[str]()
    while left:
        one = left.pop(0)
        if not isinstance(one, dict):  # the schemas `true` and `false` name nothing
            continue
        names.update(dict.fromkeys(one.get("properties", ())))
        for keyword in _BRANCHES:
            found = one.get(keyword, ())
            if keyword == "dependentSchemas":
                found = dict(found).values()
            left += [found] if isinstance(found, dict) else found
        place = str(one.get("$ref", ""))
        if place not in seen:
            seen.add(place)
            left.append(_part_at(schema, place))
    return list(names)


def composite_members(schema: JsonSchema) -> dict[str, JsonSchema]:
    """Returns the members of a schema of objects that are always arrays or objects (or
    null), with their schemas."""
    return {
        name: part
        for name, part in schema.get("properties", {}).items()
        if _kinds(schema, part) - {"null"} in _COMPOSITES
    }


_COMPOSITES: tuple[set[str], ...] = ({"array"}, {"object"}, {"array", "object"})


def _kinds(schema: JsonSchema, part: Any) -> set[str]:
    """Returns the types of the values of a part of a schema; "" = any type."""
    if "$ref" in part:
        part = _part_at(schema, part["$ref"]) or {}
    options = part.get("anyOf") or part.get("oneOf")
    if options:
        return {kind for option in options for kind in _kinds(schema, option)}
    kind = part.get("type", "")
    return set(kind) if isinstance(kind, list) else {kind}


def _part_at(schema: JsonSchema, place: str) -> Any:
    """Returns the part of a schema to which a reference such as `#/$defs/Point` leads;
    None if it leads nowhere."""
    part: Any = schema if place[:1] == "#" else None
    for step in place.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        part = part.get(name) if isinstance(part, dict) else None
    return part


def _find_member(tp: Any, name: str) -> bool:
    try:
        schema = json_schema(tp, is_read=True)
    except (TypeError, ValueError, RuntimeError):
        return False
    return name in member_names(schema)


_members = _cached(lambda asked: _find_member(*asked))


def has_member(tp: Any, name: str) -> bool:
    """Returns whether the type, or one type of a union, is an object that declares this
    member in its JSON."""
    return _members((tp, name))


# ---- annotations


def metadata(tp: Any) -> tuple[Any, ...]:
    """Returns the metadata of an Annotated type: the values after the type. The result is
    empty for other types.
    """
    return tuple(tp.__metadata__) if get_origin(tp) is Annotated else ()


def described(tp: Any, text: str | None) -> Any:
    """Returns the type with a description, and with its Header as part of the schema.

    If the type has its own description, such as a plain string in Annotated, that
    description is used.
    """
    extra: dict[str, Any] = {}
    own = None
    for item in metadata(tp):
        if isinstance(item, Header):
            extra["x-mcp-header"] = item.name
        elif isinstance(item, str):
            text = item
        elif getattr(item, "description", None):
            own = item
    if own is not None:
        text = None
    if not text and not extra:
        return tp
    if uses_pydantic(tp):
        import pydantic

        field: Any = pydantic.Field
        given = {"description": text} if text else {}
        return Annotated[tp, field(**given, json_schema_extra=extra or None)]
    return Annotated[
        tp, msgspec.Meta(description=text or None, extra_json_schema=extra or None)
    ]


def aliased(tp: Any, alias: str) -> Any:
    """Returns a type for a field of a pydantic model, with `alias` as the field's name in
    JSON. If the type has its own alias, the function keeps this alias.
    """
    import pydantic

    field: Any = pydantic.Field(alias=alias)
    if get_origin(tp) is Annotated:
        annotated: Any = Annotated
        parts = (tp.__origin__, field, *tp.__metadata__)
        return annotated[parts]
    return Annotated[tp, field]


# ---- forms


def form_schema(tp: Any) -> JsonSchema:
    """Returns the schema of a form (`elicitation/create`): one flat object of simple
    fields.

    Raises:
        TypeError: the type has a field that a form cannot have (2025-11-25
            client/elicitation, "Requested Schema").
    """
    schema = json_schema(tp, is_read=True)
    parts = schema.pop("$defs", {})
    if schema.get("type") != "object":
        raise TypeError(f"a form has to be an object type, and {tp!r} is not")
    properties = {
        name: _simple(name, field, parts)
        for name, field in schema.get("properties", {}).items()
    }
    form: JsonSchema = {"type": "object", "properties": properties}
    if schema.get("required"):
        form["required"] = schema["required"]
    return form


def _simple(name: str, field: JsonSchema, parts: dict[str, JsonSchema]) -> JsonSchema:
    field = dict(field)
    options = [one for one in field.pop("anyOf", []) if one != {"type": "null"}]
    if len(options) == 1:
        field = {**options[0], **field}
    if "$ref" in field:
        field = {**parts[field.pop("$ref").rpartition("/")[2]], **field}
    if field.get("default", 0) is None:
        del field["default"]
    kinds = field.get("enum")
    if kinds and "type" not in field and all(isinstance(one, str) for one in kinds):
        field["type"] = "string"
    kind = field.get("type")
    if isinstance(kind, list) and field.get("format") == "decimal":
        kind = field["type"] = "string"  # an answer may still be a number
    is_choice = kind == "array" and {"enum", "anyOf"} & set(field.get("items", {}))
    if kind == "array" and is_choice:
        field["items"].setdefault("type", "string")
    if kind not in ("string", "number", "integer", "boolean") and not is_choice:
        raise TypeError(
            f"a form cannot have the field {name!r}, because it is not a simple type"
        )
    return field
