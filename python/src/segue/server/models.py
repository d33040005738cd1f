"""The parameters of a handler that only pydantic can read: models, and types with a
`Field`.

They become one model of pydantic. The other parameters of the handler stay with msgspec,
so a parameter is read in the same way, whatever stands beside it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from .. import schema

__all__ = ["Models", "marked"]

_EMPTY = inspect.Parameter.empty
_PREFIX = "pydantic."


def _is_field(value: Any) -> bool:
    if not sys.modules.get("pydantic"):
        return False
    from pydantic.fields import FieldInfo

    return isinstance(value, FieldInfo)


def marked(hint: Any, default: Any) -> Any:
    """Returns the type of a parameter, marked for pydantic if its default is a `Field`
    of pydantic."""
    if not _is_field(default):
        return hint
    import pydantic

    return Annotated[hint, pydantic.Field()]


def _name_of(alias: Any) -> str | None:
    """Returns the name in JSON that an alias of pydantic means: a name, or the first name
    of an `AliasChoices`. None if the alias has no name."""
    for one in getattr(alias, "choices", [alias]):
        if isinstance(one, str):
            return one
    return None


class _Field(NamedTuple):
    """A parameter for pydantic: its place among all parameters, its name in the model,
    its name in JSON, and whether it has no default."""

    place: int
    member: str
    name: str
    is_required: bool


class Models:
    """The parameters for pydantic, perhaps none.

    Attributes:
        fields: these parameters, by the parameter's name.
    """

    def __init__(
        self, parameters: Sequence[inspect.Parameter], types: dict[str, Any]
    ) -> None:
        self.fields: dict[str, _Field] = {}
        members: dict[str, Any] = {}
        for place, one in enumerate(parameters):
            if schema.uses_pydantic(types[one.name]):
                # The member has an alias, because the parameter's own name may clash with
                # a name of the model's class.
                hint = schema.aliased(types[one.name], one.name)
                default = ... if one.default is _EMPTY else one.default
                members[f"argument{place}"] = (hint, default)
        if not members:
            return
        import pydantic

        # Bytes are base64, as msgspec has them. Models inside have a config of their own.
        config = pydantic.ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
        self._model: Any = pydantic.create_model(
            "Arguments", __config__=config, **members
        )
        for place, one in enumerate(parameters):
            member = f"argument{place}"
            if member in members:
                info = self._model.model_fields[member]
                name = _name_of(info.validation_alias or info.alias)
                if name is None:
                    raise TypeError(
                        f"the alias of {one.name!r} has to have a name: the arguments of "
                        "a tool are members of one object, which an AliasPath is not"
                    )
                required = info.is_required()
                self.fields[one.name] = _Field(place, member, name, required)

    def __bool__(self) -> bool:
        return bool(self.fields)

    def __contains__(self, parameter: str) -> bool:
        return parameter in self.fields

    # ---- values

    def decode(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the values of all parameters. Those for pydantic are still JSON, or
        UNSET when the call does not have the argument.

        Raises:
            pydantic.ValidationError: an argument does not fit.
        """
        parts = [
            msgspec.json.encode(one.name) + b":" + bytes(values[one.place])
            for one in self.fields.values()
            if values[one.place] is not msgspec.UNSET
        ]
        raw = b"{" + b",".join(parts) + b"}"
        return self._filled(values, self._model.model_validate_json(raw, strict=True))

    def convert(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """As `decode`, for values that are decoded, or are strings."""
        given = {
            one.name: values[one.place]
            for one in self.fields.values()
            if values[one.place] is not msgspec.UNSET
        }
        return self._filled(values, self._model.model_validate(given))

    def _filled(self, values: tuple[Any, ...], made: Any) -> tuple[Any, ...]:
        filled = list(values)
        for one in self.fields.values():
            filled[one.place] = getattr(made, one.member)
        return tuple(filled)

    # ---- schema

    def add_schema(self, made: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
        """Adds these parameters to the schema of the others.

        Args:
            order: the names of all parameters in their order.
        """
        made.setdefault("properties", {})
        if not self:
            return made
        own = self._model.model_json_schema(by_alias=True)
        parts = made.get("$defs", {})
        if any(
            parts.get(key, part) != part for key, part in own.get("$defs", {}).items()
        ):
            own = self._model.model_json_schema(
                by_alias=True, ref_template=f"#/$defs/{_PREFIX}{{model}}"
            )
            own["$defs"] = {_PREFIX + key: part for key, part in own["$defs"].items()}
        for field in own["properties"].values():
            field.pop("title", None)
        names = [
            self.fields[name].name if name in self.fields else name for name in order
        ]
        properties = {**made["properties"], **own["properties"]}
        required = {*made.get("required", ()), *own.get("required", ())}
        made["properties"] = {
            name: properties[name] for name in names if name in properties
        }
        made["required"] = [name for name in names if name in required]
        made["$defs"] = {**parts, **own.get("$defs", {})}
        return {key: value for key, value in made.items() if value or key == "properties"}
