"""api.def, the public headers and the library name the same functions; errors.def and
segue.h name the same statuses.

Also: the shared library exports them under the version node of this ABI, and nothing
else. The static library defines only global names with Segue's prefix.

Usage: symbols.py --shared LIBRARY --static LIBRARY --node SEGUE_x.y
"""

import argparse
import re
import subprocess

import lint


def declared(text):
    """Returns the functions declared in a header: ({with SEGUE_API}, {without})."""
    public, other = set(), set()
    for _, statement in lint.declarations(text):
        match = re.search(r"(\w+)\s*\(", statement)
        if match and not statement.startswith("typedef"):
            (public if statement.startswith("SEGUE_API ") else other).add(match.group(1))
    return public, other


def statuses(text):
    body = re.search(r"enum segue_status_value \{(.*?)\}", text, flags=re.S).group(1)
    pairs = re.findall(r"(SEGUE_\w+) = (-?\d+)", lint.without_comments(body))
    return dict(pairs)


def exported(nm_output):
    """Returns {(name, version)} of a dynamic symbol table."""
    found = set()
    for line in nm_output.splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            found.add(tuple(re.split("@+", name + "@")[:2]))
    return found


def differences(what, have, want):
    return [f"{what} lacks {name}" for name in sorted(want - have)] + [
        f"{what} has {name} too many" for name in sorted(have - want)]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def self_check():
    text = ("SEGUE_API int segue_a(int (*f)(void));\nint segue_b(void);\n"
            "typedef int (*t)(int);\nstruct s { int (*f)(int); };")
    lint.expect(declared(text) == ({"segue_a"}, {"segue_b"}), "declarations are not seen")
    text = "0010 T segue_a@@SEGUE_9.9\n0000 A SEGUE_9.9\n0020 T stray"
    lint.expect(exported(text) == {("segue_a", "SEGUE_9.9"), ("stray", "")},
                "exports are not seen")
    text = "enum segue_status_value { SEGUE_OK = 0, /* SEGUE_NO = 1 */ SEGUE_E_X = -3 };"
    lint.expect(statuses(text) == {"SEGUE_OK": "0", "SEGUE_E_X": "-3"},
                "statuses are not seen")
    lint.expect(len(differences("x", {"a"}, {"b"})) == 2, "differences are not seen")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", required=True)
    parser.add_argument("--static", required=True)
    parser.add_argument("--node", required=True)
    options = parser.parse_args()
    self_check()

    table = set(lint.api_table())
    public, findings = set(), []
    for path in lint.PUBLIC_HEADERS:
        functions, unmarked = declared(lint.read(path))
        public |= functions
        findings += [f"{path}: {name} lacks SEGUE_API" for name in sorted(unmarked)]
    findings += differences("api.def", table, public)

    found = exported(run("nm", "-D", "--defined-only", options.shared))
    findings += differences("the shared library", {name for name, _ in found}, table)
    findings += [f"{name} is exported as version {node or 'none'}"
                 for name, node in sorted(found) if node != options.node]

    defined = run("nm", "-g", "-j", "--defined-only", "--quiet", options.static)
    names = {line for line in defined.split("\n") if line and not line.endswith(":")}
    findings += [f"the static library defines {name}" for name in sorted(names)
                 if not name.startswith("sgi_") and name not in table]

    errors = lint.error_table()
    enum = statuses(lint.read("core/include/segue/segue.h"))
    values = {f"{name} = {entry[0]}" for name, entry in errors.items()}
    findings += differences("errors.def", values, {f"{n} = {v}" for n, v in enum.items()})
    if len({entry[0] for entry in errors.values()}) != len(errors):
        findings.append("errors.def gives a value twice")
    lint.finish(findings, f"{len(table)} functions, {len(errors)} statuses")


main()
