"""The tables of core/docs/logs-and-traces.md have each field and event of
core/engine/events.def, and each event of core/proxy/events.def. Each event is expected by
a test, and the proxy writes only events of its table.

With --write the tables are made anew.
"""

import re
import sys

import lint

CORE = "core/engine/events.def"
PROXY = "core/proxy/events.def"
PAGE = "core/docs/logs-and-traces.md"
TESTS = ("tests/unit/*.c", "tests/scenarios/*.c", "tests/python/*.py",
         "tests/node/*.ts", "tests/proxy/*.py")
TEXT = r'"((?:[^"\\]|\\.)*)"'
FIELD = re.compile(rf"^EVENT_FIELD\((\w+),\s*(TEXT|NUMBER),\s*{TEXT}\)", re.M)
GROUP = re.compile(r"^#define SGI_HAS_([A-Z]+)\s((?:.*\\\n)*.*)", re.M)
EVENT = re.compile(rf"^EVENT\((\w+),\s*(\w+),\s*([\w |]+?),\s*{TEXT}\)", re.M)
PROXY_EVENT = re.compile(rf"^PROXY_EVENT\((\w+),\s*{TEXT}\)", re.M)
WRITES = re.compile(r'log_event\([^;"]*?,\s*"(\w+)"')


def names_in(text):
    return re.findall(r"SGI_HAS_(\w+)", text)


def fields_of(text, groups):
    """Returns the names of the fields, where a group stands for its own."""
    found = []
    for name in names_in(text):
        found += groups.get(name, [name])
    return found


def field_table(core):
    rows = [f"| `{name}` | {'text' if kind == 'TEXT' else 'number'} | {text} |"
            for name, kind, text in FIELD.findall(core)]
    return "\n".join(["| Field | | What |", "| --- | --- | --- |", *rows]) + "\n"


def event_table(core):
    groups = {name: names_in(text) for name, text in GROUP.findall(core)}
    rows = []
    for name, level, has, text in EVENT.findall(core):
        fields = " ".join(f"`{field}`" for field in fields_of(has, groups))
        rows.append(f"| `{name}` | {level.lower()} | {text} | {fields} |")
    return "\n".join(["| Event | Level | When | Fields |", "| --- | --- | --- | --- |",
                      *rows]) + "\n"


def proxy_table(proxy):
    rows = [f"| `{name}` | {text} |" for name, text in PROXY_EVENT.findall(proxy)]
    return "\n".join(["| Event | When |", "| --- | --- |", *rows]) + "\n"


def marks(name):
    return f"<!-- {name}: made by tests/lint/events.py --write -->\n", "<!-- end -->\n"


def put(page, name, table):
    """Returns the page with this table."""
    begin, end = marks(name)
    head, rest = page.split(begin)
    return head + begin + "\n" + table + "\n" + end + rest.split(end, 1)[1]


def untested(core, texts):
    """Yields the events that no test expects."""
    for name, *_ in EVENT.findall(core):
        if not any(re.search(rf'sees\([^;]*?"{name}"', text) for text in texts):
            yield name


def check_planted():
    core = ('EVENT_FIELD(a, TEXT, "A.")\n'
            '#define SGI_HAS_ALL \\\n    (SGI_HAS_a | SGI_HAS_b)\n'
            'EVENT(x_y, INFO, SGI_HAS_ALL | SGI_HAS_c,\n      "X.")\n')
    if field_table(core).splitlines()[2:] != ["| `a` | text | A. |"]:
        sys.exit("the planted fields are not understood")
    if event_table(core).splitlines()[2:] != ["| `x_y` | info | X. | `a` `b` `c` |"]:
        sys.exit("the planted events are not understood")
    if list(untested(core, ['sees(&log, "x_z", NULL)'])) != ["x_y"]:
        sys.exit("the planted event without a test was not found")


def main():
    check_planted()
    core, proxy, page = (lint.read(path) for path in (CORE, PROXY, PAGE))
    found = []
    for path, text, pattern, macro in ((CORE, core, EVENT, "\nEVENT("),
                                       (CORE, core, FIELD, "\nEVENT_FIELD("),
                                       (PROXY, proxy, PROXY_EVENT, "\nPROXY_EVENT(")):
        if len(pattern.findall(text)) != text.count(macro):
            found.append(f"{path}:1: a row is not understood by tests/lint/events.py")
    new = put(page, "fields", field_table(core))
    new = put(new, "events", event_table(core))
    new = put(new, "proxy", proxy_table(proxy))
    if "--write" in sys.argv[1:]:
        (lint.ROOT / PAGE).write_text(new)
    elif new != page:
        found.append(f"{PAGE}:1: not up to date: python3 tests/lint/events.py --write")
    tests = [lint.read(path) for path in lint.files(*TESTS)]
    found += [f"{CORE}:1: no test expects the event {name}"
              for name in untested(core, tests)]
    known = {name for name, _ in PROXY_EVENT.findall(proxy)}
    written = set()
    for path in lint.files("core/proxy/*.c"):
        written |= set(WRITES.findall(lint.read(path)))
    for name in sorted(written ^ known):
        found.append(f"{PROXY}:1: {name} is not both in the table and in the code")
    lint.finish(found, f"{len(EVENT.findall(core))} events")


main()
