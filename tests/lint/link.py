"""base, wire and engine use only a short list of libc functions.

Linked alone (`ld -r`), they may leave undefined only the names listed here, and the
functions of base/crypto.c, the one file that uses the crypto library. So nothing in
them can reach a socket, a clock, a thread or a file, and no memory but the allocator's:
only mem.c uses libc's own. base/late_library.c, which loads libraries for other rooms, is
left out: none of them may call it.

Usage: link.py FILE, a file that lists the objects of the library.
"""

import os
import subprocess
import sys
import tempfile

import lint

ALLOWED = {
    "abort", "memchr", "memcmp", "memcpy", "memmove", "memset", "snprintf", "strchr",
    "strcmp", "strlen", "strncmp", "strnlen", "strtod", "vsnprintf",
    # Called by code that the compiler makes.
    "_GLOBAL_OFFSET_TABLE_", "__assert_fail", "__errno_location", "__stack_chk_fail",
}
LIBC_MEMORY = {"malloc", "calloc", "realloc", "free", "reallocarray", "aligned_alloc",
               "posix_memalign", "strdup", "strndup", "asprintf", "vasprintf"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(path, option):
    return {line.split("@")[0] for line in run("nm", "-j", option, path).split()}


def check(parts, crypto):
    """parts: objects of base, wire and engine without crypto.c; crypto: its object."""
    findings = []
    for part in parts:
        own = os.path.basename(part).split(".")[0]
        for name in sorted(symbols(part, "-u") & LIBC_MEMORY):
            if own != "mem":
                findings.append(f"{part}: calls {name}, not the allocator")
    with tempfile.TemporaryDirectory() as scratch:
        whole = os.path.join(scratch, "whole.o")
        run("ld", "-r", "-o", whole, *parts)
        left = symbols(whole, "-u")
    crypto_functions = {name for name in symbols(crypto, "--defined-only")
                        if name.startswith("sgi_crypto_")}
    for name in sorted(left - ALLOWED - {"malloc", "realloc", "free"} - crypto_functions):
        users = [os.path.basename(part) for part in parts if name in symbols(part, "-u")]
        findings.append(f"{name}: needed by {', '.join(users)}, not on the list")
    return findings


def self_check(crypto):
    with tempfile.TemporaryDirectory() as scratch:
        for call in ("socket(1, 1, 0)", "malloc(1)", "time(0)"):
            source = os.path.join(scratch, "planted.c")
            planted = os.path.join(scratch, "planted.c.o")
            name = call.split("(")[0]
            with open(source, "w", encoding="utf-8") as file:
                file.write(f"long {name}(); long f(void) {{ return (long){call}; }}\n")
            run("cc", "-w", "-c", "-fno-builtin", source, "-o", planted)
            found = check([planted], crypto)
            lint.expect(any(name in text for text in found), f"{call} was let pass")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        objects = file.read().split()
    pure = [path for path in objects
            if any(f"/core/{room}/" in path for room in ("base", "wire", "engine"))
            and "/core/base/late_library.c" not in path]
    crypto = [path for path in pure if "/core/base/crypto.c" in path]
    parts = [path for path in pure if path not in crypto]
    if not parts or len(crypto) != 1:
        sys.exit("the list of objects lacks base, wire, engine or crypto.c")
    self_check(crypto[0])
    lint.finish(check(parts, crypto[0]), f"{len(parts)} objects")


main()
