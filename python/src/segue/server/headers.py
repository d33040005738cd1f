"""The headers of the HTTP request that made a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import _segue

__all__ = ["Headers", "headers_of"]


class Headers(Mapping[str, str]):
    """The headers of a request: a mapping of names to values. Upper and lower case in
    names do not matter; names are shown in lower case, in the order of the request.

    A header that the request has more than once is one value here, joined by ", ", or by
    "; " for cookie, as HTTP allows; `getlist` returns the values one by one. Values are
    decoded as Latin-1, so every byte is one character.
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        return ("; " if key == "cookie" else ", ").join(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __repr__(self) -> str:
        # without the values, because they may be secrets that must not reach a log
        return f"<segue.Headers {list(self._values)}>"

    def getlist(self, name: str) -> list[str]:
        """Returns each value of a header; an empty list if the request has none."""
        return list(self._values.get(name.lower(), ()))


def headers_of(call: _segue.Call) -> Headers:
    pairs: list[tuple[str, str]] = []
    while (found := _segue.call_header_at(call, len(pairs))) is not None:
        pairs.append((found[0], found[1].decode("latin-1")))
    return Headers(pairs)
