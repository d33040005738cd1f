#!/usr/bin/env python3
"""Writes the exceptions of the Python SDK into python/src/segue/errors.py. The sources
are the table of statuses, core/api/errors.def, and the table of store failures that a
server reports, core/api/reasons.def. The program replaces everything between the two
marks in errors.py. With --check, the program only compares."""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "core" / "api" / "errors.def"
REASONS = ROOT / "core" / "api" / "reasons.def"
TARGET = ROOT / "python" / "src" / "segue" / "errors.py"
BEGIN = "# ---- from errors.def: begin ----\n"
END = "# ---- from errors.def: end ----\n"
ROW = re.compile(r'^SGI_STATUS\(SEGUE_(\w+), (-?\d+), "([^"]*)", ([01])\)$', re.MULTILINE)
REASON = re.compile(
    r'^SGI_REASON\(SEGUE_\w+, "store_(\w+)", "([^"]*)", [01]\)$', re.MULTILINE
)

# Names of exception classes that are not made from the name of the status. A name made
# from the status would read badly or hide a built-in exception.
NAMES = {
    "E_NOMEM": "OutOfMemoryError",
    "E_CANCELLED": "RequestCancelledError",
    "E_TIMEOUT": "RequestTimeoutError",
    "E_TERMINAL": "EndedError",
    "E_IO": "InputOutputError",
}
# Built-in exceptions from which the library's exceptions also inherit, so that existing
# code such as `except TimeoutError` catches them.
EXTRA = {
    "E_NOMEM": "MemoryError",
    "E_TIMEOUT": "TimeoutError",
    "E_DISCONNECTED": "ConnectionError",
}


def name_of(status: str) -> str:
    if status in NAMES:
        return NAMES[status]
    words = status.removeprefix("E_").split("_")
    return "".join(word.capitalize() for word in words) + "Error"


def base_of(status: str, value: int) -> str:
    if -200 < value <= -100:
        base = "TransportError"
    elif -300 < value < -200:
        base = "ProtocolError"
    elif -500 < value < -400:
        base = "StoreError"
    else:
        base = "Error"
    return f"{base}, {EXTRA[status]}" if status in EXTRA else base


def classes(rows: list[tuple[str, int, str, bool]]) -> str:
    out = []
    for status, value, text, retryable in rows:
        if value == 0:
            continue
        flag = "\n    retryable = True" if retryable else ""
        out.append(
            f"class {name_of(status)}({base_of(status, value)}):\n"
            f'    """{text[0].upper()}{text[1:]} (SEGUE_{status}, {value})."""\n\n'
            f"    status = {value}\n"
            f'    name = "SEGUE_{status}"\n'
            f'    text = "{text}"{flag}\n'
        )
    table = "".join(
        f"    {value}: {name_of(status)},\n" for status, value, _, _ in rows if value
    )
    out.append(f"BY_STATUS: dict[int, type[Error]] = {{\n{table}}}\n")
    return "\n\n".join(out)


def reasons() -> str:
    out = [
        "class ServerStoreError(RemoteError):\n"
        '    """The server\'s store refused the operation, '
        'or cannot return the operation."""\n'
    ]
    table = ""
    for word, text in REASON.findall(REASONS.read_text()):
        name = "".join(part.capitalize() for part in f"server_store_{word}".split("_"))
        why = text.replace("it is", "the operation is").replace("the store", "its store")
        out.append(
            f"class {name}Error(ServerStoreError):\n"
            f'    """The server reports that {why}."""\n'
        )
        table += f'    "store_{word}": {name}Error,\n'
    out.append(
        "# The exception class of each `data.reason` that a peer's error may have.\n"
        f"BY_REASON: dict[str, type[RemoteError]] = {{\n{table}}}\n"
    )
    return "\n\n".join(out)


def render(old: str) -> str:
    rows = [
        (status, int(value), text, retryable == "1")
        for status, value, text, retryable in ROW.findall(TABLE.read_text())
    ]
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{classes(rows)}\n\n{reasons()}\n\n{END}{tail}"


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
