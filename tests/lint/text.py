"""Size and cleanliness of the sources.

A .c file in core has at most 900 lines (over 500 it is listed for review). No line is
wider than 90 columns, has a tab, or ends with a blank. No marks for unfinished work are
left.
"""

import re

import lint

HARD_LINES, SOFT_LINES, COLUMNS = 900, 500, 90
MARK = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def check(path, text):
    """Returns (findings, remarks) of one file."""
    findings, remarks = [], []
    lines = text.split("\n")
    if lines[-1]:
        findings.append(f"{path}:{len(lines)}: does not end with a newline")
    count = len(lines) - 1
    if path.startswith("core/") and path.endswith(".c"):
        if count > HARD_LINES:
            findings.append(f"{path}: {count} lines, {HARD_LINES} is the limit")
        elif count > SOFT_LINES:
            remarks.append(f"{path}: {count} lines; is it still one room?")
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            findings.append(f"{path}:{number}: {len(line)} columns")
        if "\t" in line:
            findings.append(f"{path}:{number}: a tab")
        if line != line.rstrip():
            findings.append(f"{path}:{number}: blanks at the end")
        if MARK.search(line):
            findings.append(f"{path}:{number}: an open end: {line.strip()}")
    return findings, remarks


def self_check():
    mark = "TO" + "DO"
    wrong = ["x" * 91 + "\n", "\tx\n", "x \n", f"/* {mark}: later */\n", "x", "x\n" * 901]
    for text in wrong:
        lint.expect(check("core/base/x.c", text)[0], f"{text[:20]!r} was let pass")
    lint.expect(not check("core/base/x.c", "x" * 90 + "\n")[0], "90 columns are refused")
    lint.expect(check("core/base/x.c", "x\n" * 501)[1], "501 lines are not listed")


def main():
    self_check()
    paths = lint.files("core/**/*.[ch]", "core/**/*.def", "core/cmake/*", "core/deps/*",
                       ".ci/lane", "tests/**/*.[ch]", "tests/**/*.py",
                       "bindings/**/*.[chi]",
                       "node/src/**/*.ts", "node/scripts/*", "tests/**/*.ts")
    findings = []
    for path in paths:
        found, remarks = check(path.as_posix(), lint.read(path))
        findings += found
        print("".join(f"{remark}\n" for remark in remarks), end="")
    lint.finish(findings, f"{len(paths)} files")


main()
