"""Checks packages that contain all libraries that Segue uses.

    check.py --limit MIB [--path PATH]... PACKAGE...

PACKAGE is a wheel, a tarball of npm or a relocatable archive, and may be at most MIB
mebibytes long. In each shared library and each program of a package:

- the libraries that it needs are parts of the C library, or are in the package where the
  search path leads;
- the search path is $ORIGIN or empty, or in an archive $ORIGIN/../lib, and the file is
  stripped;
- a library exports functions of Segue, or the entry of the module, and nothing else;
- it is hardened: position-independent, all of its addresses are read-only after the
  start, its stack and its data are not executable, functions with buffers check their
  stack, and with glibc the functions for strings check sizes;
- with musl, it uses no function that musl 1.2.0 lacks: the tag musllinux_1_2 allows that;
- no PATH, a directory of the build, occurs.

A package has one segue-proxy with its guard, the notices of the libraries, and one list
of all that it contains (SPDX), which agrees with core/deps/archives.cmake. Standard
library and readelf only.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

LIBC = re.compile(r"^(lib(c|m|dl|rt|pthread|resolv)\.so\.\d|ld-linux-[a-z0-9_-]+\.so\.\d"
                  r"|libc\.musl-[a-z0-9_]+\.so\.1|libc\.so)$")
EXPORTS = re.compile(r"^(segue_[a-z0-9_]+|SEGUE_[0-9.]+|PyInit__segue"
                     r"|napi_register_module_v1|node_api_module_get_api_version_v1)$")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHIVE = re.compile(r"^archive\((\S+) (\S+) (\S+)\s+([0-9a-f]{64})\s", re.M)
PROGRAMS = ["segue-proxy", "segue-proxy-guard"]
# The small ones may have no function that needs a check.
CHECKED = re.compile(r"^(libsegue\.so\..*|segue-proxy)$")
# The functions that musl 1.2.2 to 1.2.6 added.
NEWER_THAN_MUSL_1_2_0 = {
    "_Fork", "gettid", "reallocarray", "qsort_r", "pthread_getname_np", "statx",
    "preadv2", "pwritev2", "renameat2", "posix_getdents"}


def table():
    """Returns {name: (version, licence, SHA-256)} of the table of archives, and the
    version of the library."""
    with open(f"{ROOT}/core/deps/archives.cmake", encoding="utf-8") as opened:
        rows = ARCHIVE.findall(opened.read())
    with open(f"{ROOT}/CMakeLists.txt", encoding="utf-8") as opened:
        version = re.search(r"^project\(Segue VERSION (\S+)", opened.read(), re.M)[1]
    return {name: tuple(row) for name, *row in rows}, version


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


def symbols(file):
    """Returns the names that a file defines for others, and those that it needs."""
    exported, used = set(), set()
    for line in read(file, "--dyn-syms").split("\n"):
        words = line.split()
        if len(words) < 8 or not words[0].endswith(":"):
            continue
        if words[4] in ("GLOBAL", "WEAK"):
            names = used if words[6] == "UND" else exported
            names.add(words[7].partition("@")[0])
    return exported, used


def check_hardening(file, dynamic, segments, used):
    """Yields which protection a file lacks. `used` are the functions of others."""
    header = read(file, "-h")
    if not re.search(r"Type: +DYN ", header):
        yield "is not position-independent"
    if "(TEXTREL)" in dynamic:
        yield "has code that is changed when it is loaded"
    now = re.search(r"\(FLAGS(_1)?\).*\b(BIND_)?NOW\b", dynamic)
    if " GNU_RELRO " not in segments or not now:
        yield "has addresses of functions that stay writable"
    stack = re.search(r" GNU_STACK .*", segments)
    if not stack or "E" in stack[0].split()[-2]:
        yield "has an executable stack"
    if re.search(r" LOAD .* RWE ", segments):
        yield "has a segment that is writable and executable"
    if not CHECKED.match(os.path.basename(file)):
        return
    if "__stack_chk_fail" not in used:
        yield "does not check its stack"
    elif "AArch64" in header and "__stack_chk_guard" not in used:
        yield "checks its stack with a value that is the same in each process"
    if not musl(dynamic) and not any(name.endswith("_chk") for name in used):
        yield "does not check sizes of strings (_FORTIFY_SOURCE)"


def musl(dynamic):
    """Whether a file needs musl: zig names it libc.so."""
    return bool(re.search(r"\(NEEDED\).*\[libc\.(so|musl-.*)\]", dynamic))


def check_elf(file, searched, paths):
    """Yields what is wrong with a shared library or a program. `searched` are the search
    paths that the package may have."""
    dynamic = read(file, "-d")
    beside = []
    for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic):
        if path in searched:
            beside += os.listdir(path.replace("$ORIGIN", os.path.dirname(file)))
        else:
            yield f"has the search path {path}"
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not LIBC.match(needed) and needed not in beside:
            yield f"needs {needed}"
    sections = read(file, "-S")
    for section in (".symtab", ".debug_info"):
        if f" {section} " in sections:
            yield f"is not stripped ({section})"
    segments = read(file, "-l")
    exported, used = symbols(file)
    yield from check_hardening(file, dynamic, segments, used)
    if "INTERP" not in segments:  # a library, and no program
        for name in sorted(exported):
            if not EXPORTS.match(name):
                yield f"exports {name}"
    if musl(dynamic):
        for name in sorted(used & NEWER_THAN_MUSL_1_2_0):
            yield f"uses {name}, which musl 1.2.0 lacks"
    with open(file, "rb") as opened:
        content = opened.read()
    for path in paths:
        if os.fsencode(path) in content:
            yield f"contains the path {path}"


def check_list(file):
    """Yields what is wrong with the list of what a package contains."""
    with open(file, encoding="utf-8") as opened:
        content = json.load(opened)
    libraries, version = table()
    wanted = {"segue": (version, "Apache-2.0", None), **libraries}
    found = {}
    for package in content["packages"]:
        sums = [one["checksumValue"] for one in package.get("checksums", [])]
        found[package["name"]] = (package["versionInfo"], package["licenseDeclared"],
                                  *(sums or [None]))
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            yield f"lists {name} as {found.get(name)}, and not as {wanted.get(name)}"
    related = {one["relatedSpdxElement"] for one in content["relationships"]}
    for package in content["packages"]:
        if package["SPDXID"] not in related:
            yield f"says nowhere what {package['name']} is part of"


def check_files(files):
    """Yields what is wrong with the files of a package that are not compiled."""
    names = [os.path.basename(file) for file in files]
    for name in PROGRAMS:
        if names.count(name) != 1:
            yield f"has {names.count(name)} times {name}"
    lists = [file for file in files if file.endswith(".spdx.json")]
    if len(lists) != 1:
        yield f"has {len(lists)} lists of what it contains"
    for file in lists:
        yield from check_list(file)
    notices = {os.path.basename(file) for file in files
               if os.path.basename(os.path.dirname(file)) == "notices"
               and os.path.getsize(file)}
    for name in sorted(table()[0].keys() - notices):
        yield f"has no notice of {name}"


def check(package, limit, paths):
    """Yields what is wrong with a package."""
    size = os.path.getsize(package)
    if size > limit * 1024 * 1024:
        yield f"has {size} bytes, more than {limit} MiB"
    searched = ["$ORIGIN"]
    if package.endswith(".tar.gz"):
        searched = ["$ORIGIN/../lib"]
    with tempfile.TemporaryDirectory() as directory:
        files = unpack(package, directory)
        elves = 0
        for file in files:
            if os.path.islink(file):
                continue
            with open(file, "rb") as opened:
                if opened.read(4) != b"\x7fELF":
                    continue
            elves += 1
            for fault in check_elf(file, searched, paths):
                yield f"{os.path.relpath(file, directory)} {fault}"
        if not elves:
            yield "has no library"
        yield from check_files(files)


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
