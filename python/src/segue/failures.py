"""Exceptions for failures of a handler. On the server a handler raises these exceptions.
On the client the same exceptions are raised for the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from . import errors

if TYPE_CHECKING:
    from .content import Result

__all__ = ["PUBLIC", "Declined", "McpError", "NotAsked", "ToolError"]


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


class NotAsked(errors.UnsupportedError):
    """The client of a call cannot answer a question of the handler. The text is written
    for this client."""


# The codes from -32768 to -32000 that JSON-RPC and the protocol define. A handler may use
# them.
_DEFINED = (-32700, *range(-32603, -32599), -32002, -32020, -32021, -32022)
_MOST_CODE = 2**31


def _check_code(code: int) -> None:
    """Refuses a code that cannot be sent, or that has or may get a meaning of its own:
    JSON-RPC reserves -32768 to -32000.

    Raises:
        ValueError: it is no integer of 32 bits, or 0, or it is reserved.
    """
    is_whole = isinstance(code, int) and not isinstance(code, bool)
    if not is_whole or not -_MOST_CODE <= code < _MOST_CODE or code == 0:
        raise ValueError(
            "the code of a McpError has to be an integer from -2147483648 to 2147483647 "
            f"other than 0, not {code!r}"
        )
    if -32768 <= code <= -32000 and code not in _DEFINED:
        raise ValueError(
            f"the protocol reserves the error code {code}: a McpError of your own needs "
            "a code outside of -32768 to -32000, such as 1"
        )


class McpError(errors.RemoteError):
    """A JSON-RPC error, such as -32602 for wrong parameters.

    Args:
        code: the JSON-RPC code: one of your own outside of -32768 to -32000, or one that
            JSON-RPC or the protocol defines, such as -32602.
        message: one line.
        data: any value that JSON can represent.

    Raises:
        ValueError: the code is no integer of 32 bits, or 0, or the protocol reserves it.
    """

    def __init__(self, code: int = -32603, message: str = "", data: Any = None) -> None:
        _check_code(code)
        encoded = None if data is None else msgspec.json.encode(data)
        super().__init__(message, code=code, data=encoded)

    @classmethod
    def _of_peer(cls, code: int, message: str, data: Any = None) -> McpError:
        """Makes the error with which a peer answered. Its code is not checked."""
        made = cls(-32603, message, data)
        made.code = code
        return made


# The exceptions of a handler whose texts are written for the caller. Any other exception
# may say what the caller must not know, such as the host of a database.
PUBLIC = (ToolError, McpError, NotAsked)
