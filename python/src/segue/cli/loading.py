"""Finds the server in a file of Python: ``file.py`` or ``file.py:name``."""

from __future__ import annotations

import importlib.util
import inspect
import os
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, TracebackType

import segue
from segue.cli.codes import UsageError
from segue.names import nearest
from segue.server.mount import inside
from segue.server.running import Served, kept_from_serving

__all__ = [
    "LoadError",
    "NoServerError",
    "Source",
    "files_of",
    "is_users",
    "load",
    "own_traceback",
    "parse_source",
]

# Frames of these packages are no part of a traceback for the user.
_OURS = ("segue", "typer", "click", "importlib", "asyncio", "runpy.py")


# The names of the server that is meant if a file has several, as with FastMCP.
_USUAL = ("mcp", "server", "app")


class LoadError(Exception):
    """The user's file raised an exception, which is the `__cause__`."""


class NoServerError(UsageError):
    """The file has no server at its top level."""


class Source:
    """A file, and the name of the server in it.

    Attributes:
        path: the absolute path of the file.
        name: the name of the server in the file, or None.
    """

    def __init__(self, path: Path, name: str | None) -> None:
        self.path = path
        self.name = name

    def __str__(self) -> str:
        return str(self.path) if self.name is None else f"{self.path}:{self.name}"


def parse_source(text: str) -> Source:
    """Reads ``file.py`` or ``file.py:name``.

    Raises:
        UsageError: There is no such file, or it is not a file of Python.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        file, name = text, ""
    path = Path(file)
    if path.is_dir():
        raise UsageError(f"{file} is a directory: name the file of the server")
    if not path.exists():
        raise UsageError(f"{file}: there is no such file")
    if path.suffix != ".py":
        raise UsageError(f"{file} is no file of Python: its name has to end in .py")
    if colon and file != text and not name.isidentifier():
        raise UsageError(f"{text}: {name!r} is not a name of Python")
    return Source(path.absolute(), name or None)


def load(source: Source, arguments: Sequence[str] = ()) -> segue.Server:
    """Runs the file, and returns its server.

    The file runs as a module with its own name, so code below
    ``if __name__ == "__main__"`` does not run. Its directory is the first one in which
    Python looks for modules, as with ``python file.py``. A server that the file serves
    while it is loaded is the one that is found: loading ends there.

    Without a name, a file with several servers means the one in which the others are
    mounted, or else the only one that is named mcp, server or app.

    Args:
        source: The file.
        arguments: The arguments that the file sees in ``sys.argv``.

    Raises:
        LoadError: The file raised an exception.
        NoServerError: The file has no server.
        UsageError: It has several servers, or not the one that is named.
    """
    module, served = _run(source.path, arguments)
    if source.name is not None:
        return _named(module, source)
    if served is not None:
        return served
    found = _meant(dict(_servers(module)))
    if not found:
        raise NoServerError(_nothing(source.path))
    if len(found) > 1:
        names = " or ".join(f"{source.path.name}:{name}" for name in found.values())
        raise UsageError(f"{source.path.name} has several servers: name one, {names}")
    return next(iter(found))


def _meant(found: dict[segue.Server, str]) -> dict[segue.Server, str]:
    """Returns the servers that may be meant, by the rules of `load`."""
    inner = {child for one in found for child in inside(one) if child is not one}
    outer = {one: name for one, name in found.items() if one not in inner}
    usual = {one: name for one, name in outer.items() if name in _USUAL}
    return usual if len(usual) == 1 else outer


def _run(path: Path, arguments: Sequence[str]) -> tuple[ModuleType, segue.Server | None]:
    """Runs a file. Returns its module, and the server that it wanted to serve."""
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    name = path.stem
    if name in sys.modules:  # such as json.py, which must not replace the other one
        name = f"segue_run_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    served: segue.Server | None = None
    try:
        with kept_from_serving():
            spec.loader.exec_module(module)
    except Served as reached:
        served = reached.server
    except SystemExit as error:
        if error.code in (None, 0):
            raise UsageError(f"{path.name} ended itself (sys.exit)") from None
        raise LoadError(f"{path.name} ended itself (sys.exit)") from error
    except Exception as error:
        raise LoadError(f"{path.name} could not be loaded") from error
    return module, served


def _servers(module: ModuleType) -> Iterator[tuple[segue.Server, str]]:
    """Yields each server with the name that it got first."""
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        if isinstance(value, segue.Server) and id(value) not in seen:
            seen.add(id(value))
            yield value, name


def _named(module: ModuleType, source: Source) -> segue.Server:
    assert source.name is not None
    file = source.path.name
    if source.name not in vars(module):
        meant = nearest(source.name, [name for _, name in _servers(module)])
        hint = f"; did you mean {file}:{meant}?" if meant else ""
        raise UsageError(f"{file} has no {source.name!r}{hint}")
    value = vars(module)[source.name]
    if not isinstance(value, segue.Server) and callable(value):
        try:
            value = value()
        except Exception as error:
            raise LoadError(f"{file}: {source.name}() could not make a server") from error
    if inspect.iscoroutine(value):
        value.close()
        raise UsageError(
            f"{file}: {source.name} is an async function, and async functions are not "
            "supported here: make it a plain function that returns the segue.Server"
        )
    if not isinstance(value, segue.Server):
        kind = type(value).__name__
        raise UsageError(f"{file}: {source.name} is not a segue.Server, but {kind}")
    return value


def _nothing(path: Path) -> str:
    return (
        f"{path.name} has no segue.Server: assign one to a name at the top level of the "
        "file, such as server = segue.Server('name')"
    )


# ---- tracebacks


def own_traceback(error: BaseException) -> str:
    """Returns the traceback of an exception without the frames of this command, and
    without those of the package in which it has refused what the user's code did."""
    shown = traceback.TracebackException.from_exception(error)
    frames = traceback.extract_tb(_users(error.__traceback__))
    while frames and frames[-1].filename.startswith(_PACKAGE):
        frames.pop()
    shown.stack = traceback.StackSummary.from_list(frames)
    return "".join(shown.format())


def is_users(error: BaseException) -> bool:
    """Returns whether an exception comes from the user's code, such as a lifespan."""
    return _users(error.__traceback__) is not None


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback from the first frame of the user's own code on. It is empty
    if there is no such frame, as for an error of syntax."""
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(file: str) -> bool:
    if file.startswith("<frozen"):
        return True
    parts = Path(file).parts
    inside = file.startswith(_LIBRARIES)
    return inside and any(name in parts for name in _OURS)


def _libraries() -> tuple[str, ...]:
    """Returns the directories of Python itself, of installed packages and of segue."""
    own = sysconfig.get_paths()
    found = {own[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found.update(site.getsitepackages())
    found.update((site.getusersitepackages(), os.path.dirname(segue.__file__)))
    return tuple(one + os.sep for one in found)


_LIBRARIES = _libraries()
_PACKAGE = os.path.dirname(segue.__file__) + os.sep


# ---- files


def files_of(error: BaseException | None = None) -> list[str]:
    """Returns the files of the modules that are loaded, and of the exception with which
    loading ended. Files of libraries are left out.
    """
    found = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    while error is not None:
        found.update(one.filename for one in traceback.extract_tb(error.__traceback__))
        if isinstance(error, SyntaxError):
            found.add(error.filename)
        error = error.__cause__
    return sorted(
        os.path.abspath(file)
        for file in found
        if file and not file.startswith(("<", *_LIBRARIES)) and os.path.isfile(file)
    )
