"""The client: `segue.connect` and the types that it returns."""

from .auth import FileStorage, OAuth, TokenStorage
from .changes import Change, Changes
from .conversation import LogMessage, Reconnect
from .items import (
    Completion,
    Prompt,
    PromptArgument,
    PromptResult,
    ReadResult,
    Resource,
    ResourceTemplate,
    Tool,
)
from .opening import Connecting, ConnectOptions, Resuming, authorize, connect, resume
from .peer import Implementation, Peer
from .questions import Answers, Question, Refused
from .session import Session
from .stream import Stream
from .task import Task, TaskStatus

__all__ = [
    "Answers",
    "Change",
    "Changes",
    "Completion",
    "ConnectOptions",
    "Connecting",
    "FileStorage",
    "Implementation",
    "LogMessage",
    "OAuth",
    "Peer",
    "Prompt",
    "PromptArgument",
    "PromptResult",
    "Question",
    "ReadResult",
    "Reconnect",
    "Refused",
    "Resource",
    "ResourceTemplate",
    "Resuming",
    "Session",
    "Stream",
    "Task",
    "TaskStatus",
    "TokenStorage",
    "Tool",
    "authorize",
    "connect",
    "resume",
]
