"""The Markdown of each page beside its HTML, and llms.txt, a list of these files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from markdownify import markdownify

LONGEST = 160  # characters of a description


def of_html(html: str) -> str:
    """Returns the Markdown of a page that mkdocstrings has made."""
    soup = BeautifulSoup(html, "html.parser")
    for one in soup.select("a.headerlink, .doc-labels, button"):
        one.decompose()
    text = markdownify(str(soup), heading_style="ATX", code_language="python")
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def description(text: str) -> str:
    """Returns the first sentence of a page below its title."""
    body = re.sub(r"^---\n.*?^---\n", "", text, flags=re.S | re.M)
    for block in re.split(r"\n\n+", body):
        if re.match(r"[A-Z`*\[]", block) and not block.startswith("|"):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            words = words.removeprefix("**Problem.** ")
            sentence = re.match(r".+?[.:](?= |$)", words.replace("**", ""))
            return (sentence[0] if sentence else words)[:LONGEST]
    return ""


def entries(nav: Any) -> Iterator[str]:
    """Yields the pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from entries(value)
    else:
        for one in nav:
            yield from entries(one)


def title(text: str, place: str) -> str:
    heading = re.search(r"^#+ +(.+)$", text, re.M)
    return heading[1].replace("`", "") if heading else place


def write(directory: Path, config: Any, markdown: dict[str, str]) -> None:
    for place, text in markdown.items():
        path = directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for part in config.nav:
        ((name, pages),) = part.items()
        lines += [f"## {name}", ""]
        for place in entries(pages):
            text = markdown[place]
            told = description(text)
            lines.append(
                f"- [{title(text, place)}]({place})" + (f": {told}" if told else "")
            )
        lines.append("")
    (directory / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
