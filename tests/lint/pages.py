"""Every code block of every page has an owner: a test that runs, builds or checks it.

A row of OWNERS names pages by a glob, languages ("text" is a block without one), and the
file of the test, which exists. Output is owned by the test that compares it. A page or a
language without a row is a finding, and so is a row that owns no block.

This lint itself owns the blocks of JSON, which must be JSON, and the commands of the
site's pages: a target of make exists, and a program is one that the page has saved.
"""

import json
import re
from fnmatch import fnmatch

import lint

FENCE = re.compile(r"^ *(```+|~~~+)(.*)$")
SITE = "core/docs/site/pages/*"
ME = "tests/lint/pages.py"
# Pages, languages, the owner.
OWNERS = [
    ("README.md", "python", "tests/python/quick_start.py"),
    ("README.md", "js", "tests/node/quick_start.mjs"),
    ("README.md", "c sh", "tests/demo/quick_start"),
    ("python/README.md", "python python3 py", "tests/python/test_guide.py"),
    ("python/README.md", "sh text", "tests/python/quick_start.py"),
    ("node/README.md", "js javascript", "tests/node/guide.test.ts"),
    ("node/README.md", "ts", "tests/node/guide_types.mjs"),
    ("node/README.md", "sh text", "tests/node/quick_start.mjs"),
    ("core/README.md", "c", "tests/lint/guide.py"),
    ("core/README.md", "sh text", "tests/demo/quick_start"),
    ("core/README.md", "nginx haproxy ini sql", "tests/lint/shown.py"),
    ("core/docs/metrics.md", "yaml", "tests/lint/shown.py"),
    ("core/docs/logs-and-traces.md", "c", "tests/lint/guide.py"),
    ("core/docs/logs-and-traces.md", "json", ME),
    ("core/docs/demo.md", "text", "tests/lint/shown.py"),
    ("core/docs/upgrades.md", "text", "tests/lint/shown.py"),
    ("core/docs/benchmarks.md", "sh", ME),
    ("core/docs/packages.md", "sh", ME),
    ("core/docs/upgrades.md", "sh", ME),
    ("core/docs/curl.md", "sh text", "tests/demo/curl_examples"),
    ("core/docs/proxy.md", "sh json", "tests/proxy/test_recipes.py"),
    ("core/docs/recipes/*.md", "*", "tests/proxy/test_recipes.py"),
    ("core/docs/adding-*.md", "c", "tests/lint/references.py"),
    ("core/docs/architecture.md", "text", "tests/lint/references.py"),
    ("core/docs/man/segue-proxy.1.md", "text", "tests/lint/man.py"),
    ("core/docs/man/segue*.md", "text", "tests/site/help_pages.py"),
    ("core/docs/site/pages/how-to/custom-store.md", "c", "tests/lint/guide.py"),
    (SITE, "python py", "tests/python/test_site.py"),
    (SITE, "js", "tests/node/site.test.ts"),
    (SITE, "c", "tests/site/play.py"),
    (SITE, "text", "tests/site/play.py"),
    (SITE, "sh json", ME),
]
LEFT_OUT = ("core/docs/requirements.md", "tests/")  # not for users
PROGRAM = re.compile(r"^(?:cc|python|node|pytest) (\w+\.(?:c|py|mjs))\b|^\./(\w+)")
MAKE = re.compile(r"^make ([\w-]+)$")
FILE = re.compile(r"^python3 (tests/\S+\.py)|^build/debug/(tests/\S+)")
OTHERS = re.compile(r"^(?:segue-proxy |gdb |cd build/|\. build/)")


def blocks(text):
    """Yields (line, language, code) of each block."""
    start, language, fence, lines = 0, "", "", []
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if not fence and match:
            start, fence = number, match[1]
            language, lines = match[2].strip() or "text", []
        elif fence and line.strip() == fence:
            yield start, language, "\n".join(lines) + "\n"
            fence = ""
        elif fence:
            lines.append(line)


def owner_of(page, language):
    for pattern, languages, owner in OWNERS:
        if fnmatch(page, pattern) and (languages == "*" or language in languages.split()):
            return pattern, languages, owner
    return None


def check_commands(text, code, targets):
    """Returns the commands of a block that neither the page nor the Makefile has."""
    wrong = []
    for line in code.splitlines():
        line = line.partition(" #")[0].strip().removesuffix(" &")
        file = FILE.match(line)
        made = MAKE.match(line)
        named = PROGRAM.match(line)
        if file:
            is_there = (lint.ROOT / (file[1] or f"{file[2]}.c")).exists()
        elif made:
            is_there = made[1] in targets
        elif named:
            is_there = f"`{named[1]}`" in text or f"-o {named[2]}\n" in text
        else:
            is_there = bool(OTHERS.match(line))
        if not is_there:
            wrong.append(line)
    return wrong


def check(page, text, targets, used):
    findings = []
    for line, language, code in blocks(text):
        row = owner_of(page, language)
        if not row:
            findings.append(f"{page}:{line}: no test owns this block of {language}")
            continue
        used.add(row)
        if row[2] == ME and language == "sh":
            findings += [f"{page}:{line}: nothing makes or saves what this runs: {one}"
                         for one in check_commands(text, code, targets)]
        if row[2] == ME and language == "json":
            try:
                json.loads(code)
            except ValueError as error:
                findings.append(f"{page}:{line}: not JSON: {error}")
    return findings


def self_check():
    page = "core/docs/site/pages/a.md"

    def found(text, name=page):
        return check(name, text, {"python"}, set())

    good = ("Save this as `a.py`:\n```python\n1\n```\n```sh\nmake python\npython a.py &\n"
            "cc a.c -o b\n./b\n```\n`a.c` -o b\n```json\n{}\n```\n")
    lint.expect(not found(good), f"a good page is refused: {found(good)}")
    for wrong in ("```rust\n```\n", "```sh\nmake pythons\n```\n", "```sh\nls\n```\n",
                  "```sh\npython b.py\n```\n", "```json\n{,}\n```\n"):
        lint.expect(found(wrong), f"{wrong} was let pass")
    lint.expect(found("```c\n```\n", "core/docs/new.md"), "a new page was let pass")


def main():
    self_check()
    targets = set(re.findall(r"^([\w-]+):", lint.read("Makefile"), re.M))
    findings, used, count = [], set(), 0
    for path in lint.files("*.md", "core/**/*.md", "python/*.md", "node/*.md",
                           "python/examples/**/*.md", "node/examples/**/*.md"):
        page = path.as_posix()
        if page.startswith(LEFT_OUT) or "node_modules" in path.parts:
            continue
        text = lint.read(page)
        count += len(list(blocks(text)))
        findings += check(page, text, targets, used)
    for row in OWNERS:
        if row not in used:
            findings.append(f"{ME}: owns no block: {row}")
        if not (lint.ROOT / row[2]).exists():
            findings.append(f"{ME}: no file {row[2]}")
    lint.finish(findings, f"{count} blocks")


if __name__ == "__main__":
    main()
