"""The types of the options of a server's decorators and of `Server.serving`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .. import _segue
from ..content import Annotations, Icon

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
    auth: BearerAuth | None
    tokens_file: str | None
    hosts: Sequence[str] | str | None
    origins: Sequence[str] | str | None
    cors: bool
    drain: float
    options: _segue.ListenOptions | None
