"""Segue: MCP with results that stream, requests that survive a disconnect, and tasks that
survive a crash.

    import segue

    async with segue.connect("http://127.0.0.1:8000/mcp") as session:
        result = await session.call("greet", name="Ada")

    server = segue.Server("greeter")

    @server.tool
    def greet(name: str) -> str:
        return f"Hello, {name}!"

`segue.sync` is the client without asyncio, `segue.adapters` has transports for other
SDKs, `segue.tokens` keeps the tokens of tasks in a file. Each of these modules is
imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _packages

_packages.check()

from . import errors  # noqa: E402
from ._segue import Segment  # noqa: E402
from ._segue import version as _version  # noqa: E402
from .errors import (  # noqa: E402
    ClosedError,
    DisconnectedError,
    EndedError,
    Error,
    ExistsError,
    FatalError,
    IncompleteError,
    InputOutputError,
    InvalidError,
    JsonError,
    LimitError,
    NegotiationError,
    NotFoundError,
    NotResumableError,
    OutOfMemoryError,
    ProtocolError,
    ReentrantError,
    RefusedError,
    RemoteError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerStoreCorruptError,
    ServerStoreError,
    ServerStoreExistsError,
    ServerStoreFailedError,
    ServerStoreFullError,
    ServerStoreLostError,
    ServerStoreTooLargeError,
    ServerStoreTornError,
    SpawnError,
    StateError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    TaskLostError,
    ThreadError,
    TooLargeError,
    TooSmallError,
    TransportError,
    UnauthorizedError,
    UnsupportedError,
    VersionError,
    WouldBlockError,
)

if TYPE_CHECKING:
    from . import adapters, middleware, sync, tokens
    from ._runtime import configure
    from .client import (
        Answers,
        Change,
        Changes,
        Completion,
        Connecting,
        ConnectOptions,
        FileStorage,
        Implementation,
        LogMessage,
        OAuth,
        Peer,
        Prompt,
        PromptArgument,
        PromptResult,
        Question,
        ReadResult,
        Reconnect,
        Refused,
        Resource,
        ResourceTemplate,
        Resuming,
        Session,
        Stream,
        Task,
        TaskStatus,
        TokenStorage,
        Tool,
        authorize,
        connect,
        resume,
    )
    from .content import (
        Annotations,
        Audio,
        EmbeddedResource,
        Icon,
        Image,
        PromptMessage,
        ResourceContents,
        ResourceLink,
        Result,
        Text,
        Unknown,
        assistant,
        decode_block,
        user,
    )
    from .events import Event, log_events, observe
    from .failures import (
        Declined,
        McpError,
        ToolError,
    )
    from .questions import (
        ElicitRequest,
        ElicitResult,
        Root,
        SampleMessage,
        SampleRequest,
        SampleResult,
    )
    from .schema import (
        Header,
    )
    from .server import (
        AccessToken,
        BearerAuth,
        Call,
        Complete,
        Context,
        Depends,
        Headers,
        Listed,
        Middleware,
        Proceed,
        Server,
        ServerSession,
        Store,
        SyncContext,
        ToolAnnotations,
    )
    from .server.remote import (
        Remote,
    )

__version__: str = _version()

# The module of each name that is imported at its first use.
_LAZY = {
    name: module
    for module, names in {
        ".client": "Answers Change Changes Completion Connecting ConnectOptions "
        "FileStorage Implementation LogMessage OAuth Peer Prompt "
        "PromptArgument PromptResult Question ReadResult Reconnect Refused "
        "Resource ResourceTemplate Resuming Session Stream Task "
        "TaskStatus TokenStorage Tool authorize connect resume",
        "._runtime": "configure",
        ".content": "Annotations Audio EmbeddedResource Icon Image PromptMessage "
        "ResourceContents ResourceLink Result Text Unknown assistant "
        "decode_block user",
        ".events": "Event log_events observe",
        ".failures": "Declined McpError ToolError",
        ".questions": "ElicitRequest ElicitResult Root SampleMessage SampleRequest "
        "SampleResult",
        ".schema": "Header",
        ".server": "AccessToken BearerAuth Call Complete Context Depends Headers "
        "Listed Middleware Proceed Resumed Server ServerSession Serving Store "
        "SyncContext ToolAnnotations",
        ".server.remote": "Remote",
    }.items()
    for name in names.split()
}
_MODULES = ("adapters", "middleware", "sync", "tokens")

__all__ = [
    "AccessToken",
    "Annotations",
    "Answers",
    "Audio",
    "BearerAuth",
    "Call",
    "Change",
    "Changes",
    "ClosedError",
    "Complete",
    "Completion",
    "ConnectOptions",
    "Connecting",
    "Context",
    "Declined",
    "Depends",
    "DisconnectedError",
    "ElicitRequest",
    "ElicitResult",
    "EmbeddedResource",
    "EndedError",
    "Error",
    "Event",
    "ExistsError",
    "FatalError",
    "FileStorage",
    "Header",
    "Headers",
    "Icon",
    "Image",
    "Implementation",
    "IncompleteError",
    "InputOutputError",
    "InvalidError",
    "JsonError",
    "LimitError",
    "Listed",
    "LogMessage",
    "McpError",
    "Middleware",
    "NegotiationError",
    "NotFoundError",
    "NotResumableError",
    "OAuth",
    "OutOfMemoryError",
    "Peer",
    "Proceed",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptResult",
    "ProtocolError",
    "Question",
    "ReadResult",
    "Reconnect",
    "ReentrantError",
    "Refused",
    "RefusedError",
    "Remote",
    "RemoteError",
    "RequestCancelledError",
    "RequestTimeoutError",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceTemplate",
    "Result",
    "Resuming",
    "Root",
    "SampleMessage",
    "SampleRequest",
    "SampleResult",
    "Segment",
    "Server",
    "ServerSession",
    "ServerStoreCorruptError",
    "ServerStoreError",
    "ServerStoreExistsError",
    "ServerStoreFailedError",
    "ServerStoreFullError",
    "ServerStoreLostError",
    "ServerStoreTooLargeError",
    "ServerStoreTornError",
    "Session",
    "SpawnError",
    "StateError",
    "Store",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "Stream",
    "SyncContext",
    "Task",
    "TaskLostError",
    "TaskStatus",
    "Text",
    "ThreadError",
    "TokenStorage",
    "TooLargeError",
    "TooSmallError",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "TransportError",
    "UnauthorizedError",
    "Unknown",
    "UnsupportedError",
    "VersionError",
    "WouldBlockError",
    "__version__",
    "adapters",
    "assistant",
    "authorize",
    "configure",
    "connect",
    "decode_block",
    "errors",
    "log_events",
    "middleware",
    "observe",
    "resume",
    "sync",
    "tokens",
    "user",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
