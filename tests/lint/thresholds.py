"""Numbers that decide when the library gathers, keeps, drops or tries again stand in
core/base/thresholds.def, so that the simulation can make them tiny.

A macro whose name says that it is such a number (MAX, MOST, LEAST, LIMIT, CHUNK, BYTES,
MS) must not be a literal elsewhere. threshold_exceptions.txt lists those that are: limits
of a format or of a protocol, sizes of buffers, times of the network that the simulation
does not have, and limits whose only effect is a refusal. A line that is not needed any
more is a finding.
"""

import re
import sys

import lint

WORD = "MAX|MOST|LEAST|LIMIT|CHUNK|BYTES|_MS"
NAME = re.compile(rf"^#define +([A-Z0-9_]*(?:{WORD})(?:_[A-Z]+)?) +(.*)$", re.M)
ROOMS = ("core/base/", "core/wire/", "core/engine/", "core/store/", "core/runtime/",
         "core/transport/", "core/api/")


def is_literal(value):
    """True for a number, also with a cast, a shift or a product."""
    value = re.sub(r"/\*.*", "", value)
    value = re.sub(r"size_t|u?int\d+_t|INT64_C|UINT64_MAX|INT64_MAX", "", value)
    return bool(re.search(r"\d", value)) and not re.search(r"[A-Za-z_]{2,}", value)


def literals():
    found = set()
    for path in lint.files("core/**/*.c", "core/**/*.h"):
        name = str(path)
        if not name.startswith(ROOMS):
            continue
        for macro, value in NAME.findall((lint.ROOT / name).read_text()):
            if is_literal(value):
                found.add(f"{name} {macro}")
    return found


def check_itself():
    refused = "#define WAIT_MS 250\n#define KEPT_MAX ((size_t)64 * 1024)\n"
    accepted = "#define WAIT_MS SGI_THRESHOLD(wait_ms)\n#define KEPT 3\n"
    assert all(is_literal(value) for _, value in NAME.findall(refused)), "a literal"
    assert len(NAME.findall(refused)) == 2, "a name"
    assert not any(is_literal(value) for _, value in NAME.findall(accepted)), "no literal"


def main():
    check_itself()
    path = lint.ROOT / "tests/lint/threshold_exceptions.txt"
    found = literals()
    if "--update" in sys.argv:
        path.write_text("".join(f"{line}\n" for line in sorted(found)))
    allowed = set(path.read_text().split("\n")) - {""}
    for line in sorted(found - allowed):
        print(f"{line}: a number that belongs into core/base/thresholds.def")
    for line in sorted(allowed - found):
        print(f"tests/lint/threshold_exceptions.txt: {line}: not needed any more")
    print(f"{len(found ^ allowed)} findings, {len(allowed)} exceptions")
    return bool(found ^ allowed)


sys.exit(main())
