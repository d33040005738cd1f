"""The pages of the commands have what the commands print for --help: in each section the
same options and the same words. Layout may differ, as versions of typer do.

Usage: help_pages.py python|node COMMAND [--write]. COMMAND is the installed program:
segue of the Python package, or segue-mcp of the Node package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "python": (
        "segue",
        "core/docs/man/segue.md",
        "run dev install tools call resources read prompts prompt inspect store board "
        "doctor task",
        "ls get watch resume cancel rm",
        "The command of the Python package. [The guide]"
        "(../../../python/README.md#the-command-line) explains it.",
    ),
    "node": (
        "segue-mcp",
        "core/docs/man/segue-mcp.md",
        "run dev install store board doctor",
        "",
        "The command of the Node package. [The guide]"
        "(../../../node/README.md#the-command-line) explains it.",
    ),
}


def help_of(command: str, words: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "88", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        [command, *words, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        sys.exit(f"{command} {' '.join(words)} --help: {done.returncode}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def page(kind: str, command: str) -> str:
    name, _, commands, tasks, sentence = PAGES[kind]
    parts = [[], *([one] for one in commands.split())]
    parts += [["task", one] for one in tasks.split()]
    lines = [f"# The command {name}", "", sentence, ""]
    for words in parts:
        if words:
            lines += [f"## {name} {' '.join(words)}", ""]
        lines += ["```", help_of(command, words), "```", ""]
    return "\n".join(lines)


def sections(text: str) -> dict[str, set[str]]:
    """Returns the options and words of each section."""
    parts = re.split(r"^## (.+)$", f"## whole\n{text}", flags=re.M)[1:]
    words = re.compile(r"--[a-z][a-z-]*|[A-Za-z]{4,}")
    return {
        name: set(words.findall(body))
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def main() -> None:
    kind, command, *rest = sys.argv[1:]
    path = ROOT / PAGES[kind][1]
    text = page(kind, command)
    if rest == ["--write"]:
        path.write_text(text, encoding="utf-8")
        return
    have, want = sections(path.read_text(encoding="utf-8")), sections(text)
    wrong = [
        f"{name}: {' '.join(sorted(have.get(name, set()) ^ want.get(name, set())))}"
        for name in {*have, *want}
        if have.get(name) != want.get(name)
    ]
    if wrong:
        sys.exit(f"{path}: write it anew with --write\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
