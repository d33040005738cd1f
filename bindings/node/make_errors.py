#!/usr/bin/env python3
"""Writes the error classes of the Node SDK into node/src/errors.ts. The sources are the
table of statuses, core/api/errors.def, and the table of store failures that a server
reports, core/api/reasons.def. The program replaces everything between the two marks in
errors.ts. With --check, the program only compares."""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "core" / "api" / "errors.def"
REASONS = ROOT / "core" / "api" / "reasons.def"
TARGET = ROOT / "node" / "src" / "errors.ts"
BEGIN = "// ---- from errors.def: begin ----\n"
END = "// ---- from errors.def: end ----\n"
ROW = re.compile(r'^SGI_STATUS\(SEGUE_(\w+), (-?\d+), "([^"]*)", ([01])\)$', re.MULTILINE)
REASON = re.compile(
    r'^SGI_REASON\(SEGUE_\w+, "store_(\w+)", "([^"]*)", [01]\)$', re.MULTILINE
)

# Names of error classes that are not made from the name of the status, because such a
# name would read badly. The Python SDK has the same names.
NAMES = {
    "E_NOMEM": "OutOfMemoryError",
    "E_CANCELLED": "RequestCancelledError",
    "E_TIMEOUT": "RequestTimeoutError",
    "E_TERMINAL": "EndedError",
    "E_IO": "InputOutputError",
}


def name_of(status: str) -> str:
    if status in NAMES:
        return NAMES[status]
    words = status.removeprefix("E_").split("_")
    return "".join(word.capitalize() for word in words) + "Error"


def base_of(value: int) -> str:
    if -200 < value <= -100:
        return "TransportError"
    if -300 < value < -200:
        return "ProtocolError"
    if -500 < value < -400:
        return "StoreError"
    return "SegueError"


def classes(rows: list[tuple[str, int, str, bool]]) -> str:
    out = []
    for status, value, text, retryable in rows:
        out.append(
            f"/** {text[0].upper()}{text[1:]} (SEGUE_{status}, {value}). */\n"
            f"export class {name_of(status)} extends {base_of(value)} {{}}\n"
            f'describe({name_of(status)}, {value}, "SEGUE_{status}", "{text}", '
            f"{'true' if retryable else 'false'});\n"
        )
    return "\n".join(out)


def reasons() -> str:
    name = "ServerStoreError"
    out = [
        "/** The server's store refused the operation, "
        "or cannot return the operation. */\n"
        f"export class {name} extends RemoteError {{\n"
        f'    /** Name of the class. */\n    override readonly name: string = "{name}";\n'
        "}\n"
    ]
    table = ""
    for word, text in REASON.findall(REASONS.read_text()):
        name = "".join(part.capitalize() for part in f"server_store_{word}".split("_"))
        name += "Error"
        why = text.replace("it is", "the operation is").replace("the store", "its store")
        out.append(
            f"/** The server reports that {why}. */\n"
            f"export class {name} extends ServerStoreError {{\n"
            f'    /** Name of the class. */\n    override readonly name = "{name}";\n'
            "}\n"
        )
        table += f'    ["store_{word}", {name}],\n'
    out.append(
        "/** The error class of each `data.reason` that a peer's error may have. */\n"
        "export const byReason: ReadonlyMap<string, ErrorClass> = new Map"
        f"<string, ErrorClass>([\n{table}]);\n"
    )
    return "\n".join(out)


def wrap(text: str) -> str:
    """Wraps the text as the formatter does: a call that is too wide gets one argument
    on each line."""
    lines = []
    for line in text.splitlines():
        call = re.fullmatch(r"describe\((\w+), (-?\d+), (\".*?\"), (\".*\"), (\w+)\);", line)
        if call and len(line) > 90:
            lines += ["describe(", *(f"    {part}," for part in call.groups()), ");"]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def render(old: str) -> str:
    rows = [
        (status, int(value), text, retryable == "1")
        for status, value, text, retryable in ROW.findall(TABLE.read_text())
        if int(value)
    ]
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{wrap(classes(rows))}\n{reasons()}\n{END}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    old = TARGET.read_text()
    new = render(old)
    if check and new != old:
        print(f"{TARGET} is not what {TABLE.parent} says: run {sys.argv[0]}")
        return 1
    if not check:
        TARGET.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
