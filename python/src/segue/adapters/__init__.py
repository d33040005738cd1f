"""Adapters that let other libraries use a connection of this library. `mcp` is for
clients of the official SDK. `langchain`, `pydantic_ai` and `openai_agents` turn the tools
of a session into tools of these frameworks. `opentelemetry` makes spans of the calls of a
server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import langchain as langchain
    from . import mcp as mcp
    from . import openai_agents as openai_agents
    from . import opentelemetry as opentelemetry
    from . import pydantic_ai as pydantic_ai

__all__ = ["langchain", "mcp", "openai_agents", "opentelemetry", "pydantic_ai"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
