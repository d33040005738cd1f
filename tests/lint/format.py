"""C sources must be formatted by clang-format. `make format` does it.

Versions of clang-format differ in details; .clang-format is meant for 14. With --fix
the files are rewritten.
"""

import re
import shutil
import subprocess
import sys

import lint

VERSION = "14"


def find_tool():
    ours = str(lint.ROOT / "build/deps/lint/bin/clang-format")  # installed by .ci/setup
    for name in (f"clang-format-{VERSION}", "clang-format", ours):
        if shutil.which(name):
            told = subprocess.run([name, "--version"], capture_output=True, text=True)
            if re.search(rf"version {VERSION}\.", told.stdout):
                return name
    sys.exit(f"there is no clang-format {VERSION}: .ci/setup test installs it")


def main():
    tool = find_tool()
    style = f"--style=file:{lint.ROOT}/.clang-format"
    sources = lint.files("core/**/*.[ch]", "bindings/**/*.[ch]", "tests/**/*.[ch]")
    paths = [str(lint.ROOT / path) for path in sources]
    if "--fix" in sys.argv[1:]:
        subprocess.run([tool, style, "-i", *paths], check=True)
        return
    planted = subprocess.run([tool, style, "--dry-run", "-Werror"], input="int  x ;\n",
                             capture_output=True, text=True)
    lint.expect(planted.returncode, "bad layout was let pass")
    result = subprocess.run([tool, style, "--dry-run", "-Werror", *paths],
                            capture_output=True, text=True)
    places = re.findall(r"^(\S+?):(\d+):\d+: error", result.stderr, flags=re.M)
    count = {}
    for path, line in places:
        count.setdefault(path, []).append(line)
    findings = [f"{path}: {len(lines)} places, first at line {lines[0]}; run make format"
                for path, lines in count.items()]
    if result.returncode and not findings:
        findings = [result.stderr.strip()]
    lint.finish(findings, f"{len(paths)} files")


main()
