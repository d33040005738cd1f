"""Exceptions for failures of a handler. On the server a handler raises these exceptions.
On the client the same exceptions are raised for the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from . import errors

if TYPE_CHECKING:
    from .content import Result

__all__ = ["Declined", "McpError", "ToolError"]


class ToolError(errors.Error):
    """A tool failed in a way that the model should see. The caller gets a result with
    `isError`.

    Attributes:
        result: on the client, the whole result.
    """

    status = 0
    name = "TOOL_ERROR"
    text = "the tool failed"

    def __init__(self, message: str = "", result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class Declined(ToolError):
    """The user declined a question or did not decide.

    Attributes:
        action: "decline" or "cancel".
    """

    name = "DECLINED"
    text = "the user declined"

    def __init__(self, message: str = "", action: str = "decline") -> None:
        super().__init__(message)
        self.action = action


class McpError(errors.RemoteError):
    """A JSON-RPC error, such as -32602 for wrong parameters.

    Args:
        code: the JSON-RPC code.
        message: one line.
        data: any value that JSON can represent.
    """

    def __init__(self, code: int = -32603, message: str = "", data: Any = None) -> None:
        encoded = None if data is None else msgspec.json.encode(data)
        super().__init__(message, code=code, data=encoded)
