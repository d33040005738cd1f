"""The scripts that make and check packages find what they must find.

.ci/ask-proxy asks a made-up proxy, whose guard answers, or another program in its place.
.ci/packages runs in a directory of its own, on a PATH without the programs of LLVM. The
check of packages looks at programs that lack one protection each. .ci/release-check
tells a release without a date from one that is wrong. A build that lacks libraries
names the packages of distributions that have them, all at once.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import lint

sys.path.append(str(lint.ROOT / "tests/packages"))
import check  # noqa: E402

TOOLS = "bash cat cmp cut date dirname env grep head sed tail tr uname".split()
# The program that answers runs when the answer arrives, and ends when the input does.
PROXY = """#!/bin/bash
read -r question
{ echo '{"serverInfo":{}}'; cat; } | ANSWERING
"""
ECHO = "while read -r line; do echo \"$line\"; done"

USES_BUFFER = """#include <string.h>
int main(int count, char **words)
{
    char copy[64];
    return !strcpy(copy, words[count - 1]) || copy[0] == 'x';
}
"""
HARDENED = ("-O2 -fPIE -pie -s -fstack-protector-strong -U_FORTIFY_SOURCE"
            " -D_FORTIFY_SOURCE=2 -Wl,-z,relro -Wl,-z,now").split()


def run(*words, **more):
    return subprocess.run([str(word) for word in words], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, **more)


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def ask(place, answering):
    """Returns the status of .ci/ask-proxy and what it prints on stderr."""
    proxy = program(place / "proxy", PROXY.replace("ANSWERING", answering))
    ran = run(lint.ROOT / ".ci/ask-proxy", proxy, place / "guard", "server")
    return ran.returncode, ran.stderr.strip()


def guards(place):
    guard, qemu = place / "guard", place / "qemu-machine-static"
    shutil.copy(shutil.which("cat"), guard)
    shutil.copy(shutil.which("bash"), qemu)
    (place / "bin").mkdir()
    refused = (1, f"ask-proxy: {guard} does not run")
    for answering, wanted in (
        (f"'{guard}'", (0, "")),
        (f"'{qemu}' -c '{ECHO}' '{guard}'", (0, "")),
        (f"'{qemu}' -c '{ECHO}' '{place}/bin/../guard'", (0, "")),
        ("cat", refused),
        (f"bash -c '{ECHO}' '{guard}'", refused),
        (f"'{qemu}' -c '{ECHO}' '{guard}.other'", refused),
    ):
        told = ask(place, answering)
        yield told == wanted, f".ci/ask-proxy: {answering}: {told}"


def names_the_package(place):
    shutil.copytree(lint.ROOT / ".ci", place / "tree/.ci")
    programs = place / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))
    program(programs / "git", "#!/bin/sh\necho 0\n")
    for step in ("libraries", "archive", "wheel", "npm", "symbols"):
        ran = run(place / "tree/.ci/packages", step,
                  env={"PATH": str(programs), "HOME": str(place)})
        yield ran.returncode == 1 and "in the package llvm" in ran.stderr, \
            f".ci/packages {step} without llvm: {ran.returncode}, {ran.stderr}"
    yield not (place / "tree/build").exists(), ".ci/packages: something was begun"


def hardening(place):
    source, built = place / "program.c", place / "segue-proxy"
    source.write_text(USES_BUFFER)
    for option, wanted in (
        ("-fPIE", []),
        ("-no-pie", ["is not position-independent"]),
        ("-Wl,-z,norelro", ["has addresses of functions that stay writable"]),
        ("-Wl,-z,lazy", ["has addresses of functions that stay writable"]),
        ("-Wl,-z,execstack", ["has an executable stack"]),
        ("-fno-stack-protector", ["does not check its stack"]),
        ("-U_FORTIFY_SOURCE", ["does not check sizes of strings (_FORTIFY_SOURCE)"]),
    ):
        ran = run("cc", source, "-o", built, *HARDENED, option)
        found = list(check.check_elf(str(built), [], [])) if not ran.returncode else ran
        yield found == wanted, f"tests/packages/check.py: {option}: {found}"


def release_check(place):
    for name in (".ci/release-check", "CMakeLists.txt", "CHANGELOG.md", "SECURITY.md",
                 "node/package.json", "node/README.md"):
        (place / name).parent.mkdir(exist_ok=True)
        shutil.copy(lint.ROOT / name, place / name)
    version = check.table()[1]
    for heading, status, beginning, end in (
        (f"{version}, 2031-01-31", 0, "ok    changelog", "2 of 2 steps passed"),
        (f"{version}, unreleased", 3, "open  changelog", "0 failed, 1 open"),
        (f"{version}, soon", 1, "FAIL  changelog", "1 failed, 0 open"),
        ("99.0.0, unreleased", 1, "FAIL  changelog", "1 failed, 0 open"),
    ):
        (place / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n")
        ran = run(place / ".ci/release-check", "versions", "changelog")
        told = ran.stdout
        yield ran.returncode == status and "ok    versions" in told \
            and f"\n{beginning}" in told and end in told.splitlines()[-1], \
            f".ci/release-check, {heading}: {ran.returncode}, {told}"


def names_libraries(place):
    missing = ("Libev", "SQLite3", "OpenSSL")
    ran = run("cmake", "-S", lint.ROOT, "-B", place, "-DSEGUE_TESTS=OFF",
              *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in missing))
    told = ran.stderr
    yield ran.returncode and "not found" in told, f"cmake without {missing}: {told}"
    for line in ("apt-get install libsqlite3-dev libssl-dev libev-dev",
                 "dnf install sqlite-devel openssl-devel libev-devel",
                 "apk add sqlite-dev openssl-dev libev-dev"):
        words = set(line.split())
        yield any(words < set(found.split()) for found in told.splitlines()), \
            f"cmake without {missing}: no \"{line}\": {told}"
    yield "libpq" not in told, f"cmake without {missing}: {told}"


def main():
    findings = count = 0
    for case in (guards, names_the_package, hardening, release_check,
                 names_libraries):
        with tempfile.TemporaryDirectory() as place:
            for holds, text in case(pathlib.Path(place)):
                count += 1
                if not holds:
                    findings += 1
                    print(text)
    print(f"{findings} findings in {count} cases of the packages")
    return 1 if findings else 0


sys.exit(main())
