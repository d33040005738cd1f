"""The set-up installs what is missing, all of it or nothing, and reports it in one
line.

.ci/setup runs in a directory of its own with a PATH on which there are only a few
programs, and an apt-get, a sudo and an id that are simulated: no package is looked up
or installed. The same is done with .ci/python, whose wheel fails.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

import lint

TOOLS = ("bash cat cmp cut date dirname env grep head ls mkdir printf sed sleep sort "
         "stat stty tail touch tr uname").split()
APT = """echo "$*" >>"$PLACE/calls"
[ "$1" = update ] && exit
[ "$APT" = fails ] && { echo "E: no such package"; exit 100; }
[ "$APT" = nothing ] && exit
for name in gcc g++ make cmake ninja pkg-config node npm python3 abidw \\
    curl openssl redis-server clang setarch; do
    printf '#!/bin/sh\\necho v22.0.0\\n' >"$PLACE/bin/$name"
    /bin/chmod 755 "$PLACE/bin/$name"
done
"""
# The last three are there because .ci/setup would otherwise write to a file of the
# system that keeps services from starting.
STAND_INS = {
    "apt-get": APT,
    "sudo": '[ "$SUDO" = yes ] || exit 1\n[ "$1" != -n ] || exit 0\n'
            'echo sudo >>"$PLACE/calls"\nexec "$@"\n',
    "id": 'echo "${ROLE:-1000}"\n',
    "tee": "cat >/dev/null\n",
    "chmod": "",
    "rm": "",
}
# as Debian's python3 package alone
BARE_PYTHON = 'case $2 in *ensurepip*) exit 1 ;; esac\n'
SAID = "setup: as root, run: apt-get install --no-install-recommends "
ONLY_TESTS = {"abigail-tools", "clang", "debootstrap", "haproxy", "libclang-rt-dev",
              "libcmocka-dev", "libjansson-dev", "libuv1-dev", "lld", "nginx-light",
              "pgbouncer", "postgresql", "redis-server"}


class Machine:
    """A directory with a copy of the set-up, and a PATH."""

    def __init__(self, place, **programs):
        self.place = pathlib.Path(place)
        self.programs = self.place / "bin"
        self.programs.mkdir()
        shutil.copytree(lint.ROOT / ".ci", self.place / "tree/.ci")
        for tool in TOOLS:
            path = shutil.which(tool)
            if path:
                (self.programs / tool).symlink_to(path)
        for name, text in {**STAND_INS, **programs}.items():
            program = self.programs / name
            program.write_text("#!/bin/sh\n" + text)
            program.chmod(0o755)

    def run(self, *arguments, script="setup", **told):
        environment = {"PATH": str(self.programs), "PLACE": str(self.place), **told}
        return subprocess.run(
            [str(self.place / "tree/.ci" / script), *arguments], env=environment,
            text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def calls(self):
        calls = self.place / "calls"
        return calls.read_text() if calls.exists() else ""

    def has_begun(self):
        return bool(self.calls()) or (self.place / "tree/build").exists()


def named(machine, *arguments):
    """Returns the packages that the one line names for a user who may not install."""
    ran = machine.run(*arguments)
    lines = (ran.stdout + ran.stderr).splitlines()
    if ran.returncode != 1 or len(lines) != 1 or not lines[0].startswith(SAID):
        raise AssertionError(f"status {ran.returncode}: {lines}")
    if machine.has_begun():
        raise AssertionError(f"something was begun: {machine.calls()}")
    return set(lines[0].removeprefix(SAID).split())


def refusals(machine):
    library = named(machine, "library")
    demo = named(machine, "demo")
    yield "gcc" in library and "python3" not in library, f"library: {library}"
    yield {"python3", "python3-venv", "python3-dev", "nodejs", "npm"} <= demo, \
        f"demo on a machine without Python: {demo}"
    yield not demo & ONLY_TESTS, f"demo: only tests need {demo & ONLY_TESTS}"
    everything = named(machine)
    yield "clang" in everything, f"everything: {everything}"
    yield named(machine, "--check", "ci") == everything, "--check names something else"
    numbered = [name for name in everything if re.search(r"-[\d.]+(-|$)", name)]
    yield not numbered, f"named by a version: {numbered}"


def installs(machine):
    ran = machine.run("demo", SUDO="yes")
    yield ran.returncode == 0, f"with sudo: {ran.stdout}{ran.stderr}"
    lines = machine.calls().splitlines()
    installed = [line for line in lines if line.startswith("install ")]
    yield len(installed) == 1 and "python3-venv" in installed[0], f"with sudo: {lines}"
    again = machine.run("demo")
    yield (again.returncode, again.stdout, again.stderr) == (0, "", ""), \
        f"once more: {again.stdout}{again.stderr}"


def fails(machine, how, words):
    ran = machine.run("library", ROLE="0", APT=how)
    yield ran.returncode != 0 and words in ran.stderr, \
        f"apt-get {how}: {ran.returncode}, {ran.stdout}{ran.stderr}"


def a_wheel_fails(machine):
    """The failing step is reported, and no step that needs its result is started."""
    tree = machine.place / "tree"
    tools = tree / "build/deps/python"
    (tools / "bin").mkdir(parents=True)
    (tree / "tests/python").mkdir(parents=True)
    for name in (tools / ".complete", tree / "tests/python/requirements.txt"):
        name.write_text("build")
    (tools / "bin/python").write_text('#!/bin/sh\necho "$*" >>"$PLACE/calls"\n'
                                      'case $* in *" pip wheel "*) echo "no SWIG" >&2\n'
                                      'exit 3 ;; esac\n')
    (tools / "bin/python").chmod(0o755)
    ran = machine.run("wheel", "place", "install", script="python")
    yield (ran.returncode, ran.stderr) == (3, "no SWIG\n"), \
        f"a wheel that fails: {ran.returncode}, {ran.stdout}{ran.stderr}"
    yield "pip install" not in machine.calls(), f"goes on: {machine.calls()}"


def shows_a_moving_line(machine):
    """On a terminal one line shows the time and what the command says, as it goes on;
    the command's output is in the log alone. Elsewhere nothing moves."""
    script = ('. tree/.ci/telling; telling "build" log bash -c "echo first; '
              'until test -e go; do sleep 0.1; done; echo second"')
    terminal, end = pty.openpty()
    environment = {"PATH": str(machine.programs), "TERM": "xterm"}
    with subprocess.Popen(["bash", "-c", script], cwd=machine.place, env=environment,
                          stdin=subprocess.DEVNULL, stdout=end, stderr=end) as shell:
        os.close(end)
        seen = b""
        while not re.search(rb"\r\x1b\[K  \d+ s  first", seen):
            ready, _, _ = select.select([terminal], [], [], 60)
            try:
                seen += os.read(terminal, 4096) if ready else b""
            except OSError:  # the shell has ended
                break
            if not ready:
                break
        (machine.place / "go").touch()
        status = shell.wait(60)
    os.close(terminal)
    # the line is empty until the command has said something
    yield re.search(rb"^build\r\n(\r\x1b\[K  \d+ s  )*\r\x1b\[K  \d+ s  first", seen), \
        f"a terminal shows {seen}"
    yield status == 0 and b"\n" not in seen.partition(b"\n")[2], f"more lines: {seen}"
    ran = subprocess.run(["bash", "-c", script], cwd=machine.place, env=environment,
                         text=True, stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=60)
    yield ran.stdout + ran.stderr == "build\n", f"elsewhere it shows {ran}"
    yield (machine.place / "log").read_text() == "first\nsecond\n", "the log"


def half_a_python(machine):
    lacking = named(machine, "sdk")
    yield "python3-venv" in lacking and "python3" not in lacking, \
        f"python3 without venv: {lacking}"


def main():
    cases = [
        (refusals, {}, ()),
        (installs, {}, ()),
        (fails, {}, ("fails", "E: no such package")),
        (fails, {}, ("nothing", "not found by the commands on PATH")),
        (half_a_python, {"python3": BARE_PYTHON}, ()),
        (a_wheel_fails, {}, ()),
        (shows_a_moving_line, {}, ()),
    ]
    findings = count = 0
    for case, programs, arguments in cases:
        with tempfile.TemporaryDirectory() as place:
            try:
                for holds, text in case(Machine(place, **programs), *arguments):
                    count += 1
                    if not holds:
                        findings += 1
                        print(f".ci/setup: {text}")
            except AssertionError as error:
                findings += 1
                print(f".ci/setup: {case.__name__}: {error}")
    print(f"{findings} findings in {count} cases of the set-up")
    return 1 if findings else 0


sys.exit(main())
