"""The man page of segue-proxy, core/docs/man/segue-proxy.1.md, and the same in roff,
segue-proxy.1, are up to date: they are core/docs/man/segue-proxy.1.in with the options of
core/proxy/options.def.

With --write both are made anew.
"""

import re
import sys

import lint

TEMPLATE = "core/docs/man/segue-proxy.1.in"
TABLE = "core/proxy/options.def"
PAGE = "core/docs/man/segue-proxy.1.md"
ROFF = "core/docs/man/segue-proxy.1"
WIDTH = 90
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
ENTRY = re.compile(rf'^SECTION\("([^"]*)"\)|^OPTION\("([^"]*)",\s*"([^"]*)",\s*\w+,'
                   rf'\s*{LITERALS}\)', re.M)
NOTE = "made of segue-proxy.1.in and core/proxy/options.def by tests/lint/man.py --write"


def wrap(text, first, rest):
    lines, line = [], first
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = rest
        line += word if line in (first, rest) else f" {word}"
    return lines + [line.rstrip()]


def options(table):
    """Writes the table of options in Markdown."""
    lines = []
    for title, name, value, text in ENTRY.findall(table):
        if title:
            lines += [f"### {title}", ""]
            continue
        words = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')
        lines.append(f"`{name} {value}`" if value else f"`{name}`")
        lines += [*wrap(words, ":   ", "    "), ""]
    return "\n".join(lines).rstrip()


def markdown(template, table):
    return f"<!-- {NOTE} -->\n\n" + template.replace("@OPTIONS@", options(table))


def in_roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return re.sub(r"^([.'])", r"\\&\1", text)


def roff(page):
    """Writes the page in roff: headings, paragraphs, definitions and literal blocks."""
    lines = [f'.\\" {NOTE}', '.TH SEGUE\\-PROXY 1']
    literal = term = False
    for line in page.splitlines()[2:]:
        if line.startswith("```"):
            literal = not literal
            lines.append(".nf" if literal else ".fi")
        elif literal:
            lines.append(in_roff(line))
        elif line.startswith("# "):
            continue
        elif line.startswith("## "):
            lines.append(f".SH {line[3:].upper()}")
        elif line.startswith("### "):
            lines.append(f".SS {line[4:]}")
        elif re.fullmatch(r"`[^`]*`(, `[^`]*`)*", line):
            lines += [".TP", in_roff(line)]
            term = True
        elif not line:
            if not term and not lines[-1].startswith("."):
                lines.append(".PP")
            term = False
        else:
            lines.append(in_roff(line.removeprefix(":   ").strip()))
    while lines[-1] == ".PP":
        lines.pop()
    return "\n".join(lines) + "\n"


def check_planted():
    page = markdown("# x\n\n## A\n\n@OPTIONS@\n",
                    'OPTION("--x", "Y", take_x,\n       "One "\n       "two.")')
    if not page.endswith("## A\n\n`--x Y`\n:   One two.\n"):
        sys.exit(f"the planted table is not understood: {page}")
    if not roff(page).endswith(".SH A\n.TP\n\\fB\\-\\-x Y\\fR\nOne two.\n"):
        sys.exit(f"the planted page is not understood: {roff(page)}")


def main():
    check_planted()
    page = markdown(lint.read(TEMPLATE), lint.read(TABLE))
    found = []
    for path, text in ((PAGE, page), (ROFF, roff(page))):
        file = lint.ROOT / path
        if "--write" in sys.argv[1:]:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            found.append(f"{path}:1: not up to date: python3 tests/lint/man.py --write")
    lint.finish(found, "2 pages")


main()
