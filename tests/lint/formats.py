"""What goes into a store changes only together with the number of a format.

tests/files/records_format_N.txt lists the format N of records and entries: the kinds of
entries with their numbers and members, the values of "task", the members of a record and
of forwarded commands. The newest list must equal the source. Each list has all of the
one before it. The steps of the SQLite and PostgreSQL stores have digests here.

A kept file never changes: a commit that changes one is a finding. So a new kind or
member needs a new list with the next number, SGI_RECORDS, and what
core/docs/upgrades.md says under "A new format". A member that older servers may ignore is
in IGNORED until the next format.

Usage: formats.py [--write N]
"""

import hashlib
import re
import subprocess
import sys

import lint

HOW = 'core/docs/upgrades.md says how, under "A new format"'
MEMBER = re.compile(r'sgi_jw_(?:member_\w+|key)\(&?w, "(\w+)"')

# The digest of each step: a step that is changed after it was taken makes two stores of
# one format that differ.
STEPS = {
    "sqlite 1": "c28499b870584e3b",
    "sqlite 2": "45a987f08f12a094",
    "sqlite 3": "66beca242f710cbd",
    "postgres 1": "6774b1cbd430ef30",
    "postgres 2": "9b89f3b238422eea",
}

# Members of the newest format that older servers skip, and show nothing wrong without.
IGNORED = [
    # the session that made a task: an older server has no tasks/list for sessions
    "record session",
    # the trace of a header: an older server runs the call in no trace
    "record trace",
    # for tools that look into the store: a server does not read it
    "record restartable",
]


def enum_of(text, name):
    """Returns [(name, number, members)] of an enum; the comments name the members."""
    body = re.search(rf"typedef enum {name} {{(.*?)}} {name};", text, re.S).group(1)
    prefix = "SGI_ENTRY_" if name == "sgi_entry_kind" else "SGI_TASKING_"
    # a comment stands before its value, or behind it on the same line
    body = re.sub(r"(\n[^\n/]*?)(/\*(?:[^*]|\*(?!/))*\*/)(?=\n)", r"\n\2\1", body)
    found, words = [], []
    for token in re.finditer(rf"/\*(.*?)\*/|{prefix}(\w+) = (\d+)", body, re.S):
        if token.group(1) is not None:
            words += re.findall(r'"(\w+)"', token.group(1))
        else:
            found.append((token.group(2), int(token.group(3)), sorted(set(words))))
            words = []
    return found


def function(path, name):
    """Returns the text of a static function."""
    text = lint.read(path)
    start = re.search(rf"^static void {name}\([^;]*?\)\n{{", text, re.M).start()
    return text[start:text.index("\n}\n", start)]


def present():
    """Returns the lines of the list that the source makes."""
    op = lint.read("core/engine/log/op.h")
    lines = [" ".join(["entry", name, str(number), *members])
             for name, number, members in enum_of(op, "sgi_entry_kind")]
    lines += [f"task {name} {number}" for name, number, _ in enum_of(op, "sgi_tasking")]
    records = (lint.read("core/engine/server/served_record.c") +
               lint.read("core/engine/log/record.c") +
               lint.read("core/engine/server/session_mark.c") +
               lint.read("core/engine/server/call_trace.c") +
               function("core/engine/dialect/resumable/resumable.c", "write_record"))
    commands = (function("core/engine/cluster/forwarding.c", "write_command") +
                function("core/engine/server/mailbox.c", "write_letter"))
    forwarded = lint.read("core/engine/cluster/forwarding.c")
    lines += [f"record {name}" for name in sorted(set(MEMBER.findall(records)))]
    lines += [f"command {name}" for name in sorted(
        set(MEMBER.findall(commands)) |
        set(re.findall(r'\(sgi_command\){"(\w+)"', forwarded)))]
    return lines


def strings(text):
    """Returns the string literals of C source, one after the other."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def array(text, name):
    return strings(re.search(rf"{name}\[\] =\n(.*?);\n\n", text, re.S).group(1))


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def steps():
    sqlite = lint.read("core/store/sqlite_format.c")
    postgres = lint.read("core/store/postgres_schema.c")
    functions = "".join(
        strings(re.sub(r"#include .*", "", lint.read(f"core/store/{name}.c")))
        for name in ("postgres_functions", "postgres_functions_commit"))
    found = {f"sqlite {number}": digest(array(sqlite, f"STEP_{number}"))
             for number in range(1, len(re.findall(r"char STEP_\d+\[\]", sqlite)) + 1)}
    # settings of the storage of a table are no part of the format
    tables = re.sub(r" WITH \([^)]*\)", "", array(postgres, "TABLES"))
    found["postgres 1"] = digest(tables + functions)
    found["postgres 2"] = digest(array(postgres, "REFUSE_OLDER"))
    return found


def newest():
    return int(re.search(r"#define SGI_RECORDS (\d+)",
                         lint.read("core/base/records.h")).group(1))


def path_of(number):
    return f"tests/files/records_format_{number}.txt"


def kept(number):
    path = lint.ROOT / path_of(number)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else None


def compare(source, lists):
    """Returns the findings. lists: the lines of each format, the first one first."""
    findings = []
    for number, lines in enumerate(lists, 1):
        if lines is None:
            return [f"{path_of(number)}:1: the list of the newest format is missing: "
                    f"formats.py --write {number}; {HOW}"]
        for line in set(lists[number - 2] if number > 1 else []) - set(lines):
            findings.append(f"{path_of(number)}:1: lacks what format {number - 1} has: "
                            f"{line}")
    last = len(lists)
    for line in sorted(set(source) - set(lists[-1])):
        findings.append(f"{path_of(last)}:1: is in no format: {line}: it needs the "
                        f"format {last + 1} of records and entries; {HOW}")
    for line in sorted(set(lists[-1]) - set(source)):
        findings.append(f"{path_of(last)}:1: is in format {last}, and not in the source: "
                        f"{line}; {HOW}")
    return findings


def changed_files():
    """Returns findings for kept files that a commit or the working tree changes."""
    try:
        log = subprocess.run(
            ["git", "log", "--diff-filter=M", "--name-only", "--format=", "--",
             "tests/files"], cwd=lint.ROOT, capture_output=True, text=True)
        now = subprocess.run(
            ["git", "diff", "--diff-filter=MD", "--name-only", "HEAD", "--",
             "tests/files"], cwd=lint.ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return []
    names = sorted(set(log.stdout.split()) | set(now.stdout.split()))
    return [f"{name}:1: a kept file never changes: it is what servers have written"
            for name in names]


def check_itself():
    one, two = ["entry A 1"], ["entry A 1", "entry B 2 x"]
    lint.expect(not compare(two, [one, two]), "what fits is refused")
    lint.expect(compare([*two, "entry C 3"], [one, two]), "a new kind is accepted")
    lint.expect(compare(one, [one, two]), "a kind that is gone is accepted")
    lint.expect(compare(two, [["entry Z 9"], two]), "a list may lack something")
    lint.expect(compare(two, [one, None]), "a list may be missing")
    made_up = ('typedef enum sgi_entry_kind {\n    SGI_ENTRY_A = 1, /* {"k"} */\n'
               '    /* {"m"} */\n    SGI_ENTRY_B = 2\n} sgi_entry_kind;')
    lint.expect(enum_of(made_up, "sgi_entry_kind") == [("A", 1, ["k"]), ("B", 2, ["m"])],
                "members of entries")
    lint.expect(MEMBER.findall('sgi_jw_member_int(w, "a", 1); sgi_jw_key(&w, "b");') ==
                ["a", "b"], "members of records")


def main():
    check_itself()
    if sys.argv[1:2] == ["--write"]:
        (lint.ROOT / path_of(sys.argv[2])).write_text("\n".join(present()) + "\n")
        return 0
    lists = [kept(n) for n in range(1, newest() + 1)]
    if lists[-1] is not None:
        lists[-1] = lists[-1] + IGNORED
    findings = compare(present(), lists)
    for name, value in steps().items():
        if STEPS.get(name) != value:
            findings.append(f"core/store:1: the step to format {name} has another "
                            f"digest, {value}: a taken step never changes; {HOW}")
    findings += changed_files()
    for line in findings:
        print(line)
    print(f"{len(findings)} findings, {len(present())} kinds and members")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
