"""Pages that show a file or a directory of the tree, because another page links to it."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import links
import tree

PICTURES = (".svg", ".png")
LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".def": "c",
    ".py": "python",
    ".ts": "ts",
    ".mjs": "js",
    ".json": "json",
    ".md": "markdown",
    ".toml": "toml",
    ".yml": "yaml",
}


def is_picture(path: str) -> bool:
    return path.endswith(PICTURES)


def linked(places: dict[str, str]) -> dict[str, str]:
    """Returns the place of each file and directory of the tree that a page links to."""
    found: dict[str, str] = {}
    pages = [*places, *own_pages()]
    for page in pages:
        text = (tree.ROOT / page).read_text(encoding="utf-8")
        for target in links.targets(text):
            if not links.is_outside(target):
                add(found, links.resolve(page, target)[0], places)
    return found


def own_pages() -> list[str]:
    pages = sorted((tree.ROOT / tree.PAGES).rglob("*.md"))
    return [path.relative_to(tree.ROOT).as_posix() for path in pages]


def add(found: dict[str, str], path: str, places: dict[str, str]) -> None:
    there = tree.ROOT / path
    if path in places or path in found or path.startswith((tree.PAGES, "..")):
        return
    if there.is_dir():
        found[path] = f"source/{path}/index.md"
        for name in sorted(there.iterdir()):
            if name.is_file() and name.suffix in LANGUAGES:
                add(found, f"{path}/{name.name}", places)
    elif is_picture(path) and there.is_file():
        found[path] = f"source/{path}"
    elif there.is_file():
        found[path] = f"source/{path}.md".replace("/.", "/")  # MkDocs hides dot files


def page(path: str, place_of: Callable[[str], str | None]) -> str:
    """Returns the Markdown of the page that shows a file or a directory."""
    there = tree.ROOT / path
    head = f"---\nsearch:\n  exclude: true\n---\n# {posixpath.basename(path)}\n\n"
    head += f"This is `{path}` of the repository.\n\n"
    if not there.is_dir():
        code = there.read_text(encoding="utf-8")
        fence = "`" * 6
        language = LANGUAGES.get(there.suffix, "text")
        return f"{head}{fence}{language}\n{code}{fence}\n"
    here = f"source/{path}"
    for name in sorted(one.name for one in there.iterdir()):
        place = place_of(f"{path}/{name}")
        head += f"- [{name}]({posixpath.relpath(place, here)})\n" if place else ""
    return head
