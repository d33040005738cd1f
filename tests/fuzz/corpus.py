#!/usr/bin/env python3
"""The corpora of the fuzz targets: tests/fuzz/corpus/TARGET.seeds, one file for each.

    corpus.py add TARGET FILE...        stores inputs, by the names of their files
    corpus.py unpack TARGET DIRECTORY   a file for each input; others there are deleted

A line is an input: its name, a blank, and its bytes. Backslashes and bytes that are not
printable ASCII are written as escapes of Python (\ , \\x00). Lines are sorted by name,
and the same inputs always make the same file, so that changes can be read and merged.
"""
import pathlib
import re
import shutil
import sys

PLACE = pathlib.Path(__file__).resolve().parent / "corpus"
LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*) ([ -~]*)")
SIMPLE = {ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


def escape(data):
    return "".join(SIMPLE.get(byte) or
                   (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in data)


def unescape(text):
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


def path_of(target):
    return PLACE / f"{target}.seeds"


def read(target):
    """Returns {name: bytes}, in order."""
    found, last = {}, ""
    path = path_of(target)
    for number, line in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
        match = LINE.fullmatch(line)
        data = unescape(match.group(2)) if match else b""
        if not match or escape(data) != match.group(2):
            sys.exit(f"{path}:{number}: this is not a name and bytes")
        if match.group(1) <= last:
            sys.exit(f"{path}:{number}: {match.group(1)} is not in order")
        last = match.group(1)
        found[last] = data
    if not found:
        sys.exit(f"{path}: there is no input")
    return found


def write(target, inputs):
    lines = [f"{name} {escape(inputs[name])}\n" for name in sorted(inputs)]
    path_of(target).write_text("".join(lines), encoding="ascii")


def add(target, paths):
    inputs = read(target) if path_of(target).exists() else {}
    known = set(inputs.values())
    for path in map(pathlib.Path, paths):
        data = path.read_bytes()
        if not LINE.fullmatch(f"{path.name} "):
            sys.exit(f"{path}: a name has letters, digits, dots, lines and underscores")
        if data in known:
            print(f"{path}: this input is there already")
        elif path.name in inputs:
            sys.exit(f"{path}: there is another input of this name")
        else:
            inputs[path.name] = data
            known.add(data)
    write(target, inputs)


def unpack(target, directory):
    place = pathlib.Path(directory)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, data in read(target).items():
        (place / name).write_bytes(data)


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "add":
        add(arguments[1], arguments[2:])
    elif len(arguments) == 3 and arguments[0] == "unpack":
        unpack(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
