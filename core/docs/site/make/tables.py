"""Pages that are made of the tables of the library: errors, limits, keys of the wire."""

from __future__ import annotations

import json
import re
from pathlib import Path

import tree

STATUS = re.compile(r'^SGI_STATUS\(SEGUE_(\w+), (-?\d+), "([^"]*)", ([01])\)$', re.M)
REASON = re.compile(
    r'^SGI_REASON\(SEGUE_\w+, "(\w+)",\s*"([^"]*)", ([01])\)$', re.M | re.S
)
THRESHOLD = re.compile(
    r'^THRESHOLD\(\w+, (\w+), (\w+), (\w+), "(\w+)",\s*((?:"[^"]*"\s*)+)\)$', re.M
)
CLASS = re.compile(
    r"^class (\w+)\([^)]*\):(?:(?!^class ).)*?^    status = (-\d+)$", re.M | re.S
)
HERE = Path(__file__).parent


def read(path: str) -> str:
    return (tree.ROOT / path).read_text(encoding="utf-8")


def classes() -> dict[int, str]:
    """Returns the class of each status. Python and Node have the same names."""
    found = CLASS.findall(read("python/src/segue/errors.py"))
    return {int(status): name for name, status in found}


def errors() -> str:
    told = json.loads((HERE / "errors.json").read_text(encoding="utf-8"))
    names = classes()
    lines = [
        "# Errors",
        "",
        "Each failure has a status. C returns it, Python and Node throw a class of it. "
        "*Again* says whether the same call may succeed when it is made again. The sources "
        "of this page are `core/api/errors.def` and `core/api/reasons.def`.",
        "",
        "## Statuses",
        "",
    ]
    for name, value, text, again in STATUS.findall(read("core/api/errors.def")):
        if value == "0":
            continue
        cause, cure = told["statuses"][f"SEGUE_{name}"]
        lines += [f"### {value}: {text} {{#segue_{name.lower()}}}", ""]
        lines += [
            f"`SEGUE_{name}`, Python and Node: `{names[int(value)]}`. "
            f"Again: {'yes' if again == '1' else 'no'}.",
            "",
        ]
        lines += [f"**Cause.** {cause}", "", f"**Cure.** {cure}", ""]
    lines += [
        "## Reasons",
        "",
        "An error that a server sends has the code -32603 and a `data.reason`. A client in C "
        "gets `SEGUE_E_REMOTE`. Python and Node throw a `RemoteError`: a `ServerStoreError` "
        "for a reason that begins with `store_`. For `server_restarted` they throw a "
        "`TaskLostError`.",
        "",
        "| `data.reason` | Meaning | Cure |",
        "| --- | --- | --- |",
    ]
    seen: set[str] = set()
    for name, text, _ in REASON.findall(read("core/api/reasons.def")):
        if name not in seen:
            lines.append(f"| `{name}` | {text} | {told['reasons'][name]} |")
        seen.add(name)
    for name, (text, cure) in told["other reasons"].items():
        lines.append(f"| `{name}` | {text} | {cure} |")
    return "\n".join(lines) + "\n"


def amount(value: str, unit: str) -> str:
    """Writes a number for people."""
    if not value.isdigit():
        return f"`{value}`"
    number = int(value)
    if unit == "bytes" and number >= 1024:
        for name, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if number % size == 0:
                return f"{number // size} {name}"
    if unit == "ms" and number >= 1000:
        return f"{number / 1000:g} s"
    return f"{number:,} {unit}"


def limits() -> str:
    guide = read("core/README.md")
    section = guide.partition("\n## Limits\n")[2].partition("\n## ")[0].strip()
    rows = [
        "# Limits",
        "",
        "## Limits that you set",
        "",
        section,
        "",
        "Python names an option as C does, with durations in seconds; Node writes it in "
        "camelCase, with durations in milliseconds.",
        "",
        "## Fixed limits",
        "",
        "These numbers are constants of a build (`core/base/thresholds.def`). The simulation "
        "of the tests makes each of them tiny.",
        "",
        "| Name | Value | What it decides |",
        "| --- | --- | --- |",
    ]
    for name, value, _, unit, text in THRESHOLD.findall(read("core/base/thresholds.def")):
        sentence = "".join(re.findall(r'"([^"]*)"', text))
        rows.append(f"| `{name}` | {amount(value, unit)} | {sentence} |")
    return "\n".join(rows) + "\n"


def wire() -> str:
    keys = json.loads((HERE / "wire.json").read_text(encoding="utf-8"))
    lines = ["# Keys of the wire", "", *keys["introduction"], ""]
    for title, rows in keys["tables"].items():
        lines += [f"## {title}", "", "| Key | Where | Meaning |", "| --- | --- | --- |"]
        lines += [f"| `{key}` | {where} | {text} |" for key, where, text in rows]
        lines.append("")
    return "\n".join(lines)
