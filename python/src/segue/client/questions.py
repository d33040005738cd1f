"""Who answers what a server asks its client.

A server may ask during a request: for input of the user (`elicitation/create`), for what
a model says (`sampling/createMessage`), for the roots it may work in (`roots/list`). For
each there is a callback, plain or async, that gets a typed object and returns a typed
answer, or the JSON object of one. What has no callback is not declared as a capability,
and a server that asks it all the same gets an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Union

import msgspec

from ..questions import ElicitRequest, ElicitResult, Root, SampleRequest, SampleResult

__all__ = ["Answers", "Question", "Refused"]

ELICIT = "elicitation/create"
SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"


class Refused(Exception):
    """Raised by a callback that does not answer: the server gets `code` and the message.

    Where the revision has no errors as answers (2026-07-28), a form is cancelled, and for
    a model or the roots the request is. A question of an unknown method gets the error.
    """

    def __init__(self, message: str = "the user refused", code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class Question(msgspec.Struct, frozen=True):
    """What `on_input` gets: any question, as it came.

    Attributes:
        method: Such as "elicitation/create".
        params: Its params.
        key: Names the question in its request.
        typed: `ElicitRequest` or `SampleRequest` for these methods, else None.
    """

    method: str
    params: dict[str, Any]
    key: str
    typed: Union[ElicitRequest, SampleRequest, None] = None  # noqa: UP007


Reply = ElicitResult[Any] | SampleResult | Mapping[str, Any] | None
Elicit = Callable[[ElicitRequest], Reply | Awaitable[Reply]]
Sample = Callable[[SampleRequest], Reply | Awaitable[Reply]]
SomeRoots = Iterable[Root | str]
Roots = SomeRoots | Callable[[], SomeRoots | Awaitable[SomeRoots]]
Input = Callable[[Question], Reply | Awaitable[Reply]]

_ACTIONS = ("accept", "decline", "cancel")
_TYPES: dict[str, Any] = {ELICIT: ElicitRequest, SAMPLE: SampleRequest}


async def _settle(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Answers:
    """Who answers what. `on_input` is asked what no other callback is for."""

    __slots__ = ("on_elicit", "on_input", "on_sample", "roots")

    def __init__(
        self,
        on_input: Input | None = None,
        on_elicit: Elicit | None = None,
        on_sample: Sample | None = None,
        roots: Roots | None = None,
    ) -> None:
        self.on_input = on_input
        self.on_elicit = on_elicit
        self.on_sample = on_sample
        self.roots = roots

    def __bool__(self) -> bool:
        return (
            self.on_input is not None
            or self.on_elicit is not None
            or self.on_sample is not None
            or self.roots is not None
        )

    def capabilities(self) -> dict[str, Any]:
        """What the session declares for them."""
        told: dict[str, Any] = {}
        if self.on_elicit or self.on_input:
            told["elicitation"] = {"form": {}, "url": {}}
        if self.on_sample or self.on_input:
            told["sampling"] = {}
        if self.roots is not None or self.on_input:
            told["roots"] = {}
        return told

    async def answer(self, key: str, method: str, params: bytes) -> bytes:
        """The answer as JSON.

        Raises:
            Refused: There is none.
            Exception: The callback failed.
        """
        given = msgspec.json.decode(params or b"{}")
        typed: Any = None
        if method in _TYPES:
            try:
                typed = msgspec.convert(given, _TYPES[method])
            except msgspec.ValidationError as error:
                raise Refused(f"{method}: {error}", -32602) from None
        reply: Any
        if method == ELICIT and self.on_elicit:
            reply = await _settle(self.on_elicit(typed))
        elif method == SAMPLE and self.on_sample:
            reply = await _settle(self.on_sample(typed))
        elif method == ROOTS and self.roots is not None:
            roots = self.roots() if callable(self.roots) else self.roots
            reply = {"roots": [_root(one) for one in await _settle(roots)]}
        elif self.on_input:
            reply = await _settle(self.on_input(Question(method, given, key, typed)))
        else:
            raise Refused(f"nobody answers {method}", -32601)
        return _encode(method, reply)


def _root(root: Root | str) -> Root:
    return Root(root) if isinstance(root, str) else root


def _encode(method: str, reply: Any) -> bytes:
    if reply is None:
        if method != ELICIT:
            raise Refused()
        reply = ElicitResult("decline")
    raw = msgspec.json.encode(reply)
    if raw[:1] != b"{":
        raise TypeError(f"the answer to {method} is no object: {reply!r}")
    if method == ELICIT and msgspec.json.decode(raw).get("action") not in _ACTIONS:
        raise TypeError(
            "the answer to a question is a segue.ElicitResult, whose action is accept, "
            f"decline or cancel, not {reply!r}"
        )
    return raw
