"""Writes the Python blocks of the guides as modules, for type checkers.

Usage: guide_types.py README.md... DIRECTORY

The blocks of a page become one module. The blocks for a server are its top. The blocks
for clients, from the first one with an await on, become a function that gets a session.
The client of a quick start and the blocks for other packages (`py`) become modules of
their own.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from quick_start import blocks

QUIET = "# pyright: strict, reportUnusedFunction=false, reportUnusedVariable=false\n"


def is_asynchronous(code: str) -> bool:
    """Returns whether the code needs a running loop at its top level."""
    try:
        compile(code, "block", "exec")
    except SyntaxError:
        return True
    return False


def function(signature: str, code: str) -> str:
    return f"\n\n{signature} -> None:\n{textwrap.indent(code, '    ')}"


def with_imports(code: str) -> str:
    """Adds the imports that a page does not repeat after its first program."""
    wanted = [
        name
        for name in ("asyncio", "segue")
        if re.search(rf"\b{name}\.", code) and f"\nimport {name}\n" not in f"\n{code}"
    ]
    return QUIET + "".join(f"import {name}\n" for name in wanted) + code


def modules(text: str) -> dict[str, str]:
    """Returns the files of a page, by name."""
    found: dict[str, str] = {}
    ground, clients, plain = [], [], []
    for at, (before, language, code) in enumerate(blocks(text)):
        program = re.search(r"`(\w+)\.py`", before)
        if language == "py":
            imports = "import segue.adapters.mcp\nfrom mcp import ClientSession\n"
            found[f"other{at}"] = QUIET + imports + function("async def other()", code)
        elif language != "python":
            continue
        elif program and program[1] != "server":
            found[program[1]] = QUIET + code
        elif "import segue.sync" in code:
            plain.append(code)
        elif clients or is_asynchronous(code):
            clients.append(code)
        else:
            ground.append(code)
    whole = "\n".join(ground)
    for at, code in enumerate(plain):
        whole += function(f"def plain{at}()", code)
    if clients:
        signature = "async def clients(session: segue.Session)"
        whole += function(signature, "\n".join(clients))
    found["guide"] = with_imports(whole)
    return found


def main() -> None:
    *pages, directory = map(Path, sys.argv[1:])
    for page in pages:
        place = directory / (page.parent.name or "root")
        place.mkdir(parents=True, exist_ok=True)
        made = modules(page.read_text(encoding="utf-8"))
        for name, code in made.items():
            (place / f"{name}.py").write_text(code, encoding="utf-8")


if __name__ == "__main__":
    main()
