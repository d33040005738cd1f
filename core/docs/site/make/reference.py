"""All pages that are made when the site is built, and the navigation of the reference."""

from __future__ import annotations

import c_header
import node_types
import python_names
import tables

_C, _C_NAVIGATION = c_header.pages()
_PYTHON, _PYTHON_NAVIGATION = python_names.pages()
_NODE, _NODE_NAVIGATION = node_types.pages()

NAVIGATION: list[object] = [
    "reference/index.md",
    {"Python": _PYTHON_NAVIGATION},
    {"Node": _NODE_NAVIGATION},
    {"C": _C_NAVIGATION},
    {
        "Commands": [
            {"segue-proxy": "reference/segue-proxy.md"},
            {"segue": "reference/segue.md"},
            {"segue-mcp": "reference/segue-mcp.md"},
        ]
    },
    "reference/errors.md",
    "reference/limits.md",
    "reference/wire.md",
]

INDEX = """# Reference

All of these pages are made of the sources when the site is built.

| Page | Made of |
| --- | --- |
| [Python](python/index.md) | the docstrings of the package |
| [Node](node/index.md) | the types of the package |
| [C](c/index.md) | the four headers |
| [segue-proxy](segue-proxy.md) | its table of options |
| [segue](segue.md), [segue-mcp](segue-mcp.md) | what the commands print for `--help` |
| [Errors](errors.md) | the tables of statuses and reasons, each with its cause and cure |
| [Limits](limits.md) | the options with defaults, and the table of fixed limits |
| [Keys of the wire](wire.md) | the members that Segue adds to messages |
"""


def pages() -> dict[str, str]:
    """Returns the Markdown of each page by its place in the site."""
    return {
        **_C,
        **_PYTHON,
        **_NODE,
        "reference/index.md": INDEX,
        "reference/errors.md": tables.errors(),
        "reference/limits.md": tables.limits(),
        "reference/wire.md": tables.wire(),
    }
