"""The types of the options of a server's decorators and of `Server.serving`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .. import _segue
from ..content import Annotations, Icon
from ..names import nearest

if TYPE_CHECKING:
    from .auth import BearerAuth
    from .stores import StoreLike
    from .tool import TaskPolicy, ToolAnnotations

__all__ = [
    "AsgiOptions",
    "PromptOptions",
    "ResourceOptions",
    "ServeOptions",
    "ToolOptions",
    "check_item_options",
]


class _ListedOptions(TypedDict, total=False):
    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Icon] | None
    meta: dict[str, Any] | None
    scopes: str | Sequence[str] | None
    thread: bool


class ToolOptions(_ListedOptions, total=False):
    """The options of `Server.tool`."""

    annotations: ToolAnnotations | dict[str, Any] | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    structured: bool | None
    task: TaskPolicy
    ttl: float | None
    poll: float | None
    promote_after: float | None
    restartable: bool
    resumable: bool
    resume_after: float | None
    resume_within: float | None
    unstoppable: bool
    stored: bool
    incremental: bool | None
    forbid_extra: bool | None


class ResourceOptions(_ListedOptions, total=False):
    """The options of `Server.resource`."""

    mime_type: str | None
    size: int | None
    annotations: Annotations | dict[str, Any] | None
    ttl: float | None
    scope: Literal["private", "public"]


class PromptOptions(_ListedOptions, total=False):
    """The options of `Server.prompt`."""

    forbid_extra: bool


class ServeOptions(TypedDict, total=False):
    """The options of `Server.serving`."""

    store: StoreLike | None
    path: str | None
    health_path: str | None
    metrics_path: str | None
    board_path: str | None
    board_read_only: bool
    board_redact: bool
    board_token: str | None
    auth: BearerAuth | None
    cert_file: str | None
    key_file: str | None
    client_ca_file: str | None
    tokens_file: str | None
    hosts: Sequence[str] | str | None
    origins: Sequence[str] | str | None
    cors: bool
    drain: float
    options: _segue.ListenOptions | None


class AsgiOptions(TypedDict, total=False):
    """The options of `Server.asgi`."""

    store: StoreLike | None
    path: str | None
    health_path: str | None
    metrics_path: str | None
    board_path: str | None
    board_read_only: bool
    board_redact: bool
    board_token: str | None
    auth: BearerAuth | None
    tokens_file: str | None
    hosts: Sequence[str] | str | None
    origins: Sequence[str] | str | None
    cors: bool
    drain: float
    options: _segue.ListenOptions | None


_KNOWN: dict[str, Any] = {
    "tool": ToolOptions,
    "resource": ResourceOptions,
    "prompt": PromptOptions,
}
# options of FastMCP, and what to write here
_ADVICE = {
    "tags": 'there are no tags: meta={"tags": [...]} passes them to clients, and scopes= '
    "says who may call",
    "enabled": "leave the decorator out, or call remove_tool",
    "uri": "the URI comes first: resource(uri)",
    "exclude_args": "give such a parameter the default segue.Depends(...)",
    "timeout": "use asyncio.timeout in the function",
    "run_in_thread": "it is named thread",
}


def check_item_options(what: str, options: Any) -> None:
    """Refuses an option that does not exist where it is written.

    Raises:
        TypeError: an option is unknown. The message names the one that was probably
            meant.
    """
    known = _KNOWN[what].__optional_keys__
    for name in options:
        if name in known:
            continue
        meant = nearest(name, sorted(known))
        advice = _ADVICE.get(name)
        end = f": {advice}" if advice else f", did you mean {meant!r}?" if meant else ""
        raise TypeError(f"{what}() has no option {name!r}{end}")
