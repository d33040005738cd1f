"""Makes Markdown of the tree fit the site: links name pages of the site, and lists are
indented as Python-Markdown needs it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

LINK = re.compile(r"(`+)(?:.*?)\1|(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)(\))", re.S)
FENCE = re.compile(r"^( *)(```+|~~~+)")
ITEM = re.compile(r"^(?:-|\d+\.) ")


def parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yields (is code, text) of the fenced blocks and of what is between them."""
    gathered: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line)
        if not fence and match:
            yield False, "".join(gathered)
            gathered, fence = [line], match[2]
        elif fence and match and line.strip() == fence:
            yield True, "".join([*gathered, line])
            gathered, fence = [], ""
        else:
            gathered.append(line)
    yield bool(fence), "".join(gathered)


def targets(text: str) -> Iterator[str]:
    """Yields the targets of all links of a page."""
    for is_code, part in parts(text):
        if not is_code:
            for match in LINK.finditer(part):
                if match[3]:
                    yield match[3]


def is_outside(target: str) -> bool:
    return bool(re.match(r"[a-z]+:", target)) or target.startswith("#")


def resolve(page: str, target: str) -> tuple[str, str]:
    """Returns the path in the tree that a link of a page means, and its anchor."""
    path, _, anchor = target.partition("#")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    return there, f"#{anchor}" if anchor else ""


def rewrite(text: str, change: Callable[[str], str]) -> str:
    """Passes the target of each link through a function."""

    def one(match: re.Match[str]) -> str:
        if not match[3]:
            return match[0]
        return match[2] + change(match[3]) + match[4]

    return "".join(
        part if is_code else LINK.sub(one, part) for is_code, part in parts(text)
    )


def fit_lists(text: str) -> str:
    """Writes lists and tables as Python-Markdown needs them: a blank line before a list,
    four blanks before what belongs to an item (CommonMark: as many as the marker has), and
    no backslash before a bar in the code of a table."""
    lines: list[str] = []
    is_item, fence = False, ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if match and (not fence or line.strip() == fence):
            fence = "" if fence else match[2]
        elif not fence and ITEM.match(line):
            is_after_text = bool(lines and lines[-1].strip())
            if not is_item and is_after_text and line.startswith(("- ", "1. ")):
                lines.append("")
                is_after_text = False
            is_item = is_item or not is_after_text
        elif not fence and line and not line.startswith(" "):
            is_item = False
        if line.lstrip().startswith("|") and not fence:
            line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        if is_item and line.startswith("  "):
            depth = len(line) - len(line.lstrip(" "))
            lines.append(" " * (4 if depth == 3 else 2 * depth) + line.lstrip(" "))
        else:
            lines.append(line)
    return "\n".join(lines)
