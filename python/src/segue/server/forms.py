"""Converts the questions of a handler to JSON, and the client's answers to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from .. import schema
from ..content import Text
from ..questions import Root

__all__ = [
    "ELICIT",
    "ROOTS",
    "SAMPLE",
    "Form",
    "Misfit",
    "decode_elicited",
    "decode_roots",
    "sample_params",
    "url_params",
]

T = TypeVar("T")
ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"


class Misfit(msgspec.ValidationError):
    """The client's answer does not fit the form of the question. The text says which
    field does not fit, and why. The text is meant for the caller."""


class Form(Generic[T]):
    """The form of a question, made from a type. A simple type or a choice becomes a form
    with one field, `value`. A dict is used as the JSON Schema of the form, or of that
    field if it is not the schema of an object. A list of strings is a choice of one of
    them, a list with such a list a choice of several. None is a form without fields.
    """

    def __init__(self, tp: Any) -> None:
        self._wraps = False
        self.schema: dict[str, Any]
        self._decode: Callable[[bytes], Any]
        if tp is None:  # a question without fields: yes or no
            tp = {"type": "object", "properties": {}}
            self.schema = tp
            self._decode = lambda content: None
            return
        if isinstance(tp, (list, tuple)):
            tp = _choice_of(tp)
        if isinstance(tp, dict):
            self._wraps = "properties" not in tp and tp.get("type") != "object"
            self.schema = _wrapped(tp) if self._wraps else tp
            self._decode = lambda content: _decode_form(self.schema, content)
            return
        if not schema.is_object_type(tp):
            tp, self._wraps = msgspec.defstruct("Answer", [("value", tp)]), True
        self.schema = schema.form_schema(tp)
        self._decode = schema.decoder(tp)

    def decode(self, content: bytes) -> T:
        """Decodes an answer. Raises `Misfit` when the answer does not fit the form."""
        try:
            made: Any = self._decode(content)
        except Misfit:
            raise
        except (msgspec.ValidationError, ValueError) as error:
            raise Misfit(schema.reason(error)) from error
        if not self._wraps:
            return made  # type: ignore[no-any-return]
        return made["value"] if isinstance(made, dict) else made.value  # type: ignore[no-any-return]


def _choice_of(options: Sequence[Any]) -> Any:
    """Returns the type of a choice: one of the options, or several of them if they are
    in a list of their own."""
    is_several = len(options) == 1 and isinstance(options[0], (list, tuple))
    names = tuple(options[0] if is_several else options)
    if not names or not all(isinstance(one, str) for one in names):
        raise TypeError(
            "a choice has to be a list of str, or a list of one such list, not "
            f"{options!r}"
        )
    choice: Any = Literal[names]
    return list[choice] if is_several else choice


# ---- the JSON Schema of a form


def _wrapped(field: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": field}, "required": ["value"]}


def _decode_form(form: dict[str, Any], content: bytes) -> Any:
    """Checks an answer against the keywords that a form may use (client/elicitation,
    "Requested Schema"). Other keywords of the schema are ignored."""
    given = msgspec.json.decode(content)
    given = {} if given is None else given  # some clients send null for an empty form
    if not isinstance(given, dict):
        raise Misfit(f"Expected `object`, got `{_kind(given)}`")
    for name in form.get("required", ()):
        if name not in given:
            raise Misfit(f"Object missing required field `{name}`")
    for name, field in form.get("properties", {}).items():
        problem = _problem(field, given[name]) if name in given else None
        if problem:
            raise Misfit(f"{problem} - at `$.{name}`")
    return given


def _kind(value: Any) -> str:
    """Returns the JSON type of a value. A whole number such as 3.0 is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean"}
    return kinds.get(type(value), "integer" if isinstance(value, int) else "null")


def _problem(field: dict[str, Any], value: Any) -> str | None:
    kind, wanted = _kind(value), field.get("type")
    if wanted not in ("string", "number", "integer", "boolean", "array"):
        return None
    if kind != wanted and not (wanted == "number" and kind == "integer"):
        return f"Expected `{wanted}`, got `{kind}`"
    if wanted == "array":
        parts = (
            _problem({"type": "string", **field.get("items", {})}, one) for one in value
        )
        return next(filter(None, parts), None) or _beyond(
            len(value), field, "minItems", "maxItems", "Number of items"
        )
    if wanted == "string":
        for name in ("enum", "oneOf", "anyOf"):
            options: list[Any] = [
                one.get("const") if isinstance(one, dict) else one
                for one in field.get(name, ())
            ]
            if options and value not in options:
                return f"Invalid choice `{value}`"
        return _beyond(len(value), field, "minLength", "maxLength", "Length")
    if wanted == "boolean":
        return None
    return _beyond(value, field, "minimum", "maximum", "Value")


def _beyond(
    size: float, field: dict[str, Any], least: str, most: str, what: str
) -> str | None:
    if size < field.get(least, size):
        return f"{what} must be >= {field[least]}"
    if size > field.get(most, size):
        return f"{what} must be <= {field[most]}"
    return None


class ElicitAnswer(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: msgspec.Raw = msgspec.Raw(b"{}")


class RootsAnswer(msgspec.Struct):
    roots: list[Root]


decode_elicited = msgspec.json.Decoder(ElicitAnswer).decode
decode_roots = msgspec.json.Decoder(RootsAnswer).decode


def sample_params(messages: Any, max_tokens: int, options: dict[str, Any]) -> bytes:
    """Makes the params of sampling/createMessage. A string is a message of the user."""
    items = messages if isinstance(messages, (list, tuple)) else [messages]
    made = [
        {"role": "user", "content": Text(one)} if isinstance(one, str) else one
        for one in items
    ]
    given = {name: value for name, value in options.items() if value is not None}
    return schema.encode({"messages": made, "maxTokens": max_tokens, **given})


def url_params(message: str, url: str, elicitation_id: str) -> bytes:
    """Makes the params of an elicitation/create that sends the user to a URL."""
    return schema.encode(
        {"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id}
    )
