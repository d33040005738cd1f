"""Decides how a file of Python becomes a server, from its text and without running it.

A file that serves over standard input and output is a program: it is run. With a file
that serves HTTP, or only makes a server, nobody can speak in this way: ``segue run``
imports it, finds the server and serves that.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

__all__ = ["is_imported", "is_program", "store_of"]

_SERVE = ("run", "serve", "serving")
# Their function run() serves no segue.Server over standard input and output.
_LOOPS = ("anyio", "asyncio", "subprocess", "trio")
_HOSTS = ("hypercorn", "uvicorn")


def is_program(path: Path) -> bool:
    """Returns whether a file is executable and says by which program (``#!``)."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!" and os.access(path, os.X_OK)
    except OSError:
        return False


def is_imported(path: Path) -> bool:
    """Returns whether the server of a file is found by importing the file: it uses segue,
    and it serves HTTP or nothing at all."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError):
        return False
    except SyntaxError:
        return not is_program(path)  # loading it shows the error
    if not any(_imports_segue(node) for node in ast.walk(tree)):
        return False
    places = [place for node in ast.walk(tree) for place in _places(node)]
    return "http" in places or (not places and not is_program(path))


def store_of(path: Path) -> str | None:
    """Returns the store that a file gives to `run` or `serving`, as in
    `server.run(store="tasks.db")`; None if it gives none, several, or none that its text
    tells.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return None
    stores = {
        one.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _places(node)
        for one in node.keywords
        if one.arg == "store" and isinstance(one.value, ast.Constant)
    }
    (store,) = stores if len(stores) == 1 else (None,)
    return store if isinstance(store, str) else None


def _imports_segue(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(one.name.partition(".")[0] == "segue" for one in node.names)
    return (
        isinstance(node, ast.ImportFrom)
        and node.level == 0
        and (node.module or "").partition(".")[0] == "segue"
    )


def _places(node: ast.AST) -> list[str]:
    """Returns where a call serves: "http", "stdio", or nothing for another call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
    if node.func.attr not in _SERVE or owner in _LOOPS:
        return []
    if owner in _HOSTS:
        return ["http"]
    # http=None serves standard input and output
    given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "http")]
    options = any(one.arg is None for one in node.keywords)
    is_http = options or any(
        not (isinstance(one, ast.Constant) and one.value is None) for one in given
    )
    return ["http" if is_http else "stdio"]
