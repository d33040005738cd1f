"""The client's answers to the questions of a server.

During a request a server may ask for input of the user (`elicitation/create`), for the
answer of a model (`sampling/createMessage`), or for the roots that it may work in
(`roots/list`). Each kind has a callback, plain or async, which gets a typed object and
returns a typed answer or its JSON object. A kind without a callback is not declared as a
capability, and a server that asks such a question nevertheless gets an error.
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
    """A callback raises `Refused` to refuse a question. The server gets `code` and the
    message.

    In revision 2026-07-28 an answer cannot be an error. A refused form is answered with
    "cancel" there, and refusing another question cancels the whole request. Only a
    question whose method the library does not know gets the error.
    """

    def __init__(self, message: str = "The user refused", code: int = -1) -> None:
        super().__init__(message)
        self.code = code


class Question(msgspec.Struct, frozen=True):
    """Any question, as it arrived; the argument of `on_input`.

    Attributes:
        method: The method, such as "elicitation/create".
        params: The params of the question.
        key: The question's name within its request.
        typed: The question as `ElicitRequest` or `SampleRequest` for these two methods,
            else None.
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
    """Answers the server's questions with the user's callbacks. `on_input` gets the
    questions that have no other callback."""

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
        """Returns the capabilities that the session declares."""
        told: dict[str, Any] = {}
        if self.on_elicit or self.on_input:
            told["elicitation"] = {"form": {}, "url": {}}
        if self.on_sample or self.on_input:
            told["sampling"] = {}
        if self.roots is not None or self.on_input:
            told["roots"] = {}
        return told

    async def answer(self, key: str, method: str, params: bytes) -> bytes:
        """Answers a question. Returns the answer as JSON.

        Args:
            key: The key of the question within its call.
            method: The method, such as "elicitation/create".
            params: The params of the question, as JSON.

        Raises:
            Refused: The callback refused the question, or there is no callback for it.
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
            raise Refused(f"the client has no callback that answers {method}", -32601)
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
        raise TypeError(f"the answer to {method} is not an object: {reply!r}")
    if method == ELICIT and msgspec.json.decode(raw).get("action") not in _ACTIONS:
        raise TypeError(
            "the answer to a question has to be a segue.ElicitResult with the action "
            f"accept, decline or cancel, not {reply!r}"
        )
    return raw
