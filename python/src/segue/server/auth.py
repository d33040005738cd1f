"""Checks the OAuth tokens of callers over HTTP. The library checks a token as a JWT, or a
function of the application checks the token.

A listener with `BearerAuth` is a protected resource (2026-07-28 basic/authorization;
RFC 9728, RFC 6750): the library serves its metadata, answers 401 and 403 with the right
challenges and checks scopes. This module decides whether a token is valid.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _segue, errors
from .tool import joined, seconds

__all__ = ["AccessToken", "BearerAuth", "Peer"]

log = logging.getLogger("segue.server")


@dataclasses.dataclass(frozen=True)
class AccessToken:
    """What a valid token says about its caller.

    Attributes:
        principal: a stable name of the caller, not empty. Tasks and sessions belong to
            this name.
        scopes: the scopes that the token grants.
        expires_at: when the token expires, in seconds since 1970; None = never.
    """

    principal: str
    scopes: Sequence[str] = ()
    expires_at: float | None = None


Verdict = AccessToken | str | None
Verify = Callable[[str], Verdict | Awaitable[Verdict]]


class Peer(NamedTuple):
    """The caller of a request, as the function `principal` of a server sees it.

    Attributes:
        address: "127.0.0.1:4711", "unix", or the subject of a verified certificate.
        header: a function that returns a header by its name, or None when the header is
            missing. `header` may be called only until the function `principal` returns.
    """

    address: str
    header: Callable[[str], str | None]


def principal_hook(
    function: Callable[[Peer], str | None],
) -> Callable[[_segue.Transport], str | None]:
    def ask(transport: _segue.Transport) -> str | None:
        def header(name: str) -> str | None:
            return _segue.transport_header(transport, name)

        return function(Peer(_segue.transport_peer(transport), header))

    return ask


@dataclasses.dataclass
class BearerAuth:
    """Checks tokens. With a `BearerAuth`, every caller needs a valid token.

    Args:
        issuer: URL of the authorization server. With `verify` there may be several URLs.
            Without `verify` there must be exactly one, because a key set belongs to one
            authorization server.
        verify: a function, plain or async, that gets a token and returns an
            `AccessToken`, the principal alone, or None to refuse. The function must check
            that the token was issued for this server. Without `verify` tokens are checked
            as JWT (RFC 9068), with the keys in one of `jwks`, `jwks_file` and `jwks_url`.
        resource: the URL of the endpoint for clients, if not the listener's URL.
        audience: the accepted `aud` values of a JWT, if not the resource.
        required_scopes: the scopes that every request needs.
        scopes_supported: the scopes that clients request at first.
        implied_scopes: the scopes that each scope includes.
        algorithms: the accepted algorithms of a JWT, such as "RS256"; default: all safe
            algorithms.
        check_timeout: limit for checking a token, in seconds. A caller whose token is not
            checked in time gets 503.
        options: further members of `segue_bearer_options`, by their names in C.
    """

    issuer: str | Sequence[str]
    verify: Verify | None = None
    _: dataclasses.KW_ONLY
    resource: str | None = None
    audience: str | Sequence[str] | None = None
    required_scopes: Sequence[str] = ()
    scopes_supported: Sequence[str] = ()
    implied_scopes: Mapping[str, Sequence[str]] | None = None
    resource_name: str | None = None
    """Name of this server for people, in its metadata."""
    documentation: str | None = None
    """URL of documentation, in its metadata."""
    algorithms: Sequence[str] = ()
    jwks: str | None = None
    jwks_file: str | None = None
    jwks_url: str | None = None
    ca_file: str | None = None
    """PEM file of certificates to trust when keys are fetched."""
    leeway: float | None = None
    """How much clocks may differ, in seconds."""
    check_timeout: float | None = None
    options: _segue.BearerOptions | None = None

    def __post_init__(self) -> None:
        keys = [self.jwks, self.jwks_file, self.jwks_url]
        if self.verify is None and not any(keys):
            raise ValueError(
                "set verify=, or one of jwks=, jwks_file= and jwks_url=, so that tokens "
                "can be checked"
            )

    def bearer_options(self) -> _segue.BearerOptions:
        """Returns the options of the library."""
        implied = self.implied_scopes or {}
        lines = [" ".join([scope, *others]) for scope, others in implied.items()]
        made: dict[str, Any] = {
            "authorization_servers": joined(self.issuer),
            "resource": self.resource,
            "audience": joined(self.audience),
            "required_scopes": joined(self.required_scopes),
            "scopes_supported": joined(self.scopes_supported),
            "implied_scopes": "\n".join(lines) or None,
            "resource_name": self.resource_name,
            "documentation": self.documentation,
            "algorithms": joined(self.algorithms),
            "jwks": self.jwks,
            "jwks_file": self.jwks_file,
            "jwks_url": self.jwks_url,
            "ca_file": self.ca_file,
            "leeway_ms": seconds(self.leeway),
            "check_timeout_ms": seconds(self.check_timeout),
        }
        if self.verify is not None:
            for name in ("jwks", "jwks_file", "jwks_url"):
                made[name] = None
        told = {key: value for key, value in made.items() if value is not None}
        return {**told, **(self.options or {})}  # type: ignore[typeddict-item]

    def hook(
        self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> Callable[[_segue.Bearer, _segue.Transport], object] | None:
        """Returns the hook that the library calls for each token. Returns None when the
        library checks the tokens itself.
        """
        verify = self.verify
        if verify is None:
            return None

        def ask(bearer: _segue.Bearer, transport: _segue.Transport) -> None:
            spawn(_decide(verify, bearer))

        return ask


async def _decide(verify: Verify, bearer: _segue.Bearer) -> None:
    try:
        verdict: Any = verify(_segue.bearer_token(bearer))
        if inspect.isawaitable(verdict):
            verdict = await verdict
        _tell(bearer, verdict)
    except errors.Error as error:
        log.debug("a token could not be checked: %s", error)
    except Exception:
        log.exception("the function that verifies tokens failed")
    finally:
        _segue.bearer_free(bearer)


def _tell(bearer: _segue.Bearer, verdict: Verdict) -> None:
    if isinstance(verdict, str) and verdict:
        verdict = AccessToken(verdict)
    if not verdict:
        _segue.bearer_refuse(bearer)
        return
    if not isinstance(verdict, AccessToken):
        raise TypeError(
            "verify has to return a segue.AccessToken, the name of the principal, or "
            f"None to refuse the token, not {verdict!r}"
        )
    end = 0 if verdict.expires_at is None else round(verdict.expires_at * 1000)
    _segue.bearer_accept(bearer, verdict.principal, joined(verdict.scopes), end)
