"""core/docs/promises.md says for each fault and each store what holds.

Each fault is a section with one table. A row names one store or several; each store of
a fault is in one row. No cell is empty. The last cell names tests, "file: name" with
<br> between them: the file is in tests, and the name is a test of that file, as its
title, its function, or, in a program in Python, as a quoted word. No cell is "open".
"""

import re

import lint

PAGE = "core/docs/promises.md"
FAULTS = ["Client cut", "Client killed", "Server killed", "Power lost", "Disk full",
          "Disk error", "Store held", "Store restarted", "Store failed over", "Partition",
          "Clock jump", "Two owners", "Version upgrade and downgrade"]
STORES = ["Memory", "SQLite full", "SQLite normal", "Redis always", "Redis everysec",
          "Redis replica", "PostgreSQL sync", "PostgreSQL async"]
HEAD = ["Store", "Promised", "Can be lost", "How it is told", "Tests"]
SHARED_CASES = ("tests/support/store_suite.c", "tests/support/store_suite_bounds.c",
                "tests/support/store_suite_work.c", "tests/support/news_suite.c",
                "tests/support/news_suite_shared.c")


def tables(page):
    """Returns {fault: [(line, [cells])]} without the line below the head."""
    found, fault = {}, None
    for number, line in enumerate(page.split("\n"), 1):
        if line.startswith("## "):
            fault = line[3:].strip()
            found.setdefault(fault, [])
        elif fault and line.startswith("|") and not line.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            found[fault].append((number, cells))
    return found


def has_test(test, read):
    """Returns whether there is such a test."""
    path, _, name = test.partition(": ")
    text = read(f"tests/{path}")
    if not name or text is None:
        return False
    text = re.sub(r'"\s*\n\s*"', "", text)
    if path.endswith(".py"):
        return f'"{name}"' in text
    if re.fullmatch(r"\w+", name):
        if "store_suite_run" in text or "news_suite_run" in text:
            text += "".join(read(shared) or "" for shared in SHARED_CASES)
        return re.search(rf"(?:cmocka_unit_test\w*|CASE)\(\s*{name}\b", text) is not None
    return re.search(rf'"(?:(?:AS|R|C)-[^" ]+,? )*{re.escape(name)}"', text) is not None


def check_row(number, cells, read):
    where = f"{PAGE}:{number}"
    if len(cells) != len(HEAD) or not all(cells):
        return [f"{where}: a cell is empty or missing"]
    if "open" in cells:
        return [f"{where}: a cell is open: a promise needs its test"]
    return [f"{where}: no such test: {test}" for test in cells[-1].split("<br>")
            if not has_test(test.strip(), read)]


def check(page, read):
    """Returns the findings."""
    findings, found = [], tables(page)
    for fault in FAULTS:
        rows = found.pop(fault, [])
        if not rows or rows[0][1] != HEAD:
            findings.append(f"{PAGE}: no table of the fault {fault}")
            continue
        named = []
        for number, cells in rows[1:]:
            findings += check_row(number, cells, read)
            stores = [store.strip() for store in cells[0].split(",")]
            named += stores
        for store in sorted(set(named) | set(STORES), key=str):
            count = named.count(store)
            if count != 1 or store not in STORES:
                findings.append(f"{PAGE}: {fault}: {store} is in {count} rows")
    findings += [f"{PAGE}: no such fault: {fault}" for fault in found]
    return findings


def self_check():
    source = 'cmocka_unit_test(one_two), {"AS-1 R-1-2 a "\n "b", f}'
    files = {"tests/unit/test_a.c": source,
             "tests/kill_matrix/run.py": 'Matrix("redis", 1)'}
    good = "unit/test_a.c: one_two<br>unit/test_a.c: a b<br>kill_matrix/run.py: redis"
    row = f"| {', '.join(STORES[1:])} | a | b | c | {good} |\n"
    first = f"| {STORES[0]} | a | b | c | unit/test_a.c: one_two |\n"
    head = f"| {' | '.join(HEAD)} |\n| --- |\n"
    page = "".join(f"## {fault}\n\n{head}{first}{row}\n" for fault in FAULTS)
    found = check(page, files.get)
    lint.expect(not found, f"a true page is refused: {found}")
    for wrong in (page.replace("one_two", "one_tw", 1), page.replace("a b<", "b<", 1),
                  page.replace(": redis", ": redi", 1), page.replace("| b |", "| |", 1),
                  page.replace("| b |", "| open |", 1), page.replace(row, "", 1),
                  page.replace("| a | b | c | unit/test_a.c: one_two |",
                               "| open | open | open | open |", 1),
                  page.replace("SQLite full", "SQLite", 1),
                  page.replace(row, row + row, 1), page.replace("Disk full", "Disk", 1),
                  page.replace("test_a.c", "test_b.c", 1)):
        lint.expect(check(wrong, files.get), "a wrong page was let pass")


def read_if_there(path):
    return lint.read(path) if (lint.ROOT / path).is_file() else None


def main():
    self_check()
    cells = len(FAULTS) * len(STORES)
    findings = check(lint.read(PAGE), read_if_there)
    lint.finish(findings, f"{cells} cells of faults and stores")


main()
