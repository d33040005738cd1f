"""tests/SCENARIOS.md is up to date, and has each scenario of core/docs/requirements.md.

A list of scenarios of a foreign suite that must not fail is no C test. It has its name
in a comment of tests/conformance/verdicts.py: "# AS-124: what it is".

The page has one row for each acceptance scenario: id, a sentence that says what must
hold, tests ("file: name", <br> between them), transports, stores, and its state. The
state is "pass", or "pass; <what>: <issue>" when another issue covers a part, or the
issue that covers all of it ("3 of 8"). A test belongs to the scenarios that its name
begins with: "AS-33 a task is created". Every such test is in its rows, every test of a
row exists, and a row passes exactly when it has tests.

With --write the columns of tests, transports and stores are made anew from the sources.
"""

import re
import sys

import lint

PAGE = "tests/SCENARIOS.md"
CATALOGUE = "core/docs/requirements.md"
ID = r"AS-\d+[ab]?"
IDS = re.findall(rf"^\*\*({ID})\*\* ", lint.read(CATALOGUE), re.M)
FLAGS = r"\s*,\s*\w+\s*,\s*([A-Z_|\s0]+)[,}]"
TITLE = re.compile(rf'"({ID}(?:,? {ID})*) ([^"\n]+)"(?:{FLAGS})?')
ISSUE = r"[1-8] of 8"
SENTENCE = re.compile(r"[A-Z][^|]*\w[)\"]?\.$")
LEAST_WORDS = 6
STATE = re.compile(rf"(?:pass(?:; [\w, ]+: {ISSUE})*|{ISSUE})$")


def places(flags, has_world):
    """Returns (transports, stores) of a scenario by its flags."""
    if not has_world:
        return {"pair"}, set()
    transports = {"pair", "stdio", "http"}
    if "ONLY_HERE" in flags:
        transports = {"pair", "http"}
    if "ONLY_STDIO" in flags:
        transports = {"stdio"}
    if "ONLY_HTTP" in flags:
        transports = {"http"}
    if "NOT_HTTP" in flags:
        transports -= {"http"}
    return transports, {"SQLite"} if "ONLY_SQLITE" in flags else {"memory", "SQLite"}


def tests_in(path, text):
    """Returns {id: [(test, transports, stores)]} of one source."""
    found = {}
    text = re.sub(r'"\s*\n\s*"', "", text)
    has_world = "scenarios_run" in text
    for match in TITLE.finditer(text):
        transports, stores = places(match.group(3) or "", has_world)
        if "slow_readers" in path or "spawn" in path:
            transports = {"stdio"}
        if "test_http_" in path or path.endswith("_http.c"):
            transports, stores = {"http"}, {"memory"}
        test = f"{path}: {match.group(2)}"
        for name in re.findall(ID, match.group(1)):
            found.setdefault(name, []).append((test, transports, stores))
    return found


def lists_in(path, text):
    """The same of a source that lists scenarios of a foreign suite."""
    found = {}
    for name, title in re.findall(rf"^# ({ID}): (.+)$", text, re.M):
        found.setdefault(name, []).append((f"{path}: {title}", {"http"}, {"memory"}))
    return found


def all_tests():
    verdicts = "tests/conformance/verdicts.py"
    found = lists_in("conformance/verdicts.py", lint.read(verdicts))
    for path in lint.files("tests/*/test_*.c"):
        here = tests_in(path.relative_to("tests").as_posix(), lint.read(path))
        for name, tests in here.items():
            found.setdefault(name, []).extend(tests)
    return found


def rows_of(page):
    """Returns [(line number, [cells])] of the table."""
    rows = []
    for number, line in enumerate(page.split("\n"), 1):
        if line.startswith("| AS-"):
            rows.append((number, [cell.strip() for cell in line.strip("|").split("|")]))
    return rows


def check(page, found):
    findings, sentences = [], set()
    rows = rows_of(page)
    names = [cells[0] for _, cells in rows]
    for name in IDS:
        if names.count(name) != 1:
            findings.append(f"{PAGE}:1: {name} has {names.count(name)} rows")
    for name in sorted(set(names + list(found)) - set(IDS)):
        findings.append(f"{PAGE}:1: there is no scenario {name}")
    for number, cells in rows:
        if len(cells) != 6:
            findings.append(f"{PAGE}:{number}: {len(cells)} cells, not 6")
            continue
        name, sentence, tests, _, _, state = cells
        if not SENTENCE.match(sentence) or len(sentence.split()) < LEAST_WORDS:
            findings.append(f"{PAGE}:{number}: no sentence says what must hold in {name}")
        if sentence in sentences:
            findings.append(f"{PAGE}:{number}: {name} has the sentence of another row")
        sentences.add(sentence)
        named = set(filter(None, tests.replace("<br>", "\n").split("\n"))) - {"-"}
        there = {test for test, _, _ in found.get(name, [])}
        for test in sorted(named - there):
            findings.append(f"{PAGE}:{number}: no such test: {test}")
        for test in sorted(there - named):
            findings.append(f"{PAGE}:{number}: {name} does not name its test {test}")
        if not STATE.match(state):
            findings.append(f"{PAGE}:{number}: the state of {name} is {state!r}")
        elif state.startswith("pass") != bool(there):
            count = len(there)
            findings.append(f"{PAGE}:{number}: {name} is {state!r} with {count} tests")
    return findings


def column(values):
    order = ["pair", "stdio", "http", "memory", "SQLite"]
    return ", ".join(sorted(values, key=order.index)) or "-"


def written(page, found):
    """Returns the page with the columns that follow from the sources made anew."""
    lines = page.split("\n")
    for number, cells in rows_of(page):
        tests = found.get(cells[0], [])
        transports = set().union(*(t for _, t, _ in tests))
        stores = set().union(*(s for _, _, s in tests))
        names = "<br>".join(sorted({test for test, _, _ in tests})) or "-"
        lines[number - 1] = (f"| {cells[0]} | {cells[1]} | {names} | "
                             f"{column(transports)} | {column(stores)} | {cells[5]} |")
    return "\n".join(lines)


def self_check():
    source = 'scenarios_run {"AS-1 one", f, ONLY_HERE | NOT_HTTP, NULL}'
    found = tests_in("scenarios/test_x.c", source)
    good = "\n".join(f"| {name} | What holds in {name} is this. | - | - | - | 5 of 8 |"
                     for name in IDS[1:])
    row = ("| AS-1 | All of it holds at all times. | scenarios/test_x.c: one | pair | "
           "memory, SQLite | pass; L: 3 of 8 |\n")
    unowned = good.replace("5 of 8", "pass", 1)
    lint.expect(lists_in("a.py", "# AS-2: two\nAS-3: x") ==
                {"AS-2": [("a.py: two", {"http"}, {"memory"})]}, "a list is not found")
    lint.expect(not check(row + good, found), "a true page is refused")
    lint.expect(written(row + good, found) == row + good, "a true page is changed")
    for wrong in (good, row + row + good, row.replace("one", "two") + good,
                  row.replace("pass; L: 3 of 8", "3 of 8") + good,
                  row.replace("pass; L: 3 of 8", "soon") + good,
                  row.replace("All of it holds at all times.", "-") + good,
                  row.replace("All of it holds at all times.", "It holds.") + good,
                  row + good.replace("in AS-3 ", "in AS-2 "), row + unowned,
                  row + good + "\n| AS-200 | There is no such row. | - | - | - | - |"):
        lint.expect(check(wrong, found), f"let pass: {wrong[:60]!r}")


def main():
    self_check()
    found = all_tests()
    page = lint.read(PAGE)
    if "--write" in sys.argv[1:]:
        (lint.ROOT / PAGE).write_text(written(page, found), encoding="utf-8")
        return
    rows = rows_of(page)
    passing = sum(cells[-1].startswith("pass") for _, cells in rows)
    lint.finish(check(page, found), f"{len(rows)} scenarios, {passing} pass")


main()
