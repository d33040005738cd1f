"""Checks packages that contain all libraries that Segue uses.

    check.py --limit MIB [--path PATH]... PACKAGE...

PACKAGE is a wheel or a tarball of npm, and may be at most MIB mebibytes long. In each
shared library and each program of a package:

- the libraries that it needs are parts of the C library, or lie beside it in the package;
- the search path is $ORIGIN or empty, and the file is stripped;
- a library exports functions of Segue, or the entry of the module, and nothing else;
- no PATH, a directory of the build, occurs.

A package contains the notices of the libraries. Standard library and readelf only.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

LIBC = re.compile(r"^(lib(c|m|dl|rt|pthread|resolv)\.so\.\d|ld-linux-[a-z0-9_-]+\.so\.\d"
                  r"|libc\.musl-[a-z0-9_]+\.so\.1)$")
EXPORTS = re.compile(r"^(segue_[a-z0-9_]+|SEGUE_[0-9.]+|PyInit__segue"
                     r"|napi_register_module_v1|node_api_module_get_api_version_v1)$")
LIBRARIES = ["curl", "hiredis", "libev", "libwebsockets", "nghttp2", "openssl",
             "postgresql", "sqlite"]


def unpack(package, directory):
    """Unpacks a package, and returns the paths of its files."""
    if package.endswith(".whl"):
        with zipfile.ZipFile(package) as archive:
            archive.extractall(directory)
    else:
        with tarfile.open(package) as archive:
            archive.extractall(directory)
    return [os.path.join(place, name)
            for place, _, names in os.walk(directory) for name in names]


def read(file, *options):
    done = subprocess.run(["readelf", "-W", *options, file], capture_output=True,
                          text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def exported(file):
    """Returns the names that a library defines for others."""
    names = set()
    for line in read(file, "--dyn-syms").split("\n"):
        words = line.split()
        if len(words) < 8 or not words[0].endswith(":"):
            continue
        if words[4] in ("GLOBAL", "WEAK") and words[6] != "UND":
            names.add(words[7].partition("@")[0])
    return names


def check_elf(file, beside, paths):
    """Yields what is wrong with a shared library or a program."""
    dynamic = read(file, "-d")
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not LIBC.match(needed) and needed not in beside:
            yield f"needs {needed}"
    for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic):
        if path != "$ORIGIN":
            yield f"has the search path {path}"
    sections = read(file, "-S")
    for section in (".symtab", ".debug_info"):
        if f" {section} " in sections:
            yield f"is not stripped ({section})"
    if "INTERP" not in read(file, "-l"):  # a library, and no program
        for name in sorted(exported(file)):
            if not EXPORTS.match(name):
                yield f"exports {name}"
    with open(file, "rb") as opened:
        content = opened.read()
    for path in paths:
        if os.fsencode(path) in content:
            yield f"contains the path {path}"


def check(package, limit, paths):
    """Yields what is wrong with a package."""
    size = os.path.getsize(package)
    if size > limit * 1024 * 1024:
        yield f"has {size} bytes, more than {limit} MiB"
    with tempfile.TemporaryDirectory() as directory:
        files = unpack(package, directory)
        elves = 0
        for file in files:
            with open(file, "rb") as opened:
                if opened.read(4) != b"\x7fELF":
                    continue
            elves += 1
            beside = os.listdir(os.path.dirname(file))
            for fault in check_elf(file, beside, paths):
                yield f"{os.path.relpath(file, directory)} {fault}"
        if not elves:
            yield "has no library"
        notices = {os.path.basename(file) for file in files
                   if os.path.basename(os.path.dirname(file)) == "notices"}
        for name in LIBRARIES:
            if name not in notices:
                yield f"has no notice of {name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("packages", nargs="+")
    asked = parser.parse_args()
    faults = 0
    for package in asked.packages:
        for fault in check(package, asked.limit, asked.path):
            print(f"{os.path.basename(package)}: {fault}", file=sys.stderr)
            faults += 1
        print(f"{os.path.basename(package)}: {os.path.getsize(package)} bytes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
