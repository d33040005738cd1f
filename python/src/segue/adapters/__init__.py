"""Adapters that let the clients of other SDKs use a connection of this library.
`segue.adapters.mcp` is for the official SDK."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import mcp as mcp

__all__ = ["mcp"]


def __getattr__(name: str) -> Any:
    if name == "mcp":
        return import_module(".mcp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
