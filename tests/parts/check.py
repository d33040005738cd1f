"""A library with only some of the optional parts links what they need and nothing else,
speaks stdio, and names for each missing part the CMake option that adds it.

Usage: check.py LIBRARY PROBE CLIENT SERVER [PART...]
"""

import os
import re
import subprocess
import sys

# What the library always links, and what it links for a part. Names without versions.
BASE = {"libc", "libcrypto", "libev", "libm"}
LIBRARIES = {
    "HTTP": {"libwebsockets", "libssl"}, # libcurl is a late library
    "OAUTH": set(),
    "METRICS": set(),
    "BOARD": set(),
    "SQLITE": {"libsqlite3"},
    "REDIS": {"libhiredis", "libhiredis_ssl", "libssl"},
    "POSTGRES": set(), # libpq is a late library
}
# The probe's questions, and the part that each needs.
ASKED = {"listen": "HTTP", "http": "HTTP", "oauth": "OAUTH", "metrics": "METRICS",
         "metrics_path": "METRICS", "board_path": "BOARD", "sqlite": "SQLITE",
         "redis": "REDIS", "postgres": "POSTGRES"}
OF_HTTP = {"oauth", "metrics_path", "board_path"} # asked only where there is HTTP


def run(library, *command):
    done = subprocess.run(
        command, env={**os.environ, "LD_PRELOAD": library}, capture_output=True,
        text=True, timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def needed_by(library):
    said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                          check=True).stdout
    return {name.split("-")[0] for name in re.findall(r"NEEDED.*\[([^].]+)\.so", said)}


def check_libraries(library, parts):
    allowed = BASE.union(*(LIBRARIES[part] for part in parts))
    wanted = {"libc", "libcrypto", "libev"}
    needed = needed_by(library)
    assert wanted <= needed <= allowed, f"{library} needs {sorted(needed)}"


def check_parts(library, probe, parts):
    said = dict(line.split(": ", 1) for line in run(library, probe).splitlines())
    assert said.keys() == set(ASKED) - (OF_HTTP if "HTTP" not in parts else set()), said
    for asked, answer in said.items():
        part = ASKED[asked]
        if part in parts:
            assert answer == "there", f"{asked}: {answer}"
        elif asked == "metrics": # its function has no place for a text
            assert answer == "unsupported", f"{asked}: {answer}"
        else:
            assert f"SEGUE_{part}=ON" in answer, f"{asked}: {answer}"


def check_stdio(library, client, server):
    said = run(library, client, "count", '{"n":3}', server)
    assert "segment 3: 3" in said and "result: " in said, said


def main():
    library, probe, client, server, *parts = sys.argv[1:]
    check_libraries(library, parts)
    check_parts(library, probe, parts)
    check_stdio(library, client, server)


main()
