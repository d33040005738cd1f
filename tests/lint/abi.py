"""The ABI of the shared library must equal the one stored in core/abi.

segue.abi is a dump of its functions and types; constants.txt lists the constants of the
headers, which the library does not contain. Only declarations of public headers count.
`make abi` accepts an intended change, which is committed with its cause. A change that
breaks callers also needs a new minor version (major from 1.0 on), which renames the
SONAME.

Usage: abi.py --library LIBRARY [--update]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lint

STORED = lint.ROOT / "core/abi/segue.abi"
CONSTANTS = lint.ROOT / "core/abi/constants.txt"


def dump(library, headers, output):
    # Only types of public headers, and nothing that depends on the build directory.
    subprocess.run(
        ["abidw", "--headers-dir", str(headers), "--drop-private-types",
         "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-architecture",
         "--no-elf-needed", "--out-file", str(output), str(library)], check=True)
    output = Path(output)
    text = output.read_text(encoding="utf-8")
    output.write_text(text.replace(f"{lint.ROOT}/", ""), encoding="utf-8")


def compare(stored, current):
    """Returns the output of abidiff; empty when both are the same."""
    result = subprocess.run(
        ["abidiff", "--no-show-locs", "--no-architecture", str(stored), str(current)],
        capture_output=True, text=True)
    if result.returncode & 3:  # abidiff itself failed
        return f"abidiff: {result.stderr or result.stdout}"
    return result.stdout if result.returncode else ""


def constants(text):
    """Returns the constants of a header, one "NAME = value" per line."""
    pattern = r"^\s*(?:#define\s+)?(?:enum \w+ \{\s*)?(SEGUE_\w+)\s*=?\s*(-?\d+)\b"
    found = re.findall(pattern, lint.without_comments(text), flags=re.M)
    return [f"{name} = {value}" for name, value in found]


def public_constants():
    lines = [line for path in lint.PUBLIC_HEADERS for line in constants(lint.read(path))]
    return "".join(f"{line}\n" for line in sorted(lines))


def compare_constants(stored, current):
    """Returns the constants that are gone, changed or new, as text."""
    old, new = set(stored.splitlines()), set(current.splitlines())
    return "".join([f"gone: {line}\n" for line in sorted(old - new)] +
                   [f"new: {line}\n" for line in sorted(new - old)])


def dump_of(directory, members, function):
    """Returns the dump of a library with one struct and one function."""
    os.mkdir(directory)
    with open(f"{directory}/x.h", "w", encoding="utf-8") as file:
        file.write(f"struct s {{ {members} }};\n{function};\n")
    with open(f"{directory}/x.c", "w", encoding="utf-8") as file:
        file.write(f'#include "x.h"\n{function} {{ return p->a; }}\n')
    subprocess.run(["cc", "-g", "-fPIC", "-shared", f"{directory}/x.c", "-o",
                    f"{directory}/x.so"], check=True)
    dump(f"{directory}/x.so", directory, f"{directory}/x.abi")
    return f"{directory}/x.abi"


def self_check(scratch):
    """Checks that a changed parameter, member and name are noticed."""
    base = dump_of(f"{scratch}/0", "int a;", "int f(struct s *p)")
    lint.expect(not compare(base, base), "a library differs from itself")
    changes = [
        ("int a;", "int f(struct s *p, int n)"),
        ("int a; int b;", "int f(struct s *p)"),
        ("int a;", "int g(struct s *p)"),
    ]
    for number, change in enumerate(changes, 1):
        changed = dump_of(f"{scratch}/{number}", *change)
        lint.expect(compare(base, changed), f"{change} was let pass")
    text = "enum a { SEGUE_A = 1 };\nenum b {\n    SEGUE_B = -2 /* 3 */\n};\n"
    lint.expect(constants(text + "#define SEGUE_C 4\n") ==
                ["SEGUE_A = 1", "SEGUE_B = -2", "SEGUE_C = 4"], "constants are not seen")
    lint.expect(compare_constants("SEGUE_A = 1\n", "SEGUE_A = 2\n"),
                "a renumbered constant was let pass")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    headers = lint.ROOT / "core/include/segue"
    if options.update:
        STORED.parent.mkdir(exist_ok=True)
        dump(options.library, headers, STORED)
        CONSTANTS.write_text(public_constants(), encoding="utf-8")
        return
    if not STORED.exists() or not CONSTANTS.exists():
        sys.exit("core/abi holds no dump: run make abi and commit it")
    with tempfile.TemporaryDirectory() as scratch:
        self_check(scratch)
        current = os.path.join(scratch, "current.abi")
        dump(options.library, headers, current)
        report = compare(STORED, current) + compare_constants(
            CONSTANTS.read_text(encoding="utf-8"), public_constants())
    if report:
        print(report)
        print("The ABI changed. On purpose? Then run make abi and commit the dump; if\n"
              "callers break, also raise the minor version in CMakeLists.txt.")
    lint.finish(["core/abi: differs"] if report else [], "the shared library")


main()
