"""What the lints share: the directory of the tree, and how findings are reported.

Each lint is a program that prints one finding per line, "path:line: text", and exits
with 1 when there is one. Each lint first applies its rules to made-up input that must
be refused, so a lint that finds nothing any more fails instead of passing.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(*patterns):
    """Returns files of the tree by glob, as paths relative to its root, in order."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return [path.relative_to(ROOT) for path in sorted(found) if path.is_file()]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_comments(text):
    """Returns C source without comments; line numbers stay."""

    def blank(match):
        token = match.group(0)
        return "\n" * token.count("\n") + " " if token.startswith("/") else token

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def api_table():
    """Reads api.def: {function: (thread, callback, terminal)}."""
    return parse_table(
        read("core/api/api.def"),
        r"SGI_API\((segue_\w+), (ANY|DISPATCH|SETUP), (ALLOWED|REFUSED), (END|LIVE)\)",
    )


def error_table():
    """Reads errors.def: {name: (value, text, retryable)}."""
    return parse_table(
        read("core/api/errors.def"),
        r'SGI_STATUS\((SEGUE_\w+), (-?\d+), ("(?:\\.|[^"\\])*"), ([01])\)',
    )


def parse_table(text, pattern):
    table = {}
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if not line.strip():
            continue
        match = re.fullmatch(pattern, line.strip())
        if not match:
            sys.exit(f"line {number} of the table is not understood: {line}")
        if match.group(1) in table:
            sys.exit(f"{match.group(1)} stands in the table twice")
        table[match.group(1)] = match.groups()[1:]
    return table


PUBLIC_HEADERS = [
    Path("core/include/segue/easy.h"),
    Path("core/include/segue/segue.h"),
    Path("core/include/segue/segue_auth.h"),
    Path("core/include/segue/segue_ext.h"),
]


def declarations(text):
    """Returns the statements of a header, [(line, text)], without what stands in
    braces."""
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*",
                  lambda line: "\n" * line.group().count("\n"),
                  without_comments(text), flags=re.M)
    text = re.sub(r'extern "C" \{', "", text)
    found, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == ";" and depth == 0:
            statement = text[start:at]
            lead = len(statement) - len(statement.lstrip())
            line = text.count("\n", 0, start + lead) + 1
            found.append((line, re.sub(r"\{.*\}", "{}", statement, flags=re.S).strip()))
            start = at + 1
    return found


def expect(condition, text):
    """A self-check: the lint must find the planted fault."""
    if not condition:
        sys.exit(f"self-check failed: {text}")


def finish(findings, looked_at):
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {looked_at}")
    sys.exit(1 if findings else 0)
