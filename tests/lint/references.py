"""Everything that comments, tests and pages refer to exists.

Each id of a rule (R-...), a scenario (AS-...) or a conflict (C-...) that a source or a
page names is defined once in core/docs/requirements.md; its amendments may name rules
again. The same holds for each section that is named as "core/docs/requirements.md 5.3".

The pages of core/docs name files by their path from the root or from core, or by their
name alone; such a file exists. "file.c:name" means that the file contains the name. A
word that begins with sgi_ or segue_ is a name of the code; one that ends with "_" is
the beginning of such names. NAME in a path or a name stands for any text. A block of C
that begins with the comment of a path is a part of that file, word for word; "/* ...
*/" leaves something out.
"""

import re
from fnmatch import fnmatch

import lint

CATALOGUE = "core/docs/requirements.md"
ID = r"(?:R-[0-9A-Z]+-\d+|AS-\d+[a-z]?|C-\d+)"
USE = re.compile(rf"(?<![\w-]){ID}(?!\w)")
SHORT = re.compile(r"(R-[0-9A-Z]+-)\d+((?:,? (?:and |to )?-\d+)+)")
DEFINITION = re.compile(rf"^(?:\*\*({ID})\*\*|\| ({ID}) \|)", re.M)
SECTION = re.compile(r"requirements\.md,?(?: section)? (\d[\w.]*\w|\d)")
HEADING = re.compile(r"^##+ (\d[\w.]*?)\.? ", re.M)
CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```c\n/\* ([\w/.]+) \*/\n(.*?)^```$", re.M | re.S)
LEFT_OUT = "/* ... */\n"
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
FILE = re.compile(r"([\w./-]+\.(?:[chi]|def|md|py|pyi|ts|txt|map|json))"
                  r"(?::(\w+)(?:\(\))?)?$")
NAME = re.compile(r"\b(?:sgi|segue|SGI|SEGUE)_\w+")
ROOMS = ("core", "bindings", "python", "node", "tests")
KINDS = ("c", "h", "i", "def", "py", "pyi", "ts", "mjs", "md", "json", "map", "txt",
         "cmake", "xml", "seeds", "svg")
SOURCES = [f"{room}/**/*.{kind}" for room in ROOMS for kind in KINDS]
# Files that are no text of the project to be checked, and that pages refer to.
OTHERS = ("core/docs/images/*.png", "core/docs/recipes/*.yml")
# Their ids are made up: they test that a lint finds faults.
PLANTED = "tests/lint/"
BUILT = {"node_modules", "build", "dist", ".venv", "__pycache__"}
# The rules mention other repositories and do not describe the code.
NO_GUIDES = {CATALOGUE, "core/docs/rules.md"}
# The files that its pages name are their reader's, and `make docs` checks their links.
SITE = "core/docs/site/"
# A part of a page that another lint makes of a table.
MADE = re.compile(r"<!-- made by .*?<!-- end -->", re.S)


def ids_in(text):
    """Returns [(line, id)]; R-1-2, -3 counts as two ids."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        line = SHORT.sub(lambda match: match.group(0) + "".join(
            f" {match.group(1)}{last}"
            for last in re.findall(r" -(\d+)", match.group(2))), line)
        found += [(number, name) for name in USE.findall(line)]
    return found


def defined_in(catalogue):
    rules = catalogue.partition(". Amendments\n")[0]
    return [first or second for first, second in DEFINITION.findall(rules)]


def check_ids(path, text, known, sections):
    findings = [f"{path}:{line}: {CATALOGUE} has no {name}"
                for line, name in ids_in(text) if name not in known]
    for name in SECTION.findall(text):
        if name not in sections:
            findings.append(f"{path}: {CATALOGUE} has no section {name}")
    return findings


def named_by(path, tree):
    """Returns the files that a page means by a path."""
    pattern = path.replace("NAME", "*")
    if "/" in pattern:
        return [file for file in tree
                if fnmatch(file, pattern) or fnmatch(file, f"core/{pattern}")]
    return [file for file in tree if fnmatch(file.split("/")[-1], pattern)]


def check_link(page, target, tree):
    if "://" in target:
        return []
    parts = page.split("/")[:-1]
    for part in target.rstrip("/").split("/"):
        parts = parts[:-1] if part == ".." else parts + [part]
    there = "/".join(parts)
    if there in tree or any(file.startswith(there + "/") for file in tree):
        return []
    return [f"{page}: no file {target}"]


def check_page(page, text, tree, read):
    """Returns the findings of one page; tree has the paths of all files."""
    findings, words = [], "\n".join(CODE.findall(text))
    for target in LINK.findall(text):
        findings += check_link(page, target, tree)
    for code in words.split("\n"):
        match = FILE.match(code)
        if not match:
            continue
        files = named_by(match.group(1), tree)
        if not files:
            findings.append(f"{page}: no file {match.group(1)}")
        elif match.group(2) and not any(
                re.search(rf"\b{match.group(2)}\b", read(file)) for file in files):
            findings.append(f"{page}: {match.group(1)} has no {match.group(2)}")
    return findings


def check_blocks(page, text, tree, read):
    """Checks that each block of C that names its file is a part of that file."""
    findings = []
    for path, block in BLOCK.findall(text):
        if path not in tree:
            findings.append(f"{page}: no file {path}")
        elif not all(part in read(path) for part in block.split(LEFT_OUT)):
            findings.append(f"{page}: {path} has no such lines: {block[:60]!r}")
    return findings


def check_names(page, text, code):
    """Checks the names of the code on a page, also in its drawings and examples."""
    return [f"{page}: no {name} in core" for name in sorted(set(NAME.findall(text)))
            if name not in code and not any(fnmatch(have, pattern_of(name))
                                            for have in code)]


def pattern_of(name):
    """NAME stands for any text, and so does everything behind a final "_"."""
    return name.replace("NAME", "?*") + ("?*" if name.endswith("_") else "")


def self_check():
    catalogue = ("## 4. A\n\n### 5.1 B\n\n**R-0-1** So.\n\n| R-0-2 | x |\n\n**AS-1a** So."
                 "\n\n## 5. Amendments\n\n| R-0-1 | y |\n")
    known, sections = defined_in(catalogue), set(HEADING.findall(catalogue))
    lint.expect(known == ["R-0-1", "R-0-2", "AS-1a"], f"ids are not found: {known}")
    lint.expect(sections == {"4", "5", "5.1"}, f"sections are not found: {sections}")
    good = "/* R-0-1, -2 */ AS-1a: x, core/docs/requirements.md 5.1). P-256 SHA-1"
    lint.expect(not check_ids("a.c", good, known, sections), "good ids are refused")
    for wrong in ("R-0-3", "(R-0-1, -3)", "R-0-1 to -3", "AS-1", "C-1",
                  "requirements.md 5.2", "requirements.md 6"):
        lint.expect(check_ids("a.c", wrong, known, sections), f"{wrong} was let pass")
    tree = {"core/engine/log/op.c", "core/docs/a.md", "README.md"}
    code = {"sgi_op_end", "segue_x"}

    def found(text):
        page, source = "core/docs/a.md", "sgi_op_end(x)\nb\nc\n"
        return (check_page(page, text, tree, lambda file: source) +
                check_blocks(page, text, tree, lambda file: source) +
                check_names(page, text, code))

    good = ("`engine/log/op.c:sgi_op_end` `op.c` `engine/NAME/op.c` `sgi_op_` "
            "`sgi_NAME_end` `x.so` "
            "[a](a.md) [b](../../README.md#c) [c](https://x.y/z.md) [d](../engine/log)\n"
            "```c\n/* core/engine/log/op.c */\nsgi_op_end(x)\n/* ... */\nc\n```\n")
    lint.expect(not found(good), f"a good page is refused: {found(good)}")
    for wrong in ("`engine/log/oq.c`", "`oq.c`", "`op.c:sgi_op_en`", "`sgi_op_en`",
                  "sgi_gone_", "sgi_NAME_en", "[a](b.md)", "[a](../README.md)",
                  "`engine/NAME/oq.c`",
                  "```c\n/* core/engine/log/op.c */\nsgi_op_end(x)\nc\n```\n",
                  "```c\n/* core/engine/log/oq.c */\nb\n```\n"):
        lint.expect(found(wrong), f"{wrong} was let pass")


def main():
    self_check()
    catalogue = lint.read(CATALOGUE)
    known, sections = defined_in(catalogue), set(HEADING.findall(catalogue))
    findings = [f"{CATALOGUE}: {name} stands there {known.count(name)} times"
                for name in sorted(set(known)) if known.count(name) > 1]
    paths = [path.as_posix() for path in lint.files(*SOURCES, "*.md", ".ci/*")
             if not BUILT & set(path.parts)]
    texts = {path: lint.read(path) for path in paths}
    tree = {*paths, *(path.as_posix() for pattern in OTHERS
                      for path in lint.files(pattern))}
    code = {name for path, text in texts.items() if not path.endswith(".md")
            for name in NAME.findall(text)}
    for path, text in texts.items():
        if not path.startswith(PLANTED):
            findings += check_ids(path, text, set(known), sections)
        if path.startswith("core/docs/") and path not in NO_GUIDES:
            if not path.startswith(SITE):
                findings += check_page(path, text, tree, texts.__getitem__)
            findings += check_blocks(path, text, tree, texts.__getitem__)
            findings += check_names(path, MADE.sub("", text), code)
    uses = sum(len(USE.findall(text)) for text in texts.values())
    lint.finish(findings, f"{uses} ids in {len(paths)} files")


main()
