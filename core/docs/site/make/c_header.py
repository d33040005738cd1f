"""Pages of the C headers: what stands in a header, in its order, as Markdown.

The comments of the headers are plain. Above a declaration stand sentences, and then lines
that begin with the name of a parameter, or with Returns, Thread, Callback or Since.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import tree

INCLUDE = "core/include/segue/"
HEADERS = {
    "segue.h": "segue",
    "easy.h": "easy",
    "segue_auth.h": "auth",
    "segue_ext.h": "ext",
}
SECTION = re.compile(r"/\* ---- (?:[\d.]+ )?(.+?) -*(?: \*/)?$")
TAGS = ("Returns", "Thread", "Callback", "Since")
NAME = re.compile(r"\b(?:segue|SEGUE)_\w+\b(?!\.h\b)")


@dataclass
class Item:
    """A declaration and the comment above it."""

    comment: list[str]
    code: str

    def names(self) -> list[str]:
        """Returns the names that the declaration declares, its own first."""
        code = self.code
        found = []
        if match := re.match(r"#define (\w+)", code):
            return [match[1]]
        if match := re.search(r"\(\*(segue_\w+)\)\(", code):
            found.append(match[1])
        elif code.startswith("SEGUE_API"):
            found += re.findall(r"(\w+)\s*\(", code)[:1]
        elif match := re.match(r"(?:typedef )?(?:struct|enum) (\w+)", code):
            found.append(match[1])
        elif match := re.search(r"(\w+);$", code.strip()):
            found.append(match[1])
        found += re.findall(r"^ +(SEGUE_\w+)\b", code, re.M)
        return found

    def parameters(self) -> set[str]:
        inside = self.code.partition("(")[2]
        return set(re.findall(r"(\w+)\s*[,)]", inside))


@dataclass
class Section:
    title: str
    parts: list[str | Item] = field(default_factory=list)

    def items(self) -> list[Item]:
        return [part for part in self.parts if isinstance(part, Item)]


def comment_text(lines: list[str]) -> list[str]:
    """Returns the lines of a comment without its marks."""
    text = "\n".join(lines).removeprefix("/*").rstrip().removesuffix("*/")
    return [re.sub(r"^ ?\*? ?", "", line, count=1).rstrip() for line in text.split("\n")]


def take(lines: list[str], at: int, is_over) -> int:
    while not is_over(lines[at]):
        at += 1
    return at + 1


def declaration_end(lines: list[str], at: int) -> int:
    """Returns the line behind a declaration: its last one ends with a semicolon outside of
    braces."""
    depth, in_comment = 0, False
    while True:
        line = lines[at]
        bare = re.sub(r"/\*.*?\*/", "", line)
        if in_comment:
            in_comment = "*/" not in bare
            bare = bare.partition("*/")[2]
        if "/*" in bare:
            in_comment = "*/" not in bare.partition("/*")[2]
            bare = bare.partition("/*")[0]
        depth += bare.count("{") - bare.count("}")
        at += 1
        if depth == 0 and bare.rstrip().endswith(";"):
            if in_comment:
                at = take(lines, at, lambda one: "*/" in one)
            return at


def read(header: str) -> tuple[list[str], list[Section]]:
    """Returns the comment at the top of a header, and its sections."""
    lines = (tree.ROOT / INCLUDE / header).read_text(encoding="utf-8").split("\n")
    at = take(lines, 0, lambda line: "*/" in line)
    top = comment_text(lines[:at])
    at = next(n for n, line in enumerate(lines) if line.startswith("/* ---- "))
    sections: list[Section] = []
    while at < len(lines) and lines[at] != "#ifdef __cplusplus":
        line = lines[at]
        if line.startswith("/* ---- "):
            match = SECTION.match(line)
            sections.append(Section(match[1].rstrip(" -") if match else line))
            end = take(lines, at, lambda one: "*/" in one)
            if end > at + 1:
                text = comment_text(["/*", *lines[at + 1 : end]])
                sections[-1].parts.append(prose(text, set()))
            at = end
        elif line.startswith("/*"):
            end = take(lines, at, lambda one: "*/" in one)
            comment = comment_text(lines[at:end])
            if lines[end].strip() and not lines[end].startswith(("/*", "#ifdef", "#if ")):
                at = behind(lines, end)
                sections[-1].parts.append(Item(comment, "\n".join(lines[end:at])))
            else:
                sections[-1].parts.append(prose(comment, set()))
                at = end
        elif line.strip() and not line.startswith(("#if", "#endif", "#else", "}")):
            end = behind(lines, at)
            sections[-1].parts.append(Item([], "\n".join(lines[at:end])))
            at = end
        else:
            at += 1
    return top, sections


def behind(lines: list[str], at: int) -> int:
    if lines[at].startswith("#define"):
        return take(lines, at, lambda line: not line.endswith("\\"))
    return declaration_end(lines, at)


def escaped(line: str) -> str:
    """Keeps signs that mean something in Markdown as they are."""
    return re.sub(r"(`[^`]*`)|([\[\]*<])", lambda m: m[1] or "\\" + m[2], line)


def prose(lines: list[str], parameters: set[str]) -> str:
    """Writes a comment as Markdown: paragraphs, lists, and a list of its parameters."""
    out: list[str] = []
    is_tags = False
    for line in map(escaped, lines):
        first = line.split(" ")[0].rstrip(":,")
        is_tags = is_tags and bool(line) or not (out and out[-1])
        if is_tags and (first in parameters or first in TAGS):
            rest = line[len(first) :].strip()
            joint = "" if rest.startswith((",", ":")) else ": "
            if out and out[-1] and not out[-1].startswith("- "):
                out.append("")
            out.append(f"- **{first}**{joint}{rest}")
        elif line.startswith("  - "):
            if out and out[-1] and not re.match(r"- |  ", out[-1]):
                out.append("")
            out.append(f"- {line[4:]}")
        elif line.startswith("  "):
            out.append("  " + line.strip() if out and out[-1] else line.strip())
        else:
            out.append(line)
    return "\n".join(out).strip()


def known(sections: dict[str, list[Section]]) -> dict[str, str]:
    """Returns the page and anchor of each name of the headers."""
    found = {}
    for header, parts in sections.items():
        for section in parts:
            for item in section.items():
                names = item.names()
                for name in names:
                    found.setdefault(name, f"{place(header, section)}#{names[0].lower()}")
    return found


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def place(header: str, section: Section) -> str:
    if header == "segue.h":
        return f"{slug(section.title)}.md"
    return f"{HEADERS[header]}.md"


def linked(text: str, own: str, names: dict[str, str]) -> str:
    """Makes links of the names of the library in a text."""

    def one(match: re.Match[str]) -> str:
        where = names.get(match[0])
        if not where or match[0] == own:
            return f"`{match[0]}`"
        return f"[`{match[0]}`]({where})"

    return NAME.sub(one, text)


def body(section: Section, level: str, names: dict[str, str]) -> str:
    out = []
    for part in section.parts:
        if isinstance(part, str):
            out.append(linked(part, "", names))
            continue
        own = part.names()
        name = own[0] if own else part.code.split("\n")[0]
        out.append(f"{level} {name} {{#{name.lower()}}}")
        out.append(f"```c\n{part.code.rstrip()}\n```")
        if part.comment:
            out.append(linked(prose(part.comment, part.parameters()), name, names))
    return "\n\n".join(out)


def pages() -> tuple[dict[str, str], list[object]]:
    """Returns the pages, and their part of the navigation."""
    read_headers = {header: read(header) for header in HEADERS}
    names = known({header: parts for header, (_, parts) in read_headers.items()})
    made, navigation = {}, []
    top = linked(prose(read_headers["segue.h"][0], set()), "", names)
    made["reference/c/index.md"] = (
        "# The headers of C\n\n"
        "These pages are made of the headers. [The guide](../../guides/c.md) says how the "
        f"parts work together. `segue.h` begins with this text:\n\n{top}\n"
    )
    navigation.append("reference/c/index.md")
    for section in read_headers["segue.h"][1]:
        page = f"reference/c/{place('segue.h', section)}"
        made[page] = f"# C: {section.title}\n\n{body(section, '##', names)}\n"
        navigation.append({section.title: page})
    for header in list(HEADERS)[1:]:
        comment, sections = read_headers[header]
        text = [f"# C: {header}", linked(prose(comment, set()), "", names)]
        for section in sections:
            text += [f"## {section.title}", body(section, "###", names)]
        page = f"reference/c/{HEADERS[header]}.md"
        made[page] = "\n\n".join(text) + "\n"
        navigation.append({header: page})
    return made, navigation
