"""core/docs/rules.md is up to date: it has one row for each rule of
core/docs/requirements.md.

A row says how the rule is implemented and which tests show it. All of it comes from
other files. From the catalogue come the rule and its notes: why it was "Decided
otherwise", why it is "Not tested", what is "Open". Scenarios come from the parentheses
behind each scenario there. Tests come from the ids that their names begin with, or that
a comment in them, or right above them, names. Vectors come from their member "rule".

A rule without a test needs a reason why it is not tested, and a rule with one must not
have such a reason. Tests and vectors must not name unknown rules.

With --write the page is made anew.
"""

import json
import re
import sys

import lint

PAGE = "core/docs/rules.md"
CATALOGUE = "core/docs/requirements.md"
SCENARIOS = "tests/SCENARIOS.md"
RULE = r"R-[0-9A-Z]+-\d+"
NAME = r"(?:R-[0-9A-Z]+-\d+|AS-\d+[ab]?)"
TITLE = re.compile(rf'"((?:{NAME}[ ,:]+)+)([^"\n]+)(?:"|$)', re.M)
RANGE = re.compile(r"(R-[0-9A-Z]+-)(\d+) to \1(\d+)")
LONG = 5
FUNCTION = re.compile(r"^(?:static )?[\w* ]+?\b(\w+)\([^;{}]*\)\n\{.*?^\}", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
SENTENCE = re.compile(r"(?<=[\w)`\]\"*])[.:](?= [A-Z`\"(*\[\d]|\n|$)")
HEAD = """# Rules

One row for each rule of the [catalogue](requirements.md), in its order. `holds` means
that the library does what the rule says, and that the tests in the row show it.
`decided otherwise` means that the rule departs from the letter of its source, for the
reason that is given; the library does what the rule says, and the tests show that.
`open` says what is missing. Scenarios and their tests are in
[SCENARIOS.md](../../tests/SCENARIOS.md). Tests are named by file below `tests` and by
title; vectors by file, with how many of them are about the rule. `tests/lint/rules.py`
keeps this page true, and `tests/lint/rules.py --write` makes it anew.
"""
TABLE = """
| Rule | What it says | How it is held | Scenarios | Tests | Vectors |
| --- | --- | --- | --- | --- | --- |
"""


class Rule:
    def __init__(self, text):
        self.brief = brief(text)
        self.otherwise = reason(text, "Decided otherwise")
        self.untested = reason(text, "Not tested")
        self.open = reason(text, "Open")
        self.scenarios, self.tests, self.vectors = [], set(), {}

    def is_shown(self):
        return bool(self.scenarios or self.tests or self.vectors)

    def held(self):
        if self.untested:
            return f"not tested: {self.untested}"
        holds = f"decided otherwise: {self.otherwise}" if self.otherwise else "holds"
        return f"{holds}; open: {self.open}" if self.open else holds

    def row(self, name):
        vectors = [f"{file} ({n})" for file, n in sorted(self.vectors.items())]
        cells = [name, self.brief, self.held(), ", ".join(self.scenarios),
                 "<br>".join(sorted(self.tests)), ", ".join(vectors)]
        return "| " + " | ".join(cell or "-" for cell in cells) + " |\n"


def brief(text):
    match = SENTENCE.search(text, len("X:"))
    sentence = text[:match.start()] if match else text
    return sentence.replace("**", "").replace("|", "\\|") + "."


def reason(text, mark):
    match = re.search(rf"\*\*{mark}:\*\* (.*?)(?= \[[\w ,]+\]$| \*\*|$)", text)
    return match.group(1) if match else None


def rules_in(catalogue):
    """Returns (sections, rules): [(heading, [id])] and {id: Rule}."""
    sections, rules = [], {}
    for block in catalogue.split("\n\n"):
        text = " ".join(block.split())
        if block.startswith("## "):
            sections.append((re.sub(r"^## \d+\. ", "", block.split("\n")[0]), []))
        found = re.match(rf"\*\*({RULE})\*\* (.*)", text)
        pairs = [found.groups()] if found else []
        pairs += re.findall(rf"^\| ({RULE}) \| [^|]+ \| ([^|]+) \|", block, re.M)
        for name, words in pairs:
            sections[-1][1].append(name)
            rules[name] = Rule(words)
    return sections, rules


def scenarios_in(catalogue, page):
    """Returns [(scenario, [rule])] of the scenarios that pass."""
    passing = {line.split(" | ")[0].strip("| ") for line in page.split("\n")
               if line.startswith("| AS-") and line.split(" | ")[-1].startswith("pass")}
    found = []
    for block in catalogue.split("\n\n"):
        text = " ".join(block.split())
        head = re.match(r"\*\*(AS-\d+[ab]?)\*\* ", text)
        tail = re.search(r"\(((?:(?:R-[0-9A-Z]+-|C-)\d+(?:, )?)+)\)$", text)
        if head and tail and head.group(1) in passing:
            found.append((head.group(1), re.findall(RULE, tail.group(1))))
    return found


def title_of(function, text):
    """Returns the title that a table of tests gives a function; None when no table has
    it."""
    row = re.search(rf'"([^"\n]+)",\s*{function}\b', text)
    if row:
        return re.sub(rf"^(?:{NAME}[ ,:]+)+", "", row.group(1))
    return function if re.search(rf"cmocka_unit_test\w*\({function}\b", text) else None


def ids_in(comment):
    """R-2557-48, -49 means two ids; a long range names no rule in particular."""

    def each(match):
        group, first, last = match.group(1), int(match.group(2)), int(match.group(3))
        few = range(first, last + 1) if last - first < LONG else []
        return " ".join(f"{group}{number}" for number in few)

    comment = re.sub(r"\n[ *]*", " ", comment)
    comment = RANGE.sub(each, comment)
    comment = re.sub(r"(R-[0-9A-Z]+-)(\d+), -(\d+)", r"\1\2 \1\3", comment)
    return re.findall(RULE, comment)


def tests_in(path, text):
    """Returns [(rule, test)] of one source."""
    text = re.sub(r'"\s*\n\s*"', "", text)
    found = [(rule, f"{path}: {match.group(2)}") for match in TITLE.finditer(text)
             for rule in re.findall(RULE, match.group(1))]
    functions = [match.span() + (match.group(1),) for match in FUNCTION.finditer(text)]
    for match in COMMENT.finditer(text):
        around = [name for start, end, name in functions if match.start() < end and
                  not text[match.end():max(start, match.end())].strip()]
        title = title_of(around[0], text) if around else None
        where = f"{path}: {title}" if title else path
        found += [(rule, where) for rule in ids_in(match.group(0))]
    return found


def vectors_in(path, text):
    return [(vector["rule"], path) for vector in json.loads(text)["vectors"]
            if vector["rule"].startswith("R-")]


def page_of(sections, rules):
    parts = [HEAD]
    for heading, names in sections:
        if names:
            parts += [f"\n## {heading}\n", TABLE] + [rules[n].row(n) for n in names]
    return "".join(parts)


def fill(rules, scenarios, tests, vectors):
    """Returns findings: everything that names an unknown rule."""
    findings = []
    for name, about in scenarios:
        for rule in set(about) & set(rules):
            rules[rule].scenarios.append(name)
    for rule, test in tests:
        if rule in rules:
            rules[rule].tests.add(test)
    for rule, path in vectors:
        if rule in rules:
            file = path.split("/")[-1].removesuffix(".json")
            rules[rule].vectors[file] = rules[rule].vectors.get(file, 0) + 1
    said = [(rule, CATALOGUE) for _, about in scenarios for rule in about]
    for rule, where in said + tests + vectors:
        if rule not in rules:
            findings.append(f"{where}: there is no rule {rule}")
    return findings


def check(rules):
    findings = []
    for name, rule in rules.items():
        if not rule.is_shown() and not rule.untested:
            findings.append(f"{CATALOGUE}: nothing shows {name}, and no reason says why")
        if rule.is_shown() and rule.untested:
            findings.append(f"{CATALOGUE}: {name} is said to be untested, and is not")
    return findings


def self_check():
    catalogue = ("## 1. One\n\n**R-X-1** It holds. More.\n\n**R-X-2** It does not. "
                 "**Decided otherwise:** it\nmay. [decided]\n\n| R-X-3 | a | So. Or so. |"
                 "\n\n**AS-1** All of it. (R-X-1, C-9)\n")
    sections, rules = rules_in(catalogue)
    lint.expect(sections == [("One", ["R-X-1", "R-X-2", "R-X-3"])], "rules are not found")
    lint.expect(rules["R-X-2"].otherwise == "it may.", "a reason is not found")
    lint.expect(rules["R-X-3"].brief == "So.", "a sentence has no end")
    scenarios = scenarios_in(catalogue, "| AS-1 | a | b | c | d | pass |")
    lint.expect(scenarios == [("AS-1", ["R-X-1"])], "a scenario is not found")
    source = ('/* all R-X-9 */ int x;\n/* R-X-2, -3: so */\nstatic void f(void)\n{\n}\n'
              'rows = {"AS-1 R-X-1 one", f, 0}')
    lint.expect(ids_in("/* R-X-1 to\n * R-X-3: so */") == ["R-X-1", "R-X-2", "R-X-3"],
                "a range over two lines is not found")
    tests = tests_in("a.c", source)
    lint.expect(tests == [("R-X-1", "a.c: one"), ("R-X-9", "a.c"), ("R-X-2", "a.c: one"),
                          ("R-X-3", "a.c: one")], f"tests are not found: {tests}")
    lint.expect(fill(rules, scenarios, tests, []), "a rule that is none was let pass")
    lint.expect(not check(rules), "rules that are shown are refused")
    lint.expect(len(check(rules_in(catalogue)[1])) == 3, "rules that nothing shows pass")
    lint.expect("| R-X-2 | It does not. | decided otherwise: it may. | - | a.c: one | - |"
                in page_of(sections, rules), "a row is wrong")


def main():
    self_check()
    catalogue = lint.read(CATALOGUE)
    sections, rules = rules_in(catalogue)
    tests, vectors = [], []
    for path in lint.files("tests/*/test_*.c", "tests/fuzz/fuzz_*.c",
                           "tests/python/*.py", "tests/node/*.test.ts"):
        if "vectors" not in path.name:
            here = path.relative_to("tests").as_posix()
            tests += tests_in(here, lint.read(path))
    for path in lint.files("tests/vectors/*.json"):
        vectors += vectors_in(path.as_posix(), lint.read(path))
    scenarios = scenarios_in(catalogue, lint.read(SCENARIOS))
    findings = fill(rules, scenarios, tests, vectors) + check(rules)
    page = page_of(sections, rules)
    if "--write" in sys.argv[1:]:
        (lint.ROOT / PAGE).write_text(page, encoding="utf-8")
    elif not (lint.ROOT / PAGE).is_file() or lint.read(PAGE) != page:
        findings.append(f"{PAGE}: stale: python3 tests/lint/rules.py --write")
    lint.finish(findings, f"{len(rules)} rules")


main()
